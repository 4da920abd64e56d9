"""Kernels that behave and kernels that do not, for the tests of the sides."""

import ctypes
import os
import signal
import sys
import time
from typing import NamedTuple

import torch


def add(x, y):
    return x + y


def slow_add(x, y):
    return (x.double() + y.double()).float()


def into(x, y, out):
    torch.add(x, y, out=out)


def forgets_out(x, y, out):
    return None


def accumulate(x, y):
    x.add_(y)


def plan_add(x, y):
    return lambda *_: x + y


def wrong(x, y):
    return x + y + 1e-3


def wrong_later(x, y):
    wrong_later.calls += 1
    return x + y if wrong_later.calls < 8 else torch.zeros_like(x)


wrong_later.calls = 0


def cached_by_pointer(x, y):
    key = x.data_ptr()
    if key not in _CACHE:
        _CACHE[key] = x + y
    return _CACHE[key]


_CACHE = {}


def not_finite(x, y):
    return (x + y).fill_(float("nan"))


def half(x, y):
    return (x + y).half()


def nothing(x, y):
    return None


def raises(x, y):
    raise ValueError("boom")


def slow(x, y):
    time.sleep(0.25)
    return x + y


def hangs(x, y):
    print("about to sleep", flush=True)
    time.sleep(1000)


def segfaults(x, y):
    print("about to crash", flush=True)
    ctypes.string_at(0)


def exits(x, y):
    os._exit(0)


def calls_sys_exit(x, y):
    sys.exit(0)


def prints_a_lot(x, y):
    print("x" * 10_000_000)
    print("\x1b[31mred\x1b[0m", flush=True)
    return x + y


def prints_then_raises(x, y):
    print("x" * 10_000_000)
    print("the last words", flush=True)
    os._exit(3)


def takes_all_memory(x, y):
    return torch.ones(25_000_000_000)


def writes_input(x, y):
    x.add_(1)
    return x + y


def forges_stdout(x, y):
    os.write(1, b'\x00\x00\x00\x0b{"ok":true}')
    return x + y


def leaves_a_child(x, y):
    if not _CHILDREN:
        child = os.fork()
        if child == 0:
            os.setsid()
            time.sleep(1000)
        _CHILDREN.append(child)
    return x + y


_CHILDREN = []


def sets_threads(x, y):
    torch.set_num_threads(1 if torch.get_num_threads() != 1 else 2)
    return x + y


def returns_early(x, y):
    """Hands the work to a thread of its own and returns before it is done."""
    out = torch.empty_like(x)
    worker = __import__("threading").Thread(target=lambda: torch.add(x, y, out=out))
    worker.start()
    worker.join()
    return out


def square(x):
    return x * x


def square_wrong_gradient(x):
    return x.detach() * x


def reference_raises(x, y):
    raise RuntimeError("the reference is broken")


def reference_hangs(x, y):
    time.sleep(1000)


def make_pair(axes, seed):
    return Pair(torch.full((8, 8), float(seed % 7)))


class Pair:
    """Something that cannot cross between processes."""

    def __init__(self, value):
        self.value = value


def use_pair(pair, y):
    return pair.value + y


def busy_wait(x):
    end = time.perf_counter_ns() + 200_000
    while time.perf_counter_ns() < end:
        pass
    return x.clone()


def forges_clock(x):
    """Makes the timer of its own process run at a third of the speed."""
    import kmrun.measure.timer as timer

    real = time.perf_counter_ns
    timer._clock = lambda: real() // 3
    return busy_wait(x)


def forks_and_returns(x, y):
    os.fork()
    return x + y


def forks_and_exits(x, y):
    if os.fork() == 0:
        sys.exit(0)
    return x + y


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def raises_unprintable(x, y):
    raise Unprintable


def raises_surrogates(x, y):
    raise ValueError("\udcff\x00\x1b[31mred")


def raises_late(x, y):
    def ring(*_):
        raise ValueError("alarm")

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    return x + y


def kills_its_host(x, y):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(5)
    return x + y


def kills_its_group(x, y):
    os.killpg(0, signal.SIGKILL)


def resizes_out(x, y, out):
    out.resize_(3)


def static_buffer(x, y):
    key = tuple(x.shape)
    if key not in _STATIC:
        _STATIC[key] = torch.empty_like(x)
    return torch.add(x, y, out=_STATIC[key])


_STATIC = {}


def smaller(x, y):
    return (x + y)[:3]


def is_sum(inputs, outputs):
    return torch.allclose(outputs["o"], inputs["x"] + inputs["y"])


def property_raises(inputs, outputs):
    raise RuntimeError("the property is broken")


def asserts_on_the_device(x, y):
    torch.zeros(4, device=x.device)[torch.tensor([10**6], device=x.device)]
    torch.cuda.synchronize()
    return x + y


def breaks_torch(x, y):
    torch.empty_strided = None
    torch.as_strided = None
    return x + y


def sets_default_device(x, y):
    torch.set_default_device("meta")
    return x + y


def clears_environment(x, y):
    os.environ.clear()
    os.environ["KMRUN_TEST_LEAK"] = "1"
    return x + y


def reads_environment(x, y):
    if "KMRUN_TEST_LEAK" in os.environ or "PATH" not in os.environ:
        raise RuntimeError("the environment of another kernel")
    return x + y


def make_scaled(axes, seed):
    return {"q": torch.ones(64, 1024), "scale": (0, 0.5, 1, 2.25)[seed % 4]}


def make_longer(axes, seed):
    return {"q": torch.ones(64, 64 + seed % 100_000), "scale": 1.0}


def make_more(axes, seed):
    _drawn.append(seed)
    return [torch.ones(64) for _ in _drawn]


def make_other_key(axes, seed):
    return {seed: torch.ones(64)}


def make_named(axes, seed):
    return Scaled(torch.ones(64, 64), seed % 3)


def make_numbered(axes, seed):
    return {0: torch.ones(64, 64), 1: seed % 3}


def use_made(made):
    if isinstance(made, Scaled):
        return made.q * made.scale
    if isinstance(made, dict) and 0 in made:
        return made[0] * made[1]
    return made["q"] * made["scale"] if "q" in made else torch.ones(1)


class Scaled(NamedTuple):
    """A tensor and a number."""

    q: torch.Tensor
    scale: int


_drawn = []
