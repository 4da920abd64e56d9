"""The drivers of the GPUs in this machine, each asked in a process of its own, which may crash or hang."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

from kmrun.device.apart import Apart, Tell, apart
from kmrun.device.bounded import NoAnswer, bounded, bounded_each
from kmrun.device.cuda_driver import CudaDevice, CudaDriver
from kmrun.device.driver_library import NoDevice, NoDriver
from kmrun.device.rocm import HipDevice, HipRuntime
from kmrun.errors import EnvironmentLacks

DRIVER_S = 20.0
"""How long a driver may take to start: it may have to load its kernel module."""
DEVICE_S = 10.0
"""How long it may take to tell of a device, or of several at once."""
_START_S = 10.0
"""More than a busy machine takes to start the process that asks."""
_LOST = "a GPU may have fallen off its bus"

Kind = Literal["cuda", "hip"]
_WHO: dict[Kind, str] = {"cuda": "the NVIDIA driver", "hip": "the HIP runtime"}


class _Driver(Protocol):
    def version(self) -> str | None: ...

    def count(self) -> int: ...

    def device(self, index: int) -> Any: ...


@dataclass(frozen=True, slots=True)
class Vendor:
    """What a vendor's driver says: the devices that answer, and of the others (`lost`) why they do not.

    `failure`: why it does not serve at all.
    """

    kind: Kind
    version: str | None = None
    count: int = 0
    devices: tuple[Any, ...] = ()
    lost: tuple[EnvironmentLacks, ...] = ()
    failure: EnvironmentLacks | None = None

    @property
    def who(self) -> str:
        """The driver, as the subject of a sentence."""
        return _WHO[self.kind]

    @property
    def there(self) -> bool:
        """Whether there is a driver that should serve."""
        return not isinstance(self.failure, NoDriver | NoDevice)


def vendors(only: int | None = None, tell: Tell | None = None) -> tuple[Vendor, Vendor]:
    """Ask NVIDIA's driver and AMD's for all their devices, or for the one that is wanted, counted over both.

    A failure is kept, not raised. `tell` is told what is waited for, should that take long.
    """
    if only is None:
        with _asked("cuda", None, tell) as first, _asked("hip", None, tell) as second:
            return _told("cuda", first), _told("hip", second)
    with _asked("cuda", only, tell) as first:
        nvidia = _told("cuda", first)
    with _asked("hip", only - nvidia.count, tell) as second:
        return nvidia, _told("hip", second)


def _asked(kind: Kind, only: int | None, tell: Tell | None) -> Apart[Vendor]:
    limit_s = DRIVER_S + DEVICE_S + _START_S
    return Apart(_WHO[kind], limit_s, tell, partial(_ask_all, kind, only, DRIVER_S, DEVICE_S))


def _told(kind: Kind, asked: Apart[Vendor]) -> Vendor:
    try:
        return asked.outcome()
    except NoAnswer as silent:
        return Vendor(kind, failure=EnvironmentLacks(str(silent), _LOST))
    except EnvironmentLacks as error:
        return Vendor(kind, failure=error)


def cuda_device(index: int, tell: Tell | None = None, seconds: float | None = None) -> CudaDevice:
    """Return one of NVIDIA's devices, in the driver's order.

    Raises:
        EnvironmentLacks: there is no driver or no such device, or the driver fails, crashes or does not answer.
    """
    found: CudaDevice = _one("cuda", index, tell, seconds)
    return found


def hip_device(index: int, tell: Tell | None = None, seconds: float | None = None) -> HipDevice:
    """Return one of AMD's devices, in the runtime's order.

    Raises:
        EnvironmentLacks: as of `cuda_device`.
    """
    found: HipDevice = _one("hip", index, tell, seconds)
    return found


def _one(kind: Kind, index: int, tell: Tell | None, seconds: float | None) -> Any:
    try:
        return apart(_WHO[kind], seconds or DRIVER_S, tell, partial(_ask_one, kind, index))
    except NoAnswer as silent:
        raise EnvironmentLacks(str(silent), _LOST) from silent


# ---- in the process of its own ---------------------------------------------------------------------------


def _load(kind: Kind) -> _Driver:
    makers: dict[Kind, Callable[[], _Driver]] = {"cuda": CudaDriver, "hip": HipRuntime}
    return makers[kind]()


def _ask_one(kind: Kind, index: int) -> Any:
    return _load(kind).device(index)


def _ask_all(kind: Kind, only: int | None, driver_s: float, device_s: float) -> Vendor:
    def start() -> tuple[_Driver, str | None, int]:
        driver = _load(kind)
        return driver, driver.version(), driver.count()

    try:
        driver, version, count = bounded(_WHO[kind], driver_s, start)
    except NoAnswer as silent:
        return Vendor(kind, failure=EnvironmentLacks(str(silent), _LOST))
    except EnvironmentLacks as error:
        return Vendor(kind, failure=error)
    wanted = range(count) if only is None else [only] if 0 <= only < count else []
    calls = {index: partial(driver.device, index) for index in wanted}
    found, lost = [], []
    for index, answer in bounded_each(_WHO[kind], device_s, calls, EnvironmentLacks).items():
        if isinstance(answer, EnvironmentLacks):
            lost.append(EnvironmentLacks(f"{kind} device {index}: {answer.sentence}", answer.hint))
        elif isinstance(answer, NoAnswer):
            lost.append(EnvironmentLacks(f"{kind} device {index}: {answer}", _LOST))
        else:
            found.append(answer)
    return Vendor(kind, version, count, tuple(found), tuple(lost))
