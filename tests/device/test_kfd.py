"""Who computes on AMD's GPUs, by a /sys of our own."""

from pathlib import Path

import pytest

from kmrun.device.kfd import computing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    kfd = tmp_path / "sys/class/kfd/kfd"
    # Node 0 is the CPU; 49408 is 0xc100: bus c1.
    for node, gpu_id, place in ((0, "0", 0), (1, "51234", 49408), (2, "7777", 49664)):
        folder = kfd / f"topology/nodes/{node}"
        folder.mkdir(parents=True)
        (folder / "gpu_id").write_text(f"{gpu_id}\n")
        (folder / "properties").write_text(f"cpu_cores_count 0\nlocation_id {place}\ndomain 0\n")
    for pid, queues in ((4242, ["51234", "7777"]), (99, ["51234"]), (7, [])):
        (kfd / f"proc/{pid}/queues").mkdir(parents=True)
        for number, gpu_id in enumerate(queues):
            (kfd / f"proc/{pid}/queues/{number}").mkdir()
            (kfd / f"proc/{pid}/queues/{number}/gpuid").write_text(f"{gpu_id}\n")
    return tmp_path


def test_who_has_a_queue_computes(root: Path) -> None:
    assert computing("0000:c1:00.0", root) == (99, 4242)
    assert computing("0000:c2:00.0", root) == (4242,)


def test_what_cannot_be_read_is_unknown(root: Path, tmp_path: Path) -> None:
    assert computing("0000:03:00.0", root) is None
    assert computing(None, root) is None
    assert computing("0000:c1:00.0", tmp_path / "nothing") is None
    (root / "sys/class/kfd/kfd/topology/nodes/1/properties").write_text("location_id many\n")
    assert computing("0000:c1:00.0", root) is None


def test_an_idle_card_has_nobody(root: Path) -> None:
    for path in (root / "sys/class/kfd/kfd/proc").glob("*/queues/*/gpuid"):
        path.write_text("1\n")
    assert computing("0000:c1:00.0", root) == ()
