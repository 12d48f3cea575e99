"""The summary of a recorded program: kernels by class of launches, transfers, and gaps of the recording."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crosscast.characterization.launchfiles import write_launch
from crosscast.characterization.run import Options, characterize_launch
from crosscast.data.files import atomic_file, make_folder
from crosscast.errors import CrosscastError
from crosscast.profile import doubts as doubts_of
from crosscast.results import Tabular
from crosscast.tracing.replay import ReplayComparison, compared, replay_of
from crosscast.tracing.trace import (
    Energy,
    Sizes,
    TracedArgument,
    TracedProcess,
    is_trace,
    read_energy,
    read_processes,
)

if TYPE_CHECKING:
    from crosscast.kernel import Launch
    from crosscast.profile import Profile


@dataclass(eq=False)
class Trace(Tabular):
    """The folder of a trace, read on first use."""

    folder: Path

    @cached_property
    def processes(self) -> list[TracedProcess]:
        """The processes that used OpenCL, in the order of their start."""
        return read_processes(self.folder)

    @cached_property
    def timed(self) -> Trace:
        """The run without copies of memory, if the program ran twice; it has the times."""
        undisturbed = self.folder / "times"
        return Trace(undisturbed) if is_trace(undisturbed) else self

    @property
    def launches(self) -> list[tuple[TracedProcess, int]]:
        """Each launch: its process and its row there."""
        return [(process, row) for process in self.processes for row in range(len(process))]

    def columns(self) -> Mapping[str, Sequence[object]]:
        """Return the columns of a table with a row for each launch, in the order of the program."""
        columns: dict[str, list[object]] = defaultdict(list)
        timed = self.timed.processes
        # Processes and launches of both runs are in the same order, unless the program is not.
        for process, kept in zip(timed, [*self.processes, *timed], strict=False):
            kernels = [process.kernels[kernel] for kernel in process.launches["kernel"].tolist()]
            sizes = [process.sizes[index] for index in process.launches["sizes"].tolist()]
            queues = [process.queues[queue] for queue in process.launches["queue"].tolist()]
            columns["process"] += [process.pid] * len(process)
            columns["kernel"] += [kernel.name for kernel in kernels]
            columns["global_size"] += [each[0] for each in sizes]
            columns["local_size"] += [each[1] or None for each in sizes]
            columns["device"] += [queue.device for queue in queues]
            columns["queue"] += process.launches["queue"].tolist()
            columns["thread"] += process.launches["thread"].tolist()
            columns["enqueued_s"] += ((process.launches["begun_ns"] - process.begun_ns) / 1e9).tolist()
            columns["time_s"] += process.seconds.tolist()
            columns["result"] += process.launches["result"].tolist()
            columns["memory_kept"] += [kept.has_memory(row) for row in range(len(process))]
        return columns

    def characterize(self) -> list[Profile]:
        """Profile a launch of each class with stored memory, as ``crosscast characterize`` does.

        Raises
        ------
        InputError
            If no launch can be replayed.
        """
        return [each.profile for each in replayed(summary_of(self)) if each.profile is not None]

    def save_launches(self, folder: str | Path) -> list[Path]:
        """Write a launch file for each class with a replayable launch, with its arrays beside it.

        Parameters
        ----------
        folder
            A folder, created if it is missing.

        Returns
        -------
        list of Path
            The launch files, those of the longest kernels first.

        Raises
        ------
        InputError
            If a file cannot be written.
        """
        target = make_folder(folder)
        paths = []
        for number, launch in enumerate(self.replays()):
            paths.append(target / f"{number:03}-{launch.kernel.name}.toml")
            write_launch(launch, paths[-1])
        return paths

    def replays(self) -> Iterator[Launch]:
        """Yield a replayable launch of each class."""
        for each in summary_of(self).classes:
            for process, row in each.replayable:
                try:
                    launch = replay_of(process, row).launch
                except CrosscastError:
                    continue
                yield launch
                break


@dataclass(frozen=True, eq=False)
class LaunchClass:
    """Launches of one kernel with the same sizes, and memory of the same sizes."""

    kernel: str
    source: str  # File of its program, or its number
    sizes: Sizes
    device: str
    # Process and row of each; if the program ran twice, of the run without copies of memory
    rows: Sequence[tuple[TracedProcess, int]]
    replayable: Sequence[tuple[TracedProcess, int]]  # Those with snapshots of memory
    memory_bytes: int = 0  # Of all arguments

    @property
    def family(self) -> tuple[object, ...]:
        """The key of classes that differ in their sizes only."""
        return self.kernel, self.source, self.device, len(self.sizes[0]), self.sizes[1]

    @property
    def work_items(self) -> int:
        """Work-items of a launch."""
        return math.prod(self.sizes[0])

    @property
    def count(self) -> int:
        """Number of launches."""
        return len(self.rows)

    @cached_property
    def _timed(self) -> list[tuple[TracedProcess, int]]:
        return [(process, row) for process, row in self.rows if np.isfinite(process.seconds[row])]

    @property
    def timed(self) -> int:
        """Number of timed launches."""
        return len(self._timed)

    @cached_property
    def times(self) -> list[float]:
        """Times in seconds, if possible of launches without reads of memory, as these disturb times."""
        undisturbed = [(process, row) for process, row in self._timed if row not in process.launch_snapshots]
        return [float(process.seconds[row]) for process, row in undisturbed or self._timed]

    @cached_property
    def median_s(self) -> float | None:
        """Median time on the device in seconds; ``None`` if none was timed."""
        return float(np.median(self.times)) if self.times else None

    @cached_property
    def seconds(self) -> float:
        """Total time on the device, with the median for launches that were not timed."""
        return sum(self.times) + (self.count - len(self.times)) * (self.median_s or 0.0)

    @property
    def size_label(self) -> str:
        """Sizes for people, such as ``512x512/8x8``."""
        extent, local = ("x".join(map(str, each)) for each in self.sizes[:2])
        return f"{extent}/{local}" if local else extent


@dataclass(frozen=True)
class Transfers:
    """Transfers of one kind, such as ``write``."""

    kind: str
    count: int
    bytes: int
    seconds: float | None  # On the device; `None` if none was timed


@dataclass(frozen=True, eq=False)
class Summary:
    """A recorded program."""

    trace: Trace
    command: str
    classes: Sequence[LaunchClass]  # By descending total time
    transfers: Sequence[Transfers]
    wall_s: float  # From the first command to the end of the last one
    device_s: float  # Of all kernels
    doubts: Sequence[str]  # Gaps of the recording, as sentences
    energy: Sequence[Energy] = ()  # Of the whole run, by sensor and domain

    @property
    def launches(self) -> int:
        """Number of launches."""
        return sum(each.count for each in self.classes)

    @cached_property
    def by_family(self) -> dict[object, list[int]]:
        """Indices of classes, by family."""
        by_family: dict[object, list[int]] = defaultdict(list)
        for index, each in enumerate(self.classes):
            by_family[each.family].append(index)
        return by_family

    @cached_property
    def families(self) -> list[list[int]]:
        """Indices of classes, grouped where a kernel has many sizes; by descending total time."""
        apart = [
            part
            for indices in self.by_family.values()
            for part in ([indices] if len(indices) > _MOST_SIZES else [[index] for index in indices])
        ]
        return sorted(apart, key=lambda indices: -sum(self.classes[index].seconds for index in indices))

    @property
    def transfer_s(self) -> float:
        """Time of all transfers on the device, in seconds."""
        return sum(each.seconds or 0.0 for each in self.transfers)

    @cached_property
    def application(self) -> str:
        """Name of the program."""
        words = self.command.split()
        name = next((Path(word).name for word in words[1:] if word.endswith(".py")), "")
        return name or (Path(words[0]).name if words else "application")

    def kernel_facts(self) -> list[dict[str, object]]:
        """Return each class of launches, for JSON."""
        return [
            {
                "kernel": each.kernel,
                "global_size": list(each.sizes[0]),
                "local_size": list(each.sizes[1]) or None,
                "device": each.device,
                "launches": each.count,
                "kept": sum(process.has_memory(row) for process, row in each.replayable),
                "time_s": each.seconds,
                "median_s": each.median_s,
            }
            for each in self.classes
        ]

    def to_dict(self) -> dict[str, object]:
        """Return the summary, for JSON."""
        return {
            "command": self.command,
            "wall_s": self.wall_s,
            "device_s": self.device_s,
            "launches": self.launches,
            "kernels": self.kernel_facts(),
            "transfers": [vars(each) for each in self.transfers],
            "energy": [vars(each) for each in self.energy],
            "doubts": list(self.doubts),
        }


def summary_of(trace: Trace) -> Summary:
    """Summarize a trace; times are of the run without copies of memory, if the program ran twice."""
    with_times = trace.timed.processes
    replayable: dict[_Class, list[tuple[TracedProcess, int]]] = defaultdict(list)
    for key, process, row in _keys(trace.processes):
        if row in process.launch_snapshots:
            replayable[key].append((process, row))
    rows: dict[_Class, list[tuple[TracedProcess, int]]] = defaultdict(list)
    for key, process, row in _keys(with_times):
        rows[key].append((process, row))
    classes = [
        LaunchClass(name, source, sizes, device, rows[key], replayable[key], sum(n for n in shape if n))
        for key in rows
        for name, source, sizes, device, shape in [key]
    ]
    classes.sort(key=lambda each: (-each.seconds, each.kernel, each.sizes))
    first = next(iter(with_times), None)
    return Summary(
        trace,
        first.command if first else "",
        classes,
        _transfers(with_times),
        _wall(with_times),
        sum(each.seconds for each in classes),
        [*_doubts(trace.processes), *_without_memory(classes)],
        read_energy(trace.timed.folder),
    )


_Class = tuple[str, str, Sizes, str, tuple[int | None, ...]]
"""Kernel, source, sizes, device, and bytes of each memory argument."""


def _keys(processes: Iterable[TracedProcess]) -> Iterator[tuple[_Class, TracedProcess, int]]:
    """Yield each launch with its class: its kernel, sizes, and the sizes of its memory."""
    for process in processes:
        shapes: dict[int, tuple[int | None, ...]] = {}
        columns = (process.launches[name].tolist() for name in ("kernel", "sizes", "args", "queue"))
        for row, (kernel, sizes, args, queue) in enumerate(zip(*columns, strict=True)):
            if args not in shapes:
                shapes[args] = tuple(_shape(process, each) for each in process.arguments[args])
            record = process.kernels[kernel]
            program = process.programs.get(record.program)
            source = program.file or str(record.program) if program else ""
            device = process.queues[queue].device
            yield (record.name, source, process.sizes[sizes], device, shapes[args]), process, row


def _shape(process: TracedProcess, arg: TracedArgument) -> int | None:
    if type(arg) is int:
        return process.memories[arg].size if arg in process.memories else -1
    first = arg[0] if isinstance(arg, list) and len(arg) == 1 else None
    return first if isinstance(first, int) else None


def _transfers(processes: Iterable[TracedProcess]) -> list[Transfers]:
    sizes: dict[str, list[int]] = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)  # Of those that were timed
    for process in processes:
        for number, memory in process.memories.items():
            if memory.root == number and memory.flags & _COPY_HOST_PTR:
                sizes[UPLOAD].append(memory.size)
        for index, name in enumerate(process.transfer_kinds):
            rows = process.transfers["kind"] == index
            times = process.transfer_seconds[rows]
            sizes[name] += process.transfers["bytes"][rows].tolist()
            seconds[name] += times[np.isfinite(times)].tolist()
    transfers = [
        Transfers(kind, len(of_kind), sum(of_kind), float(np.sum(seconds[kind])) if seconds[kind] else None)
        for kind, of_kind in sizes.items()
    ]
    return sorted(transfers, key=lambda each: (-(each.seconds or 0.0), each.kind))


_COPY_HOST_PTR = 1 << 5
UPLOAD = "upload at creation"
"""Memory that is created with its content; it has no event, and so no time."""


def _wall(processes: Iterable[TracedProcess]) -> float:
    """Return the longest time of a process from its first command to the last."""
    longest = 0.0
    for process in processes:
        launches, transfers = process.launches, process.transfers
        begun = np.concatenate([launches["begun_ns"], transfers["begun_ns"]])
        spent = np.concatenate([launches["before_ns"] + launches["enqueue_ns"], transfers["call_ns"]])
        if begun.size:
            longest = max(longest, float((begun + spent).max() - begun.min()) / 1e9)
    return longest


def _doubts(processes: Sequence[TracedProcess]) -> list[str]:
    """Return the gaps of a recording, as sentences."""
    doubts = []
    for process in processes:
        if not process.ended:
            doubts.append(f"process {process.pid} ended without notice: its last commands may be missing")
        if process.unfinished:
            doubts.append(f"{process.unfinished} commands of process {process.pid} had not ended when it did")
        if process.untimed:
            doubts.append(f"{process.untimed} commands of process {process.pid} were not timed (too many)")
        extensions = [detail for what, detail in process.notes if what == "extension function"]
        doubts += [f"{what} ({detail})" for what, detail in process.notes if what != "extension function"]
        if extensions:
            names = ", ".join(sorted(set(extensions)))
            doubts.append(f"what is done with extension functions is not recorded: {names}")
    return list(dict.fromkeys(doubts))


def _without_memory(classes: Sequence[LaunchClass]) -> list[str]:
    families = {each.family for each in classes if each.replayable}
    bare = [each for each in classes if each.family not in families]
    if not bare:
        return []
    launches = sum(each.count for each in bare)
    number = f"{launches} launches in {len(bare)} of {len(classes)} classes"
    return [f"{number} have no profile: none of their memory was kept"]


@dataclass(frozen=True)
class Replayed:
    """The result of replaying a launch of a class: a profile, or the reason for none."""

    profile: Profile | None = None
    refused: str = ""
    comparison: ReplayComparison | None = None  # With the device's memory, if that was stored
    doubts: Sequence[str] = field(default=())
    # If no launch of the class was replayed: for classes of its family, by index, the number of launches that
    # take as long as one of its own
    interpolation: Mapping[int, float] = field(default_factory=dict)


_MOST_SIZES = 8
"""Characterized sizes of a kernel; others are interpolated."""


def _characterized(launch: Launch, number: int) -> Profile:
    return characterize_launch(launch, invocation=number, options=Options(sample_groups="auto"))


def replayed(
    summary: Summary, characterized: Callable[[Launch, int], Profile] = _characterized
) -> list[Replayed]:
    """Characterize a launch of each class, and compare its memory afterwards with the device's.

    `characterized` profiles a launch, with its number among the launches of its process.
    """
    results: dict[int, Replayed] = {}
    for indices in summary.by_family.values():
        for index in _chosen(summary, indices):
            results[index] = _replayed(summary, summary.classes[index], characterized)
        # A kernel that is refused at some sizes may be possible at others.
        for index in indices:
            if index not in results and not any(results[each].profile for each in indices if each in results):
                results[index] = _replayed(summary, summary.classes[index], characterized)
        known = [index for index in indices if index in results and results[index].profile]
        for index in indices:
            if known and (index not in results or not summary.classes[index].replayable):
                results[index] = Replayed(interpolation=_between(summary.classes, index, known))
    return [results[index] for index in range(len(summary.classes))]


def _chosen(summary: Summary, indices: Sequence[int]) -> list[int]:
    """Return the classes to replay, of all sizes of a family: the smallest, the largest, and some between."""
    replayable = sorted(
        (index for index in indices if summary.classes[index].replayable),
        key=lambda index: (summary.classes[index].work_items, summary.classes[index].memory_bytes, -index),
    )
    if len(replayable) <= _MOST_SIZES:
        return sorted(replayable) or list(indices[:1])
    return sorted({replayable[round(at)] for at in np.linspace(0, len(replayable) - 1, _MOST_SIZES)})


def _between(classes: Sequence[LaunchClass], index: int, known: Sequence[int]) -> dict[int, float]:
    """Return the numbers of launches of known classes that take as long as one of this: linear in work-items.

    The work of a family is taken to grow with its work-items or, if all have as many, with the bytes of
    memory. Below the smallest class it is constant, beyond the largest proportional.
    """
    by_items = len({classes[each].work_items for each in known}) > 1
    extent = [each.work_items if by_items else each.memory_bytes or 1 for each in classes]
    wanted = extent[index]
    ordered = sorted(known, key=lambda each: (extent[each], each))
    less = [each for each in ordered if extent[each] <= wanted]
    more = [each for each in ordered if extent[each] >= wanted]
    if not less:
        return {more[0]: 1.0}
    if not more:
        return {less[-1]: wanted / extent[less[-1]]}
    low, high = less[-1], more[0]
    if extent[low] == extent[high]:
        return {low: 1.0}
    share = (wanted - extent[low]) / (extent[high] - extent[low])
    return {low: 1 - share, high: share}


def represented(summary: Summary, replayed: Sequence[Replayed]) -> list[float]:
    """Return the launches that each class stands for: its own, and shares of those between it and others."""
    counts = [float(each.count) for each in summary.classes]
    for each, result in zip(summary.classes, replayed, strict=True):
        for index, launches in result.interpolation.items():
            counts[index] += launches * each.count
    return counts


def interpolated(summary: Summary, replayed: Sequence[Replayed]) -> tuple[int, int, float | None]:
    """Return the numbers of launches and sizes with interpolated times, and the relative error of these."""
    classes = summary.classes
    rows = [
        (each, one.interpolation) for each, one in zip(classes, replayed, strict=True) if one.interpolation
    ]
    pairs = [
        (each.seconds, each.count * sum(n * (classes[index].median_s or 0.0) for index, n in shares.items()))
        for each, shares in rows
        if each.median_s and all(classes[index].median_s for index in shares)
    ]
    recorded, estimated = (sum(side) for side in zip(*pairs, strict=True)) if pairs else (0.0, 0.0)
    return sum(each.count for each, _ in rows), len(rows), estimated / recorded - 1 if recorded else None


def _replayed(
    summary: Summary, each: LaunchClass, characterized: Callable[[Launch, int], Profile]
) -> Replayed:
    refused = "no launch of this class was kept with its memory"
    for process, row in each.replayable:
        try:
            replay = replay_of(process, row)
            profile = characterized(replay.launch, row)
        except CrosscastError as error:
            refused = str(error).splitlines()[0]
            continue
        seconds = float(process.seconds[row])
        recorded = {
            "process": process.pid,
            "launch": row,
            "time_s": seconds if math.isfinite(seconds) else None,
            "launches": each.count,
            "median_s": each.median_s,
            "device": each.device,
        }
        named = replace(
            profile,
            application=summary.application,
            size=each.size_label,
            invocation=row,
            launch={**profile.launch, "recorded": recorded},
        )
        outputs = process.launch_snapshots[row][1]
        # Some work-groups leave no output.
        is_whole = "sampled" not in profile.launch
        comparison = compared(process, row, replay.launch) if outputs and is_whole else None
        return Replayed(named, "", comparison, (*replay.doubts, *doubts_of(profile.launch)))
    return Replayed(refused=refused)


def write_timeline(trace: Trace, path: Path) -> None:
    """Write launches and transfers as a timeline for ui.perfetto.dev (Chrome's trace event format)."""
    events: list[dict[str, object]] = []
    for process in trace.timed.processes:
        events.append(
            {"ph": "M", "pid": process.pid, "name": "process_name", "args": {"name": process.command[:200]}}
        )
        for queue, facts in process.queues.items():
            name = f"queue {queue} on {facts.device}"
            events.append(
                {"ph": "M", "pid": process.pid, "tid": queue, "name": "thread_name", "args": {"name": name}}
            )
        kernels = [process.kernels[number].name for number in process.launches["kernel"].tolist()]
        kinds = [process.transfer_kinds[number] for number in process.transfers["kind"].tolist()]
        for names, table, starts, seconds in (
            (kernels, process.launches, process.starts, process.seconds),
            (kinds, process.transfers, process.transfer_starts, process.transfer_seconds),
        ):
            queues = table["queue"].tolist()
            for row in np.flatnonzero(np.isfinite(starts)).tolist():
                event = {"ph": "X", "pid": process.pid, "tid": queues[row], "name": names[row]}
                events.append({**event, "ts": starts[row] * 1e6, "dur": seconds[row] * 1e6})
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
