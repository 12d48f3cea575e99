"""The importers of configurations, on the published data.

It lies beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

import json
from collections import Counter

import pytest

from crosscast.data.dataset import Dataset, validate
from crosscast.data.sources.configurations import (
    import_gpu_dvfs,
    import_gpu_power_limit,
    import_multicore_energy,
    import_powercap,
)
from crosscast.data.views import configured
from support.shared import shared_data


def grid(dataset: Dataset) -> Counter[tuple[str, ...]]:
    """Configurations of each application, size and device; each cell has a power."""
    validate(dataset)
    rows = configured(dataset).to_pylist()
    assert len(rows) == dataset.records.num_rows
    assert all(row["power_w"] > 0 and row["time_s"] > 0 for row in rows)
    return Counter((row["application"], row["size"], row["device"]) for row in rows)


def test_powercap_is_a_full_grid() -> None:
    dataset = import_powercap(shared_data("powercap"))
    cells = grid(dataset)
    assert len(cells) == 15 * 2
    assert set(cells.values()) == {81}
    assert dataset.energy.num_rows == 3 * 2430
    assert Counter(dataset.sessions.column("runs").to_pylist()) == {1: 19, 2: 1014, 3: 1396, 4: 1}


def test_power_of_the_node_is_that_of_the_cpus_and_the_gpu() -> None:
    for row in configured(import_powercap(shared_data("powercap"))).to_pylist():
        powers = json.loads(row["powers"])
        assert row["power_w"] == powers["node"] == pytest.approx(powers["cpu"] + powers["gpu"])


def test_multicore_energy_has_seven_systems_of_unlike_cores() -> None:
    cells = grid(import_multicore_energy(shared_data("multicore_energy")))
    by_device = {device: {n for (_, _, key), n in cells.items() if key == device} for _, _, device in cells}
    assert by_device == {
        "amd": {48},
        "arm": {48},
        "i7": {8},
        "pi3": {4},
        "tx2": {18},
        "xeon": {20},
        "xu3": {24},
    }
    assert sum(cells.values()) == 1286


def test_gpu_power_limit_has_gaps_in_seven_jobs() -> None:
    cells = grid(import_gpu_power_limit(shared_data("gpu_power_limit")))
    assert Counter((device, count) for (_, _, device), count in cells.items()) == {
        ("v100", 7): 68,
        ("a40", 9): 47,
        ("a40", 5): 6,
        ("rtx6000", 8): 51,
        ("rtx6000", 2): 1,
    }


def test_gpu_dvfs_has_counters_on_one_gpu_and_two_series_on_the_other() -> None:
    dataset = import_gpu_dvfs(shared_data("gpu_dvfs"))
    cells = grid(dataset)
    assert Counter((device, count) for (_, _, device), count in cells.items()) == {
        ("gtx1080ti", 20): 30,
        ("titanx", 32): 165,
    }
    assert cells["stencil2d", "second series", "titanx"] == 32
    counters = [json.loads(text) for text in dataset.sessions.column("counters").drop_null().to_pylist()]
    assert len(counters) == 600
    assert {len(names) for names in counters} == {46}
    assert "argNo" not in counters[0]
