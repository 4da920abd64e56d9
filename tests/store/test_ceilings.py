"""Kept ceilings: per card, driver, torch, power limit and ECC; in one file that may be damaged or not there."""

import json
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kmrun.core.measurement import Bandwidth, Ceilings, MatmulRate
from kmrun.device.claim import Claim
from kmrun.errors import EnvironmentLacks
from kmrun.measure.delivering import RunCeilings, key_of
from kmrun.store.ceilings import CeilingCache, CeilingKey, cache_folder
from support.cases import CPU, GPU

KEY = CeilingKey("GPU-1", "580.95.05", "2.13.0", 700.0, True)
RATES = (MatmulRate("bf16", 8192, 742e12), MatmulRate("fp32", 4096, 51.9e12))


class Clock:
    """Seconds since the epoch, moved by hand."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(tmp_path: Path, clock: Clock) -> CeilingCache:
    return CeilingCache(clock, tmp_path / "deep" / "ceilings.json")


def test_what_was_kept_is_found_with_its_age(cache: CeilingCache, clock: Clock) -> None:
    assert cache.find(KEY) == ()
    cache.keep(KEY, RATES)
    clock.now += 3 * 86400
    assert cache.find(KEY) == tuple(replace(rate, age_s=3 * 86400.0) for rate in RATES)


@pytest.mark.parametrize(
    "change",
    [
        {"uuid": "GPU-2"},
        {"driver": "590.1"},
        {"torch": "2.14.0"},
        {"power_limit_w": 500.0},
        {"ecc": False},
        {"ecc": None},
        {"locked": True},
    ],
)
def test_what_a_rate_depends_on_keeps_rates_apart(cache: CeilingCache, change: dict[str, object]) -> None:
    other = replace(KEY, **change)  # type: ignore[arg-type]
    cache.keep(KEY, RATES)
    assert cache.find(other) == ()
    cache.keep(other, RATES[:1])
    assert len(cache.find(KEY)) == 2


def test_a_newer_rate_takes_the_place_of_an_older_one(cache: CeilingCache, clock: Clock) -> None:
    cache.keep(KEY, RATES)
    clock.now += 100
    cache.keep(KEY, (MatmulRate("bf16", 8192, 700e12),))
    found = {rate.dtype: (rate.flop_per_s, rate.age_s) for rate in cache.find(KEY)}
    assert found == {"bf16": (700e12, 0.0), "fp32": (51.9e12, 100.0)}


def test_a_clock_that_was_set_back_makes_no_age_negative(cache: CeilingCache, clock: Clock) -> None:
    cache.keep(KEY, RATES)
    clock.now -= 100
    assert {rate.age_s for rate in cache.find(KEY)} == {0.0}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '{"kmrun_ceilings": 2, "machines": {"x": {}}}', '{"kmrun_ceilings": 1}'),
        '{"kmrun_ceilings": 1, "machines": {"x": {"bf16": {"n": "many"}}}}',
        '{"kmrun_ceilings": 1, "machines": [1]}',
        *(
            '{"kmrun_ceilings": 1, "machines": {"x": {"bf16": {' + figures + "}}}}"
            for figures in (
                '"n": 1e999, "flop_per_s": 1e12, "at": 1e6',
                '"n": 8192, "flop_per_s": NaN, "at": 1e6',
                '"n": 8192, "flop_per_s": -1, "at": 1e6',
                '"n": 0, "flop_per_s": 1e12, "at": 1e6',
                '"n": 8192, "flop_per_s": 1e12, "at": -Infinity',
                '"n": 8192, "flop_per_s": true, "at": 1e6',
                '"n": 8192, "flop_per_s": "7", "at": 1e6',
            )
        ),
        "[" * 100_000,
    ],
)
def test_a_file_that_cannot_be_understood_is_empty_and_replaced(
    tmp_path: Path, clock: Clock, text: str
) -> None:
    path = tmp_path / "ceilings.json"
    path.write_text(text)
    cache = CeilingCache(clock, path)
    assert cache.find(KEY) == ()
    cache.keep(KEY, RATES)
    assert len(cache.find(KEY)) == 2
    assert json.loads(path.read_text())["kmrun_ceilings"] == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["ceilings.json"]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_keeps_nothing(tmp_path: Path, clock: Clock) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    CeilingCache(clock, tmp_path / "deep" / "ceilings.json").keep(KEY, RATES)
    tmp_path.chmod(stat.S_IRWXU)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_keeps_nothing(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "kmrun").write_text("")
    cache = CeilingCache(clock, tmp_path / "kmrun" / "ceilings.json")
    cache.keep(KEY, RATES)
    assert cache.find(KEY) == ()


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes")
def test_a_file_that_is_a_pipe_is_empty_and_waited_for_by_nobody(tmp_path: Path, clock: Clock) -> None:
    os.mkfifo(tmp_path / "ceilings.json")
    assert CeilingCache(clock, tmp_path / "ceilings.json").find(KEY) == ()


@pytest.mark.skipif(sys.platform != "linux", reason="of the folder's place on Linux")
@pytest.mark.parametrize("home", ["", "relative/home", "/"])
def test_a_home_that_is_none_keeps_nothing(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home)
    assert cache_folder() is None


def test_the_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "kmrun"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder().is_absolute()
    assert cache_folder().name == "kmrun"


class Machine:
    """Measures figures that are better each time, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[str, ...], float]] = []

    def __call__(self, dtypes: tuple[str, ...], budget_ns: float) -> Ceilings:
        self.asked.append((dtypes, budget_ns))
        times = len(self.asked)
        rates = tuple(MatmulRate(dtype, 4096, times * 1e12) for dtype in dtypes)
        return Ceilings((Bandwidth("read", 1 << 30, times * 1e12),), rates, wall_ns=1e8)


def test_a_gpu_s_matmul_is_measured_once_and_its_bandwidth_always(cache: CeilingCache, clock: Clock) -> None:
    machine = Machine()
    first = RunCeilings(machine, cache, KEY)
    opened = first.open(("fp32", "bf16"))
    assert {rate.age_s for rate in opened.matmuls} == {None}
    closed = first.close()
    assert closed.bandwidths[0].bytes_per_s == 2e12
    clock.now += 60
    again = RunCeilings(machine, cache, KEY).open(("fp32", "bf16", "tf32"))
    assert {rate.dtype: rate.age_s for rate in again.matmuls} == {"fp32": 60.0, "bf16": 60.0, "tf32": None}
    assert again.bandwidths[0].bytes_per_s == 3e12
    assert [dtypes for dtypes, _ in machine.asked] == [("fp32", "bf16"), (), ("tf32",)]
    # Bandwidth has the time that it had, and no more.
    assert [round(budget / 1.2e9, 2) for _, budget in machine.asked] == [1.0, 0.5, 0.6]


def test_what_was_measured_beside_others_is_not_kept(cache: CeilingCache) -> None:
    machine = Machine()
    beside = RunCeilings(machine, cache, KEY, disturbed=True)
    assert beside.open(("bf16",)).matmuls[0].flop_per_s == 1e12
    assert cache.find(KEY) == ()
    cache.keep(KEY, RATES)
    # What was kept before still counts.
    assert RunCeilings(machine, cache, KEY, disturbed=True).open(("bf16",)).matmuls[0].flop_per_s == 742e12


@pytest.mark.parametrize("held", [True, False])
def test_what_was_measured_at_a_locked_clock_is_kept_once_that_is_known_to_hold(
    cache: CeilingCache, held: bool
) -> None:
    locked = replace(KEY, locked=True)
    run = RunCeilings(Machine(), cache, locked, held=lambda: held)
    run.open(("bf16",))
    assert cache.find(locked) == ()  # load has shown nothing yet
    run.close()
    assert [rate.dtype for rate in cache.find(locked)] == (["bf16"] if held else [])


def test_a_cpu_s_is_measured_before_and_after_and_never_kept(cache: CeilingCache) -> None:
    machine = Machine()
    run = RunCeilings(machine, cache, key_of(CPU, Claim(), "2.13.0"))
    run.open(("fp32",))
    closed = run.close()
    assert (closed.matmuls[0].flop_per_s, closed.matmuls[0].age_s) == (2e12, None)
    assert [dtypes for dtypes, _ in machine.asked] == [("fp32",), ("fp32",)]
    assert cache.find(KEY) == ()


def test_what_was_measured_before_the_cases_stands_where_memory_is_refused_after_them() -> None:
    machine, refused = Machine(), [False]

    def measure(dtypes: tuple[str, ...], budget_ns: float) -> Ceilings:
        if refused[0]:
            raise EnvironmentLacks("the ceilings cannot be measured")
        return machine(dtypes, budget_ns)

    run = RunCeilings(measure)
    opened = run.open(("fp32",))
    refused[0] = True
    assert run.close() == opened
    with pytest.raises(EnvironmentLacks):
        RunCeilings(measure).close()


def test_what_cannot_be_named_is_not_kept() -> None:
    known = Claim(None, "", {"power_limit_w": 700.0, "ecc": True}, "580.95.05")
    assert key_of(GPU, known, "2.13.0") == KEY
    assert key_of(GPU, Claim(None, "", {}, "580.95.05"), "2.13.0") is None
    assert key_of(GPU, Claim(), "2.13.0") is None
    assert key_of(replace(GPU, uuid=None), known, "2.13.0") is None
    assert key_of(CPU, known, "2.13.0") is None
    amd = Claim(None, "", {"power_limit_w": 750.0, "unique_id": "0xabc1"}, "6.12.12")
    assert key_of(replace(GPU, uuid=None), amd, "2.13.0") == CeilingKey(
        "0xabc1", "6.12.12", "2.13.0", 750.0, None
    )


def test_a_user_without_a_home_keeps_nothing(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(Path, "home", nowhere)
    assert cache_folder() is None
    cache = CeilingCache(clock)
    cache.keep(KEY, RATES)
    assert cache.find(KEY) == ()
