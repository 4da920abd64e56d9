"""What the machine delivers, for a run: measured before and after it, a GPU's matmul kept between runs. No torch."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kmrun.core.measurement import Ceilings, MatmulRate, RunDevice
from kmrun.core.plain import from_plain
from kmrun.core.units import BYTES, format_quantity
from kmrun.device.claim import Claim
from kmrun.errors import EnvironmentLacks
from kmrun.measure.side import Died, Side, Stopped, TimedOut
from kmrun.store.ceilings import CeilingCache, CeilingKey

BUDGET_NS, TIMEOUT_S = 1.2e9, 120.0
_PASSES = 8
"""Every operation runs six times at least; filling the memory and making the matrices take as long as two more."""
_CPU_FLOOR, _GPU_FLOOR = (0.5e9, 2e9), (20e9, 100e9)
"""Bytes and flop per second that every machine delivers, busy as it may be."""

Measure = Callable[[tuple[str, ...], float], Ceilings]
"""Measures bandwidths and the matmul of some dtypes, within a budget in ns."""


class RunCeilings:
    """The ceilings of one run.

    A CPU's are measured before and after the cases, all of them, and the larger figures count: its clocks and its
    load change from minute to minute. A GPU's bandwidth is, too; its matmul depends on the card, the driver, torch,
    the power limit and ECC, and is measured once for each of them.
    """

    def __init__(
        self,
        measure: Measure,
        cache: CeilingCache | None = None,
        key: CeilingKey | None = None,
        disturbed: bool = False,
        held: Callable[[], bool] = lambda: True,
    ) -> None:
        """Take what measures; without a key nothing is kept, and nothing new while others use the card.

        `held` says at the end whether a clock that was locked has been seen to hold: if not, it is not known which
        clock the rates of the beginning are of, and they are not kept.
        """
        self._measure, self._cache, self._key, self._disturbed = measure, cache, key, disturbed
        self._held = held
        self._waiting: tuple[MatmulRate, ...] = ()
        self._dtypes: tuple[str, ...] = ()
        self._opened: Ceilings | None = None

    def open(self, dtypes: tuple[str, ...]) -> Ceilings:
        """Measure before the cases: bandwidth, and the matmul of the dtypes that are not kept."""
        self._dtypes = tuple(dict.fromkeys(dtypes))
        kept = self._kept()
        wanted = tuple(dtype for dtype in self._dtypes if dtype not in {rate.dtype for rate in kept})
        found = self._measure(wanted, self._budget(wanted))
        self.keep(found)
        self._opened = replace(found, matmuls=(*found.matmuls, *kept))
        return self._opened

    def close(self) -> Ceilings:
        """Measure after the cases; the larger of both counts, figure by figure."""
        if self._waiting and self._held():
            self._keep(self._waiting)
        self._waiting = ()
        again = () if self._key is not None else self._dtypes
        try:
            found = self._measure(again, self._budget(again))
        except EnvironmentLacks:
            if self._opened is None:
                raise
            return self._opened  # what was measured before the cases stands, and so do they
        return found if self._opened is None else self._opened.larger(found)

    def keep(self, found: Ceilings) -> None:
        """Keep a GPU's matmul rates that were measured just now; at a locked clock, once that is known to hold."""
        if self._key is None or self._disturbed:
            return
        if self._key.locked:
            self._waiting = found.matmuls
        else:
            self._keep(found.matmuls)

    def _keep(self, rates: tuple[MatmulRate, ...]) -> None:
        if self._cache is not None and self._key is not None and rates:
            self._cache.keep(self._key, rates)

    def _kept(self) -> tuple[MatmulRate, ...]:
        if self._cache is None or self._key is None:
            return ()
        return tuple(rate for rate in self._cache.find(self._key) if rate.dtype in self._dtypes)

    def _budget(self, dtypes: tuple[str, ...]) -> float:
        """Return the share of the whole budget: bandwidth and caches are two parts, each dtype one."""
        return BUDGET_NS * (2 + len(dtypes)) / (2 + len(self._dtypes))


def key_of(device: RunDevice, claim: Claim, torch_version: str) -> CeilingKey | None:
    """Return what a GPU's kept ceilings go by; None for a CPU, and where a part of it is not known."""
    limit: Any = claim.facts.get("power_limit_w")
    uuid = device.uuid or claim.facts.get("unique_id")  # AMD's name for it, which not every torch gives
    if device.kind == "cpu" or uuid is None or claim.driver is None or limit is None:
        return None
    ecc = claim.facts.get("ecc")
    return CeilingKey(uuid, claim.driver, torch_version, float(limit), ecc, claim.holds_clock)


def ceiling_cache() -> CeilingCache:
    """Return this user's kept ceilings."""
    return CeilingCache(time.time)


def delivered(
    side: Side,
    free_bytes: int,
    dtypes: tuple[str, ...],
    kinds: tuple[str, ...],
    budget_ns: float,
    total_bytes: int | None,
    sizes: tuple[int, ...],
    on_cpu: bool = True,
) -> Ceilings:
    """Measure what the machine delivers in a side; arguments as of `measure.ceiling`, `on_cpu` is the side's.

    Raises:
        EnvironmentLacks: the set or the matrices do not fit, or measuring them ended otherwise.
    """
    needed = max(total_bytes or 0, *(4 * 8 * n * n for n in sizes or (0,)))
    if needed > free_bytes:
        sizes_told = f"{format_quantity(needed, BYTES)} of {format_quantity(free_bytes, BYTES)} that are free"
        raise EnvironmentLacks(f"the ceilings need {sizes_told}", "a smaller --mb or --matmul-n")
    try:
        found = side.ask(
            "ceilings",
            timeout_s(total_bytes or 0, len(kinds), sizes, len(dtypes), on_cpu),
            dtypes=list(dtypes),
            kinds=list(kinds),
            budget_ns=budget_ns,
            total_bytes=total_bytes,
            sizes=list(sizes),
        )
    except Stopped as stopped:
        raise refused(stopped) from stopped
    except (Died, TimedOut) as lost:
        raise EnvironmentLacks(f"measuring the ceilings ended: {lost}", lost.tail) from lost
    return from_plain(Ceilings, found)


def timeout_s(total_bytes: int, kinds: int, sizes: tuple[int, ...], dtypes: int, on_cpu: bool) -> float:
    """Return the seconds after which measuring must have ended: no machine is so slow that it takes longer.

    Args:
        total_bytes: of the set for bandwidth.
        kinds: how many kinds of bandwidth are measured.
        sizes: of the matmuls, n each.
        dtypes: how many dtypes each of them is measured in.
        on_cpu: whether it is a CPU, which touches memory and multiplies far slower than a GPU.
    """
    moved, computed = _CPU_FLOOR if on_cpu else _GPU_FLOOR
    flop = dtypes * sum(2.0 * n**3 for n in sizes)
    return TIMEOUT_S + _PASSES * (kinds * total_bytes / moved + flop / computed)


def refused(stopped: Stopped) -> EnvironmentLacks:
    """Return the error for ceilings that could not be measured, as where the memory for them is refused."""
    finding = stopped.finding
    sentence = finding.sentence.removeprefix("skipped: ")
    hint = "a smaller --mb or --matmul-n; `ulimit -v` may be set" if finding.code == "memory" else ""
    return EnvironmentLacks(f"the ceilings cannot be measured: {sentence}", hint)
