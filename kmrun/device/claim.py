"""Having a GPU to oneself for a run: its lock, who else uses it, and a clock that is held. A CPU is never claimed.

Two runs on one GPU would time each other, so one waits for the other. On a CPU they may run side by side: a machine
that builds and tests is never idle, its load is recorded instead, and every clause there is decided on samples that
nothing disturbed or on blocks that alternate.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kmrun.core.measurement import RunDevice
from kmrun.device import sensor_blocks
from kmrun.device.apart import Crashed, apart
from kmrun.device.bounded import NoAnswer
from kmrun.device.chosen import ChosenGpu, chosen_gpu
from kmrun.device.kfd import computing
from kmrun.device.occupied import (
    DeviceLock,
    HeldClock,
    Load,
    foreign_load,
    held_clock,
    load_of,
    unknown_load,
)
from kmrun.device.sampler import Source, silent_source
from kmrun.device.sensor_blocks import nvml_facts, smi_facts
from kmrun.device.torch_build import Kind
from kmrun.errors import EnvironmentLacks

WAIT_S = 600.0
_LOOK_S = 0.5
_CALLS, _START_S = 8, 10.0
"""Calls to a library of sensors that may each take their whole time, and what starting the process may take."""
_NO_GPU = "only a GPU's clock can be held"
_UNNAMED = "its driver does not answer to kmrun"


@dataclass(frozen=True, slots=True)
class Claim:
    """What is known of a GPU before a run touches it; empty for a CPU.

    `foreign` says who else uses it, empty when nobody seems to; `unknown` why nobody can say that. `facts` is NVML's
    block, `driver` its version; `unreadable` why its sensors must not be read in this process. `clock` is the
    clock that was to be held, None when that was not asked for.
    """

    gpu: ChosenGpu | None = None
    foreign: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    driver: str | None = None
    clock: HeldClock | None = None
    unknown: str = ""
    unreadable: str = ""

    @property
    def source(self) -> Source | None:
        """Where the GPU's sensors are read; None: where those of its kind are."""
        return silent_source("sensors", self.unreadable) if self.unreadable else None

    @property
    def holds_clock(self) -> bool:
        """Whether the GPU's clock is held."""
        return self.clock is not None and self.clock.held


def known_by(device: RunDevice, claim: Claim) -> RunDevice:
    """Return what torch says of a device, with the names that its driver has for it where torch has none."""
    gpu = claim.gpu
    if gpu is None or device.kind == "cpu":
        return device
    # CUDA's runtime may call a slice by the GPU that it is cut from; the driver's newer entry point does not.
    uuid = (gpu.uuid or device.uuid) if gpu.is_mig else (device.uuid or gpu.uuid)
    return replace(device, uuid=uuid, pci_address=device.pci_address or gpu.pci_address)


def about(claim: Claim, device: RunDevice) -> dict[str, Any]:
    """Return what a result's environment says of a claim: the driver, the power limit, and what may disturb.

    `foreign_load` is empty where nobody seems to use the GPU, None where that is not known.
    """
    clock = claim.clock
    if device.kind == "cpu":
        unlocked = {"clocks_locked": False, "clocks_not_locked_because": _NO_GPU}
        return unlocked if clock is not None else {}
    return {
        "driver": claim.driver,
        "power_limit_w": claim.facts.get("power_limit_w"),
        "ecc": claim.facts.get("ecc"),
        "foreign_load": None if claim.unknown else claim.foreign,
        "foreign_load_unknown_because": claim.unknown or None,
        "clocks_locked": claim.holds_clock,
        "clocks_not_locked_because": (clock.why_not or None) if clock is not None else None,
    }


@contextmanager
def claimed(
    device: str,
    kind: Kind,
    *,
    lock_clocks: bool = False,
    tell: Callable[[str], object] = lambda _: None,
    wait_s: float = WAIT_S,
    folder: Path | None = None,
) -> Iterator[Claim]:
    """Claim the GPU that `device` names (`auto`, `cpu`, `cuda`, `cuda:N`) while the block runs.

    `kind` is what torch is going to run on: a driver may show a GPU that a torch for CPUs does not use. Waits for
    another run of kmrun on it, and tells so once. A clock that cannot be held is told, too, and measured without;
    so is that the load of others cannot be read.

    Raises:
        EnvironmentLacks: the other run does not end within `wait_s`; or, at the end, the clock cannot be given back.
    """
    gpu = chosen_gpu(device, kind, tell)
    if gpu is None:
        clock = HeldClock(None, _NO_GPU if kind == "cpu" else _UNNAMED) if lock_clocks else None
        _tell_unlocked(clock, tell)
        if kind != "cpu":
            tell(
                f"warning: whether others use this GPU, another run of kmrun included, is not known: {_UNNAMED}\n"
            )
        yield Claim(clock=clock, unknown="" if kind == "cpu" else _UNNAMED)
        return
    with ExitStack() as stack:
        lock = _take_turn(stack, gpu, tell, wait_s, folder)
        facts, driver, load, unreadable = _facts_of(gpu)
        held = None
        if lock_clocks:
            held = stack.enter_context(_held(gpu, load.note, tell, lock))
        _tell_unlocked(held, tell)
        unknown = unknown_load(load)
        if unknown:
            tell(f"warning: whether others use this GPU is not known: {unknown}\n")
        yield Claim(gpu, foreign_load(load), facts, driver, held, unknown, unreadable)


def _tell_unlocked(clock: HeldClock | None, tell: Callable[[str], object]) -> None:
    if clock is not None and not clock.held:
        tell(f"warning: clocks are not locked: {clock.why_not}\n")


def _facts_of(gpu: ChosenGpu) -> tuple[Mapping[str, Any], str | None, Load, str]:
    """Return the block of the GPU's sensors, its driver's version, the load on it, and why nothing may be read.

    In a process of its own, since the sensors are read in this one for the whole run: where the library crashes they
    must not be.
    """
    seconds = sensor_blocks.SENSORS_S
    who = "NVML" if gpu.vendor == "nvidia" else "AMD SMI or ROCm SMI"
    ask = _ask_nvml if gpu.vendor == "nvidia" else _ask_smi
    try:
        return (*apart(who, _CALLS * seconds + _START_S, None, partial(ask, gpu, seconds)), "")
    except Crashed as crash:
        return {}, None, Load(note=crash.sentence), crash.sentence
    except NoAnswer as silent:
        return {}, None, Load(note=str(silent)), ""


_Answer = tuple[Mapping[str, Any], str | None, Load]


def _ask_nvml(gpu: ChosenGpu, seconds: float) -> _Answer:
    facts, driver, note = nvml_facts(gpu.uuid, gpu.pci_address, gpu.is_mig, seconds)
    # A library that does not answer is not asked again: each question may cost its whole time limit.
    silent = Load(note=note)
    return facts, driver, load_of(gpu.uuid, gpu.pci_address, gpu.is_mig, seconds) if facts else silent


def _ask_smi(gpu: ChosenGpu, seconds: float) -> _Answer:
    facts = smi_facts(gpu.pci_address, seconds)
    used, total = facts.get("memory_used_bytes"), facts.get("memory_total_bytes")
    return facts, facts.get("driver_version"), Load(used, total, computing(gpu.pci_address))


def _held(
    gpu: ChosenGpu, silent: str, tell: Callable[[str], object], lock: int | None
) -> AbstractContextManager[HeldClock]:
    """Hold the GPU's clock; `silent` says why its sensors do not answer, which is then why not."""
    if silent:
        return nullcontext(HeldClock(None, silent))
    if gpu.is_mig:
        # Whoever runs on another slice has another lock, and would find its clock changed, or given back.
        return nullcontext(HeldClock(None, "a MIG slice has no clock of its own: it is the whole GPU's"))
    if gpu.vendor == "nvidia":
        return held_clock(gpu.uuid, None, gpu.pci_address, tell, lock)
    return nullcontext(HeldClock(None, "kmrun locks the clocks of NVIDIA's GPUs only"))


def _take_turn(
    stack: ExitStack, gpu: ChosenGpu, tell: Callable[[str], object], wait_s: float, folder: Path | None
) -> int | None:
    """Take the GPU's lock, and return its descriptor; None where there is no such thing."""
    begin, told = time.monotonic(), False
    while True:
        lock = DeviceLock(gpu.key, folder)
        trying = ExitStack()
        holder = trying.enter_context(lock)
        if holder is None:
            stack.enter_context(trying)
            if lock.why_not:
                tell(
                    f"warning: another run of kmrun on this GPU would not be seen: no lock: {lock.why_not}\n"
                )
            return lock.descriptor
        trying.close()
        who = f"process {holder}" if holder else "another process"
        if time.monotonic() - begin >= wait_s:
            sentence = f"{who} runs kmrun on this GPU and has not ended within {wait_s:.0f} s"
            raise EnvironmentLacks(
                sentence, "two runs on one GPU would time each other: end it, or try later"
            )
        if not told:
            tell(f"waiting for {who}, which runs kmrun on this GPU, for at most {wait_s:.0f} s\n")
            told = True
        time.sleep(_LOOK_S)
