"""What the devices of a dataset were set to, and of what the power was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from crosscast.configuration import Configuration, Setting
from crosscast.errors import InputError
from crosscast.tables.arrow import Table
from crosscast.tables.keys import distinct
from crosscast.tables.library import pc

__all__ = ["DeviceConfigurations", "configurations_of"]


@dataclass(frozen=True)
class DeviceConfigurations:
    """The configurations of a device that have records.

    Parameters
    ----------
    device
        Key of the device.
    configurations
        How many there are.
    settings
        What each knob was set to, by name: numbers (in SI units) in order, then words.
    domains
        Domains whose power was measured, sorted.
    """

    device: str
    configurations: int
    settings: Mapping[str, tuple[Setting, ...]]
    domains: tuple[str, ...]


def configurations_of(records: Table, energy: Table) -> tuple[DeviceConfigurations, ...]:
    """Find the configurations of each device that has records, in the order of the devices.

    Parameters
    ----------
    records, energy
        Tables, without what sessions that failed left. Energy without a duration says nothing of power.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in distinct(records, ("device", "configuration"))[0].to_pylist():
        found[row["device"]].append(row["configuration"])
    energy = energy.filter(pc.fill_null(pc.greater(energy.column("duration_s"), 0), False))
    domains: defaultdict[str, list[str]] = defaultdict(list)
    for row in distinct(energy, ("device", "domain"))[0].to_pylist():
        domains[row["device"]].append(row["domain"])
    return tuple(
        DeviceConfigurations(device, len(texts), _settings(device, texts), tuple(sorted(domains[device])))
        for device, texts in sorted(found.items())
    )


def _settings(device: str, texts: list[str]) -> dict[str, tuple[Setting, ...]]:
    values: defaultdict[str, set[Setting]] = defaultdict(set)
    for text in texts:
        try:
            configuration = Configuration.of(device, text)
        except InputError:
            # A table may hold any JSON; what tells nothing of knobs is counted all the same.
            continue
        for name, value in configuration.settings.items():
            values[name].add(value)
    return {name: tuple(sorted(each, key=_order)) for name, each in sorted(values.items())}


def _order(value: Setting) -> tuple[float, str]:
    return (float("inf"), value) if isinstance(value, str) else (value, "")
