"""A case: a kernel with all its axes bound, every formula evaluated. Plain data; what the plan hands to the sides.

Shapes are in elements, sizes in bytes, times in the unit of the name. Every class here crosses process
boundaries through `core.plain`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Path = tuple[str | int, ...]
"""Where in the YAML document something was written: keys and indices, for file:line:col."""

Scalar = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the call, in call order. `keyword` passes it by name.

    `init` is the builder's name (`randn`, `value`, `call`, ...). `shape`, `dtype` are resolved (`like` is
    gone); both are None for arguments that are no single tensor (`value`, `list`, `call`). `options` holds
    the builder's own keys, evaluated: `{mean: 0.0, std: 1.0}`, `{value: ...}`, `{target: ..., from: [...]}`.
    """

    name: str
    init: str
    keyword: bool = False
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    requires_grad: bool = False
    layout: Any = None
    device: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """How one output is compared. `auto` is the norm-wise check of the suite format; rtol/atol serve allclose."""

    metric: str = "auto"
    rtol: float | None = None
    atol: float | None = None
    threshold: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Output:
    """An output. `arg` names the caller-allocated buffer it is passed as, None when it is returned.

    `layout` is how that buffer lies in memory, as an `Argument`'s.

    `learned`: taken from the reference, where the suite does not declare it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    arg: str | None = None
    learned: bool = False
    layout: Any = None


@dataclass(frozen=True, slots=True)
class Implementation:
    """Something that can be called and timed: the kernel, the reference or a versus entry.

    `target` is `module:attr` or `file.py:attr` (files relative to `Case.folder`). `args` names what it takes
    when that differs from the kernel's arguments.
    """

    name: str
    target: str
    args: tuple[str, ...] | None = None
    setup: str | None = None
    compile: Mapping[str, Any] | None = None
    graph: bool = False
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reference:
    """The trusted implementation: checked in `compute` precision, sliced along the axis `chunk` where given.

    `chunk_dims` says which dimension of each argument and declared output that axis is: those that have it.
    """

    implementation: Implementation
    compute: str | None = None
    chunk: str | None = None
    chunk_dims: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timing:
    """How a case is timed; the keys of `timing:` in a suite."""

    l2: Literal["cold", "hot"] = "cold"
    clock: Literal["sustained", "boost", "locked"] = "sustained"
    min_time_ms: float = 100.0
    max_time_ms: float = 3000.0
    rel_ci: float = 0.01


@dataclass(frozen=True, slots=True)
class Peak:
    """The compute roof that `flops` is held against: a unit and dtypes, or a figure of the author's."""

    units: Literal["matmul", "vector"] | None = None
    dtype: str | None = None
    acc: str | None = None
    tflops: float | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """One promise that applies to this case on paper (`when` was true, the tags fit).

    `bounds` maps card ids, globs, `cpu`, `gpu` to a number; a plain number in the suite is `{"*": number}`.
    `place` is where it was written.
    """

    kind: str
    bounds: Mapping[str, float]
    xfail: str | None = None
    place: Path = ()


@dataclass(frozen=True, slots=True)
class Requires:
    """What must be there, else the case is skipped with a reason."""

    module: str | None = None
    min_cc: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel with all its axes bound.

    `bytes` and `flops` are per call; None where unknown before the run (learned outputs) or not given.
    `needed_bytes` is the memory that the judge's side and the kernel's side need for this case, by side:
    `{"kernel": ..., "judge": ...}`. `folder` is the suite file's directory (targets resolve there first).
    `device` is the row's own restriction (`cpu`, `gpu`, `cuda`, `rocm`, a card id) or None.
    """

    id: str
    kernel: str
    axes: Mapping[str, Any]
    shown_axes: tuple[str, ...]
    """The axes in id order."""
    device: str | None
    folder: str
    implementation: Implementation
    arguments: tuple[Argument, ...]
    outputs: tuple[Output, ...] | None
    """None: learned from the reference."""
    reference: Reference | None
    versus: tuple[Implementation, ...] = ()
    mutates: tuple[str, ...] = ()
    mode: Literal["forward", "backward", "forward_backward"] = "forward"
    grad: str = "randn"
    checks: Mapping[str, Check] = field(default_factory=dict)
    """By output name; `*` is the kernel-wide one. Missing means `auto`."""
    tolerance: Mapping[str, Check] = field(default_factory=dict)
    """By output dtype: switches outputs of that dtype from auto to allclose."""
    bytes: int | None = None
    bytes_auto: bool = False
    """True when bytes is compulsory traffic computed from args and outputs (also once outputs are learned)."""
    flops: int | float | None = None
    peak: Peak | None = None
    clauses: tuple[Clause, ...] = ()
    unlisted_device: Literal["report", "fail"] = "report"
    timing: Timing = Timing()
    first_call_timeout_s: float = 300.0
    case_timeout_s: float = 60.0
    requires: Requires | None = None
    needed_bytes: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    tags: tuple[str, ...] = ()
    place: Path = ()
    """Where the kernel was written, e.g. ("kernels", 0)."""
