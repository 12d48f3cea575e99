"""Jobs that a scheduler places, queues and runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from crosscast.errors import InputError

__all__ = ["Integers", "Jobs", "Reals"]

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Jobs:
    """``n`` jobs in the order in which they are submitted; ties keep the order in which they are given.

    Times of a job are per machine, of shape ``(n, m)``, or ``(n, 1)`` where they are the same on all.

    Parameters
    ----------
    number
        Number of each job in its trace, of shape ``(n,)``, for people and files.
    submit_s
        When each is submitted, in seconds from any start, of shape ``(n,)``; never less than the one before.
    procs
        Processors (or nodes: what machines are counted in) that each occupies, of shape ``(n,)``; at least 1.
    run_s
        How long each runs, in seconds; infinite on a machine that cannot run it.
    estimate_s
        How long the scheduler thinks it will run, in seconds.
    user
        Place of each job's user in `users`, of shape ``(n,)``; ``None`` if nothing is known of users.
    users
        Names of users.

    Raises
    ------
    InputError
        If the arrays do not fit together, or hold what they must not; the message names the field and job.
    """

    number: Integers
    submit_s: Reals
    procs: Integers
    run_s: Reals
    estimate_s: Reals
    user: Integers | None = None
    users: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Check the arrays."""
        count = len(self.number)
        for name in ("submit_s", "procs"):
            if getattr(self, name).shape != (count,):
                raise InputError(f"jobs: {name}: expected {count} numbers, found {getattr(self, name).shape}")
        for name in ("run_s", "estimate_s"):
            times = getattr(self, name)
            if times.ndim != 2 or len(times) != count:
                raise InputError(f"jobs: {name}: expected shape ({count}, machines), found {times.shape}")
            # Not so of what is not a number, either.
            self._refuse(~(times.min(axis=1) >= 0), name, "times of at least 0 s")
        self._refuse(np.isinf(self.run_s.min(axis=1)), "run_s", "a machine on which it runs")
        self._refuse(~np.isfinite(self.submit_s), "submit_s", "a time")
        self._refuse(np.diff(self.submit_s, prepend=-np.inf) < 0, "submit_s", "no time before the last one's")
        self._refuse(self.procs < 1, "procs", "at least 1")

    def __len__(self) -> int:
        """Number of jobs."""
        return len(self.number)

    def _refuse(self, wrong: npt.NDArray[np.bool_], name: str, expected: str) -> None:
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"jobs: job {self.number[row]}: {name}: expected {expected}, found {getattr(self, name)[row]}"
            )

    def killed_at_estimate(self) -> Jobs:
        """The jobs, none of which runs longer than it was expected to: they are killed then."""
        return replace(self, run_s=np.minimum(self.run_s, self.estimate_s))

    def with_estimates(self, estimate_s: Reals) -> Jobs:
        """The jobs with other estimates, of shape ``(n, m)`` or ``(n, 1)``; exact ones are `run_s`."""
        return replace(self, estimate_s=estimate_s)
