"""The trace of a recorded program: a file a process, with a JSON array a line.

Traces are untrusted input: names of files are checked before they are opened, and a line not in the layer's
format is refused.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.files import read_bytes
from crosscast.errors import InputError

_VERSION = 1
_MOST_LINE = 4 << 20
_FILE = re.compile(r"(programs|memory)/[0-9a-f]{32}\.(cl|spv|bin)")
ENERGY_FILE = "energy.json"
_TRACE_FILE = "trace-*.jsonl"

Sizes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Global size, local size and offset of a launch; empty where the program gave none."""

_MARKS = ("s", "v", "u")
_LONGEST_ARGUMENT = 4

TracedArgument = int | str | bool | None | list[int | str]
"""An argument in the format of `commands.h`."""


@dataclass(frozen=True)
class TracedQueue:
    """A command queue and its device."""

    device_type: int
    device: str
    vendor: str
    driver: str
    version: str


@dataclass(frozen=True)
class Build:
    """The compilation of a program."""

    options: str
    folder: str
    headers: dict[str, int]  # Programs by the names under which they are included


@dataclass(frozen=True)
class ProgramRecord:
    """A program: a source, SPIR-V (``il``), linked from parts, or of another form."""

    form: str
    file: str
    parts: list[int]
    build: Build | None


@dataclass(frozen=True)
class KernelRecord:
    """A kernel object."""

    program: int
    name: str
    indirect: bool  # Its memory has pointers to more memory


@dataclass(frozen=True)
class TracedMemory:
    """A buffer, a part of one, or an image."""

    size: int
    flags: int
    root: int
    origin: int
    # Type, channel order, channel type, width, height, depth, layers and bytes of a texel
    image: list[int] | None = None


@dataclass(frozen=True)
class SamplerRecord:
    """A sampler, in OpenCL's numbers."""

    normalized: int
    addressing: int
    filter: int


_LAUNCH = (
    *("number", "kernel", "queue", "thread", "begun_ns"),
    *("before_ns", "enqueue_ns", "result", "sizes", "args"),
)
_TRANSFER = ("number", "queue", "bytes", "blocking", "begun_ns", "call_ns", "kind")
_TIME = ("number", "queued_ns", "submit_ns", "start_ns", "run_ns")


@dataclass(eq=False)
class TracedProcess:
    """The OpenCL commands of one process of the program."""

    path: Path
    pid: int
    begun_ns: int  # By the clock of the commands' `begun_ns`
    wall_ns: int  # The same moment, since the epoch
    way: str  # "layer" or "preload"
    command: str
    queues: dict[int, TracedQueue] = field(default_factory=dict)
    programs: dict[int, ProgramRecord] = field(default_factory=dict)
    kernels: dict[int, KernelRecord] = field(default_factory=dict)
    memories: dict[int, TracedMemory] = field(default_factory=dict)
    samplers: dict[int, SamplerRecord] = field(default_factory=dict)
    snapshots: dict[int, tuple[str, int]] = field(default_factory=dict)  # File and size
    sizes: list[Sizes] = field(default_factory=list)
    arguments: list[list[TracedArgument]] = field(default_factory=list)
    transfer_kinds: list[str] = field(default_factory=list)
    # Snapshots of a launch's arguments before and after it, by its row; below 0 the reason for none
    launch_snapshots: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)
    ended: bool = False  # Whether the recording is complete
    unfinished: int = 0  # Commands in progress at its end
    untimed: int = 0  # Commands beyond the limit of timed ones
    launches: dict[str, Integers] = field(default_factory=dict)
    transfers: dict[str, Integers] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.launches["number"])

    @cached_property
    def seconds(self) -> Reals:
        """Time of each launch on the device; NaN where it is not known."""
        return self._times("run_ns", self.launches["number"])

    @cached_property
    def starts(self) -> Reals:
        """Start of each launch, in seconds of the device's clock; NaN where it is not known."""
        return self._times("start", self.launches["number"])

    @cached_property
    def transfer_seconds(self) -> Reals:
        """Time of each transfer on the device; NaN where it is not known."""
        return self._times("run_ns", self.transfers["number"])

    @cached_property
    def transfer_starts(self) -> Reals:
        """Start of each transfer, in seconds of the device's clock."""
        return self._times("start", self.transfers["number"])

    def _times(self, what: str, numbers: Integers) -> Reals:
        times = self._time_columns
        values = (
            times["queued_ns"] + times["submit_ns"] + times["start_ns"] if what == "start" else times[what]
        )
        seconds = np.full(len(numbers), np.nan)
        if len(values) and len(numbers):
            order = np.argsort(times["number"], kind="stable")
            ranks = np.searchsorted(times["number"][order], numbers).clip(max=len(order) - 1)
            rows = order[ranks]
            timed = times["number"][rows] == numbers
            seconds[timed] = values[rows[timed]] / 1e9
        return seconds

    _time_columns: dict[str, Integers] = field(default_factory=dict)

    def has_memory(self, row: int) -> bool:
        """Whether all memory that a launch reads was stored: none was over a limit or refused."""
        return row in self.launch_snapshots and min(self.launch_snapshots[row][0], default=0) >= -1

    def kernel_name(self, row: int) -> str:
        """Return the name of the kernel of a launch."""
        return self.kernels[int(self.launches["kernel"][row])].name

    def snapshot(self, number: int) -> bytes:
        """Return the content of a snapshot, of the size in the record."""
        name, size = self.snapshots[number]
        path = self.path.parent / name
        try:
            nbytes = path.stat().st_size
            if nbytes != size:
                raise InputError.of(where=path, expected=f"{size} bytes", found=f"{nbytes}")
            return path.read_bytes()
        except OSError as error:
            raise InputError.of(where=path, problem=f"cannot be read ({error.strerror})") from error


def read_processes(folder: Path) -> list[TracedProcess]:
    """Return the processes that used OpenCL, in the order of their start."""
    if not is_trace(folder):
        raise InputError.of(where=folder, expected="the folder of a trace", found=f"no {_TRACE_FILE} in it")
    processes = map(_read, sorted(folder.glob(_TRACE_FILE)))
    known = [process for process in processes if process is not None]
    return sorted(known, key=lambda process: (process.wall_ns, process.pid))


@dataclass(frozen=True)
class Energy:
    """The reading of a sensor of the machine for the whole run."""

    sensor: str
    domain: str
    energy_j: float
    duration_s: float


def read_energy(folder: Path) -> list[Energy]:
    """Return the readings of sensors; none without a file."""
    path = folder / ENERGY_FILE
    if not path.is_file():
        return []
    try:
        return msgspec.json.decode(read_bytes(path, "energy of a trace", _MOST_LINE), type=list[Energy])
    except msgspec.DecodeError as error:
        raise InputError.of(
            where=path, expected="the energy of a trace", found=f"something else ({error})"
        ) from error


def is_trace(path: Path) -> bool:
    """Whether a path is a folder with a trace."""
    return path.is_dir() and any(path.glob(_TRACE_FILE))


def _read(path: Path) -> TracedProcess | None:
    """Read a process from a file that may lack its end; ``None`` without a header."""
    decode = msgspec.json.Decoder(list[object]).decode
    process: TracedProcess | None = None
    rows: _Rows | None = None
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(_MOST_LINE), b""), 1):
            if not line.endswith(b"\n") or line[:1] == b"\0":
                break  # cut off by a crash, or never written
            try:
                record = decode(line)
                if rows is None:
                    process = _header(path, record)
                    rows = _Rows(process)
                else:
                    rows.add(record)
            except (
                *(msgspec.DecodeError, UnicodeDecodeError, ValueError, TypeError),
                *(IndexError, KeyError, OverflowError, AttributeError),
            ) as error:
                raise InputError.of(
                    where=f"{path}, line {number}", expected="a record of a trace", found=repr(line[:60])
                ) from error
    if rows is None or process is None:
        return None
    rows.finish()
    return process


def _header(path: Path, record: list[object]) -> TracedProcess:
    mark, version, pid, _, begun, wall, way, _, command, *_ = record
    if mark != "crosscast-trace":
        raise ValueError("no header")
    if _whole(version) > _VERSION:
        raise InputError.of(
            where=path,
            expected=f"a trace of version {_VERSION}",
            found=f"version {version}, which a newer Crosscast reads",
        )
    return TracedProcess(path, _whole(pid), _whole(begun), _whole(wall), _text(way), _text(command))


def _whole(value: object) -> int:
    if type(value) is not int or not -(1 << 63) <= value < 1 << 64:
        raise ValueError("not a number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    try:
        # The layer writes each byte as one character.
        return value.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return value


def _wholes(values: object) -> list[int]:
    if not isinstance(values, list):
        raise ValueError("not a list")
    return [_whole(value) for value in values]


def _file(value: object) -> str:
    name = _text(value)
    if name and not _FILE.fullmatch(name):
        raise ValueError("not a file of a trace")
    return name


def _check_sizes(sizes: Sizes) -> None:
    """Check that the global size, local size and offset of a launch have equal dimensions, none below 0."""
    extent, local, offset = sizes
    numbers = _wholes([*extent, *local, *offset])
    if not 1 <= len(extent) <= 3 or any(len(each) not in (0, len(extent)) for each in (local, offset)):
        raise ValueError("sizes that do not belong together")
    if 0 in local or any(number < 0 for number in numbers):
        raise ValueError("no sizes")


def _argument(value: object) -> TracedArgument:
    if isinstance(value, str):
        bytes.fromhex(value)
        return value
    if isinstance(value, list) and 1 <= len(value) <= _LONGEST_ARGUMENT:
        mark = value[:1] if value[0] in _MARKS else []
        return [*mark, *_wholes(value[len(mark) :])]
    if value is None or value is False or type(value) is int:
        return value
    raise ValueError("no argument")


class _Rows:
    """The records of a process, in the order of its file."""

    def __init__(self, process: TracedProcess) -> None:
        self._process = process
        # By row; columns are made at the end.
        self._launch, self._transfer, self._time = array("q"), array("q"), array("q")
        self._sizes: dict[Sizes, int] = {}
        self._last: dict[int, int] = {}
        self._kinds: dict[str, int] = {}

    def add(self, record: list[Any]) -> None:
        """Add a record."""
        process = self._process
        match record:
            case ["l", *_]:
                self._add_launch(record)
            case ["t", number, queued, submit, start, run]:
                self._time.extend((number, queued, submit, start, run))
            case ["o", number, queue, size, blocking, begun, call, name] if queue in process.queues:
                kind = self._kinds.setdefault(_text(name), len(self._kinds))
                self._transfer.extend((number, queue, size, blocking, begun, call, kind))
            case ["q", number, _, _, device_type, *texts]:
                process.queues[_whole(number)] = TracedQueue(_whole(device_type), *map(_text, texts[:4]))
            case ["p", number, form, file, parts, build, *_]:
                built = None if build is None else _build(*build)
                program = ProgramRecord(_text(form), _file(file), _wholes(parts), built)
                process.programs[_whole(number)] = program
            case ["k", number, source, name, indirect, *_]:
                process.kernels[_whole(number)] = KernelRecord(_whole(source), _text(name), bool(indirect))
            case ["m", *facts]:
                number, size, flags, root, origin = _wholes(facts[:5])
                image = _wholes(facts[5]) if len(facts) > 5 else None
                if size < 0 or origin < 0 or (image is not None and (len(image) != 8 or min(image) < 0)):
                    raise ValueError("no memory")
                process.memories[number] = TracedMemory(size, flags, root, origin, image)
            case ["s", number, *facts]:
                process.samplers[_whole(number)] = SamplerRecord(*_wholes(facts[:3]))
            case ["f", number, size, file, *_]:
                process.snapshots[_whole(number)] = _file(file), _whole(size)
            case ["n", what, detail, *_]:
                process.notes.append((_text(what), _text(detail)))
            case ["e", _, unfinished, untimed, *_]:
                process.ended = True
                process.unfinished, process.untimed = _whole(unfinished), _whole(untimed)
            case _:
                raise ValueError("no record")

    def finish(self) -> None:
        """Set the tables of the process."""
        process = self._process

        def columns(names: tuple[str, ...], values: array[int]) -> dict[str, Integers]:
            table = np.array(values, dtype=np.int64).reshape(-1, len(names))
            return {name: table[:, index].copy() for index, name in enumerate(names)}

        process.launches = columns(_LAUNCH, self._launch)
        process.transfers = columns(_TRANSFER, self._transfer)
        process._time_columns = columns(_TIME, self._time)
        process.sizes, process.transfer_kinds = list(self._sizes), list(self._kinds)

    def _add_launch(self, record: list[Any]) -> None:
        _, number, kernel, queue, thread, begun, extent, local, offset, args, before, after, *rest = record
        process = self._process
        if kernel not in process.kernels or queue not in process.queues:
            raise ValueError("a launch of what is not known")
        if type(args) is not int:
            self._last[kernel] = len(process.arguments)
            process.arguments.append([_argument(arg) for arg in args])
        sizes = (tuple(extent), tuple(local), tuple(offset))
        index = self._sizes.get(sizes)
        if index is None:
            _check_sizes(sizes)
            index = self._sizes[sizes] = len(self._sizes)
        if before:
            process.launch_snapshots[len(self._launch) // len(_LAUNCH)] = _wholes(before), _wholes(after)
        before_ns, enqueue_ns, result = rest
        values = (number, kernel, queue, thread, begun, before_ns, enqueue_ns, result, index)
        self._launch.extend((*values, self._last[kernel]))


def _build(_how: Any, _result: Any, _ns: Any, options: Any, folder: Any, headers: Any, *_: Any) -> Build:
    named = {_text(name): _whole(program) for name, program in headers.items()}
    return Build(_text(options), _text(folder), named)
