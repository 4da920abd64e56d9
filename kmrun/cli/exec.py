"""`kmrun exec`: one kernel alone, in the foreground, for profilers and debuggers."""

import importlib
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Annotated

import typer

import kmrun
from kmrun.cli import options


def command(
    suite: Annotated[str, typer.Argument(metavar="FILE", help="A suite file.")],
    pattern: Annotated[
        str | None,
        typer.Option("-k", metavar="CASE", help="The case: id, glob, or part of an id; not needed for one."),
    ] = None,
    calls: Annotated[int, typer.Option("-n", min=1, help="How many calls.")] = 1,
    cold: Annotated[bool, typer.Option("--cold", help="Flush the caches before each call.")] = False,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of the inputs.")] = 0,
) -> None:
    """Run one case alone, for profilers and debuggers: real inputs, untimed, unchecked, quiet.

    The kernel is called once to compile, then N times, each in an NVTX range while the profiler runs:

        ncu --profile-from-start off kmrun exec suites/attention.yaml -k 'sdpa*bf16*'

        python -m pdb -m kmrun exec suites/attention.yaml -k decode
    """
    import importlib.util
    import re

    from kmrun.cli.terminal import seed_given
    from kmrun.core.case import Case
    from kmrun.errors import EnvironmentLacks, UsageError
    from kmrun.plan import select
    from kmrun.source.suite_plan import read_and_plan

    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise UsageError(f"--device {device}: not a device", "auto, cpu, cuda or cuda:N")
    seed_given(seed)
    path = Path(suite)
    planned = read_and_plan(path.absolute(), suite)
    if importlib.util.find_spec("torch") is None:
        raise EnvironmentLacks(
            "running a kernel needs torch, which is not installed", "pip install 'kmrun[bench]'"
        )

    def choose(kind: str) -> Case:
        found = select(planned.expansion.cases, kind=kind, pattern=pattern).cases  # type: ignore[arg-type]
        if len(found) == 1:
            return found[0]
        if not found:
            wanted = f"that matches -k {pattern} " if pattern else ""
            raise UsageError(f"no case {wanted}is for {kind}", f"`kmrun list {suite}` shows the cases")
        names = ", ".join(case.id for case in found[:4]) + (", ..." if len(found) > 4 else "")
        which = f"-k {pattern} matches" if pattern else f"{suite} has"
        raise UsageError(f"{which} {len(found)} cases, and exec runs one", f"choose with -k: {names}")

    from kmrun.measure.foreground import run_alone

    sys.excepthook = _show_from_the_kernel_on
    run_alone(choose, device, calls, cold, seed)


_IMPORTING = ("<frozen importlib", importlib.__file__)
"""Files of frames that lead from us to a module that is being imported; a syntax error has none but these."""


def _show_from_the_kernel_on(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print a traceback without the frames that lead to the user's code.

    A function written in C has no frames: then the error stands alone. Our own bug keeps all of them.
    """
    from kmrun.measure.bound import is_ours

    own, below, frame = str(Path(kmrun.__file__).parent), trace, trace
    while frame is not None:
        if frame.tb_frame.f_code.co_filename.startswith(own):
            below = frame.tb_next
        frame = frame.tb_next
    if below is None and is_ours(error):
        below = trace
    while below is not None and below.tb_frame.f_code.co_filename.startswith(_IMPORTING):
        below = below.tb_next
    traceback.print_exception(kind, error, below)
