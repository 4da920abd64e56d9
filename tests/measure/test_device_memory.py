"""The arena in a GPU's memory, through the real ctypes path and two real processes; the driver is a fake from C."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None, reason="needs Linux and gcc"
)

SIDE = """
import json, os, sys, torch
from kmrun.measure.arena_operations import ArenaOperations
from kmrun.measure.exchange import Arena, HostStorage

side = None
for line in sys.stdin:
    request = json.loads(line)
    op = request.pop("op")
    if op == "begin":
        if side is not None:
            side.drop_arena()
        side = ArenaOperations(Arena(HostStorage(int(sys.argv[1]))))
        for switch in [name for name in os.environ if name.startswith("FAKE_")]:
            del os.environ[switch]
        os.environ.update(request["switches"])
        reply = None
    elif op == "write":
        tree = {"x": torch.arange(12.0).reshape(3, 4).t(), "n": 3, "big": torch.ones(request["big"])}
        reply = side._share(tree, 0)[0]
    elif op == "read":
        found = side._arena.read(request["tree"], torch.device("cpu"))
        reply = [found["x"].tolist(), list(found["x"].stride()), found["n"], float(found["big"].sum())]
    else:
        reply = getattr(side, op)(**request)
    print(json.dumps(reply), flush=True)
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fake")
    source = Path(__file__).with_name("fake_ipc.c")
    command = ["gcc", "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1"), str(source)]
    subprocess.run(command, check=True)
    return folder


class Pair:
    """A judge and a kernel's side, each in a process of its own."""

    def __init__(self, folder: Path, arena: int) -> None:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        self.sides = [
            subprocess.Popen(
                [sys.executable, "-c", SIDE, str(arena)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
                pass_fds=[arena],
            )
            for _ in range(2)
        ]

    def ask(self, who: int, op: str, **arguments):
        side = self.sides[who]
        side.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        side.stdin.flush()
        return json.loads(side.stdout.readline())

    def device_memory(self, who: int) -> list[str]:
        """The allocations of the fake driver that a side has not freed."""
        names = [str(entry.readlink()) for entry in Path(f"/proc/{self.sides[who].pid}/fd").iterdir()]
        return [name for name in names if "kmrun-fake" in name]

    def close(self) -> None:
        for side in self.sides:
            side.stdin.close()
            side.wait(30)
            side.stdout.close()


@pytest.fixture(scope="module")
def pair(driver):
    arena = os.memfd_create("test")
    both = Pair(driver, arena)

    def begin(**switches):
        for who in (JUDGE, KERNEL):
            both.ask(who, "begin", switches=switches)
            assert both.device_memory(who) == []
        return both

    yield begin
    both.close()
    os.close(arena)


JUDGE, KERNEL = 0, 1
CONTENT = [[[0.0, 4.0, 8.0], [1.0, 5.0, 9.0], [2.0, 6.0, 10.0], [3.0, 7.0, 11.0]], [1, 4], 3]


def test_tensors_cross_through_the_judge_s_own_allocation(pair):
    sides = pair()
    offered = sides.ask(JUDGE, "offer_arena", count=3 * 2**20)
    assert offered["bytes"] == 4 * 2**20  # a multiple of 2 MiB
    assert len(sides.device_memory(JUDGE)) == 1
    assert sides.ask(KERNEL, "take_arena", handle=offered["handle"], count=offered["bytes"]) == {}
    assert sides.ask(JUDGE, "confirm_arena") == {}
    written = sides.ask(JUDGE, "write", big=10)
    assert written["via"] == "device"
    assert sides.ask(KERNEL, "read", tree=written) == [*CONTENT, 10.0]
    too_large = sides.ask(KERNEL, "write", big=2**21)
    assert too_large["via"] == "host"
    assert sides.ask(JUDGE, "read", tree=too_large) == [*CONTENT, 2.0**21]
    assert sides.ask(KERNEL, "drop_arena") is None
    assert sides.ask(JUDGE, "drop_arena") is None
    assert sides.ask(JUDGE, "write", big=10)["via"] == "host"
    assert sides.device_memory(JUDGE) == []


@pytest.mark.parametrize(
    ("switch", "why"),
    [
        ("FAKE_NO_MEMORY", "cuMemAlloc_v2 failed with status 2"),
        ("FAKE_NO_EXPORT", "cuIpcGetMemHandle failed with status 801"),
    ],
)
def test_a_driver_that_cannot_share_says_why(pair, switch, why):
    sides = pair(**{switch: "1"})
    assert sides.ask(JUDGE, "offer_arena", count=2**20) == {"why_not": why}
    assert sides.device_memory(JUDGE) == []
    assert sides.ask(JUDGE, "write", big=10)["via"] == "host"


@pytest.mark.parametrize(
    ("switch", "why"),
    [
        ("FAKE_NO_OPEN", "cuIpcOpenMemHandle_v2 failed with status 201"),
        ("FAKE_STRANGE", "what was shared did not read back"),
    ],
)
def test_the_probe_catches_memory_that_does_not_arrive(pair, switch, why):
    sides = pair(**{switch: "1"})
    offered = sides.ask(JUDGE, "offer_arena", count=2**20)
    taken = sides.ask(KERNEL, "take_arena", handle=offered["handle"], count=offered["bytes"])
    assert taken == {"why_not": why}
    assert sides.ask(JUDGE, "confirm_arena") == {"why_not": "what was written back did not arrive"}
    sides.ask(JUDGE, "drop_arena")
