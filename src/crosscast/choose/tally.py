"""Runs of one kernel summed by configuration: what a model is told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.configuration.surfaces import Observed

__all__ = ["Tally", "observed_of"]

_TOTAL = ""
"""Name under which the power of the whole is summed."""


@dataclass
class _Mean:
    """A weighted mean; of one value it is that value, to the last bit."""

    value: float = 0.0
    weight: float = 0.0

    def add(self, value: float, weight: float) -> None:
        self.weight += weight
        self.value += (value - self.value) * (weight / self.weight)


@dataclass
class Tally:
    """Runs of one kernel at one configuration.

    Times are averaged over the runs. Powers are energy over time, of the runs that tell them.
    """

    runs: int = 0
    time_s: float = 0.0
    """Mean time in seconds."""
    _powers: dict[str, _Mean] = field(default_factory=dict)
    _counters: dict[str, _Mean] = field(default_factory=dict)

    def add(
        self,
        time_s: float,
        power_w: float | None,
        domains: Mapping[str, float],
        counters: Mapping[str, float],
    ) -> None:
        """Add a run.

        Parameters
        ----------
        time_s
            Its time in seconds, above 0.
        power_w
            Its mean power in watts; ``None`` if that is not known.
        domains
            Power of each domain that is known, in watts.
        counters
            Its counters.
        """
        self.runs += 1
        self.time_s += (time_s - self.time_s) / self.runs
        told = domains if power_w is None else {_TOTAL: power_w, **domains}
        for name, watts in told.items():
            self._powers.setdefault(name, _Mean()).add(watts, time_s)
        for name, value in counters.items():
            self._counters.setdefault(name, _Mean()).add(value, 1.0)

    @property
    def power_w(self) -> float | None:
        """Mean power in watts, if any run told it."""
        found = self._powers.get(_TOTAL)
        return None if found is None else found.value

    def domain_w(self, name: str) -> float:
        """Mean power of a domain in watts; NaN if no run told it."""
        return self._powers[name].value if name in self._powers else math.nan

    @property
    def domains(self) -> set[str]:
        """Names of the domains that any run told."""
        return set(self._powers) - {_TOTAL}

    @property
    def counters(self) -> set[str]:
        """Names of the counters that any run told."""
        return set(self._counters)

    def counter(self, name: str) -> float:
        """Mean of a counter; NaN if no run told it."""
        return self._counters[name].value if name in self._counters else math.nan


def observed_of(
    tallies: Mapping[int, Tally],
    domains: Sequence[str] | None = None,
    counters: Sequence[str] | None = None,
) -> Observed:
    """What a model is told of a kernel: its configurations with both time and power, by their numbers.

    Parameters
    ----------
    tallies
        Its runs, by the number of their configuration.
    domains, counters
        Names that the model knows; by default all that any run told.
    """
    if domains is None:
        domains = sorted(set().union(*(each.domains for each in tallies.values())))
    if counters is None:
        counters = sorted(set().union(*(each.counters for each in tallies.values())))
    numbers = sorted(number for number, tally in tallies.items() if tally.power_w is not None)
    at = [tallies[number] for number in numbers]

    def column(values: Sequence[float | None]) -> Reals:
        return np.array(values, np.float64)

    return Observed(
        np.array(numbers, np.int64),
        column([each.time_s for each in at]),
        column([each.power_w for each in at]),
        {name: column([each.domain_w(name) for each in at]) for name in domains},
        {name: column([each.counter(name) for each in at]) for name in counters},
    )
