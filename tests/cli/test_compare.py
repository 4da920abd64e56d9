import json
import subprocess
import sys
from pathlib import Path

import pytest

from kmrun.report.columns import WIDTH

README = ["4090", "a100-80gb", "h100-sxm", "--ai", "0.33", "--cost", "4090=0.35,a100-80gb=1.19,h100-sxm=2.69"]
SUITE = """\
kmrun: 1
suite: demo
kernels:
  - name: mm
    target: k.py:mm
    matrix: {dtype: [fp32, bf16]}
    cases:
      - {device: cpu, n: 64}
      - {device: gpu, n: 4096}
    args: {a: {init: randn, shape: [n, n], dtype: dtype}, b: {init: randn, like: a}}
    outputs: {c: {like: a}}
    flops: 2 * n ** 3
    peak: {units: matmul, in: dtype}
  - name: copied
    target: k.py:copied
    args: {x: {init: randn, shape: [1000], dtype: fp32}}
    outputs: {y: {like: x}}
"""


def test_the_example_in_full(kmrun) -> None:
    ran = kmrun("compare", *README)
    assert (ran.code, ran.err) == (0, "")
    table, _, picture = ran.out.partition("\n\n82.6 TFLOP/s |")
    assert table == (
        "A kernel at 0.33 flop/byte, against the fp32 roof\n"
        "\n"
        "card            memory      fp32     fp16    ridge   at 0.33         vs   bound    $/h   TFLOP/s\n"
        "                  TB/s   TFLOP/s   tensor   flop/B   TFLOP/s   rtx-4090                    per $\n"
        "rtx-4090          1.01      82.6      330     81.9      0.33     1.00 x     mem   0.35      0.95\n"
        "a100-sxm-80gb     2.04      19.5      312      9.6      0.67     2.02 x     mem   1.19      0.57\n"
        "h100-sxm          3.35      66.9      989     20.0      1.11     3.33 x     mem   2.69      0.41\n"
        "\n"
        "Every card is memory-bound here: bandwidth is what you are buying. Cheapest throughput: rtx-4090."
    )
    assert "* rtx-4090, ridge at 81.9 flop/byte" in picture
    assert "\x1b" not in ran.out


def test_json_carries_the_same_figures(kmrun) -> None:
    document = json.loads(kmrun("compare", *README, "--json").out)
    cards = document["cards"]
    assert [item["id"] for item in cards] == ["rtx-4090", "a100-sxm-80gb", "h100-sxm"]
    assert [round(item["attainable_tflop_per_s"], 2) for item in cards] == [0.33, 0.67, 1.11]
    assert [round(item["ratio"], 2) for item in cards] == [1.0, 2.02, 3.33]
    assert [round(item["tflop_per_s_per_usd_per_h"], 2) for item in cards] == [0.95, 0.57, 0.41]
    assert {item["bound"] for item in cards} == {"mem"}
    assert document["peak"] == "fp32"
    assert document["intensity_flop_per_byte"] == 0.33


def test_without_an_intensity_there_is_bandwidth_peaks_and_ridge(kmrun) -> None:
    ran = kmrun("compare", "4090", "h100-sxm")
    head = ran.out.splitlines()[0]
    assert head.split() == ["card", "memory", "fp32", "fp16", "ridge"]
    card = json.loads(kmrun("compare", "4090", "--json").out)["cards"][0]
    assert (card["attainable_tflop_per_s"], card["ratio"], card["bound"]) == (None, None, None)


def test_another_roof_moves_the_ridge(kmrun) -> None:
    def ridges(*words: str) -> list[float]:
        document = json.loads(kmrun("compare", "4090", "h100-sxm", "--json", *words).out)
        return [round(item["ridge_flop_per_byte"], 1) for item in document["cards"]]

    assert ridges("--peak", "bf16") == [163.8, 295.1]
    assert ridges("--tensor") == ridges("--peak", "fp16") == [327.7, 295.1]
    assert ridges("--peak", "fp16_fp32acc") == ridges("--peak", "bf16")
    assert ridges("--peak", "FP8") == [327.7, 590.3]


def test_a_mixed_verdict_names_both_sides(kmrun) -> None:
    ran = kmrun("compare", "4090", "a100-sxm-80gb", "--ai", "30")
    assert "Memory-bound here: rtx-4090 (bandwidth counts); compute-bound: a100-sxm-80gb" in ran.out
    assert "compute-bound here: arithmetic" in kmrun("compare", "4090", "--ai", "1000").out


def test_sorting_puts_the_unknown_last(kmrun) -> None:
    def order(key: str) -> list[str]:
        words = ("t4", "tpu-v5e", "h100-sxm", "--ai", "1", "--json", "--sort", key)
        return [item["id"] for item in json.loads(kmrun("compare", *words).out)["cards"]]

    assert order("attainable") == ["h100-sxm", "t4", "tpu-v5e"]
    assert order("ridge") == ["h100-sxm", "t4", "tpu-v5e"]
    assert order("memory") == ["h100-sxm", "tpu-v5e", "t4"]
    assert order("name") == ["h100-sxm", "t4", "tpu-v5e"]
    assert order("-name") == ["tpu-v5e", "t4", "h100-sxm"]
    assert order("-attainable") == ["t4", "h100-sxm", "tpu-v5e"]


def test_a_card_without_the_figure_is_named_not_guessed(kmrun) -> None:
    ran = kmrun("compare", "tpu-v5e", "b200", "--ai", "1")
    assert ran.code == 0
    assert "No fp32 or memory figure is known for tpu-v5e." in ran.out
    assert "b200 is memory-bound here" in ran.out


@pytest.mark.parametrize(
    "cards",
    [
        ["rtx-pro-6000-blackwell-server", "rtx-pro-6000-blackwell-maxq", "jetson-orin-nano-8gb-super"],
        ["t4", "l4", "a10", "a30", "a40", "l40", "l40s", "h100-nvl", "h200-nvl", "b200", "mi300x"],
    ],
)
def test_the_widest_question_fits_100_columns(kmrun, cards: list[str]) -> None:
    costs = [word for card in cards for word in ("--cost", f"{card}=12.5")]
    ran = kmrun("compare", *cards, "--ai", "12.345", "--peak", "fp64", *costs)
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= WIDTH
    for card in cards:
        assert card[:20] in ran.out


def test_the_picture_holds_eight_cards_and_says_so(kmrun) -> None:
    cards = ["t4", "l4", "a10", "a30", "a40", "l40", "l40s", "h100-nvl", "h200-nvl"]
    ran = kmrun("compare", *cards)
    assert "(the picture shows the first 8)" in ran.out
    assert "& h100-nvl, ridge" in ran.out
    assert "h200-nvl, ridge" not in ran.out


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "demo.yaml"
    path.write_text(SUITE, encoding="utf-8")
    return path


def test_a_suite_s_case_gives_intensity_and_roof(kmrun, suite: Path) -> None:
    words = ("4090", "mi210", "--suite", suite, "-k", "mm[n=4096,dtype=bf16]")
    ran = kmrun("compare", *words)
    assert ran.out.startswith("mm[n=4096,dtype=bf16] at 1365 flop/byte, against the bf16 matmul (fp32 acc")
    cards = json.loads(kmrun("compare", *words, "--json").out)["cards"]
    assert [round(item["peak_tflops"], 1) for item in cards] == [165.2, 181.0]
    cards = json.loads(kmrun("compare", "4090", "mi210", "--suite", suite, "-k", "fp32", "--json").out)[
        "cards"
    ]
    assert [round(item["peak_tflops"], 1) for item in cards] == [82.6, 45.3]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("mm", "-k must name one case"),
        ("nothing", "no case matches -k 'nothing'"),
        ("copied", "copied has no flops before it is run"),
    ],
)
def test_a_case_that_gives_no_intensity_is_an_error(kmrun, suite: Path, pattern: str, words: str) -> None:
    ran = kmrun("compare", "4090", "--suite", suite, "-k", pattern)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["h100"], "error: 'h100' names 3 cards\nhint: say which: h100-sxm, h100-pcie, h100-nvl\n"),
        (["rtx-4909"], "error: unknown card 'rtx-4909'\nhint: did you mean rtx-4090 or"),
        (["4090", "--ai", "0"], "error: --ai must be a positive number of flop/byte, not 0\n"),
        (["4090", "--ai", "nan"], "error: --ai must be a positive number of flop/byte, not nan\n"),
        (["4090", "--ai", "-1"], "error: --ai must be"),
        (["4090", "--peak", "fp7"], "error: no peak is called 'fp7'\nhint: one of fp32, fp64,"),
        (["4090", "--tensor", "--peak", "bf16"], "error: --tensor is short for --peak fp16"),
        (["4090", "--cost", "4090"], "error: --cost '4090' is no price"),
        (["4090", "--cost", "4090=free"], "error: --cost '4090=free' is no price"),
        (["4090", "--cost", "4090=-1"], "error: --cost '4090=-1' is no price"),
        (["4090", "--cost", "4090=1,rtx-4090=2"], "error: --cost names rtx-4090 twice"),
        (
            ["4090", "--cost", "t4=1"],
            "error: --cost names t4, which is not compared\nhint: compared: rtx-4090\n",
        ),
        (["4090", "--sort", "beauty"], "error: cannot sort by 'beauty'"),
        (["4090", "--sort", "-beauty"], "error: cannot sort by '-beauty'"),
        (["4090", "--sort", "-cost"], "error: nothing to sort by: --sort cost needs prices"),
        (["4090", "--sort", "attainable"], "error: nothing to sort by: --sort attainable needs an intensity"),
        (["4090", "--sort", "value", "--ai", "1"], "error: nothing to sort by: --sort value needs an inten"),
        (["4090", "-k", "x"], "error: -k names a case of a suite, but there is no --suite"),
        (["4090", "--ai", "1", "--suite", "x.yaml"], "error: --ai and --suite both give an intensity"),
        (["4090", "--suite", "nowhere.yaml"], "nowhere.yaml: error[K001]"),
        (["4090", "--cards", "nowhere.yaml"], "nowhere.yaml: error[K001]"),
        (["4090", "--svg", "/nowhere/x.svg"], "error: cannot write"),
    ],
)
def test_a_wrong_question_is_answered_with_what_is_wrong(kmrun, words: list[str], said: str) -> None:
    ran = kmrun("compare", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(said)


def test_an_overlay_s_card_is_compared(kmrun, tmp_path: Path) -> None:
    overlay = tmp_path / "mine.yaml"
    overlay.write_text(
        "kmrun_cards: 1\ncards:\n  mine:\n    name: Mine\n    vendor: nvidia\n    architecture: hopper\n"
        "    sm_count: 10\n    clock_mhz: {vector: 1000, matmul: 1000}\n"
        "    memory: {type: hbm3, bus_bits: 1024, pin_gbps: 1}\n    source: a dream\n",
        encoding="utf-8",
    )
    cards = json.loads(kmrun("compare", "mine", "--cards", overlay, "--ai", "1", "--json").out)["cards"]
    assert cards[0]["fp32_tflops"] == 2.56
    assert cards[0]["attainable_tflop_per_s"] == 0.128


def test_one_card_named_twice_stands_once(kmrun) -> None:
    assert len(json.loads(kmrun("compare", "4090", "rtx-4090", "--json").out)["cards"]) == 1


def test_the_svg_is_one_well_formed_picture(kmrun, tmp_path: Path) -> None:
    from xml.etree import ElementTree

    path = tmp_path / "x.svg"
    assert kmrun("compare", "4090", "h100-sxm", "--ai", "2", "--svg", path).code == 0
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    assert root.tag.endswith("svg")
    drawn = [item for item in root.iter() if item.attrib.get("class", "").startswith("roof card")]
    assert len(drawn) == 2 * 2  # the line, and its sample in the legend


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "4090", "h100-sxm", "--ai", "0.33", "--cost", "4090=0.35"],
        ["compare", "4090", "--json"],
        ["gpus", "--vendor", "amd"],
        ["roofline", "--gpu", "4090", "--ai", "1"],
        ["occupancy", "--block", "128", "--gpu", "4090"],
        ["occupancy", "--block", "128", "--cc", "9.0"],
    ],
)
def test_nothing_heavy_is_imported(words: list[str]) -> None:
    code = (
        f"import sys; sys.argv = ['kmrun', *{words!r}]\n"
        "from kmrun.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'pydantic', 'yaml', 'rich', 'torch', 'jinja2', 'pynvml', 'numpy'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_prices_and_intensities_of_no_machine(kmrun) -> None:
    ran = kmrun("compare", "4090", "3090", "--ai", "1e308")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: --ai 1e+308: no machine has or needs so large a number of flop/byte\n"
    ran = kmrun("compare", "4090", "3090", "--ai", "1", "--cost", "4090=1e308")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: --cost 4090 1e+308: no machine has or needs so large a number of dollars\n"


def test_a_hint_with_many_cards_stays_within_100_columns(kmrun):
    cards = [f"rtx-{number}" for number in (4090, 4080, 4070, 3090, 3080, 3070, 2070, 2060)]
    for words in ((*cards, "h100-sxm", "h100-pcie", "l4", "a10", "--cost", "t4=1"), ("rtx",)):
        ran = kmrun("compare", *words)
        assert ran.code == 2
        assert max(map(len, ran.err.splitlines())) <= 100
        assert ran.err.endswith(" more\n")
