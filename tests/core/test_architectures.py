"""The generated table of architectures."""

from kmrun.core.architectures import ARCHITECTURES, BY_COMPUTE_CAPABILITY
from kmrun.source.catalogue import load_cards


def test_ids_and_compute_capabilities_are_unique() -> None:
    assert all(key == value.id for key, value in ARCHITECTURES.items())
    known = [value.compute_capability for value in ARCHITECTURES.values() if value.compute_capability]
    assert sorted(known) == sorted(BY_COMPUTE_CAPABILITY)


def test_occupancy_is_known_from_volta_on() -> None:
    for capability, architecture in BY_COMPUTE_CAPABILITY.items():
        limits = architecture.occupancy
        assert (limits is not None) == (float(capability) >= 7.0), capability
        if limits:
            reserved = limits.reserved_shared_bytes_per_block
            assert limits.shared_bytes_per_block_optin + reserved == limits.shared_bytes_per_sm
            assert max(limits.shared_carveouts) == limits.shared_bytes_per_sm


def test_every_card_stands_on_a_known_architecture_of_its_vendor() -> None:
    for card in load_cards(environ={}):
        architecture = ARCHITECTURES[card.architecture]
        assert (architecture.vendor, architecture.family, architecture.unit) == (
            card.vendor,
            card.family,
            card.unit,
        )
