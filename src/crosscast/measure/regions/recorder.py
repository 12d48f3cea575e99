"""Regions of programs: `profiled` blocks and functions, and a queue whose launches are regions."""

from __future__ import annotations

import inspect
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypedDict, TypeVar, Unpack

from crosscast.data.configuration import Configuration
from crosscast.data.schema import device_domains
from crosscast.errors import InputError, SensorFault, expect_known
from crosscast.measure import Sensor
from crosscast.measure.host_state import EVENTS, Counters
from crosscast.measure.regions import NOTHING, History, RegionKey, RegionRun, described, say_once
from crosscast.measure.sensors import open_sensors

if TYPE_CHECKING:
    from pyopencl import CommandQueue, Event, Kernel
    from pyopencl.typing import KernelArg

_STANDARD_ERROR = 0.05
_Work = tuple[RegionKey, Configuration | None]


class Metering:
    """Sensors that regions read when they are entered and left; one that fails is not read again.

    A thread polls each, as counters wrap; of one with a slow driver, regions have the last reading.
    """

    def __init__(self, sensors: Sequence[Sensor], reasons: Sequence[str] = ()) -> None:
        self.reasons = reasons  # Why others could not be opened
        self.wholes = device_domains([domain for sensor in sensors for domain in sensor.domains])
        delays_s = [each.resolution_s + (0.0 if each.is_quick else each.interval_s) for each in sensors]
        self._resolution_s = max(delays_s, default=0.0)
        self._lock = threading.Lock()
        self._sums: dict[_Work, tuple[int, float, dict[str, float]]] = {}
        self._last_j: dict[Sensor, tuple[float, ...]] = {}  # Of those that work
        for sensor, delay_s in zip(sensors, delays_s, strict=True):
            self._last_j[sensor] = ()
            self._read(sensor)
            # A sensor that is exact at any time needs no polling.
            if delay_s > 0:
                threading.Thread(target=self._poll, args=[sensor], name="crosscast", daemon=True).start()

    def _poll(self, sensor: Sensor) -> None:
        time.sleep(sensor.interval_s)
        while sensor in self._last_j:
            self._read(sensor)
            time.sleep(sensor.interval_s)

    def _read(self, sensor: Sensor) -> tuple[float, ...]:
        try:
            self._last_j[sensor] = read_j = sensor.read_j()
        except SensorFault as fault:
            self._last_j.pop(sensor, None)
            say_once(f"regions have no energy of {', '.join(sensor.domains)} from now on: {fault}")
            return ()
        return read_j

    def read(self) -> dict[str, float]:
        """Return the energy of each domain so far, in joules."""
        energies_j: dict[str, float] = {}
        for sensor, last_j in list(self._last_j.items()):
            read_j = self._read(sensor) if sensor.is_quick else last_j
            energies_j.update(zip(sensor.domains, read_j, strict=False))  # None of one that has failed
        return energies_j

    def powers_w(self, work: _Work, metered_s: float, energy_j: Mapping[str, float]) -> Mapping[str, float]:
        """Return the power of each domain over a run, and those before it without one; none if inaccurate.

        A counter that updates every `r` seconds is read up to `r` late, at both ends of a run: two uniform
        errors in the time of the energy, of variance ``r²/12`` each. Over `n` runs of `t` seconds in total,
        the power has the relative standard error ``r √(n/6) / t``. It is returned once that is at most 5 %.
        """
        with self._lock:
            runs, time_s, sums_j = self._sums.pop(work, (0, 0.0, {}))
            if sums_j.keys() != energy_j.keys():  # A sensor has failed since.
                runs, time_s, sums_j = 0, 0.0, dict.fromkeys(energy_j, 0.0)
            runs, time_s = runs + 1, time_s + metered_s
            sums_j = {domain: sums_j[domain] + energy for domain, energy in energy_j.items()}
            if time_s <= self._resolution_s * math.sqrt(runs / 6) / _STANDARD_ERROR:
                self._sums[work] = runs, time_s, sums_j
                return NOTHING
        # Counters may stand still, as in virtual machines.
        return {domain: energy / time_s for domain, energy in sums_j.items() if energy > 0}


_OPENED: dict[str, Metering] = {}


def metering_of(sensors: str | Metering) -> Metering:
    """Return the sensors of a name, which are opened once."""
    if isinstance(sensors, Metering):
        return sensors
    if sensors not in _OPENED:
        _OPENED[sensors] = Metering(*open_sensors(sensors))
    return _OPENED[sensors]


@cache
def _counters(events: tuple[str, ...]) -> Counters:
    """Count in all threads there are, and in those that they start, until the process ends."""
    return Counters(events=events).__enter__()


_HISTORIES: dict[str, History] = {}


def history_of(target: History | str | Path | None) -> History:
    """Return the history of a file, of which there is one, or without a file that in memory."""
    if isinstance(target, History):
        return target
    # Ten times as fast as Path, in each region
    path = "" if target is None else os.path.abspath(target)  # noqa: PTH100
    if path not in _HISTORIES:
        _HISTORIES.setdefault(path, History(Path(path) if path else None))
    return _HISTORIES[path]


Apply = Callable[[Configuration | None], object]
"""Sets the machine to a configuration; ``None`` stands for the default."""

_applied: tuple[Apply, Configuration | None] | None = None
_applying = threading.RLock()


def _apply_changed(apply: Apply, configuration: Configuration | None) -> None:
    """Apply a configuration, unless it was the last one applied, by this function."""
    global _applied
    # Serialised, so that the last applied one is known.
    with _applying:
        if _applied != (apply, configuration):
            _applied = None  # A call that fails may have changed settings.
            apply(configuration)
            _applied = apply, configuration


class Chooser(Protocol):
    """Chooses the configuration of each run from earlier ones; several threads may call it at once.

    A run without `RegionRun.energy_j` had no sensor. One with it and without `RegionRun.power_w` was too
    short for an accurate power, to which further runs in the same configuration contribute.
    """

    def configuration(self, key: RegionKey) -> Configuration | None:
        """Choose the configuration of a region's next run; ``None`` is the default."""

    def observed(self, key: RegionKey, run: RegionRun) -> None:
        """Observe a run that has ended and did not fail."""


class RunningRegion:
    """A run of a region, which lasts as long as its ``with`` block."""

    configuration: Configuration | None  # `None` if unknown

    def __init__(self, region: Profiled, key: RegionKey) -> None:
        self.key, self.history = key, region.history
        self.device_s: float | None = None  # Time by the device in seconds; by default the host's counts
        self.recorded: RegionRun | None = None  # The recorded run; `None` before the region is left
        self.thread = threading.get_ident()
        self._region = region

    def __enter__(self) -> RunningRegion:
        region, self._metering = self._region, metering_of(self._region.sensors)
        self.configuration = region.configuration
        if region.selector is not None:
            if not self._metering.wholes:
                what = "no sensor tells the power of regions, so no configuration can be chosen by it"
                say_once(": ".join([what, *filter(None, ["; ".join(self._metering.reasons)])]))
            self.configuration = region.selector.configuration(self.key)
        if region.apply is not None:
            _apply_changed(region.apply, self.configuration)
        self._counted = _counters(region.counters).so_far() if region.counters else {}
        self._started_s = time.time()
        self._read = time.perf_counter()
        self._energies_j = self._metering.read()
        self._start = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        now = time.perf_counter()
        region, metering, before_j = self._region, self._metering, self._energies_j
        after_j = metering.read() if before_j else {}
        counters = _counters(region.counters).since(self._counted) if self._counted else NOTHING
        metered_s = now - self._read if after_j else None
        energy_j = {domain: energy - before_j[domain] for domain, energy in after_j.items()}
        powers_w: Mapping[str, float] = NOTHING
        if metered_s is not None and kind is None:
            powers_w = metering.powers_w((self.key, self.configuration), metered_s, energy_j)
        is_known = powers_w and all(domain in powers_w for domain in metering.wholes)
        power_w = sum(powers_w[domain] for domain in metering.wholes) if is_known else None
        duration_s = now - self._start if self.device_s is None else self.device_s
        what = self.key, self.configuration, self._started_s, duration_s, metered_s
        failure = None if kind is None else kind.__name__
        self.recorded = run = RegionRun(*what, energy_j, powers_w, power_w, counters, failure)
        self.history.record(run)
        if region.selector is not None and kind is None:
            region.selector.observed(self.key, run)


P = ParamSpec("P")
T = TypeVar("T")


class Profiled:
    """A region of a program, of which each run is recorded with time, energy and counters.

    Use it in a ``with`` block, which gives the `RunningRegion`, or as decorator of a function, of which each
    call is a run. It is reentrant and thread-safe. Exceptions propagate; the run that one ends is recorded as
    failed.

    Parameters
    ----------
    name
        Name of the region.
    arguments
        What the work of a run depends on, for its key; of a decorated function, those of the call count.
    history
        File to which runs are appended; by default they are in memory only.
    selector
        Chooses the configuration of each run, such as a `crosscast.Selector`.
    configuration
        Configuration of all runs, instead of a selector.
    apply
        Called with the configuration of a run before it, if that or the function differs from the last one.
    sensors
        ``auto`` for all that work, ``rapl``, ``nvml``, ``nvml:UUID``, ``replay:PATH`` or ``none``.
    counters
        CPU counters to record.

    Raises
    ------
    InputError
        If arguments contradict each other, or the file cannot be a history.

    Examples
    --------
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
        sensors: str | Metering = "auto",
        counters: Sequence[str] = (),
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InputError.of(field="name", expected="a text", found=repr(name))
        if not isinstance(arguments, (tuple, list)):
            kind = type(arguments).__name__
            raise InputError.of(
                where=f"arguments of {name}", expected="a tuple of them", found=f"one of type {kind}"
            )
        if selector is not None and configuration is not None:
            raise InputError.of(expected="a selector or a configuration", found="both")
        if isinstance(counters, str):
            raise InputError.of(field="counters", expected="a list of names", found=repr(counters))
        expect_known(counters, EVENTS, field="counters", words="some of")
        self.history = history_of(history)  # History in which runs are recorded
        self.name, self.arguments = name, arguments
        self.selector, self.configuration, self.apply = selector, configuration, apply
        self.sensors, self.counters = sensors, tuple(counters)
        self._open: list[RunningRegion] = []

    def __enter__(self) -> RunningRegion:
        key = key_of(self.name, self.arguments, sys._getframe(1))
        running = RunningRegion(self, key).__enter__()
        self._open.append(running)
        return running

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        thread = threading.get_ident()
        running = next(each for each in reversed(self._open) if each.thread == thread)
        self._open.remove(running)
        running.__exit__(kind)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Record each call of a function as a run."""
        for is_one in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
            if is_one(function):
                expected = "a function that runs from its begin to its end"
                found = f"the coroutine or generator {function.__qualname__}: profile what it calls"
                raise InputError.of(field="profiled", expected=expected, found=found)
        bind = inspect.signature(function).bind

        @wraps(function)
        def profiled_call(*args: P.args, **kwargs: P.kwargs) -> T:
            bound = bind(*args, **kwargs)
            bound.apply_defaults()
            with RunningRegion(self, key_of(self.name, bound.arguments.values(), sys._getframe(1))):
                return function(*args, **kwargs)

        return profiled_call


def key_of(name: str, arguments: Iterable[object], frame: FrameType) -> RegionKey:
    """Return the key of a region that a frame enters, or what has called a `contextlib.ExitStack`."""
    while frame.f_globals.get("__name__") == "contextlib" and frame.f_back is not None:
        frame = frame.f_back
    site = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}:{frame.f_lineno}"
    return RegionKey(name, tuple(map(described, arguments)), (site,))


class RegionOptions(TypedDict, total=False):
    """Options of regions, as of `Profiled`."""

    history: History | str | Path | None
    selector: Chooser | None
    configuration: Configuration | None
    apply: Apply | None
    sensors: str | Metering
    counters: Sequence[str]


class ProfiledQueue:
    """Launches kernels on a command queue, and records each launch as a run of a region.

    A launch waits for earlier commands of the queue, then for the kernel, so that time and energy are those
    of the kernel. All other attributes are those of the queue.

    Parameters
    ----------
    queue
        A ``pyopencl.CommandQueue``. With profiling, times are those of the device's timer; else of the host,
        launch overhead included.
    **options
        `history`, `selector`, `configuration`, `apply`, `sensors` and `counters`, as of `profiled`.

    Raises
    ------
    InputError
        If arguments contradict each other, or the file cannot be a history.
    """

    def __init__(self, queue: CommandQueue, **options: Unpack[RegionOptions]) -> None:
        # Imported here: other regions need no OpenCL.
        from crosscast.measure.opencl import TIMES_COMMANDS, duration_s

        self.queue = queue
        self._duration_s = duration_s
        self._has_timer = bool(queue.properties & TIMES_COMMANDS)
        self._region = Profiled("launch", **options)
        self.history = self._region.history  # History in which launches are recorded

    def __getattr__(self, name: str) -> Any:
        return getattr(self.queue, name)

    def launch(
        self,
        kernel: Kernel,
        global_size: Sequence[int],
        local_size: Sequence[int] | None,
        *args: KernelArg,
        **options: Any,
    ) -> Event:
        """Launch a kernel, with options of PyOpenCL, and wait for its end.

        The run's key has the kernel's name, and the sizes before the arguments.
        """
        sizes = tuple(global_size), None if local_size is None else tuple(local_size)
        key = key_of(kernel.function_name, (*sizes, *args), sys._getframe(1))
        self.queue.finish()
        with RunningRegion(self._region, key) as running:
            event = kernel(self.queue, *sizes, *args, **options)
            event.wait()
            if self._has_timer:
                # Timers of some devices occasionally run backwards; the host's does not.
                device_s = self._duration_s(event)
                running.device_s = device_s if device_s >= 0 else None
        return event
