"""Suite format, version 1: what a suite file may say. Formulas stay text here; the plan parses them."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic.functional_validators import BeforeValidator
from pydantic_core import PydanticCustomError

from kmrun.schema.arguments import Arg, Layout, Shape
from kmrun.schema.base import (
    TARGET_SCHEMA,
    AxisValue,
    Document,
    Formula,
    IfHas,
    IfMapping,
    IfThen,
    Json,
    LetValue,
    Many,
    Name,
    Opt,
    Positive,
    SaysSomething,
    Seed,
    ShortForm,
    Target,
    Text,
    by_key,
    by_presence,
    mapping_or_other,
)
from kmrun.schema.checks import Check, Tolerances
from kmrun.schema.contract import Clause

FORMAT = 1
"""The format's major version: the value of the key `kmrun`."""

KernelName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]


class Pow2(Document):
    """Powers of two from the first to the last, both included."""

    pow2: Annotated[Many[int], Field(min_length=2, max_length=2)]


class Linear(Document):
    """`[first, last, step]`, the last included where the step meets it."""

    linear: Annotated[Many[int], Field(min_length=3, max_length=3)]


RANGE_KINDS = ("pow2", "linear")
Range = Annotated[
    Annotated[Pow2, Tag("@pow2")] | Annotated[Linear, Tag("@linear")],
    Discriminator(by_presence(RANGE_KINDS)),
    IfHas(),
]
MatrixAxis = Annotated[
    Annotated[Range, Tag("@mapping")]
    | Annotated[Annotated[Many[AxisValue], Field(min_length=1)], Tag("@other")],
    Discriminator(mapping_or_other),
    IfMapping(),
]
RowValue = Annotated[
    Annotated[Range, Tag("@mapping")] | Annotated[AxisValue, Tag("@other")],
    Discriminator(mapping_or_other),
    IfMapping(),
]
"""A row's axis. A range makes one row of each of its points."""


class Exclude(Document):
    """Points that are left out, and why."""

    when: Formula
    reason: Text


class RaggedUniform(Document):
    """Lengths uniform in [low, high]."""

    dist: Literal["uniform"]
    low: Formula = 1
    high: Formula
    count: Formula


class RaggedZipf(Document):
    """Lengths in [low, high], short ones far more frequent; `exponent` is Zipf's."""

    dist: Literal["zipf"]
    low: Formula = 1
    high: Formula
    count: Formula
    exponent: Annotated[float, Field(gt=1)] = 1.5


class RaggedFixed(Document):
    """All lengths alike."""

    dist: Literal["fixed"]
    value: Formula
    count: Formula


class RaggedList(Document):
    """These very lengths."""

    dist: Literal["list"]
    values: Annotated[Many[Formula], Field(min_length=1)]


Ragged = Annotated[
    Annotated[RaggedUniform, Tag("@uniform")]
    | Annotated[RaggedZipf, Tag("@zipf")]
    | Annotated[RaggedFixed, Tag("@fixed")]
    | Annotated[RaggedList, Tag("@list")],
    Discriminator(by_key("dist")),
    IfThen("dist"),
]


class OutputSpec(Document):
    """A declared output: `like` an argument, or `shape` and `dtype`; `arg` names the buffer passed for it."""

    like: Opt[Name] = None
    shape: Opt[Shape] = None
    dtype: Opt[Text] = None
    arg: Opt[Name] = None
    layout: Opt[Layout] = None
    check: Opt[Check] = None


CompileMode = Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite"]
"""The modes that torch.compile knows (`torch._inductor.list_mode_options`)."""


class Compile(Document):
    """Options of torch.compile."""

    mode: Opt[CompileMode] = None
    dynamic: bool = False
    fullgraph: bool = True


def _true_is_default(value: Any) -> Any:
    return {} if value is True else value


CompileOption = Annotated[
    Annotated[Compile, Tag("@mapping")] | Annotated[bool, Tag("@other")],
    Discriminator(mapping_or_other),
    IfMapping(),
    BeforeValidator(_true_is_default),
]
"""`true` reads as a `Compile` with its defaults; `false` switches it off for a versus entry."""


class Reference(Document):
    """The trusted implementation, checked in the precision `compute`, in slices along the axis `chunk`."""

    target: Target
    compute: Opt[Text] = None
    chunk: Opt[Name] = None
    args: Opt[Many[Name]] = None
    setup: Opt[Target] = None


class Versus(Document):
    """A competitor timed beside the kernel; `compile` and `graph` are the kernel's own unless said here."""

    target: Target
    args: Opt[Many[Name]] = None
    setup: Opt[Target] = None
    compile: Opt[CompileOption] = None
    graph: Opt[bool] = None
    env: dict[Text, str] = Field(default_factory=dict)


class MatmulPeak(Document):
    """The matrix rate of a dtype with an accumulator."""

    units: Literal["matmul"]
    dtype: Text = Field(alias="in")
    acc: Opt[Text] = None


class VectorPeak(Document):
    """The vector rate of a dtype."""

    units: Literal["vector"]
    dtype: Text = Field(alias="in")


class FigurePeak(Document):
    """A figure of the author's, in TFLOP/s."""

    tflops: Positive


Units = Annotated[
    Annotated[MatmulPeak, Tag("@matmul")] | Annotated[VectorPeak, Tag("@vector")],
    Discriminator(by_key("units")),
    IfThen("units"),
]


def _peak_tag(value: Any) -> str:
    has_figure = isinstance(value, FigurePeak) or (
        isinstance(value, dict) and "tflops" in value and "units" not in value
    )
    return "@tflops" if has_figure else "@units"


def _refuse_both(value: Any) -> Any:
    if isinstance(value, dict) and "tflops" in value and "units" in value:
        second = next(key for key in reversed(value) if key in ("tflops", "units"))
        raise PydanticCustomError(
            "two_peaks", "a peak is either a figure or the rate of units: both stand here", {"at": second}
        )
    return value


class _IfFigure:
    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Json:
        figure, units = handler(schema)["oneOf"]
        only_figure = {"required": ["tflops"], "not": {"required": ["units"]}}
        return {"if": only_figure, "then": figure, "else": units}


Peak = Annotated[
    Annotated[FigurePeak, Tag("@tflops")] | Annotated[Units, Tag("@units")],
    Discriminator(_peak_tag),
    _IfFigure(),
    BeforeValidator(_refuse_both),
]


class TimingSpec(SaysSomething):
    """How cases are timed; what is left out comes from `defaults`, then from kmrun."""

    l2: Opt[Literal["cold", "hot"]] = None
    clock: Opt[Literal["sustained", "boost", "locked"]] = None
    min_time_ms: Opt[Positive] = None
    max_time_ms: Opt[Positive] = None
    rel_ci: Opt[Annotated[float, Field(gt=0, lt=1)]] = None

    @model_validator(mode="after")
    def _has_time_to_sample(self) -> Self:
        least, most = self.min_time_ms, self.max_time_ms
        if least is not None and most is not None and most < least:
            raise PydanticCustomError(
                "time_range", "max_time_ms is below min_time_ms, beside it", {"at": "max_time_ms"}
            )
        return self


class TimeoutSpec(SaysSomething):
    """Seconds that the first call (JIT, autotune) and the whole case may take."""

    first_call: Opt[Positive] = None
    case: Opt[Positive] = None


class RequiresSpec(SaysSomething):
    """What must be there, else the kernel is skipped. `min_cc` is a compute capability: "8.0"."""

    module: Opt[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]] = None
    min_cc: Opt[Annotated[str, Field(pattern=r"^\d+\.\d+$")]] = None


class Defaults(Document):
    """What kernels inherit key by key."""

    seed: Opt[Seed] = None
    timing: Opt[TimingSpec] = None
    tolerance: Tolerances = Field(default_factory=dict)
    timeout_s: Opt[TimeoutSpec] = None
    unlisted_device: Opt[Literal["report", "fail"]] = None


def _without_private_keys(value: Any) -> Any:
    if isinstance(value, dict) and any(isinstance(key, str) and key.startswith("x-") for key in value):
        return {
            key: item for key, item in value.items() if not (isinstance(key, str) and key.startswith("x-"))
        }
    return value


def _kernel_schema(schema: Json) -> None:
    schema["patternProperties"] = {"^x-": {}}
    schema["required"] = ["name"]
    schema["if"] = {"not": {"required": ["extends"]}}
    schema["then"] = {"required": ["target"]}


def _suite_schema(schema: Json) -> None:
    schema["patternProperties"] = {"^x-": {}}


class Kernel(Document):
    """An entry of a suite. `extends` is resolved by the reader before this model sees it."""

    model_config = ConfigDict(json_schema_extra=_kernel_schema)

    name: KernelName
    target: Target
    extends: Opt[Text] = None
    reference: Opt[Annotated[Reference, ShortForm("target", TARGET_SCHEMA)]] = None
    versus: dict[Name, Annotated[Versus, ShortForm("target", TARGET_SCHEMA)]] = Field(default_factory=dict)
    tags: Many[Text] = ()
    matrix: dict[Name, MatrixAxis] = Field(default_factory=dict)
    cases: Opt[Annotated[Many[dict[Name, RowValue]], Field(min_length=1)]] = None
    exclude: Many[Exclude] = ()
    ragged: dict[Name, Ragged] = Field(default_factory=dict)
    let: dict[Name, LetValue] = Field(default_factory=dict)
    args: dict[Name, Arg] = Field(default_factory=dict)
    kwargs: dict[Name, Arg] = Field(default_factory=dict)
    outputs: Opt[Annotated[dict[Name, OutputSpec], Field(min_length=1)]] = None
    mutates: Many[Name] = ()
    setup: Opt[Target] = None
    flops: Opt[Formula] = None
    bytes: Opt[Formula] = None
    peak: Opt[Peak] = None
    tolerance: Tolerances = Field(default_factory=dict)
    check: Opt[Check] = None
    contract: Many[Clause] = ()
    unlisted_device: Opt[Literal["report", "fail"]] = None
    mode: Literal["forward", "backward", "forward_backward"] = "forward"
    grad: Literal["randn", "uniform", "ones"] = "randn"
    compile: Opt[CompileOption] = None
    graph: bool = False
    timing: Opt[TimingSpec] = None
    timeout_s: Opt[TimeoutSpec] = None
    requires: Opt[RequiresSpec] = None
    seed: Opt[Seed] = None

    _private = model_validator(mode="before")(_without_private_keys)


class Suite(Document):
    """A whole suite file.

    `env` is set on every side; `{root}` in a value is the tree that the suite lies in. `build` is a command
    that `--against` runs in each version's tree.
    """

    model_config = ConfigDict(json_schema_extra=_suite_schema)

    kmrun: Literal[1]
    suite: KernelName
    build: Opt[Text] = None
    env: dict[Text, str] = Field(default_factory=dict)
    defaults: Defaults = Defaults()
    kernels: Annotated[Many[Kernel], Field(min_length=1)]

    _private = model_validator(mode="before")(_without_private_keys)
