"""The importer of runs on numbers of cores."""

from pathlib import Path
from typing import Any

import pytest
from configured_rows import Row, multicore, write_rows

from crosscast.configuration import Configuration
from crosscast.data.dataset import Dataset, validate
from crosscast.data.sources.configurations import import_multicore_energy
from crosscast.errors import InputError


def imported(tmp_path: Path, *rows: Row) -> Dataset:
    dataset = import_multicore_energy(write_rows(tmp_path / "loghin.csv", list(rows)))
    validate(dataset)
    return dataset


def refusal(tmp_path: Path, *rows: Row) -> str:
    with pytest.raises(InputError) as caught:
        imported(tmp_path, *rows)
    return str(caught.value)


def configurations(dataset: Dataset) -> list[Configuration]:
    rows = dataset.records.to_pylist()
    return [Configuration.of(row["device"], row["configuration"]) for row in rows]


def test_energy_is_power_times_time_whatever_the_source_says(tmp_path: Path) -> None:
    (energy,) = imported(tmp_path, multicore()).energy.to_pylist()
    assert (energy["energy_j"], energy["duration_s"]) == (300, 10)
    assert (energy["sensor"], energy["domain"]) == ("meter", "node")


def test_cores_are_the_configuration_where_all_are_alike(tmp_path: Path) -> None:
    found = configurations(imported(tmp_path, multicore("amd", cores=48)))
    assert found == [Configuration("amd", {"cores": 48})]


def test_kinds_of_cores_and_scheduling_are_settings_where_cores_differ(tmp_path: Path) -> None:
    modes = ("dynamic/all_cores", "static/little_cores")
    found = configurations(imported(tmp_path, *(multicore("xu3", mode, 4) for mode in modes)))
    assert found == [
        Configuration("xu3", {"cores": 4, "cluster": "all", "scheduling": "dynamic"}),
        Configuration("xu3", {"cores": 4, "cluster": "little", "scheduling": "static"}),
    ]


def test_only_systems_that_are_in_the_file_are_devices(tmp_path: Path) -> None:
    devices = imported(tmp_path, multicore("i7"), multicore("pi3")).devices.to_pylist()
    assert [(row["device"], row["vendor"]) for row in devices] == [("i7", "Intel"), ("pi3", None)]


def test_a_folder_may_be_given(tmp_path: Path) -> None:
    imported(tmp_path, multicore())
    assert import_multicore_energy(tmp_path).records.num_rows == 1


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"system": "cray"}, "row 2: column 'system': expected one of amd, arm,"),
        ({"mode": "static/some_cores"}, "row 2: column 'mode': expected static or dynamic"),
        ({"cores": 0}, "column 'cores', row 2: expected at least 1, found 0"),
        ({"avg_power_w": 0}, "column 'avg_power_w', row 2: expected more than 0"),
        ({"time_s": "long"}, "column 'time_s', row 2: expected a number, found 'long'"),
        ({"app": ""}, "column 'app', row 2: expected a value"),
        ({}, "rows 1 and 2 are both of bs, bs, default on amd: cores 1"),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    message = refusal(tmp_path, multicore(), multicore(**changed))
    assert message.startswith(f"{tmp_path / 'loghin.csv'}: ")
    assert found in message
