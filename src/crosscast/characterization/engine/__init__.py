"""Running an instrumented kernel: native code, a child process, its memory, its counts.

The runtime is linked to every kernel: its object files are those of the package, or else compiled once.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Container, Sequence
from pathlib import Path

from crosscast.characterization import toolchain
from crosscast.characterization.engine import workers
from crosscast.errors import CrosscastError

_FOLDER = Path(__file__).with_name("runtime")
_BUILT = Path(__file__).with_name("objects")
"""Folder of what came with the package. Names are keys: what another machine or source needs is not found."""
_OFTEN_RUN = "reduction results strided histories shapes sub_groups walks grids executions reuse accesses"
_LEVELS = {**dict.fromkeys(_OFTEN_RUN.split(), "-O2"), "threads": "-O1", "native": "-O1"}
"""Optimization level of each unit."""
_OF_FEW_KERNELS = {"warps": ("cc_run_warps", "cc_collective")}
"""Units for kernels that call one of these functions."""

_X86_64_V3 = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
_X86_64_V4 = _X86_64_V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_X86_64: dict[tuple[str, ...], frozenset[str]] = {
    ("-march=x86-64-v4",): _X86_64_V4,
    ("-march=x86-64-v3",): _X86_64_V3,
    (): frozenset(),
}
"""Options for levels of x86-64, the highest first, with what a processor has to support."""


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
    folders = (_BUILT, toolchain.cache_dir())
    return [_object(unit, _instructions(), folders) for unit in (*_LEVELS, *rare)]


def build(*, for_others: bool) -> None:
    """Compile the units into the package, for this machine or all of its kind, and remove what is older."""
    _BUILT.mkdir(exist_ok=True)
    levels = _X86_64 if for_others and toolchain.host_machine() == "x86_64" else [_instructions()]
    units = (*_LEVELS, *_OF_FEW_KERNELS)
    made = {_object(unit, instructions, [_BUILT]) for instructions in levels for unit in units}
    for path in {*_BUILT.glob("[!.]*")} - made:  # another build may be writing what begins with a dot
        path.unlink(missing_ok=True)


def compile_arguments(level: str, instructions: Sequence[str] | None = None) -> list[str]:
    """Return options to compile C that includes ``runtime.h`` and headers of the C library."""
    return [*_options(level, instructions), "-I", str(_FOLDER), *toolchain.system_headers(), "-c"]


def _options(level: str, instructions: Sequence[str] | None = None) -> list[str]:
    target = ("-x", "c", "-target", f"{toolchain.host_machine()}-linux-gnu")
    return [*target, level, "-fPIC", *(_instructions() if instructions is None else instructions)]


@functools.cache
def _instructions() -> tuple[str, ...]:
    """Return the option for the highest level of x86-64 that this processor supports."""
    try:
        line = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return ()
    flags = set(line[1].split()) if line else set()
    return next(options for options, needed in _X86_64.items() if flags >= needed)


def _object(unit: str, instructions: Sequence[str], folders: Sequence[Path]) -> Path:
    level = _LEVELS.get(unit, "-O2")
    source = (_FOLDER / f"{unit}.c").read_bytes()
    headers = [path.read_bytes() for path in sorted(_FOLDER.glob("*.h"))]
    key: list[str | bytes] = [*_options(level, instructions), toolchain.compiler_version(), *headers, source]
    make = functools.partial(toolchain.clang, compile_arguments(level, instructions), source, f"{unit}.c")
    return toolchain.cached(key, ".o", make, folders)
