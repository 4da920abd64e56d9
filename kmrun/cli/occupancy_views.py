"""What `kmrun occupancy` prints, for people and for scripts."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kmrun.cli.occupancy_target import Target, of_capability
from kmrun.core.occupancy import Launch, Occupancy, occupancy_within, sweep
from kmrun.core.occupancy_advice import Change, best_sizes, one_more_block
from kmrun.errors import InvalidInput
from kmrun.report.columns import Column, render
from kmrun.source.ptxas import CompiledKernel, read_kernels

_SIZES = (32, 64, 96, 128, 192, 256, 384, 512, 640, 768, 896, 1024)
_WHAT = {
    "regs_per_thread": "registers per thread",
    "smem_bytes": "bytes of shared memory per block",
    "block_barriers": "barriers per block",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A launch on a target."""

    target: Target
    launch: Launch

    @property
    def occupancy(self) -> Occupancy:
        """The occupancy of the launch."""
        return occupancy_within(self.target.limits, self.launch)

    def lines(self) -> list[str]:
        """Return the answer as people read it."""
        launch, found = self.launch, self.occupancy
        asked = launch.static_smem_bytes + launch.dynamic_smem_bytes
        count = launch.regs_per_thread
        registers = f"{count} registers per thread" if count else "registers not given"
        return [
            f"occupancy on {self.target.title}",
            f"{launch.block_threads} threads per block, {registers}, {asked} bytes of shared memory",
            "",
            *_verdict(found),
            "",
            *self._sweep(),
            "",
            *self._hints(found),
        ]

    def document(self) -> dict[str, Any]:
        """Return the answer as `--json` prints it."""
        launch, found = self.launch, self.occupancy
        sizes, best = best_sizes(self.target.limits, launch)
        advice = one_more_block(self.target.limits, launch)
        return {
            "target": self.target.title,
            "compute_capability": self.target.cc,
            "block_threads": launch.block_threads,
            "regs_per_thread": launch.regs_per_thread,
            "static_smem_bytes": launch.static_smem_bytes,
            "dynamic_smem_bytes": launch.dynamic_smem_bytes,
            "block_barriers": launch.block_barriers,
            "carveout_percent": launch.carveout_percent,
            **_figures(found),
            "limits": dict(found.limits),
            "sweep": [
                {"block_threads": size, **_figures(item)}
                for size, item in sweep(self.target.limits, launch).items()
            ],
            "best": {"block_threads": sizes, **_figures(best)},
            "one_more_block": advice
            and {
                "changes": [
                    {"what": item.what, "now": item.now, "at_most": item.at_most} for item in advice.changes
                ],
                **_figures(advice.after),
            },
        }

    def _sweep(self) -> list[str]:
        sizes = sorted({*_SIZES, self.launch.block_threads})
        found = sweep(self.target.limits, self.launch, sizes)
        columns = [Column("threads per block", ["occupancy"], left=True)]
        columns += [Column(str(size), [f"{item.fraction:.0%}"]) for size, item in found.items()]
        return render(columns)

    def _hints(self, found: Occupancy) -> list[str]:
        sizes, best = best_sizes(self.target.limits, self.launch)
        lines = []
        if best.blocks_per_sm == 0:
            lines.append("best block size   none: no block of these registers and this shared memory fits")
        else:
            lines.append(f"best block size   {best.fraction:.0%} with {_listed(sizes)} threads")
        return [*lines, f"one more block    {self._one_more(found)}"]

    def _one_more(self, found: Occupancy) -> str:
        if found.warps_per_sm == found.max_warps_per_sm:
            return "not needed: every warp slot is taken"
        advice = one_more_block(self.target.limits, self.launch)
        if advice is None:
            return "no change of registers or shared memory gives one: choose another block size"
        blocks = advice.after.blocks_per_sm
        after = f"{blocks} block{'s' if blocks > 1 else ''} per SM, {advice.after.fraction:.0%}"
        return f"{' and '.join(map(_change, advice.changes))}: {after}"


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """A kernel that ptxas reported, with its answer."""

    kernel: CompiledKernel
    answer: Answer


def compiled_kernels(
    file: str, target: Target | None, block: int, dynamic_smem: int, carveout: int
) -> list[KernelAnswer]:
    """Return every kernel of ptxas's output; each on its own compute capability where no target is given.

    Raises:
        KmrunError: the file cannot be read, or there is no kernel in it.
    """
    kernels = read_kernels(_text(file))
    if not kernels:
        raise InvalidInput(f"no kernel in {file}", "make it with `nvcc -Xptxas -v -c k.cu 2> FILE`")
    answers = []
    for item in kernels:
        launch = Launch(
            block,
            item.registers,
            item.static_smem_bytes,
            dynamic_smem,
            1 if item.barriers is None else item.barriers,
            carveout,
        )
        answers.append(KernelAnswer(item, Answer(target or of_capability(item.cc), launch)))
    return answers


def kernels_document(kernels: Sequence[KernelAnswer]) -> dict[str, Any]:
    """Return all kernels as `--json` prints them."""
    return {
        "kernels": [
            {
                "name": item.kernel.name,
                "mangled": item.kernel.mangled,
                "compiled_for": item.kernel.cc,
                "spill_bytes": item.kernel.spill_bytes,
                **item.answer.document(),
            }
            for item in kernels
        ]
    }


def kernels_lines(kernels: Sequence[KernelAnswer], block_assumed: bool) -> list[str]:
    """Return a table of all kernels."""
    block = kernels[0].answer.launch.block_threads
    assumed = " (--block says otherwise)" if block_assumed else ""
    # Kernels often agree in all that counts here, and a sweep over block sizes is worth computing once.
    best = {
        answer: _listed(best_sizes(answer.target.limits, answer.launch)[0])
        for answer in {item.answer for item in kernels}
    }
    found = [item.answer.occupancy for item in kernels]
    columns = [
        Column("kernel", _names(kernels), left=True),
        Column("for", [item.kernel.cc for item in kernels]),
        Column("registers", [str(item.kernel.registers) for item in kernels]),
        Column("shared", [str(item.kernel.static_smem_bytes) for item in kernels], "bytes"),
        Column("spills", [str(item.kernel.spill_bytes) for item in kernels], "bytes"),
        Column("blocks", [str(one.blocks_per_sm) for one in found], "per SM"),
        Column("occupancy", [f"{one.fraction:.0%}" for one in found]),
        Column("limited by", [_limit(one) for one in found], left=True),
    ]
    notes = [
        f"{name} ({item.kernel.cc}): best block size {sizes}"
        for name, item, one in zip(_names(kernels), kernels, found, strict=True)
        if (sizes := best[item.answer])
        and str(block) not in sizes.replace(" or", ",").split(", ")
        and one.blocks_per_sm
    ]
    return [f"{block} threads per block{assumed}", "", *render(columns), *([""] if notes else []), *notes]


def _names(kernels: Sequence[KernelAnswer]) -> list[str]:
    """Return the kernels' names; as the compiler spells them where the readable form fits several."""
    spellings: dict[str, set[str]] = {}
    for item in kernels:
        spellings.setdefault(item.kernel.name, set()).add(item.kernel.mangled)
    return [
        item.kernel.name if len(spellings[item.kernel.name]) == 1 else item.kernel.mangled for item in kernels
    ]


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.buffer.read().decode("utf-8", errors="replace")
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error.strerror or error}") from None


def _verdict(found: Occupancy) -> list[str]:
    if found.blocks_per_sm == 0:
        what = " and ".join(found.limited_by)
        verb = "does" if what == "shared memory" else "do"
        return [f"This launch cannot run: the {what} of one block {verb} not fit an SM."]
    allowed = ", ".join(f"{name} {limit}" for name, limit in found.limits.items() if limit is not None)
    return [
        f"occupancy         {found.fraction:.1%}, {found.warps_per_sm} of {found.max_warps_per_sm} warps",
        f"blocks per SM     {found.blocks_per_sm}",
        f"limited by        {', '.join(found.limited_by)}",
        f"blocks allowed by {allowed}",
    ]


def _limit(found: Occupancy) -> str:
    names = ", ".join(found.limited_by)
    return f"cannot run: {names}" if found.blocks_per_sm == 0 else names


def _figures(found: Occupancy) -> dict[str, Any]:
    return {
        "blocks_per_sm": found.blocks_per_sm,
        "warps_per_sm": found.warps_per_sm,
        "max_warps_per_sm": found.max_warps_per_sm,
        "fraction": found.fraction,
        "limited_by": list(found.limited_by),
    }


def _change(item: Change) -> str:
    return f"at most {item.at_most} {_WHAT[item.what]} ({item.now} now)"


def _listed(sizes: Sequence[int], most: int = 6) -> str:
    shown = [str(size) for size in sizes[-most:]]
    before = "..., " if len(sizes) > most else ""
    return before + (", ".join(shown[:-1]) + " or " + shown[-1] if len(shown) > 1 else shown[0])
