"""Regions in programs: `profiled` blocks and functions, a queue whose launches are regions, and histories.

The history of a process has its runs in memory, and appends them to a file, if any, as they end.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from operator import sub
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypedDict, TypeVar, Unpack

from crosscast.data.configuration import Configuration
from crosscast.errors import InputError
from crosscast.measure.energy import Meter
from crosscast.measure.regions.file import MOST_BYTES, MOST_NAME, Runs, append, check_history, to_line
from crosscast.measure.regions.key import (
    MOST_FRAMES,
    NOTHING,
    Chooser,
    RegionKey,
    RegionRun,
    arguments_of,
    say_once,
    site_of,
)
from crosscast.measure.regions.metering import (
    Counted,
    Energies,
    Metering,
    Pool,
    counters_of,
    difference,
    metering_of,
    total_w,
)

if TYPE_CHECKING:
    from pyopencl import CommandQueue, Event, Kernel
    from pyopencl.typing import KernelArg

MOST_RUNS = 1000
"""Runs of each key that a process keeps in memory."""

_MOST_KEYS = 10_000


class History(Runs):
    """Runs of this process; its file has the runs of all processes that appended to it.

    Each run is in the file once its region is left, however the process ends.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(MOST_RUNS, _MOST_KEYS)
        if path is not None:
            check_history(path)
        self.path = path
        self._writing = threading.Lock()
        self._pools: dict[tuple[RegionKey, Configuration | None, Metering], Pool] = {}

    def pool(self, key: RegionKey, configuration: Configuration | None, metering: Metering) -> Pool:
        """Return the runs with which the power of the next run of a key in a configuration is computed."""
        pool = self._pools.get((key, configuration, metering))
        if pool is None:
            if len(self._pools) >= _MOST_KEYS:
                self._pools.clear()
            pool = self._pools.setdefault((key, configuration, metering), Pool(metering))
        return pool

    def record(self, run: RegionRun) -> None:
        """Add a run, and append it to the file."""
        self.add(run)
        if self.path is not None and (line := _line_of(run)):
            with self._writing:
                self._write(line)

    def _write(self, line: bytes) -> None:
        if self.path is None:
            return
        try:
            append(self.path, line)
        except OSError as error:
            self.path = None
            say_once(f"the history cannot be written from now on: {error.strerror}")


def _line_of(run: RegionRun) -> bytes:
    """Return the line of a run; empty, and logged once, if it cannot be written."""
    try:
        line = to_line(run).encode()
    except (TypeError, ValueError) as error:
        # A custom sensor may give NaN, or types that JSON does not have.
        say_once(f"a run of {run.key.name} cannot be written to the history: {error}")
        return b""
    if len(line) > MOST_BYTES:
        say_once(f"a run of {run.key.name} is too long for the history: {len(line)} bytes")
        return b""
    return line


_IN_MEMORY = History()
_OF_FILES: dict[str, History] = {}
_LOCK = threading.Lock()


def history_of(target: History | str | Path | None) -> History:
    """Return the history of a file, one in each process, or without a file that in memory."""
    if target is None:
        return _IN_MEMORY
    if isinstance(target, History):
        return target
    path = os.path.abspath(target)  # noqa: PTH100 - ten times as fast as Path, in each region
    if path not in _OF_FILES:
        with _LOCK:
            if path not in _OF_FILES:
                _OF_FILES[path] = History(Path(path))
    return _OF_FILES[path]


class EnqueueOptions(TypedDict, total=False):
    """Options of PyOpenCL for a launch."""

    wait_for: Sequence[Event] | None
    g_times_l: bool
    allow_empty_ndrange: bool
    global_offset: tuple[int, ...] | None


Apply = Callable[[Configuration | None], object]
"""Sets the machine to a configuration; ``None`` stands for the default."""

_applied: tuple[Apply, Configuration | None] | None = None  # Last applied configuration, and its function
_regions: dict[str, Apply] = {}
"""Regions by name with a configuration that was not reset, and the function that applied it."""
_MOST_REGIONS = 1000
_applying = threading.RLock()


def apply_changed(region: str, apply: Apply, configuration: Configuration | None) -> None:
    """Apply a configuration, unless it was the last one applied by this function."""
    global _applied
    if configuration is not None and _applied == (apply, configuration):
        return
    # Serialised, so that the last applied one is known.
    with _applying:
        if configuration is None:
            _reset(region, apply)
        elif _applied != (apply, configuration):
            _applied = None
            # Before the call: one that fails may have changed settings.
            _regions.pop(region, None)
            _regions[region] = apply
            while len(_regions) > _MOST_REGIONS:
                del _regions[next(iter(_regions))]
            apply(configuration)
            _applied = apply, configuration


def _reset(region: str, apply: Apply) -> None:
    global _applied
    # A loop may create its function anew each time, so that functions alone do not match.
    names = [name for name, applied_by in _regions.items() if name == region or applied_by == apply]
    if names:
        _applied = None
        apply(None)
        _applied = apply, None
        for name in names:
            _regions.pop(name, None)


@dataclass(slots=True, eq=False)
class RunningRegion:
    """A run that has begun; it ends with its ``with`` block."""

    key: RegionKey
    configuration: Configuration | None  # `None` if unknown
    _recorder: Recorder
    _process: int
    device_s: float | None = None  # Time by the device in seconds; by default the host's counts
    recorded: RegionRun | None = None  # The recorded run; `None` before the region is left
    _counted: Counted | None = None
    _energies_j: Energies = ()
    _started_s: float = 0.0
    _read: float = 0.0
    _start: float = 0.0

    @property
    def history(self) -> History:
        """History in which it is recorded."""
        return self._recorder.history

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._recorder.end(self, None if kind is None else kind.__name__)


class Recorder:
    """Records runs with common options, in any number of threads."""

    def __init__(
        self,
        history: History | str | Path | None,
        selector: Chooser | None,
        configuration: Configuration | None,
        apply: Apply | None,
        sensors: str | Meter | Metering,
        counters: Sequence[str],
    ) -> None:
        if selector is not None and configuration is not None:
            raise InputError("expected a selector or a configuration, found both")
        if isinstance(counters, str):
            raise InputError.of(field="counters", expected="a list of names", found=repr(counters))
        self.history = history_of(history)
        self._selector = selector
        self._configuration = configuration
        self._apply = apply
        # A meter of the caller's that failed stays so; named ones are opened when a region begins.
        self._sensors = metering_of(sensors) if isinstance(sensors, Meter) else sensors
        self._counters = tuple(counters)

    def begin(self, key: RegionKey) -> RunningRegion:
        """Begin a run."""
        metering = metering_of(self._sensors)
        configuration = self._configuration
        if self._selector is not None:
            # Meters that stopped working were logged then.
            if not metering.meters:
                _log_no_power(metering)
            configuration = self._selector.configuration(key)
        if self._apply is not None:
            apply_changed(key.name, self._apply, configuration)
        running = RunningRegion(key, configuration, self, os.getpid())
        if self._counters:
            running._counted = counters_of(self._counters).read()
        running._started_s = time.time()
        running._read = time.perf_counter()
        if metering.works:
            running._energies_j = metering.read()
        running._start = time.perf_counter()
        return running

    def end(self, running: RunningRegion, failure: str | None) -> None:
        """End a run and record it."""
        now = time.perf_counter()
        if running._process != os.getpid():
            return  # After a fork: the parent leaves the region.
        metering, started = metering_of(self._sensors), running._energies_j
        ended = metering.read() if started else ()
        counters = NOTHING
        if running._counted is not None:
            counters = difference(running._counted, counters_of(self._counters).read())
        metered_s, energy_j, powers_w, power_w = None, NOTHING, NOTHING, None
        energies_j = tuple(map(_difference, started, ended))
        if any(energies_j):
            metered_s, energy_j = now - running._read, metering.by_domain(energies_j)
            if failure is None:
                pool = self.history.pool(running.key, running.configuration, metering)
                powers_w = pool.add(metered_s, energies_j) or NOTHING
                power_w = total_w(powers_w, metering.domains) if powers_w else None
        duration_s = now - running._start if running.device_s is None else running.device_s
        what = running.key, running.configuration, running._started_s, duration_s
        run = RegionRun(*what, metered_s, energy_j, powers_w, power_w, counters, failure)
        running.recorded = run
        self.history.record(run)
        if self._selector is not None and failure is None:
            self._selector.observed(running.key, run)


def _difference(
    before: tuple[float, ...] | None, after: tuple[float, ...] | None
) -> tuple[float, ...] | None:
    """Return the energies between two readings; ``None`` if one is missing, or the meter decreased."""
    if before is None or after is None:
        return None
    energies_j = tuple(map(sub, after, before))
    return energies_j if all(energy_j >= 0 for energy_j in energies_j) else None


def _log_no_power(metering: Metering) -> None:
    reasons = f": {'; '.join(metering.reasons)}" if metering.reasons else ""
    say_once(f"no sensor tells the power of regions, so no configuration can be chosen by it{reasons}")


P = ParamSpec("P")
T = TypeVar("T")
_ENTERED: ContextVar[tuple[RunningRegion, ...]] = ContextVar("entered", default=())


class Profiled:
    """A region of a program, of which each run is recorded with time, energy and counters.

    Use it in a ``with`` block, which gives the `RunningRegion`, or as decorator of a function, of which each
    call is a run. It is reentrant and thread-safe. Exceptions propagate; the run that one ends is recorded as
    failed.

    >>> import crosscast
    >>> for _ in range(3):
    ...     with crosscast.profiled("sum", arguments=(1000,)) as run:
    ...         total = sum(range(1000))
    >>> print(run.key.name, run.key.arguments, len(run.history.runs(run.key)))
    sum ('1000',) 3
    """

    def __init__(
        self,
        name: str,
        *,
        arguments: Sequence[object] = (),
        history: History | str | Path | None = None,
        selector: Chooser | None = None,
        configuration: Configuration | None = None,
        apply: Apply | None = None,
        sensors: str | Meter | Metering = "auto",
        counters: Sequence[str] = (),
        callers: int = 0,
    ) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME:
            raise InputError.of(
                field="name", expected=f"a text of 1 to {MOST_NAME} characters", found=repr(name)
            )
        if not isinstance(arguments, (tuple, list)):
            kind = type(arguments).__name__
            raise InputError(f"arguments of {name}: expected a tuple of them, found one of type {kind}")
        if not 0 <= callers <= MOST_FRAMES:
            raise InputError.of(
                field="callers", expected=f"a number from 0 to {MOST_FRAMES}", found=f"{callers}"
            )
        self._name = name
        self._arguments = arguments
        self._callers = callers
        self._recorder = Recorder(history, selector, configuration, apply, sensors, counters)
        self._open: list[RunningRegion] = []

    @property
    def history(self) -> History:
        """History in which runs are recorded."""
        return self._recorder.history

    def __enter__(self) -> RunningRegion:
        key = self._key(self._arguments, sys._getframe(1))
        running = self._recorder.begin(key)
        self._open.append(running)
        _ENTERED.set((*_ENTERED.get(), running))
        return running

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        entered = _ENTERED.get()
        # The one that this thread or asynchronous task entered last.
        running = next((one for one in reversed(entered) if one in self._open), self._open[-1])
        self._open.remove(running)
        _ENTERED.set(tuple([one for one in entered if one is not running]))
        running.__exit__(kind)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Record each call of a function as a run."""
        for is_one, what in _IN_TURNS:
            if is_one(function):
                expected = "a function that runs from its begin to its end"
                why = "which runs in turns with others: profile what it calls"
                found = f"the {what} {function.__qualname__}, {why}"
                raise InputError.of(field="profiled", expected=expected, found=found)
        bind, recorder = inspect.signature(function).bind, self._recorder

        @wraps(function)
        def profiled_call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                bound = bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # Raises the error.
            bound.apply_defaults()
            with recorder.begin(self._key(bound.arguments.values(), sys._getframe(1))):
                return function(*args, **kwargs)

        return profiled_call

    def _key(self, arguments: Iterable[object], frame: FrameType) -> RegionKey:
        return RegionKey(self._name, arguments_of(arguments), site_of(frame, self._callers))


_IN_TURNS: tuple[tuple[Callable[[object], bool], str], ...] = (
    (inspect.iscoroutinefunction, "coroutine"),
    (inspect.isasyncgenfunction, "asynchronous generator"),
    (inspect.isgeneratorfunction, "generator"),
)

profiled = Profiled
"""Public name of the class."""


class ProfiledQueue:
    """Launches kernels on a command queue, and records each launch as a run of a region.

    A launch waits for earlier commands of the queue, then for the kernel, so that time and energy are those
    of the kernel. All other attributes are those of the queue.

    Parameters
    ----------
    queue
        A ``pyopencl.CommandQueue``. With profiling, times are those of the device's timer; else of the host,
        launch overhead included.
    history, selector, configuration, apply, sensors, counters, callers
        As of `Profiled`.

    Raises
    ------
    InputError
        If arguments contradict each other, or the file cannot be a history.
    """

    def __init__(
        self,
        queue: CommandQueue,
        *,
        history: History | str | Path | None = None,
        selector: Chooser | None = None,
        configuration: Configuration | None = None,
        apply: Apply | None = None,
        sensors: str | Meter | Metering = "auto",
        counters: Sequence[str] = (),
        callers: int = 0,
    ) -> None:
        # Imported here: other regions need no OpenCL.
        from crosscast.measure.opencl import TIMES_COMMANDS, duration_s

        self.queue = queue
        self._duration_s = duration_s
        self._has_timer = bool(queue.properties & TIMES_COMMANDS)
        self._recorder = Recorder(history, selector, configuration, apply, sensors, counters)
        self._callers = callers

    def __getattr__(self, name: str) -> Any:
        if name == "queue":  # An object that is being copied has no queue yet.
            raise AttributeError(name)
        return getattr(self.queue, name)

    @property
    def history(self) -> History:
        """History in which launches are recorded."""
        return self._recorder.history

    def launch(
        self,
        kernel: Kernel,
        global_size: Sequence[int],
        local_size: Sequence[int] | None,
        *args: KernelArg,
        **options: Unpack[EnqueueOptions],
    ) -> Event:
        """Launch a kernel and wait for its end.

        The run's key has the kernel's name, and the sizes before the arguments.
        """
        sizes = tuple(global_size), None if local_size is None else tuple(local_size)
        arguments = arguments_of((*sizes, *args))
        key = RegionKey(kernel.function_name, arguments, site_of(sys._getframe(1), self._callers))
        self.queue.finish()
        with self._recorder.begin(key) as running:
            event = kernel(self.queue, *sizes, *args, **options)
            event.wait()
            if self._has_timer:
                # Timers of some devices occasionally run backwards; the host's does not.
                device_s = self._duration_s(event)
                running.device_s = device_s if device_s >= 0 else None
        return event
