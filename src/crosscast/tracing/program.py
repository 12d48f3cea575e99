"""Run a program, or a part of this one, under the layer that records its OpenCL commands."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from crosscast.characterization import toolchain
from crosscast.data.files import atomic_file
from crosscast.errors import EnvironmentFault, InputError
from crosscast.measure import Watch
from crosscast.measure.processes import end_with
from crosscast.measure.sensors import open_sensors
from crosscast.tracing.summary import Trace
from crosscast.tracing.trace import ENERGY_FILE

SELECTIONS = "spread, all, none, first:N or every:N"
"""Launches of a class whose memory is stored; spread takes the 1st, 2nd, 3rd, 5th, 9th, 17th, ..."""

_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_LAYER = Path(__file__).parent / "layer"
_SELECTION = re.compile(r"spread|all|none|(first|every):[1-9]\d{0,8}")


@dataclass(frozen=True)
class TraceRecording:
    """The folder and the limits of a recording."""

    folder: Path  # New or empty
    select: str = "spread"  # Launches whose memory is stored, one of `SELECTIONS`
    max_bytes: int = 4 << 30  # Most stored memory of launches
    max_seconds: int = 60  # Most time that the program waits for reads of its memory
    outputs: bool = False  # Also store the memory of these launches after their end, to check replays

    def __post_init__(self) -> None:
        if not _SELECTION.fullmatch(self.select):
            raise InputError.of(field="select", expected=f"{SELECTIONS}", found=repr(self.select))
        for name, limit in (("max_bytes", self.max_bytes), ("max_seconds", self.max_seconds)):
            if limit < 0:
                raise InputError.of(field=name, expected="at least 0", found=limit)

    def prepare(self) -> None:
        """Create the folder, which must be new or empty."""
        try:
            for part in (".", "programs", "memory"):
                (self.folder / part).mkdir(parents=True, exist_ok=part == ".")
                if part == "." and any(self.folder.iterdir()):
                    raise InputError.of(
                        where=self.folder, expected="a new or empty folder", found="files in it"
                    )
        except OSError as error:
            raise InputError.of(
                where=self.folder, problem=f"the folder cannot be made ({error.strerror})"
            ) from error

    def discard(self, *, keep: bool = False) -> None:
        """Remove the empty folders of `prepare`, the outer one unless `keep`."""
        (self.folder / ENERGY_FILE).unlink(missing_ok=True)
        for part in ("programs", "memory", *([] if keep else ["."])):
            with suppress(OSError):
                (self.folder / part).rmdir()

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a recorded program."""
        layer = str(layer_library())
        variables = {
            "CROSSCAST_CAPTURE": str(self.folder.absolute()),
            "CROSSCAST_CAPTURE_SELECT": self.select,
            "CROSSCAST_CAPTURE_BYTES": str(self.max_bytes),
            "CROSSCAST_CAPTURE_SECONDS": str(self.max_seconds),
            "CROSSCAST_CAPTURE_OUTPUTS": str(int(self.outputs)),
            # A program from a cache is a binary, which cannot be replayed
            "PYOPENCL_NO_CACHE": "1",
            "OPENCV_OPENCL_CACHE_ENABLE": "0",
        }
        separators = {"OPENCL_LAYERS": ":", "LD_PRELOAD": " "}
        first = {name: _before(layer, inherited.get(name), mark) for name, mark in separators.items()}
        return {**inherited, **variables, **first}


def _before(layer: str, others: str | None, mark: str) -> str:
    return f"{layer}{mark}{others}" if others else layer


def layer_library(progress: Callable[[str], None] | None = None) -> Path:
    """Return the layer as a shared library, compiled on first use with a call of `progress`."""
    parts = sorted(_LAYER.glob("*.h"))
    needs = ("libc.so.6", "libpthread.so.0", "libdl.so.2")
    return toolchain.c_library([_LAYER / "layer.c", *parts], needs=needs, progress=progress)


def run(command: Sequence[str], recording: TraceRecording) -> int:
    """Run a program to its end under the layer, with a prepared folder, and return its exit status.

    Its input, output and errors are this process's own. A status below 0 is minus the number of the signal
    that ended it.
    """
    executable = runnable(command)
    environment = recording.environment(os.environ)
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        child = subprocess.Popen(
            [executable, *command[1:]],
            env=environment,
            executable=executable,
            preexec_fn=partial(_as_a_child, os.getpid()),
        )
    except OSError as error:
        raise InputError.of(where=command[0], problem=f"cannot be run ({error.strerror})") from error
    try:
        # The program receives Ctrl-C, too, and decides what to do; this process waits for its end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
        with energy_into(recording.folder / ENERGY_FILE):
            return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def energy_into(path: Path) -> Iterator[None]:
    """Watch all working energy sensors of this machine, and write their readings; no file without one."""
    notes: list[str] = []
    watches = [(sensor.name, Watch(sensor, notes)) for sensor in open_sensors("auto")[0]]
    try:
        yield
    finally:
        rows = [
            {"sensor": name, "domain": each.domain, "energy_j": each.energy_j, "duration_s": each.duration_s}
            for name, watch in watches
            for each in watch.readings()
        ]
        if rows:
            # A full disk ends the recording, and not the program.
            with suppress(OSError), atomic_file(path) as temporary:
                temporary.write_text(json.dumps(rows), encoding="utf-8")


def runnable(command: Sequence[str]) -> str:
    """Return the path of a program that can be recorded."""
    path = shutil.which(command[0])
    if path is None:
        raise InputError.of(where=command[0], expected="a program to run", found="none")
    _refuse_static(Path(path))
    return path


def _as_a_child(parent: int) -> None:
    end_with(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _refuse_static(path: Path) -> None:
    """Refuse an executable that loads no library, and so can have no layer."""
    try:
        with path.open("rb") as file:
            head = file.read(1 << 16)
    except OSError:
        return  # an unreadable file may still run
    if head[:4] != b"\x7fELF" or head[4] != 2:
        return
    order = "little" if head[5] == 1 else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(head[at : at + size], order)  # type: ignore[arg-type]

    start, size, count = number(32, 8), number(54, 2), number(56, 2)
    kinds = {number(start + index * size, 4) for index in range(count)}
    interpreter = 3
    if interpreter not in kinds:
        raise InputError.of(where=path, expected="a program that loads libraries", found="a static one")


@contextmanager
def capture(
    folder: str | Path,
    *,
    select: str = "spread",
    max_bytes: int = 4 << 30,
    max_seconds: int = 60,
    outputs: bool = False,
) -> Iterator[Trace]:
    """Record the OpenCL commands of this process inside of the block.

    Parameters
    ----------
    folder
        Folder of the trace, new or empty.
    select
        Launches of a class (kernel, sizes, sizes of memory) whose memory is kept, so that they can be
        characterized: ``spread`` (the 1st, 2nd, 3rd, 5th, 9th, ...), ``all``, ``none``, ``first:N`` or
        ``every:N``.
    max_bytes
        Most memory of launches that is kept, in bytes.
    max_seconds
        Most time that is spent on reading it.
    outputs
        Also keep what these launches leave in memory, so that replays can be compared with it.

    Returns
    -------
    context manager of Trace
        The trace, readable after the block: ``launches``, ``to_pandas()``,
        ``characterize()``.

    Raises
    ------
    EnvironmentFault
        If OpenCL was used before the first block in this process: the loader takes layers at the first call.
    InputError
        If the folder is not new or empty.

    Examples
    --------
    >>> with crosscast.capture("trace/") as trace:  # doctest: +SKIP
    ...     run_my_pyopencl_code()
    >>> trace.to_pandas()  # doctest: +SKIP
    """
    recording = TraceRecording(Path(folder), select, max_bytes, max_seconds, outputs)
    path = str(layer_library())
    layer = ctypes.CDLL(path)
    others = os.environ.get("OPENCL_LAYERS")
    if path not in (others or ""):
        os.environ["OPENCL_LAYERS"] = _before(path, others, ":")
        _wake_loader()
    if not layer.crosscast_capture_active():
        raise EnvironmentFault(
            "capture: OpenCL was used in this process before, and its loader takes layers at its first call "
            "only; begin earlier, or run the whole program with crosscast capture"
        )
    recording.prepare()
    trace = Trace(recording.folder)
    with energy_into(recording.folder / ENERGY_FILE):
        layer.crosscast_capture_begin(
            os.fsencode(recording.folder.absolute()),
            select.encode(),
            ctypes.c_int64(max_bytes),
            ctypes.c_int64(max_seconds),
            int(outputs),
        )
        try:
            yield trace
        finally:
            layer.crosscast_capture_end()


def _wake_loader() -> None:
    """Let the loader take its layers, as it does at the first call."""
    try:
        import pyopencl
    except ImportError:
        return  # other bindings of OpenCL must have been used first
    try:
        pyopencl.get_platforms()
    except pyopencl.Error:
        return
