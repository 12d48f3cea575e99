"""The state of the host, read from trees of files."""

from pathlib import Path

import pytest

from crosscast.measure import host_state


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
