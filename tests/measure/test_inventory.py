"""What this machine has: what describes devices, the state of the host, sensors, counters and summaries."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crosscast.data.schema import DEVICES, RECORDS
from crosscast.data.table import Table, check, table_of
from crosscast.errors import DeviceFault, InputError
from crosscast.measure import host_state, inventory
from crosscast.measure.cpu_counters import available
from crosscast.measure.inventory import caches_of, describe, known_row, summaries
from crosscast.measure.opencl import OpenCLDevice, devices
from crosscast.suite.application import Caches
from support.measuring import cl_error


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> OpenCLDevice:
    """A device that is described in a moment."""
    monkeypatch.setattr(inventory, "_ENOUGH_S", 0.01)
    return devices()[0]


def test_a_description_is_a_row_of_the_table(device: OpenCLDevice) -> None:
    row = describe(device)
    check(DEVICES, table_of(DEVICES, [row]), "described")
    assert (row["device"], row["type"]) == (device.key, device.type)
    assert row["compute_units"] == device.compute_units
    for name in ("bandwidth_bytes_per_s", "peak_flop_per_s", "launch_overhead_s", "timer_resolution_s"):
        assert row[name] > 0


def test_every_number_has_its_source(device: OpenCLDevice) -> None:
    row = describe(device)
    numbers = {name for name, value in row.items() if isinstance(value, int | float)}
    sources = json.loads(row["sources"])
    assert numbers <= set(sources)
    assert sources["peak_flop_per_s"].startswith("measured")


def test_what_is_known_without_measuring_is_a_row_too(device: OpenCLDevice) -> None:
    row = known_row(device)
    check(DEVICES, table_of(DEVICES, [row]), "known")
    assert row.keys() < describe(device).keys()


def test_a_device_that_fails_is_a_fault(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> float:
        raise cl_error(-2)

    monkeypatch.setattr(inventory, "_bandwidth", fail)
    with pytest.raises(DeviceFault, match=f"describing it on {device.id}: the device failed or was lost"):
        describe(device)


def test_caches_of_a_cpu_are_those_of_the_host(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    if device.type != "cpu":
        pytest.skip("the first device is no CPU")
    monkeypatch.setattr(host_state, "caches", lambda: host_state.Caches(1 << 15, 1 << 20, 1 << 25))
    assert caches_of(device) == Caches(1 << 15, 1 << 20, 1 << 25)


def test_a_gpu_has_its_local_memory_and_one_cache(device: OpenCLDevice) -> None:
    row = known_row(device)
    cache = int(device.handle.global_mem_cache_size)
    assert caches_of(replace(device, type="gpu")) == Caches(row["local_memory_bytes"], cache, cache)


def test_a_device_that_hides_its_caches_cannot_be_fitted(device: OpenCLDevice) -> None:
    with pytest.raises(InputError, match=f"{device.id}: expected a device that tells its cache sizes"):
        caches_of(replace(device, type="accelerator"))


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_the_clock_is_that_of_the_fastest_cpu(tmp_path: Path) -> None:
    write(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "800000\n")
    write(tmp_path, "sys/devices/system/cpu/cpu11/cpufreq/scaling_cur_freq", "3600123\n")
    write(tmp_path, "sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "<unknown>\n")
    write(tmp_path, "proc/cpuinfo", "cpu MHz\t\t: 2000.000\n")
    assert host_state.clock_hz(tmp_path) == pytest.approx(3.600123e9)


def test_without_cpufreq_the_clock_is_that_of_cpuinfo(tmp_path: Path) -> None:
    write(tmp_path, "proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2000.5\n\ncpu MHz\t\t: 2600.144\n")
    assert host_state.clock_hz(tmp_path) == pytest.approx(2.600144e9)


def test_several_governors_are_all_named(tmp_path: Path) -> None:
    write(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    write(tmp_path, "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n")
    write(tmp_path, "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n")
    assert host_state.governor(tmp_path) == "performance,powersave"


def test_own_threads_are_not_others(tmp_path: Path) -> None:
    write(tmp_path, "proc/loadavg", "1.25 0.33 0.62 5/91 28737\n")
    write(tmp_path, "proc/self/task/10/stat", "10 (python) R 1 10 10")
    write(tmp_path, "proc/self/task/11/stat", "11 (a) R (b) S 1 10 10")
    write(tmp_path, "proc/self/task/12/stat", "12 (pocl) R 1 10 10")
    assert host_state.others_running(tmp_path) == 3
    assert host_state.load(tmp_path) == 1.25


@pytest.mark.parametrize(
    ("load", "doubt"), [("0.49", ""), ("0.50", "0.5 threads"), ("3.21", "3.2 threads"), (None, "")]
)
def test_a_machine_that_other_programs_keep_busy_is_doubted(
    tmp_path: Path, load: str | None, doubt: str
) -> None:
    if load is not None:
        write(tmp_path, "proc/loadavg", f"{load} 9.00 9.00 5/91 28737\n")
    found = host_state.doubts(tmp_path)
    assert [each.partition(" of this machine wanted to run")[0] for each in found] == [doubt] * bool(doubt)


def test_others_are_never_fewer_than_none(tmp_path: Path) -> None:
    write(tmp_path, "proc/loadavg", "0.00 0.00 0.00 0/91 28737\n")
    write(tmp_path, "proc/self/task/10/stat", "10 (python) R 1 10 10")
    assert host_state.others_running(tmp_path) == 0


def test_caches_are_those_that_hold_data(tmp_path: Path) -> None:
    caches = [
        ("1", "Instruction", "64K"),
        ("1", "Data", "48K"),
        ("2", "Unified", "1280K"),
        ("3", "Unified", "32M"),
    ]
    for i, (level, kind, size) in enumerate(caches):
        for name, text in (("level", level), ("type", kind), ("size", size)):
            write(tmp_path, f"sys/devices/system/cpu/cpu0/cache/index{i}/{name}", f"{text}\n")
    assert host_state.caches(tmp_path) == (48 << 10, 1280 << 10, 32 << 20)


def test_a_cache_without_size_is_none(tmp_path: Path) -> None:
    for name, text in (("level", "2"), ("type", "Unified"), ("size", "0K")):
        write(tmp_path, f"sys/devices/system/cpu/cpu0/cache/index2/{name}", text)
    assert host_state.caches(tmp_path) == (None, None, None)


def test_memory_is_in_bytes(tmp_path: Path) -> None:
    write(tmp_path, "proc/meminfo", "MemTotal:       24684092 kB\nMemFree:        1 kB\n")
    assert host_state.memory_bytes(tmp_path) == 24684092 * 1024


def test_what_the_system_does_not_tell_is_none(tmp_path: Path) -> None:
    assert host_state.clock_hz(tmp_path) is None
    assert host_state.governor(tmp_path) is None
    assert host_state.load(tmp_path) is None
    assert host_state.others_running(tmp_path) is None
    assert host_state.memory_bytes(tmp_path) is None


def test_this_machine_tells_its_memory() -> None:
    memory = host_state.memory_bytes()
    assert memory is not None and memory > 1 << 28


def test_every_device_is_listed_with_all_that_is_known() -> None:
    found = inventory.inventory()
    assert [entry.device.id for entry in found] == [device.id for device in devices()]
    for entry in found:
        shown = json.loads(json.dumps(entry.to_dict(), allow_nan=False))
        assert (shown["id"], shown["device"]) == (entry.device.id, entry.device.key)
        assert shown["compute_units"] == entry.device.compute_units
        assert {"name", "type", "memory_bytes", "driver", "platform"} <= shown.keys()
        assert all(sensor["works"] == (sensor["reason"] is None) for sensor in shown["sensors"])


def test_cpus_have_counters_and_a_sensor_that_works_or_says_why() -> None:
    names = list(available())
    for entry in inventory.inventory():
        shown = entry.to_dict()
        if entry.device.type == "cpu":
            assert [counter["name"] for counter in shown["counters"]] == names
            assert [sensor["name"] for sensor in shown["sensors"]] == ["rapl"]
        else:
            assert shown["counters"] == []


def records(times: dict[str, list[list[float]]]) -> Table:
    cell = {"application": "a", "size": "tiny", "device": "d", "configuration": "{}", "repeat": 0}
    rows = [
        {**cell, "kernel": kernel, "run": number, "invocations": len(run), "time_s": run}
        for kernel, runs in times.items()
        for number, run in enumerate(runs)
    ]
    return table_of(RECORDS, rows)


def test_statistics_are_over_runs_of_the_mean_of_their_invocations() -> None:
    (found,) = summaries(records({"k": [[1.0, 3.0], [5.0], [2.0, 2.0, 2.0]]}))
    assert (found.kernel, found.runs, found.invocations) == ("k", 3, 6)
    assert (found.min_s, found.median_s, found.mean_s, found.max_s) == (2.0, 2.0, 3.0, 5.0)
    assert found.sd_s == pytest.approx(3**0.5)
    assert found.spread == pytest.approx(3**0.5 / 3)


def test_one_run_has_no_spread() -> None:
    (found,) = summaries(records({"k": [[1.0]]}))
    assert (found.sd_s, found.spread) == (None, None)
    assert found.to_dict()["sd_s"] is None


def test_times_of_zero_have_no_spread() -> None:
    (found,) = summaries(records({"k": [[0.0], [0.0]]}))
    assert (found.sd_s, found.spread) == (0.0, None)


def test_each_kernel_has_its_own_summary() -> None:
    found = summaries(records({"one": [[1.0], [2.0]], "two": [[4.0], [4.0]]}))
    assert {summary.kernel: summary.mean_s for summary in found} == {"one": 1.5, "two": 4.0}
