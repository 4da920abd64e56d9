from typing import NamedTuple

import numpy as np
import pytest
import torch

from kmrun.core.case import Argument, Output
from kmrun.measure import inputs, outputs
from kmrun.measure.outputs import OutputError
from support.sides import make_case, randn

CPU = torch.device("cpu")


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


class OnlyDlpack:
    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, *args, **kwargs):
        return self.tensor.__dlpack__(*args, **kwargs)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Lazy(torch.Tensor):
    pass


def test_all_ways_to_hand_tensors_back_are_flattened_in_order():
    one, two = torch.ones(2), torch.zeros(3)
    for result in ((one, two), [one, two], {"a": one, "b": two}, Pair(one, two), (one, [two])):
        found = outputs.flatten(result)
        assert [tensor is given for tensor, given in zip(found, (one, two), strict=True)] == [True, True]
    assert outputs.flatten(torch.nn.Parameter(one))[0].shape == (2,)


def test_foreign_arrays_are_read_without_a_copy_where_that_can_be():
    tensor = torch.arange(3.0)
    assert outputs.flatten(OnlyDlpack(tensor))[0].data_ptr() == tensor.data_ptr()
    array = np.arange(3.0)
    assert outputs.flatten(array)[0].data_ptr() == array.ctypes.data


def test_a_bare_array_interface_is_read():
    class Bare:
        def __init__(self, array):
            self.kept = array
            self.__array_interface__ = array.__array_interface__

    assert outputs.flatten(Bare(np.arange(3.0)))[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("result", "code", "says"),
    [
        (None, "output_none", "the kernel returned None"),
        ((torch.ones(1), None), "output_none", "output 1 is None"),
        (3.0, "output_not_tensor", "the kernel returned a float, not a tensor"),
        ({"a": "x"}, "output_not_tensor", "output 'a' is a str, not a tensor"),
        (torch.ones(2, device="meta"), "output_not_tensor", "a meta tensor"),
        (torch.eye(2).to_sparse(), "output_not_tensor", "a sparse_coo tensor"),
        (torch.ones(2).as_subclass(Lazy), "output_lazy", "Lazy: a tensor subclass may compute after"),
    ],
)
def test_what_is_no_plain_tensor_is_refused(result, code, says):
    with pytest.raises(OutputError) as caught:
        outputs.flatten(result)
    assert (caught.value.code, caught.value.fault, caught.value.outcome) == (code, "kernel", "error")
    assert says in caught.value.sentence


def test_conjugates_are_made_real():
    conjugate = torch.tensor([1 + 2j]).conj()
    assert not outputs.flatten(conjugate)[0].is_conj()


DECLARED = (Output("o", (2, 3), "bf16"), Output("lse", (2,), "fp32"))


def test_declared_outputs_get_their_names():
    found = outputs.declared(
        make_case(outputs=DECLARED), [torch.zeros(2, 3, dtype=torch.bfloat16), torch.zeros(2)]
    )
    assert list(found) == ["o", "lse"]


@pytest.mark.parametrize(
    ("tensors", "code", "says"),
    [
        ([torch.zeros(2, 3)], "output_count", "the kernel returned 1 tensor, declared 2 tensors"),
        ([torch.zeros(3, 2), torch.zeros(2)], "output_shape", "o has shape [3, 2], declared [2, 3]"),
        ([torch.zeros(2, 3), torch.zeros(2)], "output_dtype", "o is fp32, declared bf16"),
    ],
)
def test_other_outputs_than_declared_are_wrong_results(tensors, code, says):
    with pytest.raises(OutputError) as caught:
        outputs.declared(make_case(outputs=DECLARED), tensors)
    assert (caught.value.code, caught.value.outcome, caught.value.sentence) == (code, "fail", says)


def test_another_device_is_a_wrong_result():
    with pytest.raises(OutputError) as caught:
        outputs.declared(make_case(), [torch.zeros(2)], device=torch.device("cuda"))
    assert caught.value.code == "output_device"


def test_undeclared_outputs_are_named_and_learned():
    assert list(outputs.declared(make_case(), [torch.zeros(2)])) == ["o"]
    found = outputs.declared(make_case(), [torch.zeros(2), torch.zeros(3, dtype=torch.int64)])
    assert outputs.learn(found) == (
        Output("o0", (2,), "fp32", learned=True),
        Output("o1", (3,), "int64", learned=True),
    )


def test_an_output_that_is_an_input_is_refused_unless_it_is_said_to_be():
    case = make_case(randn("x", 4))
    named = inputs.build(case, 1, CPU)
    with pytest.raises(OutputError) as caught:
        outputs.collect(case, named["x"][:2], named)
    assert caught.value.code == "output_aliases_input"
    assert caught.value.sentence == "o shares its memory with the argument 'x'; declare `mutates: [x]`"


def test_mutated_arguments_are_outputs():
    case = make_case(randn("x", 4), randn("y", 4), mutates=("x",))
    named = inputs.build(case, 1, CPU)
    assert list(outputs.collect(case, None, named)) == ["x"]
    declared = make_case(randn("x", 4), mutates=("x",), outputs=(Output("x", (4,), "fp32"),))
    assert outputs.collect(declared, named["x"], named)["x"] is named["x"]


def test_caller_allocated_buffers_are_poisoned_and_collected():
    case = make_case(randn("x", 4), outputs=(Output("o", (4,), "fp16", arg="out"), Output("p", (1,), "fp32")))
    buffers = outputs.allocate(case, CPU)
    assert bool(buffers["out"].isnan().all())
    found = outputs.collect(case, torch.zeros(1), {}, buffers)
    assert list(found) == ["o", "p"]
    assert found["o"] is buffers["out"]


def test_gradients_come_by_the_name_of_their_argument():
    case = make_case(
        randn("x", 4, requires_grad=True), randn("y", 4), randn("z", 4, requires_grad=True), mode="backward"
    )
    named = inputs.build(case, 1, CPU)
    forward = {"o": named["x"] * named["y"] + 2 * named["z"]}
    grads = inputs.draw_grads(case, forward, 1)
    for _ in range(2):
        found = outputs.gradients(case, forward, named, grads)
    assert list(found) == ["grad_x", "grad_z"]
    torch.testing.assert_close(found["grad_x"], named["y"] * grads["o"])
    torch.testing.assert_close(found["grad_z"], 2 * grads["o"])
    assert named["x"].grad is None


def test_a_gradient_that_never_arrives_is_a_wrong_result():
    case = make_case(randn("x", 4, requires_grad=True), randn("z", 4, requires_grad=True), mode="backward")
    named = inputs.build(case, 1, CPU)
    with pytest.raises(OutputError, match="no gradient reaches the argument 'z'"):
        outputs.gradients(case, {"o": named["x"] * 2}, named, {"o": torch.ones(4)})
    with pytest.raises(OutputError, match="output o carries no graph"):
        outputs.gradients(case, {"o": torch.ones(4)}, named, {"o": torch.ones(4)})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool, torch.float64])
@pytest.mark.parametrize("count", [1, 7, 8, 1000, (1 << 18) * 8 + 5])
def test_a_hash_sees_every_byte(dtype, count):
    tensor = torch.zeros(count, dtype=dtype)
    before = outputs.hash_bytes(tensor)
    raw = tensor.view(torch.uint8)
    for place in {0, raw.numel() // 2, raw.numel() - 1}:
        for bit in (1, 128) if dtype != torch.bool else (1,):
            raw[place] = bit
            assert outputs.hash_bytes(tensor) != before
            raw[place] = 0
    assert outputs.hash_bytes(tensor) == before


def test_a_hash_covers_what_the_view_leaves_out_and_the_order():
    storage = torch.arange(16.0)
    view = storage[4:8]
    before = outputs.hash_bytes(view)
    storage[15] = 0
    assert outputs.hash_bytes(view) != before
    assert outputs.hash_bytes(torch.arange(8.0)) != outputs.hash_bytes(torch.arange(8.0).flip(0))
    assert outputs.hash_bytes(torch.zeros(4)) != outputs.hash_bytes(torch.zeros(8))


def test_poison_overwrites_every_kind():
    for dtype in (torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2fnuz, torch.complex64):
        tensor = torch.zeros(4, dtype=dtype)
        outputs.poison(tensor)
        assert bool(tensor.to(torch.complex64).isnan().all())
    unsigned = torch.zeros(4, dtype=torch.uint8)
    outputs.poison(unsigned)
    assert unsigned.tolist() == [255] * 4


def test_a_value_argument_is_no_alias():
    case = make_case(randn("x", 0), Argument("n", "value", options={"value": 3}))
    named = inputs.build(case, 1, CPU)
    assert list(outputs.collect(case, torch.zeros(0), named)) == ["o"]
