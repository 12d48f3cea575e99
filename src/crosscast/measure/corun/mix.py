"""The instruction mix of what is measured, from a run of all its launches that is characterized."""

from __future__ import annotations

from pathlib import Path

from crosscast.characterization import run
from crosscast.characterization.instruction_mix import instruction_mix
from crosscast.characterization.launchfiles.launches import read_launches
from crosscast.measure.subjects import LaunchFile, SuiteProblem, load
from crosscast.suite.application import Application
from crosscast.suite.profiles import profiles_of

__all__ = ["TIMEOUT_S", "mix_here"]

TIMEOUT_S = 600.0
"""Seconds after which characterizing an application is given up: it takes much longer than a run."""


def mix_here(subject: SuiteProblem | LaunchFile, timeout_s: float) -> dict[str, float]:
    """Share of each class of instructions in a run, characterized in this process.

    Parameters
    ----------
    subject
        An application, or a launch file.
    timeout_s
        Longest time of a launch, in seconds.

    Returns
    -------
    dict
        As `crosscast.characterization.instruction_mix.instruction_mix` gives it.

    Raises
    ------
    InputError
        If there is no such application, or the file or a launch is wrong.
    KernelFault
        If a kernel fails.
    CheckFailed
        If the result is wrong.
    """
    options = run.Options(timeout_s=timeout_s)
    if isinstance(subject, LaunchFile):
        launches = read_launches(Path(subject.path))
        return instruction_mix(run.characterize_launch(launch, options=options) for launch in launches)
    application = load(subject).application
    assert isinstance(application, Application)
    return instruction_mix(profiles_of(application, subject.size, options=options))
