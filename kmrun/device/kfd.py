"""Who computes on AMD's GPUs, by the files of the kernel's driver (KFD): every user may read them.

AMD's libraries list whoever has a GPU open, a desktop included; here those count that have a queue on it.
"""

import contextlib
from pathlib import Path

_ROOT = Path("/")
_FOLDER = "sys/class/kfd/kfd"


def computing(pci_address: str | None, root: Path = _ROOT) -> tuple[int, ...] | None:
    """Return the ids of the processes with a queue on the GPU at a PCI address; None where that cannot be read.

    Inside a container the ids are those of the host. `root` is where /sys lies.
    """
    wanted = _gpu_id(pci_address, root)
    if wanted is None:
        return None
    found = set()
    for path in (root / _FOLDER / "proc").glob("[0-9]*/queues/*/gpuid"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if path.read_text().strip() == wanted:
                found.add(int(path.parts[-4]))
    return tuple(sorted(found))


def _gpu_id(pci_address: str | None, root: Path) -> str | None:
    """Return what KFD calls the GPU at an address, `0000:c1:00.0`."""
    for node in (root / _FOLDER / "topology/nodes").glob("*"):
        try:
            properties = dict(
                line.split(maxsplit=1)
                for line in (node / "properties").read_text().splitlines()
                if " " in line
            )
            place, domain = int(properties["location_id"]), int(properties.get("domain", "0"))
            gpu_id = (node / "gpu_id").read_text().strip()
        except (OSError, ValueError, KeyError):
            continue
        # Bus, device and function as in PCI's own registers: 8, 5 and 3 bits.
        address = f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7:x}"
        if address == pci_address and gpu_id not in ("", "0"):
            return gpu_id
    return None
