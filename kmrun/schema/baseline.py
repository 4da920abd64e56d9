"""The baseline document, version 1, as a schema: what `--save-baseline` writes.

Key by key the document of `core/baseline.py`; a test holds the two to each other.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from kmrun.schema.base import Document, Many, NotNegative, Positive

LogRatio = Annotated[float, Field(ge=-100, le=100)]
"""No two times of one machine lie further apart; what does is damage."""


class Session(Document):
    """One fresh process."""

    kernel_ms: Positive = Field(description="Time per call of the kernel.")
    memory_ms: Positive = Field(description="Time per call of the memory yardstick.")
    compute_ms: Positive = Field(description="Time per call of the compute yardstick.")
    over_memory: LogRatio = Field(description="Log ratio of kernel over memory yardstick, side by side.")
    over_compute: LogRatio = Field(description="Log ratio of kernel over compute yardstick, side by side.")
    memory_calls: Annotated[int, Field(ge=1)] = Field(description="Of the memory yardstick in a sample.")
    compute_calls: Annotated[int, Field(ge=1)]


class Case(Document):
    """One case."""

    id: str
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] = Field(
        description="SHA-256 of the case's definition: another one cannot be compared."
    )
    saved: str = Field(description="UTC, ISO 8601.")
    bound: Literal["mem", "comp"] | None
    median_ms: Positive = Field(description="Over the sessions.")
    ci_low_ms: Positive | None = Field(description="95 % interval of that median.")
    ci_high_ms: Positive | None
    spread: NotNegative = Field(description="Standard deviation between sessions, as a fraction.")
    sessions: Annotated[Many[Session], Field(min_length=1)]


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
