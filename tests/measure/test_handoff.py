"""What a hand-over costs, and whether it is noticed when it leaks into times."""

import pytest

from kmrun.core.clause import HANDOFF_BIAS_MOST, handoff_doubt
from kmrun.measure import handoff
from kmrun.measure.run_options import RunOptions
from kmrun.measure.supervisor import Supervisor


def sides(*, first_after=1.0, second_after=1.0):
    """Return two spins in turn; a slot that follows one of the other side takes so many times as long."""
    last = []

    def spin(name, after):
        def take():
            slot = 1e6 * (after if last[-1:] != [name] else 1.0)
            last.append(name)
            return [slot] * handoff.CALLS

        return take

    return spin("first", first_after), spin("second", second_after)


@pytest.mark.parametrize(("first", "second", "bias"), [
    (1.0, 1.0, 0.0), (1.02, 1.0, 0.02), (1.0, 1.02, 0.02), (1.004, 1.01, 0.01), (0.97, 1.01, -0.03),
])  # fmt: skip
def test_the_bias_is_that_of_the_side_where_it_is_more(first, second, bias):
    assert handoff.bias(*sides(first_after=first, second_after=second)) == pytest.approx(bias)


def test_half_a_percent_is_believed_and_more_is_not():
    assert handoff_doubt(None) == handoff_doubt(HANDOFF_BIAS_MOST) == handoff_doubt(-HANDOFF_BIAS_MOST) == ""
    assert handoff_doubt(-0.012) == "a hand-over between the processes changes times by -1.2 %"


def test_every_side_spins_for_as_many_cycles_as_the_others():
    with Supervisor("cpu", RunOptions(threads=1)) as supervisor:
        spins = [
            lambda side=side: side.ask("spin", 30.0, calls=3, discard=1)
            for side in (supervisor.kernel(), supervisor.judge())
        ]
        first, second = (spin() for spin in spins)
        assert len(first) == len(second) == 3
        assert all(sample > 0 for sample in (*first, *second))
        assert isinstance(handoff.bias(*spins), float)
