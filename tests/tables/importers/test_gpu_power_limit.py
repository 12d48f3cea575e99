"""The importer of epochs under a GPU's power limits."""

from pathlib import Path
from typing import Any

import pytest
from configured_rows import epoch, write_rows

from crosscast.configuration import Configuration
from crosscast.data.dataset import validate
from crosscast.data.sources.configurations import import_gpu_power_limit
from crosscast.errors import InputError


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_gpu_power_limit(path)
    return str(caught.value)


def test_an_epoch_is_a_record_of_its_network_and_job(tmp_path: Path) -> None:
    dataset = import_gpu_power_limit(write_rows(tmp_path / "zeus_v100.csv", [epoch(125)]))
    validate(dataset)
    (record,), (energy,) = dataset.records.to_pylist(), dataset.energy.to_pylist()
    assert (record["application"], record["kernel"]) == ("shufflenetv2", "shufflenetv2")
    assert record["size"] == "cifar100 b1024 adadelta"
    assert Configuration.of(record["device"], record["configuration"]) == Configuration(
        "v100", {"power_cap_w": 125}
    )
    assert (record["time_s"], energy["energy_j"], energy["domain"]) == ([20.0], 1800, "gpu")


def test_a_folder_gives_all_of_its_gpus_and_passes_over_other_files(tmp_path: Path) -> None:
    write_rows(tmp_path / "zeus_v100.csv", [epoch()])
    write_rows(tmp_path / "zeus_a40.csv", [epoch(), epoch(150)])
    (tmp_path / "readme.txt").write_text("something else", encoding="utf-8")
    dataset = import_gpu_power_limit(tmp_path)
    assert dataset.devices.column("device").to_pylist() == ["a40", "v100"]
    assert dataset.records.column("device").to_pylist() == ["a40", "a40", "v100"]


def test_the_origins_names_of_files_are_known(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "summary_power_p100.csv", [epoch()])
    assert import_gpu_power_limit(path).devices.column("name").to_pylist() == ["P100"]


def test_two_files_of_a_gpu_are_refused(tmp_path: Path) -> None:
    for name in ("zeus_v100.csv", "summary_power_v100.csv"):
        write_rows(tmp_path / name, [epoch()])
    expected = "expected one file of a GPU, found summary_power_v100.csv and zeus_v100.csv"
    assert refusal(tmp_path) == f"{tmp_path}: {expected}"


@pytest.mark.parametrize("name", ["", "epochs.csv", "nowhere"])
def test_a_path_without_a_gpus_name_is_refused(tmp_path: Path, name: str) -> None:
    write_rows(tmp_path / "epochs.csv", [epoch()])
    assert refusal(tmp_path / name).startswith(f"{tmp_path / name}: expected a file zeus_<gpu>.csv")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "zeus_v100.csv")


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"power_limit": 0}, "column 'power_limit', row 2: expected more than 0"),
        ({"batch_size": 1.5}, "column 'batch_size'"),
        ({"time_per_epoch": "nan"}, "column 'time_per_epoch', row 2: expected a value"),
        ({"average_power": -3}, "column 'average_power', row 2: expected more than 0, found -3"),
        ({}, "rows 1 and 2 are both of shufflenetv2, shufflenetv2, cifar100 b1024 adadelta on v100"),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    path = write_rows(tmp_path / "zeus_v100.csv", [epoch(), epoch(**changed)])
    message = refusal(path)
    assert message.startswith(f"{path}: ")
    assert found in message
