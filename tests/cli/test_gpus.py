import json

import pytest

from kmrun.report.columns import WIDTH

PEAKS = {
    "mem_gb_per_s",
    "fp32_tflops",
    "fp64_tflops",
    "tf32_tensor_tflops",
    "fp16_tensor_tflops",
    "fp16_tensor_fp32acc_tflops",
    "bf16_tensor_tflops",
    "fp8_tensor_tflops",
    "int8_tensor_tops",
    "fp4_tensor_tflops",
}


def rows(kmrun, *words: str) -> list[dict]:
    ran = kmrun("gpus", *words, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_json_has_every_card_with_every_key(kmrun) -> None:
    found = rows(kmrun)
    assert len(found) == 172
    for row in found:
        assert {
            "id",
            "name",
            "vendor",
            "arch",
            "compute_capability",
            "sm_count",
            "vram_bytes",
            "tdp_w",
        } <= set(row)
        assert set(row["peaks"]) == PEAKS
        known = {name for name, value in row["peaks"].items() if value is not None}
        assert set(row["provenance"]["peaks"]) == known
        assert row["provenance"]["source"]


def test_a_row(kmrun) -> None:
    (row,) = rows(kmrun, "h100-sxm")
    assert row["name"] == "H100 SXM5 80GB"
    assert (row["vendor"], row["arch"], row["compute_capability"]) == ("nvidia", "hopper", "9.0")
    assert (row["sm_count"], row["tdp_w"], row["vram_bytes"]) == (132, 700, 80 * 2**30)
    assert (row["vector_clock_mhz"], row["matmul_clock_mhz"]) == (1980, 1830)
    assert row["peaks"]["fp16_tensor_tflops"] == pytest.approx(989.4, rel=1e-3)
    assert row["provenance"]["peaks"]["fp16_tensor_tflops"] == "derived"
    assert row["provenance"]["parameters"]["clock_mhz"] == "implied"
    assert row["provenance"]["published"]["fp16_tensor_tflops"] == 989.4


def test_the_table(kmrun) -> None:
    ran = kmrun("gpus", "rtx 4090")
    assert ran.out == (
        "id           arch   units   memory   memory      fp32   fp64     fp16     bf16      fp8   TDP\n"
        "                                GB     GB/s   TFLOP/s          tensor   tensor   tensor     W\n"
        "rtx-4090-d   ada      114       24     1008      73.5   1.15      294      147      294   425\n"
        "rtx-4090     ada      128       24     1008      82.6   1.29      330      165      330   450\n"
        "\n"
        "2 cards; tensor figures dense, in TFLOP/s; - is not known\n"
    )


def test_the_whole_list_fits_100_columns(kmrun) -> None:
    ran = kmrun("gpus")
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) == 172 + 4


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["--arch", "cdna3"], ["mi300x", "mi325x", "mi300a"]),
        (["--arch", "gfx942"], ["mi300x", "mi325x", "mi300a"]),
        (["--arch", "10.3"], ["b300", "gb300"]),
        (["--vendor", "AMD", "--min-vram", "200", "--sort", "vram"], ["mi350x", "mi355x", "mi325x"]),
        (["mi3", "--sort", "fp8"], ["mi355x", "mi350x", "mi300x", "mi325x", "mi300a"]),
        (["mi3", "--sort", "name"], ["mi300a", "mi300x", "mi325x", "mi350x", "mi355x"]),
        (["mi3", "--sort", "-name"], ["mi355x", "mi350x", "mi325x", "mi300x", "mi300a"]),
        (["no such card"], []),
    ],
)
def test_filters_and_order(kmrun, words: list[str], ids: list[str]) -> None:
    assert [row["id"] for row in rows(kmrun, *words)] == ids


def test_min_vram_takes_the_label_s_gigabytes(kmrun) -> None:
    assert all(row["vram_bytes"] >= 80 * 2**30 for row in rows(kmrun, "--min-vram", "80"))
    assert "h100-sxm" in [row["id"] for row in rows(kmrun, "--min-vram", "80")]


def test_no_card_says_so(kmrun) -> None:
    assert kmrun("gpus", "xyzzy").out == "no card fits\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--vendor", "nvida"], "error: no vendor 'nvida'\nhint: did you mean 'nvidia'?\n"),
        (["--arch", "hoper"], "error: no architecture 'hoper'\nhint: did you mean 'hopper'?\n"),
        (["--sort", "beauty"], "error: cannot sort by 'beauty'\n"),
        (["--min-vram", "nan"], "error: --min-vram must be a number of GB, not nan\n"),
        (["--min-vram", "-1"], "error: --min-vram must be a number of GB, not -1\n"),
        (["--cards", "nowhere.yaml"], "nowhere.yaml: error[K001]"),
    ],
)
def test_a_wrong_option_is_an_error(kmrun, words: list[str], said: str) -> None:
    ran = kmrun("gpus", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(said)
