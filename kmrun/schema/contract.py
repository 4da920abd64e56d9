"""The clauses of a contract: one model a kind, told apart by the key that names the kind."""

from typing import Annotated, ClassVar

from pydantic import Discriminator, Field, Tag

from kmrun.schema.base import (
    Document,
    Formula,
    IfHas,
    IfMapping,
    Many,
    NotNegative,
    Opt,
    Positive,
    Text,
    by_presence,
    mapping_or_other,
)

Fraction = Annotated[float, Field(gt=0, le=1)]

FractionBound = Annotated[
    Annotated[Annotated[dict[Text, Fraction], Field(min_length=1)], Tag("@mapping")]
    | Annotated[Fraction, Tag("@other")],
    Discriminator(mapping_or_other),
    IfMapping(),
]
PositiveBound = Annotated[
    Annotated[Annotated[dict[Text, Positive], Field(min_length=1)], Tag("@mapping")]
    | Annotated[Positive, Tag("@other")],
    Discriminator(mapping_or_other),
    IfMapping(),
]
NotNegativeBound = Annotated[
    Annotated[Annotated[dict[Text, NotNegative], Field(min_length=1)], Tag("@mapping")]
    | Annotated[NotNegative, Tag("@other")],
    Discriminator(mapping_or_other),
    IfMapping(),
]


class ClauseBase(Document):
    """What all clauses share; `when` is a formula, `xfail` the reason why it is expected to be broken."""

    kind: ClassVar[str]
    when: Opt[Formula] = None
    tags: Many[Text] = ()
    xfail: Opt[Text] = None

    @property
    def bound(self) -> float | dict[str, float]:
        """The bound as written: a number, or a map from card, glob, `cpu` or `gpu` to a number."""
        value: float | dict[str, float] = getattr(self, self.kind)
        return value


class MinRoof(ClauseBase):
    """At least this fraction of the attainable of the card's published peaks."""

    kind = "min_roof"
    min_roof: FractionBound


class MinRoofClk(ClauseBase):
    """At least this fraction of the attainable at the clocks held."""

    kind = "min_roof_clk"
    min_roof_clk: FractionBound


class MinCeiling(ClauseBase):
    """At least this fraction of the measured ceiling."""

    kind = "min_ceiling"
    min_ceiling: FractionBound


class MinSpeedup(ClauseBase):
    """At least this many times as fast as the fastest `versus` (the reference where there is none)."""

    kind = "min_speedup"
    min_speedup: PositiveBound


class MaxSlowdown(ClauseBase):
    """At most this fraction slower than the other version or the stored baseline."""

    kind = "max_slowdown"
    max_slowdown: NotNegativeBound


class MaxMs(ClauseBase):
    """At most this many milliseconds a call."""

    kind = "max_ms"
    max_ms: PositiveBound


class MaxHostUs(ClauseBase):
    """At most this many microseconds of submit time on the host."""

    kind = "max_host_us"
    max_host_us: PositiveBound


class MaxMemoryGb(ClauseBase):
    """At most this many GB (1e9 bytes) held by the kernel's side."""

    kind = "max_memory_gb"
    max_memory_gb: PositiveBound


CLAUSE_KINDS = (
    "min_roof",
    "min_roof_clk",
    "min_ceiling",
    "min_speedup",
    "max_slowdown",
    "max_ms",
    "max_host_us",
    "max_memory_gb",
)

Clause = Annotated[
    Annotated[MinRoof, Tag("@min_roof")]
    | Annotated[MinRoofClk, Tag("@min_roof_clk")]
    | Annotated[MinCeiling, Tag("@min_ceiling")]
    | Annotated[MinSpeedup, Tag("@min_speedup")]
    | Annotated[MaxSlowdown, Tag("@max_slowdown")]
    | Annotated[MaxMs, Tag("@max_ms")]
    | Annotated[MaxHostUs, Tag("@max_host_us")]
    | Annotated[MaxMemoryGb, Tag("@max_memory_gb")],
    Discriminator(by_presence(CLAUSE_KINDS)),
    IfHas("when", "tags", "xfail"),
]
