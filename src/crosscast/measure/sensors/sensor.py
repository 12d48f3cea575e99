"""What every sensor of energy can do, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal, Protocol

__all__ = ["Reading", "Sensor"]


@dataclass(frozen=True)
class Reading:
    """What a sensor saw of one domain while it watched.

    Parameters
    ----------
    domain
        What the sensor measured, such as ``package-0``.
    samples
        Readings that brought news. A counter that is polled faster than it counts says the same
        thing several times, which is one sample.
    times_s
        ``(n,)`` When each reading was taken, in seconds since the start, rising; at least two.
    values
        ``(n,)`` The readings: energy since the start, or power.
    unit
        Unit of the values: ``J`` for energy, ``W`` for power.
    """

    domain: str
    samples: int
    times_s: tuple[float, ...]
    values: tuple[float, ...]
    unit: Literal["J", "W"]

    @property
    def duration_s(self) -> float:
        """Time from the first reading to the last, in seconds."""
        return self.times_s[-1] - self.times_s[0]

    @property
    def energies_j(self) -> tuple[float, ...]:
        """``(n,)`` Energy since the start at each time, in joules; power is integrated by trapezoids."""
        if self.unit == "J":
            return self.values
        steps = zip(pairwise(self.times_s), pairwise(self.values), strict=True)
        return tuple(accumulate(((b - a) * (p + q) / 2 for (a, b), (p, q) in steps), initial=0.0))

    @property
    def energy_j(self) -> float:
        """Energy from the first reading to the last, in joules."""
        return self.energies_j[-1]


class Sensor(Protocol):
    """Something that tells the energy used between two moments.

    `start` and `stop` may be called again and again, in turns. All but `stop` leave the sensor watching.
    """

    @property
    def name(self) -> str:
        """Name of the sensor in tables, such as ``rapl``."""

    @property
    def domains(self) -> tuple[str, ...]:
        """What it measures, such as ``package-0``; one reading each."""

    @property
    def samples_wanted(self) -> int:
        """Samples that it should have before `stop`, for what it says to be worth keeping."""

    def start(self) -> None:
        """Begin to watch.

        Raises
        ------
        SensorFault
            If the sensor does not answer.
        """

    def samples_so_far(self) -> int:
        """Fewest samples that any domain has since `start`.

        Raises
        ------
        SensorFault
            If the sensor went away, so that nobody waits for samples that will not come.
        """

    def stop(self) -> tuple[Reading, ...]:
        """End watching, and tell what was seen, by domain.

        Raises
        ------
        SensorFault
            If the sensor went away at any time since `start`.
        """
