"""What a process knows of its regions: its meters and counters, the runs, and the file they go to."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Protocol
from weakref import WeakSet

from crosscast.configuration import Configuration
from crosscast.errors import InputError, SensorFault
from crosscast.measure.background import Background
from crosscast.measure.cpu_counters import EVENTS, Count, Counters, Perf, added_up
from crosscast.measure.energy import Meter, Polled
from crosscast.measure.regions.file import MOST_BYTES, append, check_history, to_line
from crosscast.measure.regions.key import NOTHING, RegionKey, RegionRun, Runs, say_once
from crosscast.measure.sensors import open_sensors

Counts = tuple[tuple[float, ...] | None, ...]
"""``(meters, domains of each)`` What each meter says, in joules; none for one that failed."""


class Metering:
    """Meters that regions read when they are entered and left.

    One that fails is not asked again, and said once; the others go on.
    """

    def __init__(self, meters: Sequence[Meter], reasons: Sequence[str] = ()) -> None:
        self.meters = tuple(meters)
        self.reasons = list(reasons)
        self.domains = tuple(domain for meter in meters for domain in meter.domains)
        self.resolution_s = max((meter.resolution_s for meter in meters), default=0.0)
        self._working: list[Meter | None] = list(meters)

    @property
    def works(self) -> bool:
        """Whether any meter is left."""
        return any(meter is not None for meter in self._working)

    def read(self) -> Counts:
        """Read all meters."""
        return tuple([self._read(number) for number in range(len(self._working))])

    def _read(self, number: int) -> tuple[float, ...] | None:
        meter = self._working[number]
        if meter is None:
            return None
        try:
            return meter.read_j()
        except SensorFault as fault:
            self.give_up(number, str(fault))
            return None

    def give_up(self, number: int, reason: str) -> None:
        """Ask a meter no more."""
        if self._working[number] is not None:
            self._working[number] = None
            self.reasons.append(reason)
            say_once(
                f"regions have no energy of {', '.join(self.meters[number].domains)} from now on: {reason}"
            )

    def by_domain(self, values: Counts) -> dict[str, float]:
        """Values of the meters that have any, by domain."""
        return {
            domain: value
            for meter, found in zip(self.meters, values, strict=True)
            if found is not None
            for domain, value in zip(meter.domains, found, strict=True)
        }


_SHARED: dict[str, Metering] = {}


def metering_of(sensors: str | Metering) -> Metering:
    """The meters of a name, opened once in a process."""
    if isinstance(sensors, Metering):
        return sensors
    found = _SHARED.get(sensors)
    if found is None:
        opened, reasons = open_sensors(sensors)
        found = _SHARED.setdefault(sensors, Metering(list(map(Polled, opened)), reasons))
    return found


# A library of a driver need not work in a forked process: there the meters are opened again.
os.register_at_fork(after_in_child=lambda: _SHARED.clear())


_STANDARD_ERROR = 0.05

_STILL_S = 0.1
"""Time in which no counter that works stands still."""


class Pool:
    """Runs of a region in one configuration since their power was told last.

    A counter that moves every `r` seconds is read up to `r` late, at both ends of a run: as two uniform
    errors, of variance ``r²/12`` each, in the time that the energy belongs to. Over `n` runs of `t` seconds
    together, the power has the relative standard error ``r √(n/6) / t``. It is told once that is 5 % at most:
    for a single run of more than eight times `r`, or after some more of shorter ones.
    """

    def __init__(self, metering: Metering) -> None:
        self._metering = metering
        self._lock = threading.Lock()
        self._sums: Counts = ()
        self._clear()

    def add(self, metered_s: float, energies_j: Counts) -> Mapping[str, float] | None:
        """Add a run; tell the power of each domain if that can be told, and begin anew."""
        with self._lock:
            return self._add(metered_s, energies_j)

    def _add(self, metered_s: float, energies_j: Counts) -> Mapping[str, float] | None:
        if any((now is None) != (sum_ is None) for now, sum_ in zip(energies_j, self._sums, strict=True)):
            self._clear()
        self._runs += 1
        self._time_s += metered_s
        self._sums = tuple(
            None if now is None else tuple(map(sum, zip(now, sum_ or (0.0,) * len(now), strict=True)))
            for now, sum_ in zip(energies_j, self._sums, strict=True)
        )
        if self._resolution_s * (self._runs / 6) ** 0.5 > _STANDARD_ERROR * self._time_s or self._time_s <= 0:
            return None
        if any(found is not None and not any(found) for found in self._sums):
            self._judge_still()
            return None
        powers_w = self._metering.by_domain(
            tuple(found and tuple(energy / self._time_s for energy in found) for found in self._sums)
        )
        self._clear()
        return powers_w

    def _judge_still(self) -> None:
        """Give meters up that stood still for too long, as on virtual machines that show but do not count."""
        if self._time_s < _STILL_S + self._resolution_s:
            return
        for number, found in enumerate(self._sums):
            if found is not None and not any(found):
                name = self._metering.meters[number].name
                self._metering.give_up(number, f"{name}: the counters stood still for {self._time_s:.3g} s")
        self._clear()

    def _clear(self) -> None:
        self._runs, self._time_s = 0, 0.0
        self._resolution_s = self._metering.resolution_s
        self._sums = (None,) * len(self._metering.meters)


def total_w(powers_w: Mapping[str, float], domains: Iterable[str]) -> float | None:
    """Power of all domains that are not parts of others, in watts.

    >>> powers_w = {"package-0": 30.0, "package-0/core": 20.0, "gpu": 70.0}
    >>> total_w(powers_w, powers_w)
    100.0
    """
    # `psys` is the whole board, packages and all.
    whole = [domain for domain in domains if "/" not in domain]
    parts = [domain for domain in whole if domain != "psys"] or whole
    if not parts or any(domain not in powers_w for domain in parts):
        return None
    return sum(powers_w[domain] for domain in parts)


Counted = Mapping[str, Sequence[Count]]
"""What the counters of each event hold, one a thread."""


class Counting:
    """Counters of all threads that there are when it is made, and of those that they start."""

    def __init__(self, events: Sequence[str], perf: Perf | None = None) -> None:
        self._counters = Counters(perf=perf, events=events)
        self._counters.__enter__()
        self._works = True

    def read(self) -> Counted:
        """Read all counters; nothing if they were closed, as by a process that becomes a daemon."""
        if not self._works:
            return {}
        try:
            return self._counters.so_far()
        except OSError as error:
            self._works = False
            say_once(f"regions have no CPU counters from now on: {error.strerror}")
            return {}


def difference(before: Counted, after: Counted) -> Mapping[str, float]:
    """What was counted between two readings, by event."""
    found = {}
    for name, ends in after.items():
        pairs = zip(before[name], ends, strict=True)
        steps = [Count(*(now - then for then, now in zip(*pair, strict=True))) for pair in pairs]
        value = added_up(name, steps)
        if value is not None:
            found[name] = value
    return found or NOTHING


_COUNTINGS: dict[tuple[str, ...], Counting] = {}


def counting_of(events: tuple[str, ...]) -> Counting:
    """The counters of some events, opened once in a process."""
    found = _COUNTINGS.get(events)
    if found is None:
        for name in events:
            if name not in EVENTS:
                raise InputError(f"counters: expected some of {', '.join(EVENTS)}, found {name!r}")
        found = _COUNTINGS.setdefault(events, Counting(events))
    return found


# A forked process would read the counters of its parent.
os.register_at_fork(after_in_child=lambda: _COUNTINGS.clear())


_SOON_S = 0.02


class Written(Protocol):
    """Something that holds what is not written yet."""

    @property
    def being_written(self) -> bool:
        """Whether some thread is writing it."""

    def flush(self) -> None:
        """Write it."""


_WATCHED: WeakSet[Written] = WeakSet()
_over = False
"""Whether histories have been written for the last time, as the interpreter ends."""
_process: int | None = None


def watch(history: Written) -> None:
    """Write a history when this process ends: by itself, by an exception or by SIGTERM.

    A handler for SIGTERM is installed if the program has none. Only the main thread can do that.
    """
    global _process
    _WATCHED.add(history)
    if _process is None:
        atexit.register(_end)
    if _process != os.getpid():
        _process = os.getpid()
        _watch_worker()
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _watch_worker() -> None:
    """Write at the end of a worker of multiprocessing, too, which leaves without atexit."""
    library = sys.modules.get("multiprocessing.util")
    if library is not None:
        library.Finalize(None, _write_all, exitpriority=0)


def _write_all() -> None:
    for history in list(_WATCHED):
        history.flush()


def _end() -> None:
    global _over
    _over = True
    _write_all()


def _terminate(number: int, frame: FrameType | None) -> None:
    if any(history.being_written for history in list(_WATCHED)):
        # Perhaps by what this has interrupted, which ends only after this does.
        threading.Timer(_SOON_S, os.kill, (os.getpid(), number)).start()
        return
    _write_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


KEPT = 1000
"""Runs that a process keeps in memory of each key."""

_MOST_KEYS = 10_000
_FLUSH_S = 0.5


class History(Runs):
    """Runs of this process; those in its file are of all processes that ever appended to it.

    The file is written at least every half second while there are runs, at the end of the process, when it
    ends by an exception, and on SIGTERM. A forked process begins a history of its own, in the same file.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(KEPT, _MOST_KEYS)
        if path is not None:
            check_history(path)
        self.path = path
        self._begin()
        self._background = Background(self.flush, _FLUSH_S, "crosscast history", self._holds)
        _ALL.add(self)

    def _begin(self) -> None:
        self._pending: deque[RegionRun] = deque()
        self._writing = threading.Lock()
        self._pools: dict[tuple[RegionKey, Configuration | None, Metering], Pool] = {}

    def begin_anew(self) -> None:
        """Forget all runs, written or not, as a forked process does: they are its parent's."""
        super().__init__(KEPT, _MOST_KEYS)
        self._begin()

    def pool(self, key: RegionKey, configuration: Configuration | None, metering: Metering) -> Pool:
        """The runs that the power of the next run of a key in a configuration is told with."""
        found = self._pools.get((key, configuration, metering))
        if found is None:
            if len(self._pools) >= _MOST_KEYS:
                self._pools.clear()
            found = self._pools.setdefault((key, configuration, metering), Pool(metering))
        return found

    def record(self, run: RegionRun) -> None:
        """Keep a run, and write it soon."""
        self.add(run)
        if self.path is None:
            return
        self._pending.append(run)
        if _over:
            self.flush()
        elif self._background.ensure():
            watch(self)
            if not self._background.runs:
                self.flush()

    def flush(self) -> None:
        """Write what is not written yet."""
        with self._writing:
            runs = [self._pending.popleft() for _ in range(len(self._pending))]
            if not runs or self.path is None:
                return
            try:
                append(self.path, b"".join(_whole_lines(runs)))
            except OSError as error:
                self.path = None
                say_once(f"the history cannot be written from now on: {error.strerror}")

    @property
    def being_written(self) -> bool:
        """Whether some thread is writing the file."""
        return self._writing.locked()

    def _holds(self) -> bool:
        return bool(self._pending)


def _whole_lines(runs: Iterable[RegionRun]) -> Iterable[bytes]:
    for run in runs:
        try:
            line = to_line(run).encode()
        except (TypeError, ValueError) as error:
            # Numbers that are none, or of a type that JSON has not, of a sensor that is not ours.
            say_once(f"a run of {run.key.name} cannot be written to the history: {error}")
            continue
        if len(line) <= MOST_BYTES:
            yield line
        else:
            say_once(f"a run of {run.key.name} is too long for the history: {len(line)} bytes")


_ALL: WeakSet[History] = WeakSet()
_IN_MEMORY = History()
_OF_FILES: dict[str, History] = {}
_LOCK = threading.Lock()


def history_of(given: History | str | Path | None) -> History:
    """The history of a file, of which a process has one; that in memory if there is no file."""
    if given is None:
        return _IN_MEMORY
    if isinstance(given, History):
        return given
    path = os.path.abspath(given)  # noqa: PTH100 - ten times as fast as Path, in each region
    found = _OF_FILES.get(path)
    if found is None:
        with _LOCK:
            found = _OF_FILES.get(path)
            if found is None:
                found = _OF_FILES[path] = History(Path(path))
    return found


def _begin_anew() -> None:
    global _LOCK
    _LOCK = threading.Lock()
    for history in list(_ALL):
        history.begin_anew()


os.register_at_fork(after_in_child=_begin_anew)
