"""Properties and state of the host: caches, clock and load.

Functions take the root of the file system, for tests with a tree of files. Unknown values are `None`.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from crosscast.errors import InputError
from crosscast.units import parse_bytes

_ROOT = Path("/")
_CPUS = "sys/devices/system/cpu"
_BUSY = 0.5
"""Load average from which on a machine counts as busy: half a CPU is noise on a machine with two."""


class HostCaches(NamedTuple):
    """Caches that the first CPU uses, shared ones in total, by columns of the table of devices."""

    l1_bytes: int | None  # Of data
    l2_bytes: int | None
    l3_bytes: int | None


def name() -> str:
    """Return the network name of this machine."""
    return platform.node()


def clock_hz(root: Path = _ROOT) -> float | None:
    """Return the current clock of the fastest CPU, in hertz.

    Idle CPUs clock down, which does not concern a run.
    """
    files = (root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
    now_khz = [float(text) for text in map(_text, files) if text.isdecimal()]
    if now_khz:
        return max(now_khz) * 1e3
    now_mhz = re.findall(r"^cpu MHz\s*:\s*(\d+(?:\.\d+)?)$", _text(root / "proc/cpuinfo"), re.MULTILINE)
    return max(map(float, now_mhz)) * 1e6 if now_mhz else None


def cpu_flags(root: Path = _ROOT) -> set[str]:
    """Return the flags of the first CPU in ``/proc/cpuinfo``."""
    line = re.search(r"^flags\s*:(.*)$", _text(root / "proc/cpuinfo"), re.MULTILINE)
    return set(line[1].split()) if line else set()


def on_battery(root: Path = _ROOT) -> bool:
    """Return whether this machine runs on a battery."""
    supplies = list((root / "sys/class/power_supply").glob("*"))
    return any(
        _text(supply / "type") == "Battery" and _text(supply / "status") == "Discharging"
        for supply in supplies
    )


def governor(root: Path = _ROOT) -> str | None:
    """Return the frequency governor of the CPUs, such as ``performance``; several are joined by commas."""
    governors = {_text(file) for file in (root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return ",".join(sorted(governors - {""})) or None


def load(root: Path = _ROOT) -> float | None:
    """Return the load average of the last minute."""
    match = _load_average(root)
    return float(match[1]) if match else None


def doubts(root: Path = _ROOT) -> list[str]:
    """Return sentences that speak against measuring now: other programs keep CPUs busy."""
    busy = load(root)
    if busy is None or busy < _BUSY:
        return []
    return [
        f"{busy:.2g} threads of this machine wanted to run, on average of the last minute: other programs "
        "make times longer; measure on a machine with nothing else to do"
    ]


def others_running(root: Path = _ROOT) -> int | None:
    """Count the threads of other processes that run, or wait for a CPU, now."""
    match = _load_average(root)
    if match is None:
        return None
    # The state is the first field after the name, which is in parentheses and may have any character.
    stats = map(_text, (root / "proc/self/task").glob("*/stat"))
    running = sum(stat.rpartition(")")[2].split()[:1] == ["R"] for stat in stats)
    return max(0, int(match[2]) - running)


def caches(root: Path = _ROOT) -> HostCaches:
    """Return the sizes of the first CPU's caches."""
    sizes = dict(_data_caches(root / _CPUS / "cpu0/cache"))
    return HostCaches(sizes.get("1"), sizes.get("2"), sizes.get("3"))


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _load_average(root: Path) -> re.Match[str] | None:
    return re.match(r"(\d+\.\d+) \S+ \S+ (\d+)/\d+", _text(root / "proc/loadavg"))


def _data_caches(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield level and size in bytes of each data or unified cache."""
    for cache in folder.glob("index[0-9]*"):
        if _text(cache / "type") in ("Data", "Unified"):
            try:
                yield _text(cache / "level"), parse_bytes(_text(cache / "size"))
            except InputError:
                continue  # Some virtual machines show a cache without a size.
