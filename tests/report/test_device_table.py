"""Devices on a terminal."""

import io
from types import SimpleNamespace
from typing import Any

from crosscast.measure.energy import Availability
from crosscast.measure.inventory import Entry
from crosscast.report.dataset import print_devices


def entry(name: str, *sensors: Availability, **facts: Any) -> Entry:
    handle = SimpleNamespace(id=name, name=f"the {name}", type="cpu", compute_units=4)
    known = {"clock_hz": None, "l2_bytes": None, "memory_bytes": 1 << 30, **facts}
    return Entry(handle, known, sensors, {"cycles": "no such counter", "page_faults": None})  # type: ignore[arg-type]


def printed(*entries: Entry) -> list[str]:
    stream = io.StringIO()
    print_devices(entries, stream)
    return stream.getvalue().splitlines()


def test_a_row_a_device_with_what_is_known() -> None:
    working = Availability("rapl", works=True, reason=None)
    lines = printed(entry("pocl:0", working, clock_hz=2.6e9, l1_bytes=32 << 10), entry("pocl:1"))
    assert lines[0].split() == "id name type units clock L1 L2 L3 memory sensors".split()
    assert lines[1].split() == "pocl:0 the pocl:0 cpu 4 2.6 GHz 32 KiB 1 GiB rapl".split()
    assert lines[2].split() == "pocl:1 the pocl:1 cpu 4 1 GiB none".split()


def test_each_reason_is_given_once_with_the_devices_it_holds_for() -> None:
    broken = Availability("rapl", works=False, reason="rapl: root alone may read it")
    lines = printed(entry("pocl:0", broken), entry("pocl:0/1", broken))
    assert lines[3:] == [
        "pocl:0, pocl:0/1: rapl: root alone may read it",
        "CPU counters cycles: no such counter",
        "CPU counters page_faults: work",
    ]


def test_names_with_brackets_are_shown_as_they_are() -> None:
    assert "the [red]x" in printed(entry("[red]x"))[1]
