"""Recorded programs that commands are asked about."""

from __future__ import annotations

from pathlib import Path

from crosscast.characterization.run import Options
from crosscast.commands.launch import run_launch
from crosscast.tracing.summary import Replayed, Summary, Trace, replayed, summary_of

__all__ = ["replay_trace"]


def replay_trace(folder: Path, options: Options | None = None) -> tuple[Summary, list[Replayed]]:
    """Sum up a recorded program, and characterize a launch of each class; how far that is shows."""
    how = options or Options(sample_groups="auto")
    summary = summary_of(Trace(folder))
    return summary, replayed(summary, lambda launch, number: run_launch(launch, number, how))
