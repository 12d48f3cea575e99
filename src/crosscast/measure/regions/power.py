"""Power of runs that may be shorter than a counter of energy takes to move."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from crosscast.measure.regions.metering import Counts, Metering

__all__ = ["Pool", "total_w"]

_STANDARD_ERROR = 0.05

_STILL_S = 0.1
"""Time in which no counter that works stands still."""


class Pool:
    """Runs of a region in one configuration since their power was told last.

    A counter that moves every `r` seconds is read up to `r` late, at both ends of a run: as two uniform
    errors, of variance ``r²/12`` each, in the time that the energy belongs to. Over `n` runs of `t` seconds
    together, the power has the relative standard error ``r √(n/6) / t``. It is told once that is 5 % at most:
    for a single run of more than eight times `r`, or after some more of shorter ones.

    Parameters
    ----------
    metering
        Where the energies come from.
    """

    def __init__(self, metering: Metering) -> None:
        self._metering = metering
        self._lock = threading.Lock()
        self._sums: Counts = ()
        self._clear()

    def add(self, metered_s: float, energies_j: Counts) -> Mapping[str, float] | None:
        """Add a run; tell the power of each domain if that can be told, and begin anew.

        Parameters
        ----------
        metered_s
            Its time, in seconds.
        energies_j
            Its energies.
        """
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

    Parameters
    ----------
    powers_w
        Power of each domain that has one.
    domains
        All domains, also those whose meter failed.

    Examples
    --------
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
