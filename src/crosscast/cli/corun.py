"""``crosscast corun``: profiles and campaigns of applications that share a device, and translated times."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import cyclopts
from cyclopts import Parameter

from crosscast.cli.options import (
    OUTPUT,
    Flag,
    JsonFlag,
    Numbers,
    Output,
    Whole,
    check_file,
    dataset_named,
    names_in,
    print_json,
    tell,
)
from crosscast.cli.running import LabelStatus, TaskStatus, confirm, print_outcome
from crosscast.units import format_seconds

if TYPE_CHECKING:
    from crosscast.measure.opencl import OpenCLDevice
    from crosscast.measure.subjects import LaunchFile, SuiteProblem


_FAILED = 1
_MANY_MIXES, _FEWER_MIXES = 500, 100
_SHORT_MIXES = 60
"""Mixes that are enough for a first model of a device."""


def campaign(
    *,
    out: Path,
    device: str | None = None,
    suite: str = "all",
    sizes: str = "tiny,small",
    mixes: Numbers | None = None,
    most_mixes: Whole | None = None,
    seed: Whole = 0,
    no_instruction_mix: Flag = False,
    round_time: float = 0.2,
    jobs: Whole = 3,
    threads: Whole | None = None,
    sensor: str = "auto",
    timeout: float = 60.0,
    json: JsonFlag = False,
) -> int:
    """Measure applications in isolation, beside stressors, and in mixes, into a dataset.

    An interrupted campaign resumes when the same command is run again; one with more sizes, applications or
    mixes adds to the dataset. What fails is recorded as failed, and the campaign continues; the exit code is
    1 then.

    Parameters
    ----------
    out
        Folder of the dataset.
    device
        Id of the device, as `crosscast devices` shows it; by default the first one.
    suite
        Applications, separated by commas: `all`, folders of your own (docs/suite.md), or names of the suite.
    sizes
        Problem sizes, separated by commas: `tiny`, `small`, `medium`, `large`. A mix may have several.
    mixes
        Numbers of applications in a mix, separated by commas; one application may be in it several times.
        By default 2.
    most_mixes
        Maximum number of randomly sampled mixes per size; by default all.
    seed
        Random seed.
    no_instruction_mix
        Do not characterize the applications for their instruction mixes.
    round_time
        Minimum time of a job in isolation, in seconds: runs of the application are repeated to fill it.
    jobs
        Whole jobs of each co-runner, at least, that are timed while all run; then all start one together, as
        often.
    threads
        Threads that each co-runner may use on a CPU device of PoCL; by default all cores.
    sensor
        Energy sensor: `auto`, `none`, `rapl`, `nvml` or `replay:PATH`.
    timeout
        Seconds without an answer after which an application is recorded as failed.
    """
    # Imported here: `--help` needs no OpenCL and no pyarrow.
    from crosscast.measure.subjects import expect_installed
    from crosscast.suite.registry import selected

    applications = selected(names_in("--suite", suite))
    expect_installed(applications)
    # Imported here, as they need what the line above found.
    from crosscast.measure.corun.campaign import CoRunPlan, run_corun_campaign
    from crosscast.measure.corun.run import CoRunSettings
    from crosscast.measure.opencl import find
    from crosscast.suite.application import TYPICAL, working_set

    names = names_in("--sizes", sizes)
    target = find(device)
    for name in names:
        working_set(name)
    plan = CoRunPlan(
        applications=applications,
        sizes=tuple(names),
        device=target,
        caches=TYPICAL,
        settings=CoRunSettings(round_time, jobs, timeout_s=timeout, sensor=sensor, threads=threads),
        mixes=tuple(mixes or (2,)),
        most_mixes=most_mixes,
        seed=seed,
        cpu=_host("auto", target),
        characterize=not no_instruction_mix,
    )
    tell(f"crosscast: {plan.text}")
    if max(wanted for wanted, _ in plan.mix_counts.values()) > _MANY_MIXES:
        tell(f"crosscast: --most-mixes {_FEWER_MIXES} measures a random sample of so many of each size")
    with TaskStatus() as status:
        outcome = run_corun_campaign(plan, out, status, confirm)
    print_outcome(outcome)
    if json:
        print_json(outcome.to_dict())
    else:
        print(f"{out}: {outcome.done} done now, {outcome.kept} there before, {len(outcome.failures)} failed")
    return _FAILED if outcome.failures else 0


def profile(
    what: str,
    /,
    *,
    device: str | None = None,
    size: Literal["tiny", "small", "medium", "large"] | None = None,
    out: Path | None = None,
    cpu: str = "auto",
    no_instruction_mix: Flag = False,
    round_time: float = 0.2,
    jobs: Whole = 3,
    sensor: str = "auto",
    timeout: float = 60.0,
    output: Output = OUTPUT,
) -> None:
    """Profile an application on a device: alone, and beside each of three stressors.

    WHAT is a launch file (`.toml`, `.sim`), or with `--size` an application: one of the suite or a folder of
    your own (docs/suite.md). What is found goes to a file that `crosscast predict corun` and
    `crosscast colocate` read; docs/corun.md says what each number means.

    Parameters
    ----------
    what
        Launch file, or name or folder of an application.
    device
        Id of the device, as `crosscast devices` shows it; by default the first one.
    size
        Size of the application's problem.
    out
        File to write; by default the name of the application and its size with `.json`, here.
    cpu
        Where the features of a CPU are measured if the device is none: `auto` (the first one), `none`, or an
        id.
    no_instruction_mix
        Do not characterize the application for its instruction mix, which takes long for large problems.
    round_time
        Minimum time of a job in isolation, in seconds: runs of the application are repeated to fill it.
    jobs
        Whole jobs of each co-runner, at least, that are timed while all run.
    sensor
        Energy sensor: `auto`, `none`, `rapl`, `nvml` or `replay:PATH`.
    timeout
        Seconds without an answer after which an application is recorded as failed.
    """
    output.check()
    # Imported here: `--help` needs no NumPy.
    from crosscast.measure.measurement import subject_of

    subject = subject_of(what, size)
    # Imported here: `--help` needs no OpenCL.
    from crosscast.data.isolated_runs import write_profile
    from crosscast.measure import host_state
    from crosscast.measure.corun.profile import calibrate, profile_of
    from crosscast.measure.corun.run import CoRunSettings, Crew
    from crosscast.measure.inventory import known_row, static_facts
    from crosscast.measure.opencl import find
    from crosscast.report.corun import CoRunProfile, corun_profile_report

    target = find(device)
    name = _name(subject)
    path = out or Path(f"{name[0]}.json" if size is None else f"{name[0]}-{size}.json")
    check_file("--out", path)
    doubts = host_state.doubts()
    settings = CoRunSettings(round_time, jobs, timeout_s=timeout, sensor=sensor)
    row = known_row(target)
    _tell_other_device(target)
    with LabelStatus() as status, ExitStack() as crews:
        crew = crews.enter_context(Crew(target, settings))
        host = _host(cpu, target)
        calibration = calibrate(crew, target.id, static_facts(target), status)
        found = profile_of(
            name,
            subject,
            target,
            crew,
            calibration,
            characterize=not no_instruction_mix,
            on_cpu=None if host is None else (host, crews.enter_context(Crew(host, settings))),
            note=status,
        )
    write_profile(found.solo, row, path)
    done = CoRunProfile(found.solo, target.id, target.name, calibration, [*doubts, *found.notes], path)
    output.show(done.to_dict, lambda: corun_profile_report(done))
    tell(f"wrote {path}")


def _tell_other_device(target: OpenCLDevice) -> None:
    """Say before the work that no model knows this device, and how to make one that does."""
    from crosscast.measure.corun.campaign import duration_s
    from crosscast.prediction import store
    from crosscast.prediction.named_models import named_models
    from crosscast.suite.registry import names

    known = {store.read(each.folder).card["device"]: each.name for each in named_models("corun")}
    if target.key in known:
        return
    models = ", ".join(f"{name} is of {device}" for device, name in known.items())
    lasting = format_seconds(round(duration_s(len(names()), _SHORT_MIXES)))
    tell(
        f"crosscast: note: no named model forecasts what shares {target.key} ({models}). One of "
        f"your own takes about {lasting}: crosscast corun campaign --device {target.id} --sizes tiny "
        f"--most-mixes {_SHORT_MIXES} --out corun/, crosscast train corun corun/ --out co/, and --model co/"
    )


def _name(subject: SuiteProblem | LaunchFile) -> tuple[str, str]:
    from crosscast.measure.subjects import LaunchFile, identity, load

    # A launch file is read here already, so that a wrong one is refused before anything runs.
    found = load(subject) if isinstance(subject, LaunchFile) else identity(subject)
    return found.name, found.size


def _host(cpu: str, target: OpenCLDevice) -> OpenCLDevice | None:
    """CPU that tells the features, for a device that is not a CPU."""
    from crosscast.measure.opencl import devices, find

    if target.type == "cpu" or cpu == "none":
        return None
    if cpu != "auto":
        return find(cpu)
    return next((device for device in devices() if device.type == "cpu"), None)


def translate(
    dataset: Path,
    /,
    *more: Path,
    from_: Annotated[str, Parameter(name="--from")],
    to: str,
    out: Path,
    output: Output = OUTPUT,
) -> None:
    """Fit a line that translates times on one device to times on another, and save it as a card.

    The line goes through the times of the same work on both devices: isolated runs, co-runners and whole
    mixes. A plain line, as published, and one through logarithms are cross-validated by application; the
    better one is kept. `crosscast predict corun --translate` uses the card.

    Parameters
    ----------
    dataset
        Dataset with isolated runs and mixes on both devices, or on one.
    more
        Further datasets, such as one of the other device.
    from_
        Device whose times are known.
    to
        Device whose times are predicted.
    out
        File for the card, JSON.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.data.corun import CoRuns, co_runs
    from crosscast.evaluation.translation import shared_times, train_translation
    from crosscast.prediction.corun.translation import write_translation
    from crosscast.report.corun import translation_report

    found = [co_runs(dataset_named(folder)) for folder in (dataset, *more)]
    together = CoRuns(
        found[0].label,
        tuple(solo for each in found for solo in each.solos),
        tuple(bag for each in found for bag in each.bags),
    )
    card = train_translation(shared_times(together, from_, to))
    write_translation(card, out)
    output.show(card.to_dict, lambda: translation_report(card))
    tell(f"wrote {out}")


app = cyclopts.App(
    name="corun",
    help="Profile applications, measure mixes that share a device, and translate times between devices.",
)

app.command(profile)
app.command(campaign)
app.command(translate)
