"""Bags: applications that run at the same time on one device, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.tables.corun.solo import Solo

__all__ = ["Bag", "Member"]


@dataclass(frozen=True)
class Member:
    """An application of a bag.

    Parameters
    ----------
    solo
        The application alone on the same device.
    slowdown
        Time of a job while the whole bag runs over its time alone; ``None`` where it is not known.
    failure
        Why it failed; ``None`` if it did not.
    """

    solo: Solo
    slowdown: float | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Bag:
    """Applications at the same time on one device.

    Parameters
    ----------
    name
        Its name.
    device
        Key of the device.
    members
        The applications; one may be there twice.
    configuration
        Settings of the device, and how it is shared, as JSON.
    repeat
        Number of the measurement among those of the same bag.
    fits
        Whether all fit on the device together; ``None`` where it is not known.
    time_s
        Time from the common start of a job of each to the end of the last, in seconds.
    overlap
        Share of that time in which all run.
    power_w
        Mean power of the device while all run, in watts.
    """

    name: str
    device: str
    members: tuple[Member, ...]
    configuration: str = "{}"
    repeat: int = 0
    fits: bool | None = None
    time_s: float | None = None
    overlap: float | None = None
    power_w: float | None = None

    @property
    def solos(self) -> tuple[Solo, ...]:
        """The members alone."""
        return tuple(member.solo for member in self.members)

    @property
    def applications(self) -> frozenset[str]:
        """Names of its applications."""
        return frozenset(member.solo.application for member in self.members)

    @property
    def failed(self) -> bool:
        """Whether a member failed."""
        return any(member.failure is not None for member in self.members)
