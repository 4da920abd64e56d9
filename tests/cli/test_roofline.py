import json
from dataclasses import replace
from pathlib import Path

import pytest

from kmrun.store.results import render
from support.cases import make_case
from support.gpu_results import gpu_result
from support.results import make_entry, make_result


def document(kmrun, *words: object) -> dict:
    ran = kmrun("roofline", *words, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_the_picture_of_a_card(kmrun) -> None:
    ran = kmrun("roofline", "--gpu", "4090", "--ai", "0.33", "--ai", "200")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[:4] == [
        "rtx-4090: GeForce RTX 4090",
        "  peak bandwidth   1008 GB/s",
        "  peak compute     82.6 TFLOP/s (fp32)",
        "  ridge point      81.9 flop/byte",
    ]
    assert lines[-2:] == [
        "A: kernel at 0.33 flop/byte is memory-bound: 333 GFLOP/s attainable",
        "B: kernel at 200 flop/byte is compute-bound: 82.6 TFLOP/s attainable",
    ]
    assert max(map(len, lines)) <= 100
    drawn = [line for line in lines if "|" in line]
    assert len(drawn) == 15
    assert sum(line.count("A") + line.count("B") for line in (row.split("|")[1] for row in drawn)) == 2


def test_tensor_moves_the_ridge(kmrun) -> None:
    assert document(kmrun, "--gpu", "t4")["ridge_flop_per_byte"] == pytest.approx(25.4, rel=0.01)
    tensor = document(kmrun, "--gpu", "t4", "--tensor")
    assert tensor["ridge_flop_per_byte"] == pytest.approx(203.5, rel=0.01)
    assert tensor["peak"] == "fp16 tensor"


def test_any_card_by_two_numbers(kmrun) -> None:
    found = document(kmrun, "--peak-bw", "900", "--peak-tflops", "15", "--ai", "1")
    assert found["ridge_flop_per_byte"] == pytest.approx(16.667, rel=1e-3)
    assert found["kernels"][0]["attainable_tflop_per_s"] == pytest.approx(0.9)


def test_a_number_stands_over_the_card_s(kmrun) -> None:
    found = document(kmrun, "--gpu", "m3-ultra", "--peak-tflops", "50")
    assert (found["mem_gb_per_s"], found["peak_tflops"]) == (819, 50)


@pytest.mark.parametrize(
    ("words", "option", "left_out"),
    [
        ("--ai 3", "--ai", "--ai"),
        ("--gpu h100-sxm", "--gpu", "--gpu"),
        ("--device 0", "--device", "--device"),
        ("--peak bf16", "--peak", "--peak"),
        ("--tensor", "--tensor", "--tensor"),
        ("--peak-tflops 3 --peak-bw 900", "--peak-bw", "--peak-bw and --peak-tflops"),
    ],
)
def test_a_result_stands_under_no_other_roofs(kmrun, tmp_path: Path, words, option, left_out) -> None:
    path = tmp_path / "r.json"
    path.write_text(render([gpu_result(sizes=1)]), encoding="utf-8")
    ran = kmrun("roofline", "--result", path, *words.split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: --result draws each kernel under the roofs of its own run and dtype, "
        f"{option} is of others\nhint: leave {left_out} out; without --result they draw any card\n"
    )


def test_results_of_two_devices_stand_under_the_roofs_of_each(kmrun, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    first = gpu_result(sizes=1)
    second = replace(first, device=replace(first.device, card="rtx-4090", name="NVIDIA GeForce RTX 4090"))
    path.write_text(render([first, second], several=True), encoding="utf-8")
    found = document(kmrun, "--result", path)["results"]
    assert [each["roofs"][0]["mem_gb_per_s"] for each in found] == pytest.approx([3352, 1008], rel=1e-3)
    titles = [line for line in kmrun("roofline", "--result", path).out.splitlines() if " on " in line]
    assert titles == [
        "adding on NVIDIA H100 80GB HBM3 (h100-sxm)",
        "adding on NVIDIA GeForce RTX 4090 (rtx-4090)",
    ]


def test_a_partial_result_is_called_partial_and_none_is_an_error(kmrun, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(render([replace(gpu_result(sizes=1), complete=False)]), encoding="utf-8")
    title = "adding on NVIDIA H100 80GB HBM3 (h100-sxm): interrupted, partial"
    assert kmrun("roofline", "--result", path).out.splitlines()[0] == title
    assert document(kmrun, "--result", path)["results"][0]["title"] == title
    path.write_text("[]", encoding="utf-8")
    ran = kmrun("roofline", "--result", path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {path}: no result in it\n")


def test_no_text_of_a_document_reaches_the_terminal_raw(kmrun, tmp_path: Path) -> None:
    bad = "a\x1b[2J\x1b]0;t\x07\u202e\nb"
    run = gpu_result(sizes=1)
    matmuls = tuple(replace(seen, dtype=bad) for seen in run.ceilings.matmuls)
    run = replace(
        run,
        suite=replace(run.suite, name=bad),
        device=replace(run.device, name=bad),
        ceilings=replace(run.ceilings, matmuls=matmuls),
        cases=tuple(replace(case, id=bad + case.id, kernel=bad) for case in run.cases),
    )
    path, other = tmp_path / "r.json", tmp_path / "o.json"
    path.write_text(render([run]), encoding="utf-8")
    changed = replace(run, environment={"torch": bad}, device=replace(run.device, name=bad + "2"))
    other.write_text(render([changed]), encoding="utf-8")
    alone = tmp_path / "alone.json"
    alone.write_text(render([gpu_result(sizes=1)]), encoding="utf-8")
    for words in (("roofline", "--result", path), ("diff", path, other), ("diff", path, alone)):
        ran = kmrun(*words)
        lines = (ran.out + ran.err).splitlines()
        assert any("a\ufffd[2J" in line for line in lines)
        assert [line for line in lines if not line.isprintable() or line.startswith("b")] == []


def test_a_cpu_s_result_is_drawn_under_its_own_ceilings(kmrun, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(render([make_result(make_entry(make_case(flops=10**9)))]), encoding="utf-8")
    (found,) = document(kmrun, "--result", path)["results"]
    assert [roofs["kind"] for roofs in found["roofs"]] == ["measured"]
    assert found["roofs"][0]["peaks"][0] == {"name": "fp32", "peak_tflops": 0.2}
    assert found["kernels"][0]["fraction_of"] == "ceiling"


def test_a_gpu_s_result_stands_under_every_roof_of_its_run(kmrun, tmp_path: Path) -> None:
    path, picture = tmp_path / "r.json", tmp_path / "r.svg"
    path.write_text(render([gpu_result(sizes=3)]), encoding="utf-8")
    ran = kmrun("roofline", "--result", path, "--svg", picture)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[:4] == [
        "adding on NVIDIA H100 80GB HBM3 (h100-sxm)",
        "  published peaks: 3.35 TB/s, 989 TFLOP/s bf16 / fp16 tensor",
        lines[2],
        "  measured here: 3.05 TB/s, 742 TFLOP/s bf16, 51.9 TFLOP/s fp32",
    ]
    assert lines[2].startswith("  at the clocks held: 88")
    assert max(map(len, lines)) <= 100
    assert lines[-24].startswith("A: sdpa[s=256,dtype=bf16]: ")
    assert " % of the roof" in lines[-1]
    (found,) = document(kmrun, "--result", path)["results"]
    assert [roofs["kind"] for roofs in found["roofs"]] == ["published", "held", "measured"]
    assert len(found["kernels"]) == 24
    from xml.etree import ElementTree

    svg = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    assert len([item for item in svg.iter() if item.attrib.get("class", "").startswith("mark")]) == 24 + 4


def test_a_result_of_more_cases_than_letters(kmrun, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(render([gpu_result(sizes=10), gpu_result(sizes=1)], several=True), encoding="utf-8")
    out = kmrun("roofline", "--result", path).out
    assert "(20 more are not shown)" in out
    assert out.count("adding on NVIDIA H100 80GB HBM3 (h100-sxm)") == 2
    ran = kmrun("roofline", "--result", path, "--svg", tmp_path / "x.svg")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: --svg draws one result, but there are 2\n")


def test_the_svg_escapes_what_it_is_given(kmrun, tmp_path: Path) -> None:
    from xml.etree import ElementTree

    from kmrun.report.svg import roofline_svg
    from kmrun.report.terminal_plot import Curve, Mark

    path = tmp_path / "x.svg"
    assert kmrun("roofline", "--gpu", "4090", "--ai", "1", "--svg", path).code == 0
    ElementTree.fromstring(path.read_text(encoding="utf-8"))
    hostile = roofline_svg([Curve("<script>&", 1e12, 1e13)], [Mark('"]]><b>', 1.0)], "</title>")
    texts = [item.text for item in ElementTree.fromstring(hostile).iter() if item.text]
    assert any("<script>&" in text for text in texts)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu", "h100"], "error: 'h100' names 3 cards"),
        (["--gpu", "4090", "--device", "0"], "error: --gpu and --device each name a card"),
        (["--gpu", "4090", "--ai", "0"], "error: --ai must be a positive number"),
        (["--peak-bw", "-3", "--peak-tflops", "1"], "error: --peak-bw must be a positive number of GB/s"),
        (
            ["--gpu", "4090", "--peak", "bf16", "--peak-tflops", "1"],
            "error: --peak-tflops is the compute roof itself",
        ),
        (["--gpu", "m3-ultra", "--peak", "bf16"], "error: no bf16 tensor peak is known of m3-ultra"),
        (["--result", "nowhere.json"], "error: nowhere.json"),
    ],
)
def test_a_wrong_option_is_an_error(kmrun, words: list[str], said: str) -> None:
    ran = kmrun("roofline", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(said)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--gpu 4090 --ai 1e308", "--ai 1e+308: no machine has or needs so large a number of flop/byte"),
        ("--gpu 4090 --ai 1e-300", "--ai 1e-300: no machine has or needs so small a number of flop/byte"),
        ("--gpu 4090 --ai inf", "--ai must be a positive number of flop/byte, not inf"),
        ("--gpu 4090 --ai nan", "--ai must be a positive number of flop/byte, not nan"),
        (
            "--peak-bw 1e300 --peak-tflops 1e300",
            "--peak-bw 1e+300: no machine has or needs so large a number of GB/s",
        ),
        (
            "--peak-bw 1 --peak-tflops 1e-300",
            "--peak-tflops 1e-300: no machine has or needs so small a number of TFLOP/s",
        ),
    ],
)
def test_numbers_of_no_machine(kmrun, words, sentence) -> None:
    ran = kmrun("roofline", *words.split())
    assert (ran.code, ran.out, ran.err) == (2, "", f"error: {sentence}\n")


@pytest.mark.parametrize("bandwidth", ["1e-9", "1", "1e9"])
@pytest.mark.parametrize("peak", ["1e-9", "1", "1e9"])
@pytest.mark.parametrize("intensity", ["1e-9", "1e9"])
def test_every_number_that_is_taken_can_be_drawn(kmrun, bandwidth, peak, intensity) -> None:
    ran = kmrun("roofline", "--peak-bw", bandwidth, "--peak-tflops", peak, "--ai", intensity)
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 100


def test_a_picture_replaces_only_a_picture(kmrun, tmp_path: Path) -> None:
    source = tmp_path / "k.py"
    source.write_text("def f(x): return x\n")
    ran = kmrun("roofline", "--gpu", "4090", "--svg", source)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"error: --svg {source}: is there already, and is no picture\nhint: name another file\n"
    assert source.read_text() == "def f(x): return x\n"
    picture = tmp_path / "p.svg"
    assert kmrun("roofline", "--gpu", "4090", "--svg", picture).code == 0
    assert kmrun("roofline", "--gpu", "3090", "--svg", picture).code == 0
    assert "3090" in picture.read_text()
