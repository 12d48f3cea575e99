"""The sensor of a device that has none."""

from __future__ import annotations

from crosscast.measure.sensors.sensor import Reading

__all__ = ["NullSensor"]


class NullSensor:
    """Measures nothing and asks for nothing, so that measuring needs no second way."""

    name = "none"
    domains: tuple[str, ...] = ()
    samples_wanted = 0

    def start(self) -> None:
        """Do nothing."""

    def samples_so_far(self) -> int:
        """Give 0."""
        return 0

    def stop(self) -> tuple[Reading, ...]:
        """Give no reading."""
        return ()
