import pytest

from kmrun.core.dtypes import ALIASES, DTYPES, canonical, find, is_dtype, storage_bytes


@pytest.mark.parametrize("spelling", ["bf16", "bfloat16", "torch.bfloat16"])
def test_spellings_are_one_thing(spelling: str) -> None:
    assert canonical(spelling) == "bf16"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("float32", "fp32"),
        ("torch.float", "fp32"),
        ("torch.half", "fp16"),
        ("torch.long", "int64"),
        ("torch.int32", "int32"),
        ("torch.bool", "bool"),
        ("torch.float8_e4m3fn", "fp8_e4m3fn"),
        ("torch.uint8", "uint8"),
        ("tf32", "tf32"),
    ],
)
def test_canonical(spelling: str, name: str) -> None:
    assert canonical(spelling) == name


@pytest.mark.parametrize(
    "word", ["half", "int", "float", "bf17", "torch.bf16", "torch.", "torch.tf32", "", "BF16"]
)
def test_no_dtype(word: str) -> None:
    assert canonical(word) is None
    assert not is_dtype(word)
    with pytest.raises(KeyError):
        find(word)


def test_every_alias_leads_to_a_dtype_and_hides_none() -> None:
    assert set(ALIASES.values()) <= set(DTYPES)
    assert not set(ALIASES) & set(DTYPES)


def test_storage() -> None:
    assert storage_bytes(5, "fp32") == 20
    assert storage_bytes(5, "tf32") == 20
    assert storage_bytes(5, "int4") == 3
    assert storage_bytes(0, "bf16") == 0


def test_kinds() -> None:
    assert find("bf16").is_float
    assert not find("int8").is_float
    assert find("complex64").kind == "complex"
