"""Object files of the runtime that is linked to every kernel, compiled once for this machine."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Container
from pathlib import Path

from crosscast.characterization import toolchain
from crosscast.characterization.engine import workers
from crosscast.errors import CrosscastError

__all__ = ["arguments", "objects", "start"]

_FOLDER = Path(__file__).with_name("runtime")
_LEVELS = {
    "reduction": "-O2",
    "results": "-O2",
    "strided": "-O2",
    "histories": "-O2",
    "shapes": "-O2",
    "sub_groups": "-O2",
    "walks": "-O2",
    "grids": "-O2",
    "executions": "-O2",
    "reuse": "-O2",
    "accesses": "-O2",
    "threads": "-O1",
    "native": "-O1",
}
"""Optimization level of each unit."""
_OF_FEW_KERNELS = {"warps": ("cc_run_warps", "cc_collective")}
"""Units for kernels that call one of these functions."""

_X86_64_V3 = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
_X86_64_V4 = _X86_64_V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@functools.cache
def start() -> None:
    """Compile the units of all kernels, and start LLVM's process.

    To be called before large imports: the compiler takes much memory, and releases it before
    this returns. Errors are raised when the objects are used.
    """
    with contextlib.suppress(CrosscastError, OSError):
        objects()
    workers.prestart("llvm")


def objects(called: Container[str] = ()) -> list[Path]:
    """Return the object files for a kernel that calls these functions."""
    rare = [unit for unit, names in _OF_FEW_KERNELS.items() if any(name in called for name in names)]
    return [_object(unit) for unit in (*_LEVELS, *rare)]


def arguments(level: str) -> list[str]:
    """Return options to compile C that includes ``runtime.h`` and headers of the C library."""
    return [*_options(level), "-I", str(_FOLDER), *toolchain.system_headers(), "-c"]


def _options(level: str) -> list[str]:
    target = ("-x", "c", "-target", f"{toolchain.host_machine()}-linux-gnu")
    return [*target, level, "-fPIC", *_instructions()]


@functools.cache
def _instructions() -> tuple[str, ...]:
    """Return the option for the highest level of x86-64 that this processor supports."""
    try:
        line = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return ()
    flags = set(line[1].split()) if line else set()
    levels = (("x86-64-v4", _X86_64_V4), ("x86-64-v3", _X86_64_V3))
    return next(((f"-march={level}",) for level, needed in levels if flags >= needed), ())


def _object(unit: str) -> Path:
    level = _LEVELS.get(unit, "-O2")
    source = (_FOLDER / f"{unit}.c").read_bytes()
    headers = [path.read_bytes() for path in sorted(_FOLDER.glob("*.h"))]
    key: list[str | bytes] = [*_options(level), toolchain.compiler_version(), *headers, source]
    make = functools.partial(toolchain.clang, arguments(level), source, f"{unit}.c")
    return toolchain.cached(key, ".o", make)
