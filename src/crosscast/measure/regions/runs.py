"""Runs of regions, by key."""

from __future__ import annotations

import threading
from collections import deque

from crosscast.configuration import Configuration
from crosscast.measure.regions.key import RegionKey
from crosscast.measure.regions.run import RegionRun

__all__ = ["Runs"]


class Runs:
    """Runs of regions, in the order in which they ended.

    Every method may be called while other threads record.

    Parameters
    ----------
    kept
        Runs to keep of each key, the last ones; all by default.
    keys
        Keys to keep, the last ones; all by default.
    """

    def __init__(self, kept: int | None = None, keys: int | None = None) -> None:
        self._kept = kept
        self._most_keys = keys
        self._lock = threading.RLock()
        self._runs: dict[RegionKey, deque[RegionRun]] = {}

    def __len__(self) -> int:
        """Runs that are kept."""
        with self._lock:
            return sum(map(len, self._runs.values()))

    def add(self, run: RegionRun) -> None:
        """Keep a run."""
        with self._lock:
            runs = self._runs.get(run.key)
            if runs is None:
                if len(self._runs) == self._most_keys:
                    del self._runs[next(iter(self._runs))]
                runs = self._runs[run.key] = deque(maxlen=self._kept)
            runs.append(run)

    def keys(self, name: str | None = None) -> tuple[RegionKey, ...]:
        """Keys of the regions that have runs, in the order of the first; only those of a name, if given."""
        with self._lock:
            return tuple(key for key in self._runs if name is None or key.name == name)

    def runs(
        self, key: RegionKey, configuration: Configuration | None = None, *, failed: bool = False
    ) -> tuple[RegionRun, ...]:
        """Runs of a key.

        Parameters
        ----------
        key
            Which.
        configuration
            Only those in this configuration.
        failed
            Those that failed as well.
        """
        with self._lock:
            found = tuple(self._runs.get(key, ()))
        return tuple(
            run
            for run in found
            if (failed or run.failure is None) and configuration in (None, run.configuration)
        )

    def last(self, key: RegionKey) -> RegionRun | None:
        """The last run of a key that did not fail, if there is one."""
        return next(reversed(self.runs(key)), None)

    def mean_time_s(self, key: RegionKey, configuration: Configuration | None = None) -> float | None:
        """Mean time of the runs that did not fail, in seconds; none without a run."""
        times_s = [run.duration_s for run in self.runs(key, configuration)]
        return sum(times_s) / len(times_s) if times_s else None

    def mean_power_w(self, key: RegionKey, configuration: Configuration | None = None) -> float | None:
        """Mean power of the runs that did not fail and whose power is known, in watts; none without one.

        Runs weigh by their times.
        """
        known = [
            (run.power_w, run.metered_s)
            for run in self.runs(key, configuration)
            if run.power_w is not None and run.metered_s
        ]
        time_s = sum(metered_s for _, metered_s in known)
        return sum(power_w * metered_s for power_w, metered_s in known) / time_s if known else None
