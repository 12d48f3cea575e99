"""The runtime that is linked to every kernel: its object files, compiled once for this machine.

They are needed last, when a kernel has been compiled and instrumented, and take longer than that:
`start` compiles what is missing in the background, beside whatever the caller does meanwhile, and
starts the process that will run it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import queue
import re
import threading
from pathlib import Path

from crosscast.characterization import toolchain
from crosscast.characterization.engine import workers
from crosscast.errors import CrosscastError

__all__ = ["arguments", "objects", "start"]

_FOLDER = Path(__file__).with_name("runtime")
_HEADER = _FOLDER / "runtime.h"
_LEVELS = {
    "reduction": "-O2",
    "warps": "-O2",
    "rows": "-O2",
    "histories": "-O2",
    "accesses": "-O2",
    "threads": "-O1",
}
"""Optimization of each unit, those that take longest to compile first."""


_X86_64_V3 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}


@functools.cache
def start() -> tuple[threading.Thread, ...]:
    """Compile the units that are not in the cache, in the background.

    Errors show when the objects are asked for. The threads do not keep the process from ending.
    """
    workers.prestart()
    units: queue.SimpleQueue[str] = queue.SimpleQueue()
    for unit in _LEVELS:
        units.put(unit)
    count = min(len(_LEVELS), os.cpu_count() or 1)
    threads = tuple(threading.Thread(target=_compile_all, args=(units,), daemon=True) for _ in range(count))
    for thread in threads:
        thread.start()
    return threads


def objects() -> list[Path]:
    """Object files of the runtime, which this waits for."""
    for thread in start():
        thread.join()
    return [_object(unit) for unit in _LEVELS]


def _compile_all(units: queue.SimpleQueue[str]) -> None:
    # What fails here is tried again by whoever needs it, and fails there.
    with contextlib.suppress(queue.Empty, CrosscastError, OSError):
        while True:
            _object(units.get_nowait())


def arguments(level: str) -> list[str]:
    """Options that compile C which may include ``runtime.h``."""
    machine = toolchain.host_machine()
    return [*_options(machine, level), *_include_folders(machine), "-c"]


def _options(machine: str, level: str) -> list[str]:
    return [
        "-x",
        "c",
        "-target",
        f"{machine}-linux-gnu",
        level,
        "-fPIC",
        "-D__GLIBC_MINOR__=17",
        *_instructions(),
    ]


@functools.cache
def _instructions() -> tuple[str, ...]:
    """Option that allows the instructions that all newer processors for x86-64 have, if this one has them."""
    try:
        found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return ()
    return ("-march=x86-64-v3",) if found and set(found[1].split()) >= _X86_64_V3 else ()


def _object(unit: str) -> Path:
    level = _LEVELS[unit]
    source, header = (_FOLDER / f"{unit}.c").read_bytes(), _HEADER.read_bytes()
    options = _options(toolchain.host_machine(), level)
    key: list[str | bytes] = [*options, toolchain.compiler_version(), header, source]
    make = functools.partial(toolchain.clang, arguments(level), source, f"{unit}.c")
    return toolchain.cached(key, ".o", make)


def _include_folders(machine: str) -> list[str]:
    """Options that name the folders of the C library's headers, which the compiler's wheel brings."""
    spec = importlib.util.find_spec("ziglang")
    assert spec is not None
    assert spec.submodule_search_locations
    root = Path(next(iter(spec.submodule_search_locations))) / "lib"
    arch = machine.replace("x86_64", "x86")
    system = ("generic-glibc", f"{arch}-linux-any", "any-linux-any")
    libc = [root / "libc" / "include" / name for name in (f"{arch}-linux-gnu", *system)]
    return ["-I", str(_FOLDER), *(f"-isystem{path}" for path in (root / "include", *libc))]
