import json
from pathlib import Path

import pytest

from kmrun.cli import llm_device
from kmrun.device.cuda_driver import CudaDevice
from kmrun.device.driver_library import NoDriver
from kmrun.device.rocm import HipDevice
from kmrun.errors import EnvironmentLacks
from kmrun.report.columns import WIDTH
from support.weight_files import TINY, TINY_TENSORS, gguf, write

README = ["70b", "--bytes-per-param", "0.58", "--gpus", "4090", "a100-80gb", "h100-sxm"]
KEYS = [
    "card", "fits", "needed_bytes", "usable_bytes", "max_context", "decode_tok_per_s_ceiling",
    "per_stream_tok_per_s_ceiling", "prefill_tok_per_s_ceiling", "ttft_s_floor", "bound", "seen_low", "seen_high",
    "cost_per_hour", "tok_per_s_per_dollar", "cost_per_million_tokens_floor", "tok_per_joule_at_tdp",
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    """Every machine is one without a driver, unless a test brings one."""

    def absent(index, tell):
        raise NoDriver("no NVIDIA driver")

    monkeypatch.setattr(llm_device, "cuda_device", absent)
    monkeypatch.setattr(llm_device, "hip_device", absent)


@pytest.fixture
def rows(kmrun):
    def run(*words: object) -> dict[str, dict]:
        ran = kmrun("llm", *words, "--json")
        assert (ran.code, ran.err) == (0, "")
        return {row["card"]: row for row in json.loads(ran.out)["rows"]}

    return run


def test_the_example_in_full(kmrun) -> None:
    words = [
        "gpt-oss-120b",
        "--quant",
        "mxfp4",
        "--gpus",
        "h100-sxm",
        "mi300x",
        "--ctx",
        "32k",
        "--batch",
        "16",
    ]
    ran = kmrun("llm", *words, "--cost", "h100-sxm=2.69")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "gpt-oss-120b: 117 B parameters, 5.13 B read for a token · mxfp4: 63.2 GB of weights ·\n"
        "  32k context: 1.21 GB of cache a sequence · batch 16\n"
        "\n"
        "card      needs     of  fits  longest  decode   each      seen  prefill  bound   $/h  tok/s  $/Mtok\n"
        "             GB     GB            ctx   tok/s  tok/s     tok/s    tok/s               per $    from\n"
        "h100-sxm   83.1   85.9   yes      36k    2337    146   609-984   153217    mem  2.69    869    0.32\n"
        "mi300x     83.1  206.2   yes     128k    3712    232  964-1557   187125    mem     -      -       -\n"
        "\n"
        "Ceilings, not predictions: no published result lands above them. `seen` is the band of published\n"
        "results that read as much for a token.\n"
        "Assumed: only its experts are mxfp4; the rest at least 8.5 bits, as in the smallest files; cache in\n"
        "fp16; the runtime takes 0.5 GB on each card (--overhead-gb); the batch reads 4 of 128 experts a\n"
        "layer, the fewest it can; the embedding is looked up, not read; weights are multiplied in fp8, the\n"
        "fastest that a stack could use there; arithmetic has 8 % of head-room, for clocks above the sheet's;\n"
        "memory has none.\n"
    )


def test_kernelmeter_s_table_where_its_simplification_holds(rows) -> None:
    found = rows(*README)
    assert [round(found[card]["decode_tok_per_s_ceiling"]) for card in ("a100-sxm-80gb", "h100-sxm")] == [
        50,
        83,
    ]
    assert found["rtx-4090"]["fits"] is False
    assert found["a100-sxm-80gb"]["fits"] is True


def test_rows_have_every_figure_by_its_unit(rows) -> None:
    for row in rows(*README).values():
        assert [key for key in KEYS if key not in row] == []
    priced = rows(*README, "--cost", "a100-80gb=1.19,h100-sxm=2.69")["a100-sxm-80gb"]
    speed = priced["decode_tok_per_s_ceiling"]
    assert priced["tok_per_s_per_dollar"] == pytest.approx(speed / 1.19)
    assert priced["cost_per_million_tokens_floor"] == pytest.approx(1.19 / (speed * 3600) * 1e6)
    assert priced["tok_per_joule_at_tdp"] == pytest.approx(speed / 400)
    assert priced["bound"] == "mem"


def test_a_ceiling_is_printed_also_where_nothing_fits(kmrun, rows) -> None:
    ran = kmrun("llm", "llama-3.1-405b", "--quant", "bf16", "--gpus", "4090")
    assert ran.code == 0
    assert "rtx-4090: 788.6 GB short; the weights alone are too large." in ran.out
    row = rows("llama-3.1-405b", "--quant", "bf16", "--gpus", "4090")["rtx-4090"]
    assert (row["fits"], row["max_context"]) == (False, 0)
    assert row["decode_tok_per_s_ceiling"] == pytest.approx(1008e9 / (2 * 403752042496), rel=1e-3)


def test_what_does_not_fit_says_which_context_would(kmrun) -> None:
    ran = kmrun("llm", "llama-2-7b", "--quant", "q4_0", "--gpus", "3060", "--ctx", "32k")
    assert "rtx-3060-12gb: 8.62 GB short; a context of 15k would fit." in ran.out


def test_8b_f16_on_a_16_gb_card_is_possible(rows) -> None:
    assert rows("llama-3-8b", "--quant", "f16", "--gpus", "4080")["rtx-4080"]["fits"] is True
    assert rows("gpt-oss-20b", "--gpus", "3060")["rtx-3060-12gb"]["fits"] is True


def test_without_cards_and_device_there_is_a_useful_selection(kmrun, rows) -> None:
    found = list(rows("70b", "--quant", "q4").values())
    assert len(found) >= 10
    fitting = [row["decode_tok_per_s_ceiling"] for row in found if row["fits"] is not False]
    lacking = [row["decode_tok_per_s_ceiling"] for row in found if row["fits"] is False]
    assert fitting == sorted(fitting, reverse=True) and lacking == sorted(lacking, reverse=True)
    assert fitting and lacking
    assert [row["fits"] is False for row in found] == sorted(row["fits"] is False for row in found)


def test_several_cards_side_by_side(rows, kmrun) -> None:
    row = rows("llama-3.3-70b", "--quant", "q4", "--gpus", "4090", "--num-gpus", "2")["rtx-4090"]
    assert row["fits"] is True
    assert row["layer_split_tok_per_s_ceiling"] == pytest.approx(row["decode_tok_per_s_ceiling"] / 2)
    assert row["tensor_parallel_tok_per_s_ceiling"] == pytest.approx(row["decode_tok_per_s_ceiling"])
    assert row["all_reduce_s"] == pytest.approx(2 * 80 * 8192 * 2 * 1 / 32e9)
    head = (
        kmrun("llm", "70b", "--gpus", "4090", "--num-gpus", "2")
        .out.partition("\n\n")[2]
        .splitlines()[0]
        .split()
    )
    assert head[head.index("decode") + 1 :][:2] == ["tensor", "layers"]


def test_every_flag_of_kernelmeter_means_what_it_meant(rows, kmrun) -> None:
    plain = rows("8b", "--quant", "q8", "--gpus", "4090")["rtx-4090"]
    assert plain["decode_tok_per_s_ceiling"] == pytest.approx(1008e9 / 8.5e9, rel=1e-3)
    many = rows("8b", "--quant", "q8", "--gpus", "4090", "--batch", "8")["rtx-4090"]
    assert many["decode_tok_per_s_ceiling"] == pytest.approx(8 * plain["decode_tok_per_s_ceiling"])
    assert many["per_stream_tok_per_s_ceiling"] == pytest.approx(plain["decode_tok_per_s_ceiling"])
    heavy = rows("8b", "--quant", "q8", "--gpus", "4090", "--overhead-gb", "2")["rtx-4090"]
    assert heavy["needed_bytes"] - plain["needed_bytes"] == 1.5e9
    mixture = rows("120b", "--quant", "q8", "--gpus", "4090", "--active-params", "8b")["rtx-4090"]
    assert mixture["decode_tok_per_s_ceiling"] == pytest.approx(plain["decode_tok_per_s_ceiling"])
    ran = kmrun("llm", "8b", "--gpus", "4090", "--per-watt", "--cost", "4090=0.35")
    assert "tok/J" in ran.out and "TDP" in ran.out


def test_cards_by_commas_by_repetition_and_trailing_are_one_line(rows) -> None:
    wanted = ["rtx-4090", "a100-sxm-80gb", "h100-sxm"]
    for words in (
        ["--gpus", "4090", "a100-80gb", "h100-sxm"],
        ["--gpus", "4090,a100-80gb,h100-sxm"],
        ["--gpus", "4090", "--gpus", "a100-80gb,h100-sxm"],
        ["--gpus", "4090", "a100-80gb", "--batch", "2", "h100-sxm", "4090"],
    ):
        assert list(rows("8b", *words)) == wanted
    priced = rows("8b", "--gpus", "4090", "h100-sxm", "--cost", "4090=0.35", "h100-sxm=2.69")
    assert [row["cost_per_hour"] for row in priced.values()] == [0.35, 2.69]


def test_a_longer_context_costs_speed_and_a_smaller_cache_gives_it_back(rows) -> None:
    def speed(*words: object) -> float:
        return rows("llama-2-7b", "--quant", "q4_0", "--gpus", "strix-halo-395", *words)["strix-halo-395"][
            "decode_tok_per_s_ceiling"
        ]

    assert speed("--ctx", "1") == pytest.approx(speed(), rel=1e-3)
    assert speed("--ctx", "32k") == pytest.approx(12.2, abs=0.1)
    assert speed("--ctx", "32k", "--kv", "q8_0") > 1.5 * speed("--ctx", "32k")
    assert speed("--draft", "3") == pytest.approx(4 * speed())


def test_sorting(rows) -> None:
    cards = ["--gpus", "h100-sxm", "4090", "m2-ultra", "--cost", "h100-sxm=2.69,4090=0.35"]

    def order(key: str) -> list[str]:
        return list(rows("8b", *cards, "--sort", key))

    assert order("decode") == ["h100-sxm", "rtx-4090", "m2-ultra"]
    assert order("name") == ["h100-sxm", "m2-ultra", "rtx-4090"]
    assert order("-name") == ["rtx-4090", "m2-ultra", "h100-sxm"]
    assert order("-value") == ["h100-sxm", "rtx-4090", "m2-ultra"]
    assert order("cost") == order("value") == ["rtx-4090", "h100-sxm", "m2-ultra"]
    assert order("context")[-1] == order("fits")[-1] == "m2-ultra"


def test_explain_puts_the_numbers_in(kmrun) -> None:
    out = kmrun(
        "llm", "llama-3.1-8b", "--quant", "bf16", "--gpus", "a100-80gb", "--ctx", "4k", "--explain"
    ).out
    flat = " ".join(out.split())
    for said in (
        "32 x 41.9 M of GQA (32 heads)",
        "body 6.98 B + head 525 M = 7.5 B of 8.03 B; 525 M are looked up, not read",
        "16 bits: 15.0 GB a pass",
        "65536 elements a token x 16 bits x 4096 tokens = 0.54 GB a sequence",
        "15.0 GB + 1 x 0.54 GB = 15.5 GB",
        "5120 bits x 3.186 Gbit/s / 8 = 2039.04 GB/s; no head-room",
        "bf16, the fastest for bf16: 311.9 TFLOP/s = 311.9",
        "1 token a pass, 131.2 tok/s",
        "no part of the ceiling",
        "Pope 2211.05102",
    ):
        assert said in flat
    assert max(map(len, out.splitlines())) <= WIDTH


@pytest.mark.parametrize(
    "words",
    [
        [
            "qwen3-235b-a22b",
            "--ctx",
            "128k",
            "--batch",
            "64",
            "--num-gpus",
            "16",
            "--per-watt",
            "--cost",
            "h200-sxm=3.5,b200=6",
        ],
        ["deepseek-v3.2", "--quant", "nvfp4", "--draft", "3", "--num-gpus", "8"],
        ["nemotron-h-56b", "--quant", "fp8", "--kv", "fp8", "--batch", "512"],
        ["smollm2-135m"],
    ],
    ids=lambda words: words[0],
)
def test_no_line_is_wider_than_the_page(kmrun, words) -> None:
    cards = ["--gpus", "rtx-pro-6000-blackwell-server,h200-sxm,b200,m3-ultra,strix-halo-395,m5-max"]
    ran = kmrun("llm", *words, *cards, "--explain")
    assert ran.code == 0, ran.err
    assert max(map(len, ran.out.splitlines())) <= WIDTH
    assert "\x1b" not in ran.out


def test_a_file_is_exact_and_says_so(kmrun, rows, tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.gguf", gguf(TINY, TINY_TENSORS))
    ran = kmrun("llm", path, "--gpus", "4090", "--explain")
    assert ran.code == 0, ran.err
    assert "15 tensors of tiny.gguf: exact bytes" in ran.out
    assert "the file's own bytes" in ran.out
    assert rows(path, "--gpus", "4090")["rtx-4090"]["fits"] is True


def test_a_user_s_own_card(rows, tmp_path: Path) -> None:
    path = tmp_path / "cards.yaml"
    path.write_text(
        "kmrun_cards: 1\n"
        "cards:\n"
        "  my-card: {name: Mine, vendor: nvidia, architecture: hopper, sm_count: 100, source: me,\n"
        "            memory: {gib: 10, type: hbm3, bus_bits: 1024, pin_gbps: 8}}\n",
        encoding="utf-8",
    )
    row = rows("8b", "--quant", "q8", "--gpus", "my-card", "--cards", path)["my-card"]
    assert row["decode_tok_per_s_ceiling"] == pytest.approx(1024e9 / 8.5e9, rel=1e-3)


def rtx_4090(index: int, tell: object) -> CudaDevice:
    """A driver with one device: an RTX 4090 that reports 24,564 MiB and boosts to 3105 MHz."""
    if index:
        raise EnvironmentLacks(f"there is no device {index}")
    attributes = {
        "compute_capability_major": 8,
        "compute_capability_minor": 9,
        "multiprocessor_count": 128,
        "clock_rate": 3_105_000,
    }
    return CudaDevice(0, "NVIDIA GeForce RTX 4090", 24564 << 20, None, attributes)


def test_the_local_device_is_asked_by_default(kmrun, rows, monkeypatch) -> None:
    monkeypatch.setattr(llm_device, "cuda_device", rtx_4090)
    row = rows("8b", "--quant", "q4")["rtx-4090"]
    assert row["usable_bytes"] == 24564 << 20
    assert row["compute_roof_head_room"] == 1.0
    assert row["compute_roof_tflop_per_s"] == pytest.approx(2048 * 128 * 3.105e9 / 1e12)
    out = kmrun("llm", "8b", "--quant", "q4", "--explain").out
    assert "device 0: NVIDIA GeForce RTX 4090 (rtx-4090), 25.8 GB as its driver reports" in " ".join(
        out.split()
    )
    assert list(rows("8b", "--device", "0")) == ["rtx-4090"]
    assert kmrun("llm", "8b", "--device", "1").code == 3
    assert list(rows("8b", "--gpus", "h100-sxm")) == ["h100-sxm"]


def mi300x(index: int, tell: object) -> HipDevice:
    """HIP with one MI300X."""
    if index:
        raise EnvironmentLacks(f"no HIP device {index}")
    attributes = {"multiprocessor_count": 304, "clock_rate": 2_100_000}
    return HipDevice(index, "AMD Instinct MI300X", 205_822_885_888, "gfx942", None, attributes)


def test_an_amd_card_is_a_local_device_too(kmrun, rows, monkeypatch) -> None:
    monkeypatch.setattr(llm_device, "hip_device", mi300x)
    row = rows("8b", "--quant", "q4")["mi300x"]
    assert row["usable_bytes"] == 205_822_885_888
    assert kmrun("llm", "8b", "--device", "1").code == 3


def test_a_device_that_nobody_listed_has_the_driver_s_figures(rows, monkeypatch) -> None:
    def unlisted(index: int, tell: object) -> CudaDevice:
        attributes = {
            **rtx_4090(index, tell).attributes,
            "memory_clock_rate": 10_000_000,
            "global_memory_bus_width": 256,
        }
        return CudaDevice(0, "NVIDIA Mystery", 16 << 30, None, attributes)

    monkeypatch.setattr(llm_device, "cuda_device", unlisted)
    row = rows("8b", "--quant", "q8")["device-0"]
    assert row["decode_tok_per_s_ceiling"] == pytest.approx(640e9 / 8.5e9, rel=1e-3)
    assert row["fits"] is True


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["7x"], 2, "unknown model '7x'"),
        (["llama-3.1"], 2, "names 3 models"),
        (["8b", "--quant", "q4_x_m"], 2, "did you mean q4_k_m"),
        (["8"], 2, "no language model has 8 parameters"),
        (["1" + "0" * 60], 2, "no language model has"),
        (["8b", "--bytes-per-param", "-1"], 2, "--bytes-per-param must be between"),
        (["8b", "--bytes-per-param", "nan"], 2, "--bytes-per-param must be between"),
        (["8b", "--ctx", "lots"], 2, "--ctx 'lots' is no number of tokens"),
        (["8b", "--ctx", "0"], 2, "is no number of tokens"),
        (["8b", "--ctx", "1e99"], 2, "is no number of tokens"),
        (["8b", "--batch", "0"], 2, "--batch must be between 1 and"),
        (["8b", "--num-gpus", "0"], 2, "--num-gpus must be between 1 and"),
        (["8b", "--draft", "-1"], 2, "--draft must be between 0 and"),
        (["8b", "--kv", "fp7"], 2, "unknown format of the cache 'fp7'"),
        (["8b", "--overhead-gb", "-1"], 2, "--overhead-gb must be between 0 and"),
        (["8b", "--overhead-gb", "nan"], 2, "--overhead-gb must be between 0 and"),
        (["8b", "--overhead-gb", "1e300"], 2, "--overhead-gb must be between 0 and"),
        (["8b", "--active-params", "some"], 2, "is no number of parameters"),
        (["8b", "--active-params", "9b"], 2, "is not within"),
        (["8b", "--active-params", "3"], 2, "is not within"),
        (["8b", "--gpus", "warp-9"], 2, "unknown card 'warp-9'"),
        (["8b", "--gpus", "4090", "--cost", "h100-sxm=1"], 2, "h100-sxm"),
        (["8b", "--gpus", "4090", "--cost", "4090=free"], 2, "is no price"),
        (["8b", "--gpus", "4090", "--device", "0"], 2, "give one of them"),
        (["8b", "--gpus", "4090", "--sort", "luck"], 2, "cannot sort by 'luck'"),
        (["8b", "--device", "0"], 3, "no NVIDIA driver"),
        (["/nowhere/model.gguf"], 2, "there is no /nowhere/model.gguf"),
        (["x" * 5000], 2, "unknown model"),
        (["a\0b"], 2, "unknown model"),
    ],
    ids=lambda value: " ".join(value)[:40].replace("\0", "?") if isinstance(value, list) else None,
)
def test_mistakes_get_a_sentence(kmrun, words, code, said) -> None:
    ran = kmrun("llm", *words)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "Traceback" not in ran.err
