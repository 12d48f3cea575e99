"""A trace of jobs that a cluster ran, as its file tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crosscast.cluster.jobs import Reals
from crosscast.cluster.traces.swf_fields import NAMES
from crosscast.cluster.traces.swf_header import SwfHeader
from crosscast.cluster.traces.swf_jobs import CleanedJobs, Estimates, Overruns, cleaned
from crosscast.errors import InputError

__all__ = ["Trace"]


@dataclass(frozen=True)
class Trace:
    """A trace of ``n`` lines.

    Parameters
    ----------
    label
        What it is called, for people.
    header
        What its comments say.
    columns
        The fields of `crosscast.cluster.traces.swf_fields.NAMES`, each of shape ``(n,)``, in SI units; not a
        number where nothing is known.

    Raises
    ------
    InputError
        If a column is missing, unknown or of another length.
    """

    label: str
    header: SwfHeader
    columns: Mapping[str, Reals]

    def __post_init__(self) -> None:
        """Check the columns."""
        for name in NAMES:
            if name not in self.columns:
                raise InputError(f"trace {self.label}: column {name!r} is missing")
        for name, column in self.columns.items():
            if name not in NAMES:
                raise InputError(f"trace {self.label}: unknown column {name!r}, expected {', '.join(NAMES)}")
            if column.shape != (len(self),):
                found = column.shape[0] if column.ndim == 1 else column.shape
                raise InputError(f"trace {self.label}: {name}: expected {len(self)} numbers, found {found}")

    def __len__(self) -> int:
        """Number of lines."""
        return len(self.columns[NAMES[0]])

    def jobs(self, estimates: Estimates = "requested", overruns: Overruns = "header") -> CleanedJobs:
        """The jobs that a simulation can run, and what became of the others.

        Parameters
        ----------
        estimates
            What the scheduler knows: ``requested`` times (run times where none was requested), or ``exact``
            ones.
        overruns
            What becomes of jobs that ran longer than they requested: ``kill`` them at their request, let them
            ``run``, or do as the ``header`` says (AllowOveruse: No means to kill them).

        Raises
        ------
        InputError
            If an argument is none of these, or no job is left.
        """
        return cleaned(self.label, self.header, self.columns, estimates, overruns)
