"""What a member of a bag does."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.errors import InputError
from crosscast.measure.subjects import Subject

__all__ = ["Work"]


@dataclass(frozen=True)
class Work:
    """Jobs of one application: a job is a number of its runs.

    Parameters
    ----------
    subject
        What runs.
    runs
        Runs in a job; ``None`` for the fewest that take `CoRunSettings.round_s` alone.
    """

    subject: Subject
    runs: int | None = None

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise InputError(f"runs: expected at least 1, found {self.runs}")
