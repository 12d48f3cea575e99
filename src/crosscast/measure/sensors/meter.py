"""Meters: energy read at any moment, as from the meter of a house."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Meter"]


class Meter(Protocol):
    """Something that counts energy all the time.

    Unlike a `Sensor`, which watches one thing from `start` to `stop`, it serves any number of things that
    begin and end as they like, inside of each other or in several threads.
    """

    @property
    def name(self) -> str:
        """Name of the sensor in tables, such as ``rapl``."""

    @property
    def domains(self) -> tuple[str, ...]:
        """What it measures, such as ``package-0``."""

    @property
    def resolution_s(self) -> float:
        """Longest time between two moves of the counter while power is drawn, in seconds."""

    def read_j(self) -> tuple[float, ...]:
        """Energy of each domain since some moment, in joules; never falling. Quick: microseconds.

        Raises
        ------
        SensorFault
            If the sensor went away or was set back; its counts mean nothing from then on.
        """
