"""How outputs are compared: one model a metric, told apart by that tag."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from kmrun.schema.base import (
    Document,
    IfThen,
    NotNegative,
    Opt,
    Positive,
    SaysSomething,
    Target,
    Text,
    by_key,
)


class AutoCheck(Document):
    """The norm-wise default."""

    metric: Literal["auto"]


class AllcloseCheck(Document):
    """|got - want| <= atol + rtol * |want|, element by element; dtype defaults where left out."""

    metric: Literal["allclose"]
    rtol: Opt[NotNegative] = None
    atol: Opt[NotNegative] = None


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
    rtol: Opt[NotNegative] = None
    atol: Opt[NotNegative] = None


class PropertyCheck(Document):
    """`target(inputs, outputs)` decides: for outputs that have many right answers."""

    metric: Literal["property"]
    target: Target


class StatisticalCheck(Document):
    """Mean and spread against the reference's, for random outputs; `threshold` in standard errors."""

    metric: Literal["statistical"]
    threshold: Positive = 5.0


class NoCheck(Document):
    """Not compared, and why (scratch space, auxiliary outputs)."""

    metric: Literal["none"]
    reason: Text


def _has_dtypes(value: Any) -> Any:
    if isinstance(value, dict) and not value.keys().isdisjoint(("rtol", "atol")):
        raise PydanticCustomError(
            "tolerance_without_dtype", "a tolerance is for outputs of one dtype: name it"
        )
    return value


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


class Tolerance(SaysSomething):
    """allclose for the outputs of one dtype."""

    rtol: NotNegative = 0.0
    atol: NotNegative = 0.0


Tolerances = Annotated[dict[Text, Tolerance], BeforeValidator(_has_dtypes)]
"""Output dtype to tolerance."""
