"""What this machine has: what describes devices, the state of the host, sensors and counters."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crosscast.data.schema import DEVICES
from crosscast.data.table import check, table_of
from crosscast.errors import DeviceFault, InputError
from crosscast.measure import host_state, inventory
from crosscast.measure.cpu_counters import available
from crosscast.measure.inventory import caches_of, describe, known_row
from crosscast.measure.opencl import OpenCLDevice, devices
from crosscast.suite.application import Caches
from support.measuring import cl_error


@pytest.fixture
def device() -> OpenCLDevice:
    """A device of this machine."""
    return devices()[0]


@pytest.mark.system  # For long; building a dataset describes devices, too
def test_a_description_is_a_row_of_the_table_with_the_source_of_every_number(device: OpenCLDevice) -> None:
    row, known = describe(device), known_row(device)
    for each in (row, known):
        check(DEVICES, table_of(DEVICES, [each]), "described")
    assert known.keys() < row.keys()
    assert (row["device"], row["type"]) == (device.key, device.type)
    assert row["compute_units"] == device.compute_units
    for name in ("bandwidth_bytes_per_s", "peak_flop_per_s", "launch_overhead_s", "timer_resolution_s"):
        assert row.number(name) > 0
    sources = json.loads(row.text("sources"))
    assert {name for name, value in row.items() if isinstance(value, int | float)} <= set(sources)
    assert sources["peak_flop_per_s"].startswith("measured")


def test_a_device_that_fails_is_a_fault(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise cl_error(-2)

    monkeypatch.setattr("pyopencl.Kernel", fail)
    with pytest.raises(DeviceFault, match=f"measuring it on {device.id}: the device failed or was lost"):
        describe(device)


def test_caches_of_a_cpu_are_those_of_the_host(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    if device.type != "cpu":
        pytest.skip("the first device is no CPU")
    monkeypatch.setattr(host_state, "caches", lambda: host_state.HostCaches(1 << 15, 1 << 20, 1 << 25))
    assert caches_of(device) == Caches(1 << 15, 1 << 20, 1 << 25)


def test_a_gpu_has_its_local_memory_and_one_cache(device: OpenCLDevice) -> None:
    row = known_row(device)
    cache = int(device.handle.global_mem_cache_size)
    assert caches_of(replace(device, type="gpu")) == Caches(row.integer("local_memory_bytes"), cache, cache)


def test_a_device_that_hides_its_caches_cannot_be_fitted(device: OpenCLDevice) -> None:
    with pytest.raises(InputError, match=f"{device.id}: expected a device that tells its cache sizes"):
        caches_of(replace(device, type="accelerator"))


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


CPUS = "sys/devices/system/cpu"
HOSTS: dict[str, dict[str, str]] = {
    "clocks": {
        f"{CPUS}/cpu0/cpufreq/scaling_cur_freq": "800000\n",
        f"{CPUS}/cpu11/cpufreq/scaling_cur_freq": "3600123\n",
        f"{CPUS}/cpu2/cpufreq/scaling_cur_freq": "<unknown>\n",
        "proc/cpuinfo": "cpu MHz\t\t: 2000.000\n",
    },
    "no cpufreq": {"proc/cpuinfo": "processor\t: 0\ncpu MHz\t\t: 2000.5\n\ncpu MHz\t\t: 2600.144\n"},
    "governors": {
        f"{CPUS}/cpu{number}/cpufreq/scaling_governor": f"{name}\n"
        for number, name in enumerate(("powersave", "performance", "powersave"))
    },
    "load": {
        "proc/loadavg": "1.25 0.33 0.62 5/91 28737\n",
        "proc/self/task/10/stat": "10 (python) R 1 10 10",
        "proc/self/task/11/stat": "11 (a) R (b) S 1 10 10",
        "proc/self/task/12/stat": "12 (pocl) R 1 10 10",
    },
    "idle": {"proc/loadavg": "0.00 0.00 0.00 0/91 1\n", "proc/self/task/1/stat": "1 (python) R 1 10 10"},
    "caches": {
        f"{CPUS}/cpu0/cache/index{number}/{name}": f"{text}\n"
        for number, cache in enumerate(
            [
                ("1", "Instruction", "64K"),
                ("1", "Data", "48K"),
                ("2", "Unified", "1280K"),
                ("3", "Unified", "32M"),
            ]
        )
        for name, text in zip(("level", "type", "size"), cache, strict=True)
    },
    # As some virtual machines show it.
    "a cache of no size": {
        f"{CPUS}/cpu0/cache/index2/level": "2",
        f"{CPUS}/cpu0/cache/index2/type": "Unified",
        f"{CPUS}/cpu0/cache/index2/size": "0K",
    },
    "nothing": {},
}


@pytest.mark.parametrize(
    ("host", "asked", "told"),
    [
        # That of the fastest CPU.
        ("clocks", host_state.clock_hz, pytest.approx(3.600123e9)),
        ("no cpufreq", host_state.clock_hz, pytest.approx(2.600144e9)),
        ("governors", host_state.governor, "performance,powersave"),
        # Own threads are not others, which are never fewer than none.
        ("load", host_state.others_running, 3),
        ("load", host_state.load, 1.25),
        ("idle", host_state.others_running, 0),
        ("caches", host_state.caches, (48 << 10, 1280 << 10, 32 << 20)),
        ("a cache of no size", host_state.caches, (None, None, None)),
        ("nothing", host_state.clock_hz, None),
        ("nothing", host_state.governor, None),
        ("nothing", host_state.load, None),
        ("nothing", host_state.others_running, None),
    ],
)
def test_the_host_tells_what_its_files_say(
    host: str, asked: Callable[[Path], object], told: object, tmp_path: Path
) -> None:
    for path, text in HOSTS[host].items():
        write(tmp_path, path, text)
    assert asked(tmp_path) == told


@pytest.mark.parametrize(
    ("load", "doubt"), [("0.49", ""), ("0.50", "0.5 threads"), ("3.21", "3.2 threads"), (None, "")]
)
def test_a_machine_that_others_keep_busy_is_doubted(tmp_path: Path, load: str | None, doubt: str) -> None:
    if load is not None:
        write(tmp_path, "proc/loadavg", f"{load} 9.00 9.00 5/91 28737\n")
    found = host_state.doubts(tmp_path)
    assert [each.partition(" of this machine wanted to run")[0] for each in found] == [doubt] * bool(doubt)


def test_every_device_is_listed_with_all_that_is_known() -> None:
    found = inventory.inventory()
    assert [entry.device.id for entry in found if isinstance(entry.device, OpenCLDevice)] == [
        device.id for device in devices()
    ]
    for entry in found:
        shown = json.loads(json.dumps(entry.to_dict(), allow_nan=False))
        assert (shown["id"], shown["device"]) == (
            entry.device.id,
            getattr(entry.device, "key", shown["device"]),
        )
        assert shown["compute_units"] == entry.device.compute_units
        assert {"name", "type", "memory_bytes", "driver", "platform"} <= shown.keys()
        assert all(sensor["works"] == (sensor["reason"] is None) for sensor in shown["sensors"])


def test_cpus_have_counters_and_a_sensor_that_works_or_says_why() -> None:
    names = list(available())
    for entry in inventory.inventory():
        shown = json.loads(json.dumps(entry.to_dict()))
        if entry.device.type == "cpu":
            assert [counter["name"] for counter in shown["counters"]] == names
            assert [sensor["name"] for sensor in shown["sensors"]] == ["rapl"]
        else:
            assert shown["counters"] == []
