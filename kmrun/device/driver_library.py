"""A driver's library by ctypes: found by any of its names, its functions looked up one by one, each status checked."""

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kmrun.device.torch_build import torch_folder
from kmrun.errors import EnvironmentLacks

SUCCESS = 0
_UNKNOWN_HERE = (1, 801)
"""What CUDA and HIP answer of an attribute that a version or a device does not have: invalid value, not supported."""

_MOST_DEVICES = 1024


class NoDriver(EnvironmentLacks):
    """There is no driver of that kind in this machine at all."""


class NoDevice(EnvironmentLacks):
    """There is a driver's library, but no device that it would serve: no fault where another vendor's are."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How errors call a library and its parts.

    `who` is the subject of a sentence, `update` and `tool` what a person may run; `status` is what the library calls
    its numbers, `meanings` says what some of them mean.
    """

    who: str
    update: str
    tool: str
    status: str
    meanings: Mapping[int, str] = field(default_factory=dict)


class DriverLibrary:
    """One library. Its functions return a status, 0 for success."""

    def __init__(self, library: ctypes.CDLL, naming: Naming) -> None:
        """Take a loaded library."""
        self._library, self._naming = library, naming

    def has(self, name: str) -> bool:
        """Return whether this version of the library has a function."""
        return hasattr(self._library, name)

    def function(self, name: str) -> Callable[..., int]:
        """Return a function.

        Raises:
            EnvironmentLacks: the library is too old to have it.
        """
        found: Callable[..., int] | None = getattr(self._library, name, None)
        if found is None:
            raise EnvironmentLacks(f"{self._naming.who} has no {name}: it is too old", self._naming.update)
        return found

    def call(self, name: str, *arguments: object) -> None:
        """Call a function that has to succeed.

        Raises:
            EnvironmentLacks: it does not, or is not there.
        """
        status = self.function(name)(*arguments)
        if status != SUCCESS:
            raise self.failure(name, status)

    def succeeds(self, name: str, *arguments: object) -> bool:
        """Return whether a function is there and succeeds."""
        return self.has(name) and self.function(name)(*arguments) == SUCCESS

    def attribute(
        self, function: str, number: int, device: object, fatal: frozenset[int]
    ) -> tuple[int | None, str | None]:
        """Return one of a device's attributes, and why there is none where that is out of the ordinary.

        Args:
            function: takes the place of the value, the number of the attribute, and the device.
            number: of the attribute.
            device: the device's handle.
            fatal: statuses after which nothing more can be asked of the device.

        Raises:
            EnvironmentLacks: the status is a fatal one.
        """
        value = ctypes.c_int()
        status = self.function(function)(ctypes.byref(value), number, device)
        if status == SUCCESS:
            return value.value, None
        if status in fatal:
            raise self.failure(function, status)
        return None, None if status in _UNKNOWN_HERE else f"{self._naming.status} {status}"

    def counted(self, devices: int) -> int:
        """Return a number of devices.

        Raises:
            EnvironmentLacks: no machine has so many, or so few.
        """
        if 0 <= devices <= _MOST_DEVICES:
            return devices
        raise EnvironmentLacks(
            f"{self._naming.who} shows {devices} devices", f"{self._naming.tool} may say more"
        )

    def failure(self, name: str, status: int) -> EnvironmentLacks:
        """Return the error of a function that failed."""
        reason = self._naming.meanings.get(status, f"{self._naming.status} {status}")
        return EnvironmentLacks(
            f"{self._naming.who} failed in {name}: {reason}", f"{self._naming.tool} may say more"
        )


def load(names: Mapping[str, Sequence[str]]) -> tuple[ctypes.CDLL | None, str]:
    """Return the first library that can be loaded out of this platform's names for it, None without any.

    The second says why one that is there cannot be loaded, empty where none is there: a person who has the driver
    is helped by no "not found". Torch's wheels for ROCm bring AMD's libraries along, so that there may be no others.
    """
    why_not = ""
    own = list(names.get(sys.platform, ()))
    bundle = torch_folder()
    if bundle is not None:
        own += [str(path) for name in own if (path := bundle / "lib" / name).is_file()]
    for name in own:
        try:
            return ctypes.CDLL(name), ""
        except OSError as error:
            why_not = why_not or ("" if _is_absent(name, str(error)) else str(error))
    return None, why_not


def _is_absent(name: str, message: str) -> bool:
    """Return whether the loader means this library, and not one that it needs."""
    absent = "No such file" in message or "Could not find module" in message
    return absent and name in message and "needed by" not in message


def told(unanswered: Mapping[str, str]) -> tuple[str, ...]:
    """Return the note on attributes that a driver failed to give, by name and reason; none without any."""
    if not unanswered:
        return ()
    names = list(unanswered)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    reasons = ", ".join(dict.fromkeys(unanswered.values()))
    return (f"the driver failed to give {', '.join(names[:3])}{more} ({reasons})",)
