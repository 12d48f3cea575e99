"""The catalogue of the published study's devices."""

import json

import pytest

from crosscast.data.schema import DEVICES
from crosscast.data.sources.aiwc import published_devices
from crosscast.data.table import table_of

ROWS = {row["device"]: row for row in published_devices()}


def test_it_has_the_15_devices_as_a_table() -> None:
    assert table_of(DEVICES, published_devices()).num_rows == 15


@pytest.mark.parametrize("device", ROWS)
def test_every_number_has_a_source_that_can_be_looked_up(device: str) -> None:
    row = dict(ROWS[device])
    sources = json.loads(row.pop("sources"))
    row.pop("device")
    assert sources.keys() == row.keys()
    assert all("table II" in text or "http" in text for text in sources.values())


@pytest.mark.parametrize("device", [name for name, row in ROWS.items() if row["type"] == "gpu"])
def test_peak_of_a_gpu_is_two_operations_a_core_and_cycle(device: str) -> None:
    row = ROWS[device]
    # OpenCL shows the two GPUs of this card as a device each.
    cores = row["cores"] / (2 if device == "hawaii-r9-295x2" else 1)
    clock_hz = row["clock_min_hz"] if device == "k40c" else row["clock_hz"]
    assert row["peak_flop_per_s"] == pytest.approx(2 * cores * clock_hz)


def test_what_no_source_says_is_not_there() -> None:
    assert "memory_bytes" not in ROWS["xeon_es-2697v2"]
    assert "bandwidth_bytes_per_s" not in ROWS["firepro-s9150"]


def test_names_that_differ_from_the_keys_say_so() -> None:
    assert ROWS["i5-3350"]["name"] == "i5-3550"
    assert "i5-3350" in json.loads(ROWS["i5-3350"]["sources"])["name"]
