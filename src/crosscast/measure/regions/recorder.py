"""Recording runs: what happens when a region is entered, and when it is left."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from operator import sub
from pathlib import Path
from types import TracebackType
from typing import Self

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.measure.regions.applying import Apply, apply_changed
from crosscast.measure.regions.chooser import Chooser
from crosscast.measure.regions.counting import Counted, counting_of, difference
from crosscast.measure.regions.history import History, history_of
from crosscast.measure.regions.key import RegionKey
from crosscast.measure.regions.metering import Counts, Metering, metering_of
from crosscast.measure.regions.notice import say_once
from crosscast.measure.regions.power import total_w
from crosscast.measure.regions.run import NOTHING, RegionRun

__all__ = ["Recorder", "Running"]

_process = 0


class Running:
    """A run that has begun; it ends with the ``with`` block that it is used for.

    Parameters
    ----------
    key
        Which region.
    configuration
        What the program should run on, or runs on; none if nothing was chosen.
    recorder
        Who will record it.
    """

    __slots__ = (
        "_counted",
        "_energies_j",
        "_process",
        "_read",
        "_recorder",
        "_start",
        "_started_s",
        "configuration",
        "device_s",
        "key",
        "recorded",
    )

    def __init__(self, key: RegionKey, configuration: Configuration | None, recorder: Recorder) -> None:
        self.key = key
        self.configuration = configuration
        self.device_s: float | None = None
        """What a device says that it took, in seconds; else the time of the host counts."""
        self.recorded: RegionRun | None = None
        """What was recorded; none before the region was left."""
        self._process = _process
        self._counted: Counted | None = None
        self._energies_j: Counts = ()
        self._recorder = recorder
        self._started_s = self._read = self._start = 0.0

    @property
    def history(self) -> History:
        """Where it is recorded."""
        return self._recorder.history

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._recorder.end(self, None if kind is None else kind.__name__)


class Recorder:
    """Records runs in one manner, in any number of threads.

    Parameters
    ----------
    history
        Where to: a history, a file, or none for the history of the process that is in memory only.
    selector
        Chooses the configuration of each run.
    configuration
        What the program runs on, if there is no selector.
    apply
        Called at entry if the configuration is not the one that it was called with last; with none, if it
        or the region, by name, has left the default.
    sensors
        Meters to read, or their names as `open_meters` knows them.
    counters
        CPU counters to read, of `crosscast.measure.counters.EVENTS`.

    Raises
    ------
    InputError
        If arguments do not go together, or the file cannot be a history.
    """

    __slots__ = ("_apply", "_configuration", "_counters", "_selector", "_sensors", "history")

    def __init__(
        self,
        history: History | str | Path | None,
        selector: Chooser | None,
        configuration: Configuration | None,
        apply: Apply | None,
        sensors: str | Metering,
        counters: Sequence[str],
    ) -> None:
        if selector is not None and configuration is not None:
            raise InputError("expected a selector or a configuration, found both")
        if isinstance(counters, str):
            raise InputError(f"counters: expected a list of names, found {counters!r}")
        self.history = history_of(history)
        self._selector = selector
        self._configuration = configuration
        self._apply = apply
        self._sensors = sensors
        self._counters = tuple(counters)

    def begin(self, key: RegionKey) -> Running:
        """Begin a run."""
        metering = metering_of(self._sensors)
        configuration = self._configuration
        if self._selector is not None:
            # Of a meter that has stopped working, it was said then.
            if not metering.meters:
                _say_no_power(metering)
            configuration = self._selector.configuration(key)
        if self._apply is not None:
            apply_changed(key.name, self._apply, configuration)
        running = Running(key, configuration, self)
        if self._counters:
            running._counted = counting_of(self._counters).read()
        running._started_s = time.time()
        running._read = time.perf_counter()
        if metering.works:
            running._energies_j = metering.read()
        running._start = time.perf_counter()
        return running

    def end(self, running: Running, failure: str | None) -> None:
        """End a run and record it.

        Parameters
        ----------
        running
            The run.
        failure
            Kind of the exception that ended it, or none.
        """
        now = time.perf_counter()
        if running._process != _process:
            return  # The parent has entered the region, and leaves it too.
        metering, started = metering_of(self._sensors), running._energies_j
        ended = metering.read() if started else ()
        counters = NOTHING
        if running._counted is not None:
            counters = difference(running._counted, counting_of(self._counters).read())
        metered_s, energy_j, powers_w, power_w = None, NOTHING, NOTHING, None
        energies_j = _differences(started, ended)
        if any(energies_j):
            metered_s, energy_j = now - running._read, metering.by_domain(energies_j)
            if failure is None:
                pool = self.history.pool(running.key, running.configuration, metering)
                powers_w = pool.add(metered_s, energies_j) or NOTHING
                power_w = total_w(powers_w, metering.domains) if powers_w else None
        run = RegionRun(
            running.key,
            running.configuration,
            running._started_s,
            now - running._start if running.device_s is None else running.device_s,
            metered_s,
            energy_j,
            powers_w,
            power_w,
            counters,
            failure,
        )
        running.recorded = run
        self.history.record(run)
        if self._selector is not None and failure is None:
            self._selector.observed(running.key, run)


def _differences(started: Counts, ended: Counts) -> Counts:
    return tuple(map(_difference, started, ended))


def _difference(
    before: tuple[float, ...] | None, after: tuple[float, ...] | None
) -> tuple[float, ...] | None:
    """Energies between two readings; none if a reading is missing, or the meter went back."""
    if before is None or after is None:
        return None
    found = tuple(map(sub, after, before))
    return found if all(energy_j >= 0 for energy_j in found) else None


def _say_no_power(metering: Metering) -> None:
    why = f": {'; '.join(metering.reasons)}" if metering.reasons else ""
    say_once(f"no sensor tells the power of regions, so no configuration can be chosen by it{why}")


def _begin_anew() -> None:
    global _process
    _process = os.getpid()


os.register_at_fork(after_in_child=_begin_anew)
