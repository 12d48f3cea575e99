"""What jobs are made of that run a kernel: how many nodes, how long, and what their users know of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.cluster.jobs import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.relative.data import NO_SOURCE, Observations

__all__ = ["JobShape"]

_NODES = "nodes"
_MOST_PROCS = 2**31 - 1
_MOST_REPEATS = 2**53


@dataclass(frozen=True)
class JobShape:
    """What a dataset does not say of jobs.

    Parameters
    ----------
    job_procs
        Processors or nodes that jobs occupy; at least 1. There is a type of job for each of several numbers,
        which all take as long: twice the nodes do twice the work. A number may be there several times, for
        jobs of it to be drawn as much more often. By default the ``nodes`` that a run was set to, or 1 where
        nothing says.
    job_s
        How long jobs take, in seconds: each is its kernel, repeated as often as comes closest to this at the
        geometric mean over all devices, and at least once. By default jobs are one invocation, as in section
        VII of Nichols et al. 2024.
    gpu_applications
        Applications that users know to run on GPUs; by default all, as what was measured on GPUs does.
    job_source
        For profiles of no device: the device on which a job's time is known, by which predicted vectors are
        seconds; by default none.

    Raises
    ------
    InputError
        If there is no number of processors, or one below 1, or the time is not above 0.
    """

    job_procs: Sequence[int] | None = None
    job_s: float | None = None
    gpu_applications: Collection[str] | None = None
    job_source: str | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        counts = self.job_procs
        if counts is not None and not (counts and all(1 <= count <= _MOST_PROCS for count in counts)):
            found = ", ".join(map(str, counts)) or "none"
            raise InputError(f"job_procs: expected numbers from 1 to {_MOST_PROCS}, found {found}")
        if self.job_s is not None and not (self.job_s > 0 and np.isfinite(self.job_s)):
            raise InputError(f"job_s: expected a time above 0 s, found {self.job_s}")

    def check(self, seen: Observations, devices: Sequence[str]) -> None:
        """Refuse what does not fit the runs that jobs are to be made of.

        Parameters
        ----------
        seen
            The runs.
        devices
            Devices on which they have times.

        Raises
        ------
        InputError
            If there is no such application or device, the counters are of devices of their own, or a run was
            set to no whole number of nodes.
        """
        applications = sorted(set(seen.application))
        for name in self.gpu_applications or ():
            if name not in applications:
                raise InputError(
                    f"gpu_applications: expected some of {', '.join(applications)}, found {name!r}"
                )
        if self.job_source is not None:
            own = sorted(set(seen.source) - {NO_SOURCE})
            if own:
                raise InputError(
                    f"job_source: expected it of profiles, which are of no device, found counters of "
                    f"{', '.join(own)}"
                )
            if self.job_source not in devices:
                raise InputError(
                    f"job_source: expected one of {', '.join(devices)}, found {self.job_source!r}"
                )
        if self.job_procs is None:
            for row in range(len(seen)):
                _nodes(seen, row)

    def procs_of(self, seen: Observations, row: int) -> Sequence[int]:
        """Processors of each type of job of a run's work."""
        return [_nodes(seen, row)] if self.job_procs is None else self.job_procs

    def uses_gpu(self, application: str) -> bool:
        """Whether users know an application as one for GPUs."""
        return self.gpu_applications is None or application in self.gpu_applications

    def repeats_of(self, times_s: Reals) -> Integers:
        """How often jobs run their kernels, of shape ``(c,)``.

        Parameters
        ----------
        times_s
            Time of an invocation on each device in seconds, of shape ``(c, d)``, above 0.

        Raises
        ------
        InputError
            If that is too often to count: more than 2^53 times.
        """
        if self.job_s is None:
            return np.ones(len(times_s), dtype=np.int64)
        typical_s = np.exp(np.log(times_s).mean(axis=1))
        repeats = np.maximum(np.round(self.job_s / typical_s), 1)
        if repeats.max() > _MOST_REPEATS:
            raise InputError(
                f"job_s: expected at most 2^53 times as long as each kernel, found {self.job_s:g} s for one "
                f"of {typical_s.min():g} s"
            )
        counted: Integers = repeats.astype(np.int64)
        return counted


def _nodes(seen: Observations, row: int) -> int:
    """Nodes of a run, where its settings say."""
    if _NODES not in seen.configuration:
        return 1
    nodes = float(seen.settings[row, seen.configuration.index(_NODES)])
    if np.isnan(nodes):
        return 1
    if not (nodes.is_integer() and 1 <= nodes <= _MOST_PROCS):
        raise InputError(
            f"setting {_NODES}: {seen.application[row]}, {seen.kernel[row]}: expected a whole number from 1 "
            f"to {_MOST_PROCS}, found {nodes:g}"
        )
    return int(nodes)
