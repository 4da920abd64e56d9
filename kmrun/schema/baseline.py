"""The baseline document, version 1, as a schema: what `--save-baseline` writes.

Key by key the document of `core/baseline.py`; a test holds the two to each other.
"""

from collections import Counter
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from kmrun.core.yardstick import LEAST, MOST
from kmrun.schema.base import Document, Many, NotNegative

Milliseconds = Annotated[float, Field(ge=LEAST, le=MOST)]

LogRatio = Annotated[float, Field(ge=-100, le=100)]
"""No two times of one machine lie further apart; what does is damage."""


Calls = Annotated[int, Field(ge=1, le=100_000)]
"""Samples take 20 ms at most: so many calls of a yardstick never fit."""


class Session(Document):
    """One fresh process."""

    kernel_ms: Milliseconds = Field(description="Time per call of the kernel.")
    memory_ms: Milliseconds = Field(description="Time per call of the memory yardstick.")
    compute_ms: Milliseconds = Field(description="Time per call of the compute yardstick.")
    over_memory: LogRatio = Field(description="Log ratio of kernel over memory yardstick, side by side.")
    over_compute: LogRatio = Field(description="Log ratio of kernel over compute yardstick, side by side.")
    memory_calls: Calls = Field(description="Of the memory yardstick in a sample.")
    compute_calls: Calls


class Case(Document):
    """One case."""

    id: str
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] = Field(
        description="SHA-256 of the case's definition: another one cannot be compared."
    )
    saved: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T[0-9:.+Z-]+$")] = Field(
        description="UTC, ISO 8601."
    )
    bound: Literal["mem", "comp"] | None
    median_ms: Milliseconds = Field(description="Over the sessions.")
    ci_low_ms: Milliseconds | None = Field(description="95 % interval of that median.")
    ci_high_ms: Milliseconds | None
    spread: NotNegative = Field(description="Standard deviation between sessions, as a fraction.")
    sessions: Annotated[Many[Session], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _alike(self) -> Self:
        if len({(each.memory_calls, each.compute_calls) for each in self.sessions}) > 1:
            raise ValueError("sessions of other calls of a yardstick in a sample are not comparable")
        return self


class Device(Document):
    """What the times are of."""

    key: Annotated[str, Field(min_length=1)]
    kind: Literal["cpu", "cuda", "rocm"]
    name: str
    card: str | None
    threads: int | None


class Baseline(Document):
    """kmrun baseline document, version 1."""

    kmrun_baseline: Literal[1] = Field(description="Major version of the format.")
    suite: str
    device: Device
    environment: dict[str, Any]
    cases: Many[Case]

    @model_validator(mode="after")
    def _once(self) -> Self:
        twice = [name for name, count in Counter(case.id for case in self.cases).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]} is there twice")
        return self
