"""Profiles of subjects of measurements, characterized in this process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crosscast.characterization.engine.child import Options
from crosscast.characterization.launchfiles.launchfile import read_launches
from crosscast.characterization.metrics import instruction_mix
from crosscast.characterization.run import characterize_launch
from crosscast.data.profiles import to_row
from crosscast.errors import InputError
from crosscast.measure.processes import CharacterizeJob, InstructionMixJob, Send
from crosscast.measure.subjects import Identity, LaunchFile, SuiteProblem, load
from crosscast.profile import Profile
from crosscast.suite.application import Application
from crosscast.suite.profiles import profiles_of


def answer(job: CharacterizeJob | InstructionMixJob, send: Send) -> None:
    """Do the job of a measuring process."""
    if isinstance(job, InstructionMixJob):
        send(answer={"mix": instruction_mix_of(job.subject, job.timeout_s)})
    else:
        send(answer={"profiles": profile_rows(job.subject, job.timeout_s)})


def characterized(subject: SuiteProblem | LaunchFile, options: Options) -> list[Profile]:
    """Characterize all launches of a run in this process."""
    if isinstance(subject, LaunchFile):
        launches = read_launches(Path(subject.path))
        return [characterize_launch(launch, options=options) for launch in launches]
    application = load(subject).application
    assert isinstance(application, Application)
    return profiles_of(application, subject.size, options=options)


def instruction_mix_of(subject: SuiteProblem | LaunchFile, timeout_s: float) -> dict[str, float]:
    """Return the share of each class of instructions in a run, characterized in this process."""
    return instruction_mix(characterized(subject, Options(timeout_s=timeout_s)))


def profile_rows(problem: SuiteProblem, timeout_s: float) -> list[dict[str, object]]:
    """Characterize an application in this process; return rows of the table of profiles.

    Rows have the problem, but neither timings of the characterization nor the folder of the source.
    """
    loaded = load(problem)
    application = loaded.application
    assert isinstance(application, Application)
    profiles = profiles_of(application, problem.size, options=Options(optimize=True, timeout_s=timeout_s))
    if not profiles:
        raise InputError(f"{application.name}: expected a run to launch kernels, found none")
    return [to_row(_reproducible(profile, loaded)) for profile in profiles]


def _reproducible(profile: Profile, subject: Identity) -> Profile:
    problem: dict[str, object] = {"parameters": dict(subject.parameters), "seed": subject.seed}
    if subject.source_sha256 != subject.program.sha256:
        problem["source_sha256"] = subject.source_sha256
    return replace(
        profile,
        timing_s={},
        launch={**profile.launch, "problem": problem},
        program={**profile.program, "path": Path(str(profile.program["path"])).name},
    )
