"""A plan: which jobs share a device, which run alone, and what that gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosscast.predict.corun.forecast import Ranged
from crosscast.tables.corun.solo import Solo

__all__ = ["JobAlone", "Plan", "SharedBag"]


@dataclass(frozen=True)
class SharedBag:
    """Jobs that are to share the device.

    Parameters
    ----------
    jobs
        Places of the jobs among those that were given, ascending.
    solos
        The jobs, in that order.
    slowdown
        Of each: time while all run over its time alone.
    fits
        Probability that they fit on the device together; ``None`` where the model does not tell.
    serial_s
        Time that they take one after another, in seconds.
    gain_s
        That less the time together, in seconds: the mean by errors of the model. The interval may reach below
        0.
    worth_s
        What was maximized: the gain to be expected if they run one after another where they lose or do not
        fit, in seconds.
    warnings
        What makes it doubtful; sentences without a full stop.
    """

    jobs: tuple[int, ...]
    solos: tuple[Solo, ...]
    slowdown: tuple[Ranged, ...]
    fits: float | None
    serial_s: float
    gain_s: Ranged
    worth_s: float
    warnings: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What it is, for people."""
        return " + ".join(solo.name for solo in self.solos)

    @property
    def together_s(self) -> float:
        """Predicted time from the common start to the end of the last, in seconds."""
        return self.serial_s - self.gain_s.value


@dataclass(frozen=True)
class JobAlone:
    """A job that is to run alone.

    Parameters
    ----------
    job
        Its place among those that were given.
    solo
        The job.
    time_s
        Time that it takes, in seconds.
    reasons
        How many of the other jobs are no partners for which reason, see `crosscast.choose.pairing.pairs`.
    reason
        The same as a sentence without a full stop.
    """

    job: int
    solo: Solo
    time_s: float
    reasons: Mapping[str, int]
    reason: str


@dataclass(frozen=True)
class Plan:
    """What is to be done with jobs.

    Parameters
    ----------
    shared
        Bags, in the order of their first jobs.
    alone
        Jobs that run alone, in their order.
    serial_s
        Time of all jobs one after another, in seconds.
    gain_s
        What all bags gain together, each weighed by the probability that it fits, in seconds.
    level
        Probability that was asked of intervals.
    """

    shared: tuple[SharedBag, ...]
    alone: tuple[JobAlone, ...]
    serial_s: float
    gain_s: Ranged
    level: float

    @property
    def time_s(self) -> Ranged:
        """Time of all bags and single jobs, one bag after another, in seconds."""
        gain = self.gain_s
        return Ranged(
            self.serial_s - gain.value, self.serial_s - gain.high, self.serial_s - gain.low, gain.reached
        )

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Everything as a JSON object.

        Parameters
        ----------
        names
            What to call each job, such as its file.
        """
        return {
            "shared": [
                {
                    "jobs": [
                        {
                            "job": names[job],
                            "application": solo.application,
                            "size": solo.size,
                            "slowdown": slowdown.to_dict(),
                        }
                        for job, solo, slowdown in zip(each.jobs, each.solos, each.slowdown, strict=True)
                    ],
                    "fits": each.fits,
                    "together_s": each.together_s,
                    "one_after_another_s": each.serial_s,
                    "gain_s": each.gain_s.to_dict(),
                    "worth_s": each.worth_s,
                    "warnings": list(each.warnings),
                }
                for each in self.shared
            ],
            "alone": [
                {
                    "job": names[each.job],
                    "application": each.solo.application,
                    "size": each.solo.size,
                    "time_s": each.time_s,
                    "no_partner": dict(each.reasons),
                    "reason": each.reason,
                }
                for each in self.alone
            ],
            "time_s": self.time_s.to_dict(),
            "one_after_another_s": self.serial_s,
            "gain_s": self.gain_s.to_dict(),
            "level": self.level,
        }
