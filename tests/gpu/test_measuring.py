"""Measuring on a real card: medians beside Triton's own timer, the exchange, faults that poison a context."""

import dataclasses
from pathlib import Path

import pytest
import torch

from kmrun.core.case import Argument, Case, Implementation, Output, Reference, Timing
from kmrun.core.statistics import median
from kmrun.measure.run_options import RunOptions
from kmrun.measure.supervisor import Supervisor

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use"),
]

FOLDER = str(Path(__file__).parent.parent / "measure")


def adding(n: int, **changes: object) -> Case:
    plain = Case(
        id=f"add[n={n}]",
        kernel="add",
        axes={"n": n},
        shown_axes=("n",),
        device="gpu",
        folder=FOLDER,
        implementation=Implementation("add", "kernels.py:add"),
        arguments=tuple(Argument(name, "randn", shape=(n,), dtype="fp32") for name in ("x", "y")),
        outputs=(Output("o", (n,), "fp32"),),
        reference=Reference(Implementation("reference", "torch:add")),
        bytes=12 * n,
        timing=Timing(min_time_ms=50, max_time_ms=2000),
        needed_bytes={"kernel": 60 * n, "judge": 60 * n},
    )
    return dataclasses.replace(plain, **changes)


@pytest.fixture(scope="module")
def supervisor():
    with Supervisor("cuda", RunOptions()) as running:
        yield running


@pytest.mark.parametrize("n", [2**20, 2**26])
def test_medians_agree_with_do_bench(supervisor, n):
    testing = pytest.importorskip("triton.testing")
    seen = supervisor.measure(adding(n))
    assert seen.findings == ()
    assert seen.correct is True
    x, y = (torch.randn(n, device="cuda") for _ in range(2))
    theirs_ms = testing.do_bench(lambda: x + y, quantiles=[0.5])
    assert median(seen.samples_ns) / 1e6 == pytest.approx(theirs_ms, rel=0.10)


def test_the_kernel_beside_itself_is_as_fast_as_itself(supervisor):
    (rival,) = supervisor.measure(adding(2**26)).rivals
    assert rival.alternated
    assert median([theirs / ours for ours, theirs in rival.pairs]) == pytest.approx(1.0, abs=0.03)


def test_tensors_cross_by_ipc_or_the_reason_is_told(supervisor):
    seen = supervisor.measure(adding(2**20))
    assert seen.exchange == "ipc" or supervisor.environment["exchange_reason"]


def test_hot_caches_are_faster_than_cold_ones():
    with Supervisor("cuda", RunOptions(hot_and_cold=True)) as running:
        seen = running.measure(adding(2**20))
    assert median(seen.hot_samples_ns) < median(seen.samples_ns)


def test_a_poisoned_context_ends_with_its_case(supervisor):
    bad = adding(2**20, implementation=Implementation("trap", "kernels.py:asserts_on_the_device"))
    (finding,) = supervisor.measure(bad).findings
    assert (finding.code, finding.fault) == ("device_error", "kernel")
    assert supervisor.measure(adding(2**20)).correct is True


@pytest.mark.parametrize("isolation", ["serial", "inline"])
def test_other_isolations_measure_too(isolation):
    with Supervisor("cuda", RunOptions(isolation=isolation)) as running:
        seen = running.measure(adding(2**22))
    assert seen.findings == ()
    assert seen.correct is True


def test_ceilings_are_measured_on_a_card():
    with Supervisor("cuda", RunOptions()) as running:
        found = running.open_ceilings(("fp32", "bf16"))
    assert {seen.kind for seen in found.bandwidths} == {"read", "copy", "triad"}
    rates = {rate.dtype: rate.flop_per_s for rate in found.matmuls}
    assert rates["bf16"] > rates["fp32"] > 0
