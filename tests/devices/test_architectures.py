"""Architectures: every number has its source, and those of data sheets are what the catalogue has."""

from __future__ import annotations

import pytest

from crosscast.device import Device
from crosscast.devices.architectures import _UNITS, Unit, double_share, known_unit, unit_sources
from crosscast.devices.catalogue import catalogue, device_named

SERIES = tuple(_UNITS)


def of_series(series: str) -> list[Device]:
    return [device_named(key) for key, row in catalogue().items() if row["series"] == series]


@pytest.mark.parametrize("series", SERIES)
def test_every_number_of_an_architecture_has_its_source(series: str) -> None:
    sources = unit_sources(series)
    assert sources.keys() == set(Unit._fields)
    assert all(
        "http" in text or text.startswith(("data sheets", "the catalogue's", "chosen"))
        for text in sources.values()
    )
    assert sources["l2_clock"].startswith(("chosen", "te42kyfo"))


@pytest.mark.parametrize("series", SERIES)
def test_numbers_of_data_sheets_are_those_of_a_device_of_the_catalogue(series: str) -> None:
    devices, unit = of_series(series), _UNITS[series]
    assert devices
    shares = {
        device.numbers["peak_fp64_flop_per_s"]
        / min(device.numbers["peak_flop_per_s"], 2 * device.numbers["cores"] * device.numbers["clock_hz"])
        for device in devices
        if {"peak_fp64_flop_per_s", "peak_flop_per_s", "cores"} <= device.numbers.keys()
    }
    assert any(each == pytest.approx(unit.fp64, rel=0.01) for each in shares)
    assert double_share(next(each for each in devices if known_unit(each) is unit)) == unit.fp64
    like = of_series("GCN 3") if series == "Kaveri" else devices
    assert unit.l2_bytes in {device.numbers.get("l2_bytes") for device in like}


def test_units_hold_what_their_registers_and_sub_groups_allow() -> None:
    for series, unit in _UNITS.items():
        assert unit.width in (32, 64), series
        # Every sub-group that fits can have 16 registers for each work-item.
        assert unit.registers >= 16 * unit.width * unit.sub_groups, series
        assert unit.groups <= unit.sub_groups, series
