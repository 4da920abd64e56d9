"""What `kmrun ceiling` found: each figure with the share of the theoretical one, as text and as a document."""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kmrun.core import peaks
from kmrun.core.card import Card
from kmrun.core.cpu_load import CpuLoad
from kmrun.core.measurement import Ceilings, RunDevice
from kmrun.core.telemetry import Telemetry
from kmrun.core.units import BANDWIDTH, BYTES, FLOP_RATE, Family, format_quantity
from kmrun.report.fitting import fitted
from kmrun.report.machine import throttling
from kmrun.report.numbers import duration, percent

VERSION = 1
WIDTH = 100
_BUSY_CORES, _BUSY_SHARE = 0.1, 0.02
"""Cores, and the share of all, that others may use: every system does something of its own."""
_LEAST_SHOWN = 0.005


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure in SI and the theoretical one, None where nothing is published or derived."""

    what: str
    detail: str
    value: float
    theoretical: float | None

    @property
    def fraction(self) -> float | None:
        """The share of the theoretical figure."""
        return self.value / self.theoretical if self.theoretical else None


@dataclass(frozen=True, slots=True)
class Delivered:
    """The ceilings of a machine. `missing` are the dtypes whose matmul this torch does not have here.

    `vector_peaks` are a CPU's own, derived, by dtype; a GPU's come from the card. `remark` is about the theory.
    `cache_bytes` is the last-level cache, 0 where it is not known; `load`: who used the CPUs meanwhile.
    """

    device: RunDevice
    card: Card | None
    ceilings: Ceilings
    missing: tuple[str, ...]
    environment: Mapping[str, Any]
    telemetry: Telemetry
    vector_peaks: Mapping[str, float]
    remark: str = ""
    cache_bytes: int = 0
    load: CpuLoad | None = None

    @property
    def in_cache(self) -> bool:
        """Whether the bandwidths are of a set that the last-level cache holds, or much of it, and not the memory's."""
        return any(seen.bytes < 2 * self.cache_bytes for seen in self.ceilings.bandwidths)

    @property
    def disturbed(self) -> bool:
        """Whether others used more of the CPUs than a little, so that the figures are lower than they would be."""
        if self.load is None:
            return False
        return self.load.others + self.load.steal > max(_BUSY_CORES, _BUSY_SHARE * (self.device.threads or 0))

    @property
    def bandwidths(self) -> tuple[Figure, ...]:
        """The bandwidths of memory-sized sets."""
        # A cache may well be faster than the memory of the data sheet: no share of that, then.
        published = peaks.bandwidth(self.card) if self.card and not self.in_cache else None
        return tuple(
            Figure(seen.kind, format_quantity(seen.bytes, BYTES), seen.bytes_per_s, published)
            for seen in self.ceilings.bandwidths
        )

    @property
    def matmuls(self) -> tuple[Figure, ...]:
        """The matmul rates, each against the rate of its dtype with the accumulator that libraries use."""
        return tuple(
            Figure(f"{rate.dtype} matmul", f"n {rate.n}", rate.flop_per_s, self._rate(rate.dtype))
            for rate in self.ceilings.matmuls
        )

    def _rate(self, dtype: str) -> float | None:
        if self.card is not None:
            return peaks.rate(self.card, "matmul", dtype)
        return self.vector_peaks.get(dtype)


def lines(found: Delivered, width: int = WIDTH) -> list[str]:
    """Return the text for people, `width` columns at most."""
    device = found.device
    name = f"{device.name} ({found.card.id})" if found.card else device.name
    parts = [
        name,
        *(f"{key} {found.environment[key]}" for key in ("torch", "driver") if found.environment.get(key)),
    ]
    if device.kind == "cpu" and device.threads:
        parts.append(f"{device.threads} threads")
    text = [f"ceiling     {' · '.join(parts)}", ""]
    text += _table(found.bandwidths, BANDWIDTH)
    text += _table(found.matmuls, FLOP_RATE)
    cached = found.ceilings.cache_bandwidths
    if cached:
        # A size and its bandwidth stay together on a line.
        sizes = (
            f"{_binary(one.bytes)} {format_quantity(one.bytes_per_s, BANDWIDTH)}".replace(
                " ", "\N{NO-BREAK SPACE}"
            )
            for one in cached
        )
        indent = " " * 12
        text += [
            "",
            *textwrap.wrap(
                " · ".join(sizes), min(width, WIDTH), initial_indent="  in cache  ", subsequent_indent=indent
            ),
        ]
        text = [line.replace("\N{NO-BREAK SPACE}", " ") for line in text]
    if found.missing:
        text += ["", f"  no matmul here in {', '.join(found.missing)}"]
    clocks = _clocks(found.telemetry)
    text += ["", *([f"  {clocks}"] if clocks else []), *([f"  {found.remark}"] if found.remark else [])]
    took = duration(found.ceilings.wall_ns / 1e9)
    load = _load(found)
    text += [f"  {load}"] if load else []
    doubts = _doubts(found)
    text += [f"  {doubt}" for doubt in doubts]
    if not doubts:
        text.append(f"  Use this as the honest 100 %: the best of repeated runs, measured now in {took}.")
    return fitted(text, min(width, WIDTH))


def _load(found: Delivered) -> str:
    if found.load is None:
        return ""
    stolen = f", {found.load.steal:.2f} stolen by the host" if found.load.steal >= _LEAST_SHOWN else ""
    return f"load by others meanwhile: {found.load.others:.2f} cores{stolen}"


def _doubts(found: Delivered) -> list[str]:
    """Return why the figures are not the honest 100 %; nothing where they are."""
    doubts = []
    if found.in_cache:
        size = format_quantity(min(seen.bytes for seen in found.ceilings.bandwidths), BYTES)
        cache = format_quantity(found.cache_bytes, BYTES)
        doubts.append(
            f"These bandwidths are the cache's, and no 100 % of the memory: {size} is less than twice the last-level "
            f"cache ({cache})."
        )
    if found.disturbed:
        doubts.append(
            "The figures are low, and not the honest 100 %: measure again while nobody else computes."
        )
    return doubts


def _binary(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 2**20 else f"{size >> 10} KiB"


def _table(figures: tuple[Figure, ...], family: Family) -> list[str]:
    cells = [
        (
            figure.what,
            figure.detail,
            format_quantity(figure.value, family),
            f"{percent(figure.fraction)} of {format_quantity(figure.theoretical, family)}"
            if figure.theoretical
            else "",
        )
        for figure in figures
    ]
    return [
        f"  {what:<16}{detail:>8}  {value:>12}   {share}".rstrip() for what, detail, value, share in cells
    ]


def _clocks(telemetry: Telemetry) -> str:
    if telemetry.sm_mhz is None:
        return ""
    most = f" of {telemetry.sm_mhz_max:.0f}" if telemetry.sm_mhz_max else ""
    parts = [f"{telemetry.sm_mhz:.0f}{most} MHz"]
    parts += [f"{telemetry.power_w:.0f} W"] if telemetry.power_w is not None else []
    parts += [f"{telemetry.temp_c:.0f} C"] if telemetry.temp_c is not None else []
    parts += throttling(telemetry.throttle or ())
    return f"held meanwhile: {' · '.join(parts)}"


def record(found: Delivered) -> dict[str, Any]:
    """Return the document, with the unit in every key."""
    device = found.device
    return {
        "kmrun_ceiling": VERSION,
        "device": {
            "kind": device.kind,
            "index": device.index,
            "name": device.name,
            "card": found.card.id if found.card else None,
            "uuid": device.uuid,
            "compute_capability": device.compute_capability,
            "threads": device.threads,
        },
        "environment": dict(found.environment),
        "bandwidths": [
            {"kind": seen.kind, "bytes": seen.bytes, **_figure(figure, "gb_per_s", 1e9)}
            for seen, figure in zip(found.ceilings.bandwidths, found.bandwidths, strict=True)
        ],
        "matmuls": [
            {"dtype": rate.dtype, "n": rate.n, **_figure(figure, "tflop_per_s", 1e12)}
            for rate, figure in zip(found.ceilings.matmuls, found.matmuls, strict=True)
        ],
        "cache_bandwidths": [
            {"kind": seen.kind, "bytes": seen.bytes, "gb_per_s": seen.bytes_per_s / 1e9}
            for seen in found.ceilings.cache_bandwidths
        ],
        "missing_dtypes": list(found.missing),
        "telemetry": _telemetry(found.telemetry),
        "load": None
        if found.load is None
        else {
            "own_cores": found.load.own,
            "other_cores": found.load.others,
            "stolen_cores": found.load.steal,
        },
        "disturbed": found.disturbed,
        "in_cache": found.in_cache,
        "remark": found.remark or None,
        "wall_s": found.ceilings.wall_ns / 1e9,
    }


def _figure(figure: Figure, unit: str, scale: float) -> dict[str, float | None]:
    in_unit: Callable[[float | None], float | None] = lambda value: None if value is None else value / scale  # noqa: E731
    return {
        unit: in_unit(figure.value),
        f"theoretical_{unit}": in_unit(figure.theoretical),
        "fraction": figure.fraction,
    }


def _telemetry(seen: Telemetry) -> dict[str, Any]:
    names = ("source", "sm_mhz", "sm_mhz_max", "mem_mhz", "temp_c", "power_w")
    return {
        **{name: getattr(seen, name) for name in names},
        "throttle": None if seen.throttle is None else list(seen.throttle),
        "note": seen.note or None,
    }
