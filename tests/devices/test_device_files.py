"""Files of devices: what is written is read again, and what cannot be is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosscast.device import Device
from crosscast.devices.catalogue import device_named
from crosscast.devices.device_files import own_devices, read_device, write_device
from crosscast.devices.knowledge import known_of
from crosscast.errors import InputError
from support.refusals import refusal, refusals

MINE = Device(
    "mine",
    "A processor",
    "AMD",
    "cpu",
    "Zen 4",
    {"compute_units": 2.0, "clock_hz": 3.1e9, "l3_bytes": 33554432.0},
    {"read_bytes_per_s": 1.2e10, "fp32_flop_per_s": 9.1e10, "launch_s": 2e-5},
)
FEW = """
device = "next"
type = "gpu"
vendor = "Nvidia"
compute_units = 46
clock_hz = 1.7e9
cores = 2944
tdp_w = 215
"""


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    write_device(
        path,
        MINE,
        how={"launch_s": 'the "median" of 100'},
        conditions={"load": 1.5, "notes": ["loaded"]},
        working_sets={"bytes": [16384.0, 32768.0], "read": [1e11, 9e10]},
    )
    assert read_device(path) == MINE


def test_a_calibrated_device_is_known_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert own_devices() == []
    folder = tmp_path / "crosscast" / "devices"
    folder.mkdir(parents=True)
    write_device(folder / "mine.toml", MINE, how={"launch_s": "median of 100"})
    assert device_named("mine") == MINE
    assert known_of("mine").measured["launch_s"].statistic == "median of 100"
    assert "near to which it has mine" in refusal(device_named, "min")


@refusals("line reason")
def test_a_wrong_file_is_refused(line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "next.toml"
    path.write_text(FEW + line)
    with pytest.raises(InputError, match=reason) as caught:
        read_device(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    assert "cannot read the description of a device" in refusal(read_device, tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    assert "expected UTF-8" in refusal(read_device, tmp_path / "bytes.toml")
