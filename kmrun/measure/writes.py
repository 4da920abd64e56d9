"""What a call wrote to: the bytes of tensors before and after it, and torch's own count of in-place operations."""

from collections.abc import Mapping

import torch

_HASH_WORDS = 1 << 18


def hash_bytes(tensor: torch.Tensor) -> int:
    """Return a 64-bit hash of the raw storage behind a tensor (all of it, also what the view leaves out).

    A position-weighted sum of 8-byte words modulo 2**64, computed where the tensor lives: it tells a careless
    write at memory speed. It is no cryptographic hash.
    """
    storage = tensor.detach().untyped_storage()
    raw = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
    whole = raw.numel() // 8 * 8
    words = raw[:whole].view(torch.int64)
    weights = _weights(tensor.device)
    result = raw.numel()
    for start in range(0, words.numel(), _HASH_WORDS):
        part = words[start : start + _HASH_WORDS]
        # The shift folds high bits down: a plain product would never carry a change of the top bit further.
        mixed = (part ^ (part >> 29)) * weights[: part.numel()]
        result = (result * 0x100000001B3 + int(mixed.sum().item())) % (1 << 64)
    for byte in raw[whole:].tolist():
        result = (result * 0x100000001B3 + byte + 1) % (1 << 64)
    return int(result)


_WEIGHTS: dict[torch.device, torch.Tensor] = {}


def _weights(device: torch.device) -> torch.Tensor:
    if device not in _WEIGHTS:
        generator = torch.Generator("cpu").manual_seed(0x6B6D72756E)
        drawn = torch.empty(_HASH_WORDS, dtype=torch.int64, device="cpu").random_(generator=generator)
        _WEIGHTS[device] = (drawn | 1).to(device)
    return _WEIGHTS[device]


class Writes:
    """Watches tensors from its making on. Empty writes count: an in-place operation may leave all as it was."""

    def __init__(self, named: Mapping[str, torch.Tensor]) -> None:
        self._watched = dict(named)
        self._before = {name: _state(tensor) for name, tensor in self._watched.items()}

    def found(self) -> frozenset[str]:
        """Return the names of the tensors that were written to since."""
        return frozenset(
            name for name, tensor in self._watched.items() if _state(tensor) != self._before[name]
        )


def _state(tensor: torch.Tensor) -> tuple[int, int]:
    # What writes past torch, a kernel of its own, leaves the version as it is, but not the bytes.
    return 0 if tensor.is_inference() else tensor._version, hash_bytes(tensor)
