import json
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parent.parent / "source" / "data" / "ptxas_13.0.txt"


def document(kmrun, *words: object) -> dict:
    ran = kmrun("occupancy", *words, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_the_answer_in_full(kmrun) -> None:
    ran = kmrun("occupancy", "--block", 256, "--regs", 64, "--smem", 8192, "--cc", "8.6")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "occupancy on compute capability 8.6\n"
        "256 threads per block, 64 registers per thread, 8192 bytes of shared memory\n"
        "\n"
        "occupancy         66.7%, 32 of 48 warps\n"
        "blocks per SM     4\n"
        "limited by        registers\n"
        "blocks allowed by warps 6, registers 4, shared memory 11, blocks 16\n"
        "\n"
        "threads per block    32    64    96   128   192   256   384   512   640   768   896   1024\n"
        "occupancy           23%   46%   62%   67%   62%   67%   50%   67%   42%   50%   58%    67%\n"
        "\n"
        "best block size   67% with 128, 256, 512 or 1024 threads\n"
        "one more block    at most 48 registers per thread (64 now): 5 blocks per SM, 83%\n"
    )


def test_json_says_the_same(kmrun) -> None:
    found = document(kmrun, "--block", 256, "--regs", 64, "--smem", 8192, "--cc", "sm_86")
    assert (found["blocks_per_sm"], found["warps_per_sm"], found["max_warps_per_sm"]) == (4, 32, 48)
    assert found["limited_by"] == ["registers"]
    assert found["compute_capability"] == "8.6"
    assert found["best"]["block_threads"] == [128, 256, 512, 1024]
    assert found["one_more_block"]["changes"] == [{"what": "regs_per_thread", "now": 64, "at_most": 48}]
    assert len(found["sweep"]) == 32


@pytest.mark.parametrize(
    ("block", "regs", "static", "dynamic", "cc"),
    [
        (256, 64, 8192, 0, "8.6"),
        (128, 168, 0, 60_000, "9.0"),
        (96, 255, 40_000, 0, "7.5"),
        (512, 128, 0, 0, "12.0"),
    ],
)
def test_what_is_advised_gives_the_block(
    kmrun, block: int, regs: int, static: int, dynamic: int, cc: str
) -> None:
    words = ["--block", block, "--cc", cc]
    found = document(kmrun, *words, "--regs", regs, "--smem", static, "--dynamic-smem", dynamic)
    advice = found["one_more_block"]
    changed = {item["what"]: item["at_most"] for item in advice["changes"]}
    assert changed
    new_regs = changed.get("regs_per_thread", regs)
    new_smem = changed.get("smem_bytes", static + dynamic)
    after = document(kmrun, *words, "--regs", new_regs, "--dynamic-smem", new_smem)
    assert after["blocks_per_sm"] == advice["blocks_per_sm"] > found["blocks_per_sm"]
    for what, least in (
        ("regs_per_thread", (new_regs + 1, new_smem)),
        ("smem_bytes", (new_regs, new_smem + 1)),
    ):
        if what in changed:
            short = document(kmrun, *words, "--regs", least[0], "--dynamic-smem", least[1])
            assert short["blocks_per_sm"] < advice["blocks_per_sm"]


def test_a_card_stands_for_its_compute_capability(kmrun) -> None:
    assert document(kmrun, "--block", 128, "--gpu", "4090")["compute_capability"] == "8.9"
    assert document(kmrun, "--block", 128, "--gpu", "h100-sxm")["target"].startswith("h100-sxm, ")


def test_a_launch_that_cannot_run_says_so(kmrun) -> None:
    ran = kmrun("occupancy", "--block", 1024, "--regs", 96, "--cc", "8.6")
    assert ran.code == 0
    assert "This launch cannot run: the registers of one block do not fit an SM.\n" in ran.out
    assert "at most 64 registers per thread (96 now): 1 block per SM, 67%" in ran.out
    found = document(kmrun, "--block", 1024, "--regs", 96, "--smem", 200_000, "--cc", "8.6")
    assert (found["blocks_per_sm"], found["fraction"]) == (0, 0)
    assert found["limited_by"] == ["registers", "shared memory"]


def test_full_occupancy_needs_no_more(kmrun) -> None:
    ran = kmrun("occupancy", "--block", 256, "--regs", 32, "--cc", "9.0")
    assert "occupancy         100.0%, 64 of 64 warps\n" in ran.out
    assert "not needed: every warp slot is taken" in ran.out


def test_where_block_slots_run_out_another_size_is_advised(kmrun) -> None:
    ran = kmrun("occupancy", "--block", 32, "--regs", 16, "--cc", "8.6")
    assert "limited by        blocks\n" in ran.out
    assert "choose another block size" in ran.out


def test_every_kernel_of_ptxas_is_reported(kmrun) -> None:
    ran = kmrun("occupancy", "--ptxas", SAMPLE, "--block", 128)
    assert ran.code == 0
    assert ran.out.startswith(
        "128 threads per block\n"
        "\n"
        "kernel              for   registers   shared   spills   blocks   occupancy   limited by\n"
        "                                       bytes    bytes   per SM\n"
        "my::add<float>    sm_86          12        0        0       12        100%   warps\n"
        "heavy             sm_86          64        0     5336        8         67%   registers\n"
        "reduce            sm_86          12     4096        0       12        100%   warps\n"
        "my::add<float>   sm_90a          12        0        0       16        100%   warps\n"
    )
    kernels = document(kmrun, "--ptxas", SAMPLE)["kernels"]
    assert [one["compiled_for"] for one in kernels] == ["sm_86"] * 3 + ["sm_90a"] * 3
    assert {one["block_threads"] for one in kernels} == {256}
    assert kernels[0]["mangled"] == "_ZN2my3addIfEEvPKT_S3_PS1_i"


def test_kernels_of_one_readable_name_are_told_apart(kmrun, tmp_path: Path) -> None:
    log = tmp_path / "ptxas.txt"
    mangled = ("_Z3tplI6__halfEvPf", "_Z3tplI13__nv_bfloat16EvPf")
    log.write_text(
        "".join(f"Compiling entry function '{one}' for 'sm_86'\nUsed 32 registers\n" for one in mangled)
    )
    ran = kmrun("occupancy", "--ptxas", log)
    assert ran.code == 0
    assert all(f"\n{one} " in ran.out for one in mangled)


def test_a_named_target_counts_for_all_kernels(kmrun) -> None:
    kernels = document(kmrun, "--ptxas", SAMPLE, "--cc", "8.9")["kernels"]
    assert {one["compute_capability"] for one in kernels} == {"8.9"}


def test_ptxas_from_a_pipe(kmrun, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    class Pipe:
        buffer = io.BytesIO(SAMPLE.read_bytes() + b"\xff\xfe not utf-8")

    monkeypatch.setattr(sys, "stdin", Pipe)
    assert len(document(kmrun, "--ptxas", "-")["kernels"]) == 6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--cc", "8.6"], "error: --block is missing"),
        (["--block", "0", "--cc", "8.6"], "error: a block has 1 to 1024 threads, not 0\n"),
        (["--block", "2048", "--cc", "8.6"], "error: a block has 1 to 1024 threads, not 2048\n"),
        (
            ["--block", "32", "--regs", "300", "--cc", "8.6"],
            "error: a thread has 0 to 255 registers, not 300\n",
        ),
        (["--block", "32", "--smem", "-1", "--cc", "8.6"], "error: shared memory is not negative\n"),
        (
            ["--block", "32", "--carveout", "101", "--cc", "8.6"],
            "error: a carve-out is 0 to 100 percent, not 101\n",
        ),
        (
            ["--block", "32", "--cc", "9.9"],
            "error: no occupancy limits for compute capability '9.9'\nhint: known: 7.0,",
        ),
        (["--block", "32", "--cc", "8.6", "--gpu", "4090"], "error: --cc, --gpu and --device each say"),
        (["--block", "32", "--gpu", "mi300x"], "error: mi300x is no NVIDIA card\n"),
        (["--block", "32", "--gpu", "gtx-1080"], "error: no occupancy limits for compute capability '6.1'"),
        (["--ptxas", "nowhere.txt"], "error: cannot read nowhere.txt: No such file or directory\n"),
        (["--ptxas", __file__, "--regs", "3"], "error: --ptxas gives registers"),
    ],
)
def test_a_wrong_launch_is_an_error(kmrun, words: list[str], said: str) -> None:
    ran = kmrun("occupancy", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(said)


def test_text_without_a_kernel_is_an_error(kmrun, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("nothing here\n", encoding="utf-8")
    ran = kmrun("occupancy", "--ptxas", tmp_path / "x.txt", "--block", 32)
    assert ran.code == 2
    assert "hint: make it with `nvcc -Xptxas -v" in ran.err
