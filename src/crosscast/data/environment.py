"""Facts about this machine and installation that are recorded with every result."""

from __future__ import annotations

import functools
import os
import platform
from importlib import metadata
from pathlib import Path

_PACKAGES = ("crosscast", "llvmlite", "ziglang", "numpy", "pyopencl", "pocl-binary-distribution")


def version_of(package: str) -> str | None:
    """Version of an installed package; ``None`` if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def processor() -> str:
    """Name of this machine's processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@functools.cache
def memory_bytes() -> int:
    """Memory of this machine, or the limit of this process' container (control group), in bytes."""
    available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(limit).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            available = min(available, int(text))
    return available


@functools.cache
def _versions() -> dict[str, str]:
    return {name: version for name in _PACKAGES if (version := version_of(name))}


def facts() -> dict[str, object]:
    """Versions of the packages that compute, and facts about the machine."""
    return {
        "packages": dict(_versions()),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processor": processor(),
        "cores": os.cpu_count(),
    }
