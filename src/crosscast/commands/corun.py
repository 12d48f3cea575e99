"""``crosscast corun``: profiles of isolated runs, and campaigns of mixes that share a device."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from crosscast.cli.machine import CorunCampaign, CorunProfile
from crosscast.commands.dataset import print_outcome
from crosscast.commands.output import (
    LabelStatus,
    TaskStatus,
    check_file,
    confirm,
    print_json,
    say,
    show,
    tell,
)
from crosscast.data.corun import write_profile
from crosscast.measure import host_state, inventory
from crosscast.measure.corun import CoRunSettings
from crosscast.measure.corun import campaign as corun_campaign
from crosscast.measure.corun.crew import Crew
from crosscast.measure.corun.profile import calibrate_stressors, profile_of
from crosscast.measure.measurement import subject_of
from crosscast.measure.opencl import OpenCLDevice, devices, find
from crosscast.measure.subjects import LaunchFile, SuiteProblem, expect_installed, identity, load
from crosscast.prediction import store
from crosscast.prediction.named_models import named_models
from crosscast.report.measured import CoRunProfile, corun_profile_report
from crosscast.suite.application import TYPICAL, names, selected, working_set
from crosscast.units import format_seconds

_FAILED = 1

_MANY_MIXES, _FEWER_MIXES = 500, 100

_SHORT_MIXES = 60
"""Number of mixes for a first model of a device."""


def campaign(options: CorunCampaign) -> int:
    """Run ``crosscast corun campaign``."""
    applications = selected(options.suite)
    expect_installed(applications)
    target = find(options.device)
    for name in options.sizes:
        working_set(name)
    plan = corun_campaign.CoRunPlan(
        applications=applications,
        sizes=tuple(options.sizes),
        device=target,
        caches=TYPICAL,
        settings=CoRunSettings(
            options.round_s,
            options.jobs,
            timeout_s=options.timeout,
            sensor=options.sensor,
            threads=options.threads,
        ),
        mixes=tuple(options.mixes or (2,)),
        most_mixes=options.most_mixes,
        seed=options.seed,
        cpu=_host(target),
        characterize=not options.no_instruction_mix,
    )
    say(f"{plan.text}")
    if max(wanted for wanted, _ in plan.mix_counts.values()) > _MANY_MIXES:
        say(f"--most-mixes {_FEWER_MIXES} measures a random sample of so many of each size")
    with TaskStatus() as status:
        outcome = corun_campaign.run_corun_campaign(plan, options.out, status, confirm)
    print_outcome(outcome)
    if options.json:
        print_json(outcome.to_dict())
    else:
        done = f"{outcome.done} done now, {outcome.kept} there before"
        print(f"{options.out}: {done}, {len(outcome.failures)} failed")
    return _FAILED if outcome.failures else 0


def profile(options: CorunProfile) -> None:
    """Run ``crosscast corun profile``."""
    subject = subject_of(options.what, options.size)
    target = find(options.device)
    name = _name(subject)
    path = options.out or Path("-".join(filter(None, (name[0], options.size))) + ".json")
    check_file("--out", path)
    doubts = host_state.doubts()
    settings = CoRunSettings(options.round_s, options.jobs, timeout_s=options.timeout, sensor=options.sensor)
    row = inventory.known_row(target)
    _tell_other_device(target)
    with LabelStatus() as status, ExitStack() as crews:
        crew = crews.enter_context(Crew(target, settings))
        host = _host(target)
        calibration = calibrate_stressors(crew, target.id, row, status)
        measured = profile_of(
            name,
            subject,
            target,
            crew,
            calibration,
            characterize=not options.no_instruction_mix,
            on_cpu=None if host is None else (host, crews.enter_context(Crew(host, settings))),
            note=status,
        )
    write_profile(measured.isolated_run, row, path)
    notes = [*doubts, *measured.notes]
    result = CoRunProfile(measured.isolated_run, target.id, target.name, calibration, notes, path)
    show(options.output, result.to_dict, lambda: corun_profile_report(result))
    tell(f"wrote {path}")


def _tell_other_device(target: OpenCLDevice) -> None:
    """Note before the work that no model covers this device, and how to train one."""
    known = {store.read(model.folder).card["device"]: model.name for model in named_models("corun")}
    if target.key in known:
        return
    models = ", ".join(f"{name} is of {device}" for device, name in known.items())
    duration = format_seconds(round(corun_campaign.duration_s(len(names()), _SHORT_MIXES)))
    tell(
        f"crosscast: note: no named model forecasts what shares {target.key} ({models}). One of "
        f"your own takes about {duration}: crosscast corun campaign --device {target.id} --sizes tiny "
        f"--most-mixes {_SHORT_MIXES} --out corun/, crosscast train corun corun/ --out co/, and --model co/"
    )


def _name(subject: SuiteProblem | LaunchFile) -> tuple[str, str]:
    # A launch file is read here already, so that errors in it are raised before anything runs.
    application = load(subject) if isinstance(subject, LaunchFile) else identity(subject)
    return application.name, application.size


def _host(target: OpenCLDevice) -> OpenCLDevice | None:
    """CPU on which features are measured, for a device that is not a CPU."""
    if target.type == "cpu":
        return None
    return next((device for device in devices() if device.type == "cpu"), None)
