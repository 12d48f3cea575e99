"""The facts of one device: its data sheet and its measurements, each number with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crosscast.device import Device
from crosscast.devices.catalogue import FACTS, Expected, catalogue, device_named, expected
from crosscast.devices.device_files import (
    NUMBERS,
    QUANTITIES,
    MeasuredValue,
    how_measured,
    measured_devices,
    own_folder,
)


@dataclass(frozen=True)
class KnownDevice:
    """A device with its measurements, expectations and sources."""

    device: Device
    sources: Mapping[str, str]  # Of numbers of the data sheet
    measured: Mapping[str, MeasuredValue]  # By quantity
    expected: Mapping[str, Expected]  # Its, or else its siblings', share of data sheets, by fact

    def ratio(self, quantity: str) -> float | None:
        """Return the measured value over the data sheet's; ``None`` if that is not known."""
        on_paper = self.device.numbers.get(QUANTITIES[quantity].sheet or "")
        return self.measured[quantity].value / on_paper if on_paper else None

    def to_dict(self) -> dict[str, object]:
        """Return the facts, for JSON."""
        device = self.device
        return {
            "device": device.key,
            "name": device.name,
            "vendor": device.vendor,
            "type": device.type,
            "series": device.series,
            **device.numbers,
            "sources": dict(self.sources),
            "measured": {
                name: {**each.to_dict(), "of_sheet": self.ratio(name)} for name, each in self.measured.items()
            },
            "unit": unit_facts(device),
            "expected": {name: vars(each) for name, each in self.expected.items()},
        }


def unit_facts(device: Device) -> dict[str, object]:
    """Return the numbers of a device's compute unit with their sources; empty if these are not known."""
    # Imported here, as a list of devices needs no NumPy.
    from crosscast.devices.architectures import known_unit, unit_sources

    unit = known_unit(device)
    if unit is None:
        return {}
    sources = unit_sources(device.series)
    return {name: {"value": getattr(unit, name), "source": sources[name]} for name in unit._fields}


def known_of(name: str) -> KnownDevice:
    """Return the facts of a device of the catalogue, or of a calibrated one.

    Raises
    ------
    InputError
        If there is no such device.
    """
    device = device_named(name)
    facts = {fact: value for fact in FACTS if (value := expected(device, fact)) is not None}
    if device.key in catalogue():
        texts = catalogue()[device.key].entries("sources")
        sources = {key: str(text) for key, text in texts.items() if key in NUMBERS}
        return KnownDevice(device, sources, measured_devices().get(device.key, {}), facts)
    path = own_folder() / f"{device.key}.toml"
    how = how_measured(path)
    measured = {
        quantity: MeasuredValue(value, None, None, how.get(quantity, ""), str(path))
        for quantity, value in device.measured.items()
    }
    return KnownDevice(device, dict.fromkeys(device.numbers, str(path)), measured, facts)
