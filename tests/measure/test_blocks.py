"""Blocks of turns: whose turn it is, and what stands for either side."""

import math
from collections.abc import Iterator

import pytest

from kmrun.measure.blocks import Blocks, Turn

TURN = Turn(4, 1)


def blocks(new: Iterator[float], old: Iterator[float], order: list[str] | None = None) -> Blocks:
    """Blocks of two sides whose calls take what the iterators yield, turn by turn."""

    def side(name: str, levels: Iterator[float]):
        def take(calls: int, discard: int) -> list[float]:
            if order is not None:
                order.append(name)
            level = next(levels)
            return [level * (1 + 0.01 * place) for place in range(calls)]

        return take

    return Blocks((side("new", new), side("old", old)), (TURN, TURN), 0.25)


def steady(level: float) -> Iterator[float]:
    while True:
        yield level


def test_each_block_has_two_turns_of_either_mirrored_and_both_orders_come():
    order: list[str] = []
    taken = blocks(steady(1.0), steady(1.0), order)
    for _ in range(64):
        taken.take()
    found = {tuple(order[place : place + 4]) for place in range(0, len(order), 4)}
    assert found == {("new", "old", "old", "new"), ("old", "new", "new", "old")}


def test_a_pair_s_log_ratio_is_how_much_longer_the_first_side_takes():
    taken = blocks(steady(110.0), steady(100.0))
    for _ in range(6):
        assert taken.take() == pytest.approx((110.0 * 1.0075, 100.0 * 1.0075))
    assert taken.log_ratio() == pytest.approx(math.log(1.1))


@pytest.mark.parametrize("disturbed", [1, 2, 3])
def test_a_quarter_of_disturbed_turns_hardly_moves_it(disturbed):
    # Twelve turns a side that differ by 1 % among themselves.
    levels = [100.0 + 0.1 * place for place in range(12)]
    busy = [level * (20 if place < disturbed else 1) for place, level in enumerate(levels)]
    taken = blocks(iter(busy), iter(levels))
    for _ in range(6):
        taken.take()
    assert abs(taken.log_ratio()) < 0.005
    assert sum(taken.samples[0]) / sum(taken.samples[1]) > 2


def test_it_takes_a_block_to_say_anything():
    with pytest.raises(ValueError, match="no samples"):
        blocks(steady(1.0), steady(1.0)).log_ratio()
