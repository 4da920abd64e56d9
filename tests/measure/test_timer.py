"""The sampling loop against a stopwatch whose time is made up, and the CPU's real one where only order matters."""

import time

import pytest

from kmrun.core.statistics import median
from kmrun.measure.timer import Budget, CpuStopwatch, Rotation, Sampler, Window


class FakeStopwatch:
    """Each batch takes what the script says, in ns, and moves the clock on by as much."""

    kind = "cpu"
    spread_ns = 0.0
    disturbed = False

    def __init__(self, script, clock):
        self.host_ns = []
        self._script, self._clock = iter(script), clock
        self.batches = []

    def learn(self, thunk):
        pass

    def batch_ns(self, thunks, outputs):
        self.batches.append(len(thunks))
        results = [thunk() for thunk in thunks]
        if outputs is not None:
            outputs += results
        took = next(self._script)
        self._clock.now += took
        return took


class Clock:
    now = 0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("kmrun.measure.timer._clock", made)
    return made


def sampler(script, clock, copies=3, **changes):
    thunks = [lambda place=place: place for place in range(copies)]
    return Sampler(FakeStopwatch(script, clock), Rotation(thunks), **changes)


def steady(value):
    while True:
        yield value


def test_calls_rotate_over_the_copies_also_within_a_batch(clock):
    taken = sampler(steady(100), clock, copies=3, batch=2)
    outputs = []
    assert [taken.one(outputs)[1] for _ in range(3)] == [[0, 1], [2, 0], [1, 2]]
    assert outputs == [0, 1, 2, 0, 1, 2]


def test_a_batched_sample_is_per_call(clock):
    assert sampler([5000], clock, batch=50).one()[0] == 100


@pytest.mark.parametrize(
    ("call_ns", "batch"), [(500, 100), (5_000, 10), (19_999, 3), (20_000, 1), (1e6, 1), (0, 10_000)]
)
def test_short_calls_are_batched_up_to_50_us(clock, call_ns, batch):
    assert abs(sampler([], clock).choose_batch(call_ns) - batch) <= 1


def test_the_window_stops_on_the_interval_once_the_least_time_was_sampled(clock):
    taken = sampler(steady(1000), clock).window(Budget(min_ns=25_000, max_ns=1e9, rel_ci=0.01))
    taken = taken.all_ns
    assert 25 <= len(taken) <= 35


def test_the_window_stops_on_wall_time_when_the_interval_stays_wide(clock):
    wild = (value for _ in range(10_000) for value in (1000, 9000))
    taken = sampler(wild, clock).window(Budget(min_ns=10, max_ns=200_000, rel_ci=1e-6)).all_ns
    assert sum(taken) >= 200_000
    assert len(taken) <= 45


def test_least_time_yields_to_most_time(clock):
    taken = sampler(steady(1e6), clock).window(Budget(min_ns=1e12, max_ns=9e6, rel_ci=0.5))
    assert len(taken.all_ns) == 9


def test_even_a_slow_kernel_gets_the_samples_that_a_bound_needs(clock):
    taken = sampler(steady(1e9), clock).window(Budget(min_ns=0, max_ns=1e6, rel_ci=0.5))
    assert len(taken.all_ns) == 8


def test_undisturbed_samples_speak_alone_when_there_are_enough_of_them():
    window = Window()
    for step in range(40):
        window.add(1000.0 if step % 4 == 0 else 9000.0, disturbed=step % 4 != 0)
    assert window.chosen() == ([1000.0] * 10, 30)


@pytest.mark.parametrize("every", [5, 40])
def test_a_kernel_that_is_always_disturbed_is_judged_by_all_its_samples(every):
    window = Window()
    for step in range(40):
        window.add(float(step), disturbed=step % every != 0)
    assert window.chosen() == ([float(step) for step in range(40)], 0)


def test_wanted_outputs_are_kept_with_the_copies_they_came_from(clock):
    kept = []
    sampler(steady(1000), clock).window(
        Budget(min_ns=0, max_ns=12_000, rel_ci=1e-9),
        keep=lambda number, places, results: kept.append((number, places, results)),
        wants=lambda number: number in (0, 4),
    )
    assert kept == [(0, [0], [0]), (4, [1], [1])]


def test_warm_up_goes_on_until_the_level_is_stable(clock):
    falling = [10_000 / (1 + step) for step in range(15)]
    taken = sampler([*falling, *[500] * 100], clock)
    count, level = taken.warm_up(least_ns=0, most_ns=1e12)
    assert level == 500
    assert 20 <= count <= 26


def test_warm_up_ends_when_its_time_is_up(clock):
    restless = (value for step in range(1000) for value in [1e6 * (1 + step)])
    count, _ = sampler(restless, clock).warm_up(least_ns=0, most_ns=5e6, at_least=3)
    assert count == 3


def test_warm_up_of_one_call_that_was_quicker_than_the_first_takes_another(clock):
    """A first call that the machine held up makes a short kernel look too long for more than one."""
    count, level = sampler(steady(5000.0), clock).warm_up(least_ns=1000, most_ns=1e9, at_least=1)
    assert (count, level) == (2, 5000.0)


def test_warm_up_of_a_call_longer_than_its_time_takes_one(clock):
    count, level = sampler(steady(5000.0), clock).warm_up(least_ns=100, most_ns=1000, at_least=1)
    assert (count, level) == (1, 5000.0)


def test_preparation_and_clearing_up_stand_outside_the_sample(clock):
    order = []
    taken = sampler(
        steady(7),
        clock,
        before=lambda: order.append("flush"),
        after=lambda places: order.append(tuple(places)),
    )
    assert taken.one()[0] == 7
    assert order == ["flush", (0,)]
    taken.one(outputs=[])
    assert order == ["flush", (0,), "flush"]  # who took the outputs clears up


def test_the_cpu_stopwatch_never_claims_less_than_a_busy_wait_took():
    watch = CpuStopwatch()
    noted = []

    def wait():
        begin = time.perf_counter_ns()
        while time.perf_counter_ns() < begin + 100_000:
            pass
        noted.append(time.perf_counter_ns() - begin)

    told = [watch.batch_ns([wait], None) for _ in range(50)]
    assert median(told) >= median(noted) - watch.overhead_ns
    assert watch.spread_ns >= 0
