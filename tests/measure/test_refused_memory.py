"""Memory that the system refuses to kmrun itself: the case's finding, and no fault of kmrun's."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from kmrun.measure.bound import ran_out_of_memory
from kmrun.measure.copies import Pool
from kmrun.measure.worker import _answer

TOO_MUCH = 1 << 60
"""Bytes: more than the address space of any process."""


class Refused:
    """A side with one operation, which maps memory as staging the copies of a case does."""

    lowered = None

    @contextmanager
    def placed(self, op: str) -> Iterator[None]:
        yield

    def raised_by_user(self, error: BaseException) -> bool:
        return False

    def stage(self) -> None:
        Pool(torch.device("cpu")).reset(TOO_MUCH)

    def inputs(self) -> None:
        torch.empty(TOO_MUCH, dtype=torch.uint8)

    def wrong(self) -> None:
        raise RuntimeError("a bug")


@pytest.mark.parametrize("op", ["stage", "inputs"])
def test_a_refusal_skips_the_case(op: str) -> None:
    side: Any = Refused()
    finding = _answer(side, {"op": op})["finding"]
    assert (finding["code"], finding["fault"], finding["outcome"]) == ("memory", "environment", "skipped")
    assert finding["sentence"].startswith("skipped: the system refuses the memory that is needed here (")


def test_any_other_error_is_a_bug() -> None:
    side: Any = Refused()
    assert "RuntimeError: a bug" in _answer(side, {"op": "wrong"})["bug"]


def test_a_pool_may_be_used_after_a_refusal() -> None:
    pool = Pool(torch.device("cpu"))
    pool.reset(1)
    with pytest.raises(OSError, match="Cannot allocate memory") as refused:
        pool.reset(TOO_MUCH)
    assert ran_out_of_memory(refused.value)
    assert pool.flat(4).numel() == 4


@pytest.mark.parametrize(
    ("error", "memory"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (OSError(errno.ENOENT, "out of memory.txt"), False),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
        (ValueError("no"), False),
    ],
)
def test_which_errors_say_that_memory_was_refused(error: Exception, memory: bool) -> None:
    assert ran_out_of_memory(error) is memory
