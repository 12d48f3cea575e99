"""Data sheets: the whole catalogue, how devices are named, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import crosscast
from crosscast.data.schema import DEVICES
from crosscast.data.sources.aiwc import published_devices
from crosscast.data.table import table_of
from crosscast.device import SPEED_NUMBERS, Device
from crosscast.devices.catalogue import (
    LEAST_NUMBERS,
    catalogue,
    check_sheet,
    device_named,
    device_of,
    sheet_named,
)
from crosscast.errors import InputError
from support.commands import Command, Output

COLUMNS = {column.name for column in DEVICES.columns}
CURRENT = sorted(catalogue().keys() - {row["device"] for row in published_devices()})
GPUS = [key for key in CURRENT if sheet_named(key)["type"] == "gpu"]


def test_the_catalogue_has_the_devices_of_the_study_and_current_ones() -> None:
    published = [row["device"] for row in published_devices()]
    assert list(catalogue())[:15] == published
    assert len(CURRENT) >= 25
    assert {sheet_named(key)["vendor"] for key in CURRENT} == {"Nvidia", "AMD", "Intel"}


@pytest.mark.parametrize("key", catalogue())
def test_every_data_sheet_is_plausible_and_says_where_each_cell_is_from(key: str) -> None:
    row = dict(catalogue()[key])
    check_sheet(device_of(row), key)
    assert sum(name in row for name in SPEED_NUMBERS) >= LEAST_NUMBERS
    sources = row.pop("sources")
    assert row.keys() <= COLUMNS
    assert sources.keys() == row.keys() - {"device"}
    assert all("table II" in text or "http" in text for text in sources.values())
    table_of(DEVICES, [{**row, "sources": json.dumps(sources)}])
    assert device_named(key) == device_named(row["name"]) == device_of(row)


@pytest.mark.parametrize("key", GPUS)
def test_the_peak_of_a_gpu_is_two_or_four_operations_a_core_and_cycle(key: str) -> None:
    row = sheet_named(key)
    operations = row["peak_flop_per_s"] / (row["cores"] * row["clock_hz"])
    assert min(abs(operations - 2), abs(operations - 4)) < 0.01


def test_spelling_does_not_matter_and_near_names_are_listed() -> None:
    assert crosscast.device_named("geforce rtx-4090") == device_named("rtx4090")
    with pytest.raises(InputError, match=r"found 'h100', near to which it has h100-pcie, h100-sxm"):
        device_named("h100")
    with pytest.raises(InputError, match=r"\(crosscast devices --catalogue lists it\), found 'abacus'$"):
        device_named("abacus")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("peak_flop_per_s", 82.6, "8.26e+13 if it is in Tflop/s"),
        ("peak_flop_per_s", 82580, "8.258e+13 if it is in Gflop/s"),
        ("bandwidth_bytes_per_s", 1008, "1.008e+12 if it is in GB/s"),
        ("clock_hz", 2520, "2.52e+09 if it is in MHz"),
        ("clock_hz", 2.52, "2.52e+09 if it is in GHz"),
        ("memory_bytes", 24, "2.577e+10 if it is in GiB"),
        ("l1_bytes", 128, "1.311e+05 if it is in KiB"),
        ("l2_bytes", 72, "7.55e+07 if it is in MiB"),
        ("tdp_w", 450_000, "450 if it is in mW"),
        ("cores", 1e9, "found 1e+09"),
    ],
)
def test_a_number_in_another_unit_is_refused_with_what_it_should_be_near_to(
    name: str, value: float, reason: str
) -> None:
    sound = device_named("rtx4090")
    wrong = replace(sound, numbers={**sound.numbers, name: value})
    with pytest.raises(InputError, match=rf"^next\.toml: {name}: expected ") as caught:
        check_sheet(wrong, "next.toml")
    assert str(caught.value).endswith(reason)
    low, high = (float(part) for part in str(caught.value.expected).split(",")[0].split()[:3:2])
    assert low <= sound.numbers[name] <= high


def test_a_sheet_with_few_numbers_is_refused() -> None:
    few = Device("x", type="cpu", numbers={"clock_hz": 3e9, "cores": 8, "memory_bytes": 2e10})
    with pytest.raises(InputError, match=r"expected at least 5 of .*, found 2 \(clock_hz, cores\)$"):
        check_sheet(few, "next.toml")


DEVICES_COMMAND = Command.of("devices")


def test_the_command_lists_the_catalogue_and_says_where_a_number_is_from(capsys: Output) -> None:
    found: list[dict[str, Any]] = DEVICES_COMMAND.answer(capsys, "--catalogue")
    assert found == list(catalogue().values())
    table = DEVICES_COMMAND.text(capsys, "--catalogue")
    assert all(row["device"] in table and row["name"] in table for row in found)
    assert DEVICES_COMMAND.answer(capsys, "--catalogue", "RTX 4090") == sheet_named("rtx4090")
    text = DEVICES_COMMAND.text(capsys, "--catalogue", "rtx4090")
    assert "82.58 Tflop/s" in text
    assert all(source in text for source in sheet_named("rtx4090")["sources"].values())
    assert "NAME: expected with --catalogue" in DEVICES_COMMAND.refusal(capsys, "rtx4090")
    assert "near to which it has rtx4090" in DEVICES_COMMAND.refusal(capsys, "--catalogue", "rtx409")
