"""`kmrun occupancy`: how full a launch keeps an SM, and what stops the next block."""

from typing import Annotated

import typer

from kmrun.cli import options


def command(
    block: Annotated[int | None, typer.Option(metavar="N", help="Threads per block.")] = None,
    regs: Annotated[
        int | None, typer.Option(metavar="N", help="Registers per thread (ptxas -v or Nsight Compute say).")
    ] = None,
    smem: Annotated[int | None, typer.Option(metavar="BYTES", help="Static shared memory per block.")] = None,
    dynamic_smem: Annotated[
        int, typer.Option(metavar="BYTES", help="Dynamic shared memory per block, opted in over 48 KiB.")
    ] = 0,
    barriers: Annotated[int | None, typer.Option(metavar="N", help="Barriers per block (default 1).")] = None,
    carveout: Annotated[int, typer.Option(metavar="PERCENT", help="Preferred share of shared memory.")] = 100,
    cc: Annotated[
        str | None, typer.Option("--cc", metavar="X.Y", help="Compute capability, e.g. 8.6.")
    ] = None,
    gpu: options.Gpu = None,
    device: options.LocalDevice = None,
    ptxas: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="Output of `nvcc -Xptxas -v`: reports every kernel in it."),
    ] = None,
    cards_file: options.CardFiles = None,
    as_json: options.Json = False,
) -> None:
    """Say how many blocks and warps of a launch an SM holds, what limits it, and what would help.

    \b
    kmrun occupancy --block 256 --regs 64 --smem 8192 --cc 8.6
    nvcc -Xptxas -v -c k.cu 2>&1 | kmrun occupancy --ptxas - --block 256
    """  # noqa: D301 (Click wants the control character)
    import json

    from kmrun.cli import occupancy_views as views
    from kmrun.cli.occupancy_target import target_of
    from kmrun.core.occupancy import Launch
    from kmrun.errors import UsageError

    where = target_of(cc, gpu, device, cards_file or [], optional=ptxas is not None)
    if ptxas is None:
        if block is None or where is None:
            raise UsageError(
                "--block is missing: the threads per block", "--ptxas FILE reads the rest from nvcc"
            )
        launch = Launch(
            block, regs or 0, smem or 0, dynamic_smem, 1 if barriers is None else barriers, carveout
        )
        found = views.Answer(where, launch)
        output = found.document() if as_json else "\n".join(found.lines())
    else:
        if regs is not None or smem is not None or barriers is not None:
            raise UsageError(
                "--ptxas gives registers, shared memory and barriers", "leave --regs, --smem, --barriers out"
            )
        kernels = views.compiled_kernels(ptxas, where, block or 256, dynamic_smem, carveout)
        output = (
            views.kernels_document(kernels)
            if as_json
            else "\n".join(views.kernels_lines(kernels, block is None))
        )
    typer.echo(json.dumps(output, indent=2) if as_json else output)
