"""Profiles of an application as a dataset keeps them: the same each time that they are made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from crosscast.characterization.options import Options
from crosscast.errors import InputError
from crosscast.measure.subjects import Identity, SuiteProblem, load
from crosscast.profile import Profile
from crosscast.suite.application import Application
from crosscast.suite.profiles import profiles_of
from crosscast.tables.profiles import to_row

__all__ = ["profile_rows"]


def profile_rows(problem: SuiteProblem, timeout_s: float) -> list[dict[str, Any]]:
    """Characterize an application in this process; return rows of the table of profiles.

    They say nothing of how long that took or where the source lies, and name the problem instead.

    Parameters
    ----------
    problem
        The application.
    timeout_s
        Longest time of a launch, in seconds.

    Raises
    ------
    KernelFault
        If a kernel fails.
    CheckFailed
        If the result is wrong.
    InputError
        If the application launches nothing.
    """
    loaded = load(problem)
    application = loaded.application
    assert isinstance(application, Application)
    found = profiles_of(application, problem.size, options=Options(timeout_s=timeout_s))
    if not found:
        raise InputError(f"{application.name}: expected a run to launch kernels, found none")
    return [to_row(_lasting(profile, loaded)) for profile in found]


def _lasting(profile: Profile, subject: Identity) -> Profile:
    made_for: dict[str, Any] = {"parameters": dict(subject.parameters), "seed": subject.seed}
    if subject.source_sha256 != subject.program.sha256:
        made_for["source_sha256"] = subject.source_sha256
    return replace(
        profile,
        timing_s={},
        launch={**profile.launch, "problem": made_for},
        program={**profile.program, "path": Path(profile.program["path"]).name},
    )
