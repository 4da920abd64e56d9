"""What is the same for every case of a kernel: implementations, checks, tolerances, timing."""

from collections.abc import Iterable, Mapping
from typing import Any

from kmrun.core.case import Check, Implementation, Path, Reference, Requires, Timing
from kmrun.core.dtypes import ALIASES, DTYPES, canonical
from kmrun.core.formula_error import did_you_mean
from kmrun.plan.arguments import Arguments
from kmrun.plan.report import UNKNOWN_ARGUMENT, UNKNOWN_DTYPE, Report
from kmrun.schema.arguments import PlainValue
from kmrun.schema.checks import Check as CheckSpec
from kmrun.schema.checks import Tolerance
from kmrun.schema.suite import Compile, Defaults, Kernel, TimingSpec

EVERY_OUTPUT = "*"


def timing(kernel: Kernel, defaults: Defaults) -> Timing:
    """Return the timing keys of the kernel over the suite's over kmrun's own."""
    return Timing(**{**_given(defaults.timing), **_given(kernel.timing)})


def timeouts(kernel: Kernel, defaults: Defaults) -> tuple[float, float]:
    """Return (first call, case) in seconds."""
    first, case = 300.0, 60.0
    for spec in (defaults.timeout_s, kernel.timeout_s):
        if spec is not None:
            first = spec.first_call if spec.first_call is not None else first
            case = spec.case if spec.case is not None else case
    return first, case


def seed(kernel: Kernel, defaults: Defaults) -> int:
    """Return the seed of what the plan itself draws."""
    return kernel.seed if kernel.seed is not None else defaults.seed or 0


def requires(kernel: Kernel) -> Requires | None:
    """Return what must be there, None when nothing must."""
    spec = kernel.requires
    return None if spec is None else Requires(spec.module, spec.min_cc)


def tolerances(written: Mapping[str, Tolerance], path: Path, report: Report) -> dict[str, Check]:
    """Return the allclose checks by canonical dtype; report keys that are no dtype, or the same one twice."""
    found: dict[str, Check] = {}
    for key, spec in written.items():
        dtype = canonical(key)
        if dtype is None:
            hint = did_you_mean(key, [*DTYPES, *ALIASES]) or "tolerances stand under the dtype of an output"
            report.error(UNKNOWN_DTYPE, (*path, key), f"'{key}' is not a dtype", hint, on_key=True)
        elif dtype in found:
            report.error(UNKNOWN_DTYPE, (*path, key), f"{dtype} has a tolerance already", on_key=True)
        else:
            found[dtype] = Check("allclose", rtol=spec.rtol, atol=spec.atol)
    return found


def checks(kernel: Kernel) -> dict[str, Check]:
    """Return the checks by output name; `*` is the kernel-wide one."""
    found = {EVERY_OUTPUT: check(kernel.check)} if kernel.check is not None else {}
    for name, spec in (kernel.outputs or {}).items():
        if spec.check is not None:
            found[name] = check(spec.check)
    return found


def check(spec: CheckSpec) -> Check:
    """Return core's form of a check."""
    written = spec.model_dump()
    numbers = {key: written.pop(key) for key in ("rtol", "atol", "threshold") if key in written}
    metric = written.pop("metric")
    return Check(
        metric, **numbers, options={key: value for key, value in written.items() if value is not None}
    )


def has_property(kernel: Kernel) -> bool:
    """Return whether user code judges an output: it may look at any axis."""
    return any(item.metric == "property" for item in checks(kernel).values())


def implementation(kernel: Kernel) -> Implementation:
    """Return the kernel itself."""
    return Implementation(
        kernel.name,
        kernel.target,
        setup=kernel.setup,
        compile=_compile(kernel.compile),
        graph=kernel.graph,
    )


def versus(kernel: Kernel, path: Path, arguments: Arguments) -> tuple[Implementation, ...]:
    """Return the competitors; `compile` and `graph` carry over unless an entry says otherwise."""
    found: list[Implementation] = []
    for name, spec in kernel.versus.items():
        _check_names(spec.args or (), (*path, "versus", name, "args"), kernel, arguments)
        found.append(
            Implementation(
                name,
                spec.target,
                args=spec.args,
                setup=spec.setup,
                compile=_compile(kernel.compile if spec.compile is None else spec.compile),
                graph=kernel.graph if spec.graph is None else spec.graph,
                env=dict(spec.env),
            )
        )
    return tuple(found)


def reference(kernel: Kernel, path: Path, arguments: Arguments) -> Reference | None:
    """Return the reference without its `compute`, which may depend on the point; None when there is none."""
    spec = kernel.reference
    if spec is None:
        return None
    _check_names(spec.args or (), (*path, "reference", "args"), kernel, arguments)
    dims: dict[str, int] = {}
    if spec.chunk is not None:
        dims = _dimensions_named(spec.chunk, kernel)
        if spec.chunk not in arguments.expressions.shown:
            arguments.report.unknown(spec.chunk, *chunk_fault(spec.chunk, path, arguments.expressions.shown))
        arguments.expressions.use(spec.chunk)
    own = Implementation("reference", spec.target, args=spec.args, setup=spec.setup)
    return Reference(own, None, spec.chunk, dims)


def chunk_fault(chunk: str, path: Path, names: Iterable[str]) -> tuple[str, Path, str, str]:
    """Return (code, place, message, hint) of a chunk that slices nothing."""
    hint = (
        did_you_mean(chunk, (name for name in names if name != chunk)) or "name an axis that is a dimension"
    )
    return UNKNOWN_ARGUMENT, (*path, "reference", "chunk"), f"no argument has a dimension '{chunk}'", hint


def check_mutates(kernel: Kernel, path: Path, arguments: Arguments) -> None:
    """Report what `mutates` names and cannot be written."""
    writable = frozenset(name for name, it in arguments.builders.items() if not isinstance(it, PlainValue))
    for index, name in enumerate(kernel.mutates):
        arguments.find_argument(name, (*path, "mutates", index), writable)


def _check_names(names: tuple[str, ...], path: Path, kernel: Kernel, arguments: Arguments) -> None:
    buffers = {spec.arg for spec in (kernel.outputs or {}).values() if spec.arg is not None}
    for index, name in enumerate(names):
        if name not in buffers:
            arguments.find_argument(name, (*path, index))


def _dimensions_named(axis: str, kernel: Kernel) -> dict[str, int]:
    """Return which dimension of each argument and output is written as just this axis."""
    dims: dict[str, int] = {}
    for name, spec in (*kernel.args.items(), *kernel.kwargs.items(), *(kernel.outputs or {}).items()):
        shape = spec.shape if hasattr(spec, "shape") else None
        like = getattr(spec, "like", None)
        if shape is not None and axis in shape:
            dims[name] = shape.index(axis)
        elif isinstance(like, str) and like in dims:
            dims[name] = dims[like]
    return dims


def _given(spec: TimingSpec | None) -> dict[str, Any]:
    return spec.model_dump(exclude_none=True) if spec is not None else {}


def _compile(spec: Compile | bool | None) -> dict[str, Any] | None:
    return spec.model_dump() if isinstance(spec, Compile) else None
