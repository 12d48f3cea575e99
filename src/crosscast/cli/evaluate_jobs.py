"""``crosscast evaluate --write-jobs``: what was held out as types of jobs, for ``crosscast schedule``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.words import words_of
from crosscast.cli.written import check_file
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.cluster.job_shape import JobShape
    from crosscast.evaluation.relative import RelativeEvaluation

__all__ = ["JobOptions"]

_SUFFIX = ".parquet"


@dataclass(frozen=True)
class JobOptions:
    """What was typed; ``None`` where nothing was.

    Parameters
    ----------
    write_jobs, job_seconds, job_procs, job_source, gpu_applications
        As `crosscast.cli.evaluate.evaluate` has them.
    """

    write_jobs: Path | None = None
    job_seconds: float | None = None
    job_procs: str | None = None
    job_source: str | None = None
    gpu_applications: str | None = None

    def given(self) -> list[str]:
        """Options that were typed."""
        found = {
            "--write-jobs": self.write_jobs,
            "--job-seconds": self.job_seconds,
            "--job-procs": self.job_procs,
            "--job-source": self.job_source,
            "--gpu-applications": self.gpu_applications,
        }
        return [option for option, value in found.items() if value is not None]

    def shape(self) -> JobShape | None:
        """What jobs are to be, if they are to be written.

        Raises
        ------
        InputError
            If an option is not as expected or says nothing, or the file cannot be written.
        """
        if self.write_jobs is None:
            for option in self.given():
                raise InputError(f"{option}: nothing to say without --write-jobs; leave the option out")
            return None
        from crosscast.cluster.job_shape import JobShape

        check_file("--write-jobs", self.write_jobs)
        if self.write_jobs.suffix != _SUFFIX:
            raise InputError(
                f"--write-jobs: expected a file name with {_SUFFIX}, found {self.write_jobs.name!r}"
            )
        words = self.gpu_applications
        return JobShape(
            job_procs=None if self.job_procs is None else _numbers(self.job_procs),
            job_s=self.job_seconds,
            gpu_applications=None if words is None else words_of("--gpu-applications", words),
            job_source=self.job_source,
        )

    def write(self, evaluation: RelativeEvaluation, shape: JobShape) -> None:
        """Write what the first model predicted, and say what there is.

        Raises
        ------
        InputError
            If jobs cannot be made of it, or the file cannot be written.
        """
        from crosscast.cluster.held_out_jobs import held_out_jobs
        from crosscast.cluster.jobs_table import write_job_types
        from crosscast.evaluation.relative import predictions_of

        types = held_out_jobs(predictions_of(evaluation), shape)
        path = Path(str(self.write_jobs))
        write_job_types(types, path)
        print(f"wrote {path} ({len(types):,} types of jobs, predicted by {types.model[0]})", file=sys.stderr)


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError(f"--job-procs: expected numbers such as 1,1,2, found {text[:60]!r}") from None
