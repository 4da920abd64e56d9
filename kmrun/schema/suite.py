"""Suite format, version 1: what a suite file may say. Formulas stay text here; the plan parses them."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic.functional_validators import BeforeValidator

from kmrun.schema.arguments import Arg, Layout, Shape
from kmrun.schema.base import (
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
    NotNegative,
    Positive,
    Seed,
    ShortForm,
    Target,
    Text,
    by_key,
    by_presence,
    mapping_or_other,
)
from kmrun.schema.contract import Clause

FORMAT = 1
"""The format's major version: the value of the key `kmrun`."""

KernelName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
Reason = Annotated[str, Field(min_length=1)]


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
    reason: Reason


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


class AutoCheck(Document):
    """The norm-wise default."""

    metric: Literal["auto"]


class AllcloseCheck(Document):
    """|got - want| <= atol + rtol * |want|, element by element; dtype defaults where left out."""

    metric: Literal["allclose"]
    rtol: NotNegative | None = None
    atol: NotNegative | None = None


class ExactCheck(Document):
    """Bit for bit."""

    metric: Literal["exact"]


class RelL2Check(Document):
    """Norm of the difference over the norm of the reference, at most `threshold`."""

    metric: Literal["rel_l2"]
    threshold: Positive


class CosineCheck(Document):
    """Cosine of the angle to the reference, at least `threshold`."""

    metric: Literal["cosine"]
    threshold: Annotated[float, Field(gt=0, le=1)]


class UlpCheck(Document):
    """Units in the last place of the output's dtype, at most `threshold`."""

    metric: Literal["ulp"]
    threshold: Positive


class MatchedRatioCheck(Document):
    """Share of the elements that are close (rtol, atol), at least `threshold`."""

    metric: Literal["matched_ratio"]
    threshold: Annotated[float, Field(gt=0, le=1)]
    rtol: NotNegative | None = None
    atol: NotNegative | None = None


class PropertyCheck(Document):
    """`target(inputs, outputs)` decides: for outputs that have many right answers."""

    metric: Literal["property"]
    target: Target


class StatisticalCheck(Document):
    """Mean and standard deviation against the reference's, for random outputs; `threshold` in standard errors."""

    metric: Literal["statistical"]
    threshold: Positive = 5.0


class NoCheck(Document):
    """Not compared, and why (scratch space, auxiliary outputs)."""

    metric: Literal["none"]
    reason: Reason | None = None


Check = Annotated[
    Annotated[AutoCheck, Tag("@auto")]
    | Annotated[AllcloseCheck, Tag("@allclose")]
    | Annotated[ExactCheck, Tag("@exact")]
    | Annotated[RelL2Check, Tag("@rel_l2")]
    | Annotated[CosineCheck, Tag("@cosine")]
    | Annotated[UlpCheck, Tag("@ulp")]
    | Annotated[MatchedRatioCheck, Tag("@matched_ratio")]
    | Annotated[PropertyCheck, Tag("@property")]
    | Annotated[StatisticalCheck, Tag("@statistical")]
    | Annotated[NoCheck, Tag("@none")],
    Discriminator(by_key("metric")),
    IfThen("metric"),
]


class Tolerance(Document):
    """allclose for the outputs of one dtype."""

    rtol: NotNegative = 0.0
    atol: NotNegative = 0.0


class OutputSpec(Document):
    """A declared output: `like` an argument, or `shape` and `dtype`; `arg` names the buffer it is passed as."""

    like: Name | None = None
    shape: Shape | None = None
    dtype: Text | None = None
    arg: Name | None = None
    layout: Layout | None = None
    check: Check | None = None


class Compile(Document):
    """Options of torch.compile."""

    mode: Text | None = None
    dynamic: bool | None = False
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
    """The trusted implementation: `compute` is the precision it is checked in, `chunk` an axis to slice along."""

    target: Target
    compute: Text | None = None
    chunk: Name | None = None
    args: Many[Name] | None = None
    setup: Target | None = None


class Versus(Document):
    """A competitor timed beside the kernel; `compile` and `graph` are the kernel's own unless said here."""

    target: Target
    args: Many[Name] | None = None
    setup: Target | None = None
    compile: CompileOption | None = None
    graph: bool | None = None
    env: dict[Text, str] = {}


class MatmulPeak(Document):
    """The matrix rate of a dtype with an accumulator."""

    units: Literal["matmul"]
    dtype: Text = Field(alias="in")
    acc: Text | None = None


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
    has_figure = isinstance(value, FigurePeak) or (isinstance(value, dict) and "tflops" in value)
    return "@tflops" if has_figure else "@units"


class _IfFigure:
    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Json:
        figure, units = handler(schema)["oneOf"]
        return {"if": {"required": ["tflops"]}, "then": figure, "else": units}


Peak = Annotated[
    Annotated[FigurePeak, Tag("@tflops")] | Annotated[Units, Tag("@units")],
    Discriminator(_peak_tag),
    _IfFigure(),
]


class TimingSpec(Document):
    """How cases are timed; what is left out comes from `defaults`, then from kmrun."""

    l2: Literal["cold", "hot"] | None = None
    clock: Literal["sustained", "boost", "locked"] | None = None
    min_time_ms: Positive | None = None
    max_time_ms: Positive | None = None
    rel_ci: Annotated[float, Field(gt=0, lt=1)] | None = None


class TimeoutSpec(Document):
    """Seconds that the first call (JIT, autotune) and the whole case may take."""

    first_call: Positive | None = None
    case: Positive | None = None


class RequiresSpec(Document):
    """What must be there, else the kernel is skipped with a reason. `min_cc` is a compute capability: "8.0"."""

    module: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")] | None = None
    min_cc: Annotated[str, Field(pattern=r"^\d+\.\d+$")] | None = None


class Defaults(Document):
    """What kernels inherit key by key."""

    seed: Seed | None = None
    timing: TimingSpec | None = None
    tolerance: dict[Text, Tolerance] = {}
    timeout_s: TimeoutSpec | None = None
    unlisted_device: Literal["report", "fail"] | None = None


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
    extends: Text | None = None
    reference: Annotated[Reference, ShortForm("target")] | None = None
    versus: dict[Name, Annotated[Versus, ShortForm("target")]] = {}
    tags: Many[Text] = ()
    matrix: dict[Name, MatrixAxis] = {}
    cases: Annotated[Many[dict[Name, RowValue]], Field(min_length=1)] | None = None
    exclude: Many[Exclude] = ()
    ragged: dict[Name, Ragged] = {}
    let: dict[Name, LetValue] = {}
    args: dict[Name, Arg] = {}
    kwargs: dict[Name, Arg] = {}
    outputs: Annotated[dict[Name, OutputSpec], Field(min_length=1)] | None = None
    mutates: Many[Name] = ()
    setup: Target | None = None
    flops: Formula | None = None
    bytes: Formula | None = None
    peak: Peak | None = None
    tolerance: dict[Text, Tolerance] = {}
    check: Check | None = None
    contract: Many[Clause] = ()
    unlisted_device: Literal["report", "fail"] | None = None
    mode: Literal["forward", "backward", "forward_backward"] = "forward"
    grad: Literal["randn", "uniform", "ones"] = "randn"
    compile: CompileOption | None = None
    graph: bool = False
    timing: TimingSpec | None = None
    timeout_s: TimeoutSpec | None = None
    requires: RequiresSpec | None = None
    seed: Seed | None = None

    _private = model_validator(mode="before")(_without_private_keys)


class Suite(Document):
    """A whole suite file."""

    model_config = ConfigDict(json_schema_extra=_suite_schema)

    kmrun: Literal[1]
    suite: KernelName
    defaults: Defaults = Defaults()
    kernels: Annotated[Many[Kernel], Field(min_length=1)]

    _private = model_validator(mode="before")(_without_private_keys)
