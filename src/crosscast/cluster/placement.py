"""Which machine each job goes to: decided when it is submitted, or when it could start."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.cluster.jobs import Integers, Reals

__all__ = ["Bound", "Completion", "Placement", "Preferred"]


@dataclass(frozen=True)
class Bound:
    """Each job waits for one machine.

    Parameters
    ----------
    machine
        Place of each job's machine, of shape ``(n,)``.
    """

    machine: Integers


@dataclass(frozen=True)
class Preferred:
    """Each job starts on the first machine of its list that has room when its turn comes.

    Algorithm 2 of Nichols et al. 2024: where all are full, it waits for the first of its list, by which its
    reservation is made.

    Parameters
    ----------
    order
        Places of machines, the best first, of shape ``(n, m)``; −1 at the end of rows of jobs that cannot run
        on all.
    """

    order: Integers


@dataclass(frozen=True)
class Completion:
    """Each job is bound, when it is submitted, to the machine where it should be finished first.

    A machine's wait is the work that is bound to it, waiting or running, in processor-seconds by the same
    predictions, over its processors; the job's own predicted time is added (minimum completion time).

    Parameters
    ----------
    predicted_s
        Predicted time of each job on each machine in seconds, of shape ``(n, m)``; infinite where it
        cannot run.
    """

    predicted_s: Reals


Placement = Bound | Preferred | Completion
