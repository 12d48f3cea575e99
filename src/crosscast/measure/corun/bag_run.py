"""What measuring a bag gives."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["BagRun", "MemberRun"]


@dataclass(frozen=True)
class MemberRun:
    """What one member did in a bag.

    Parameters
    ----------
    runs
        Runs of the application in a job; ``None`` if it failed before they were counted.
    times_s
        Time of each job that lies wholly in the window in which all members ran, in seconds; empty where
        there was no such window.
    cpu_s
        CPU time of a job of those, in seconds; ``None`` where it is not known.
    counters
        What the CPU counted in a job of those, by event, without those that it does not count.
    memory_bytes
        Memory of the device that it takes, in bytes; ``None`` if it failed before that was known.
    failure
        Why it failed, in one sentence; ``None`` if it did not.
    """

    runs: int | None = None
    times_s: list[float] = field(default_factory=list)
    cpu_s: float | None = None
    counters: dict[str, float] = field(default_factory=dict)
    memory_bytes: int | None = None
    failure: str | None = None


@dataclass(frozen=True)
class BagRun:
    """What came of a bag.

    Parameters
    ----------
    members
        What each member did, in the order in which they were given.
    bag_times_s
        Time from the common start of one job of each member to the end of the last, in seconds, of each
        round; empty if a member failed.
    overlap
        Share of a round in which all members ran, the median of the rounds; ``None`` if a member failed.
    powers_w
        Mean power while all members ran, in watts, by domain of the sensor; empty without a sensor.
    sharing
        How the device is shared, and what it is restricted to: settings for the configuration.
    notes
        What went wrong without ending it, for people.
    """

    members: tuple[MemberRun, ...]
    bag_times_s: list[float] = field(default_factory=list)
    overlap: float | None = None
    powers_w: dict[str, float] = field(default_factory=dict)
    sharing: dict[str, str | int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether a member failed."""
        return any(member.failure is not None for member in self.members)
