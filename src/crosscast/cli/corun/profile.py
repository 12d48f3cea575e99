"""``crosscast corun profile``: what predictions of co-running need to know of an application."""

from __future__ import annotations

import json as json_format
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosscast.cli.corun.label_status import LabelStatus
from crosscast.cli.options import Flag, Whole
from crosscast.cli.places import check_file
from crosscast.cli.subject import subject_of

if TYPE_CHECKING:
    from crosscast.measure.opencl.devices import OpenCLDevice
    from crosscast.measure.subjects import LaunchFile, SuiteProblem

__all__ = ["profile"]


def profile(
    what: str,
    /,
    *,
    device: str | None = None,
    size: Literal["tiny", "small", "medium", "large"] | None = None,
    out: Path | None = None,
    cpu: str = "auto",
    no_mix: Flag = False,
    round_time: float = 0.2,
    window: float = 0.6,
    jobs: Whole = 3,
    sensor: str = "auto",
    timeout: float = 60.0,
    json: Flag = False,
) -> None:
    """Profile an application on a device: alone, and beside each of three microbenchmarks.

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
    no_mix
        Do not characterize the application for its instruction mix, which takes long for large problems.
    round_time
        Seconds that a job takes alone at least.
    window
        Seconds that a mix runs together at least.
    jobs
        Whole jobs of each co-runner in that time at least.
    sensor
        `auto`, `none`, `rapl`, `nvml` or `replay:PATH`.
    timeout
        Seconds after which an application that does not answer is given up.
    json
        Print one JSON object.
    """
    subject = subject_of(what, size)
    # Imported here: `--help` needs no OpenCL.
    from crosscast.measure.corun.calibration import calibrate
    from crosscast.measure.corun.crew import Crew
    from crosscast.measure.corun.profile import profile_of
    from crosscast.measure.corun.settings import CoRunSettings
    from crosscast.measure.opencl.describe import known_row, static_facts
    from crosscast.measure.opencl.devices import devices, find
    from crosscast.report.corun_profile import CoRunProfile, print_corun_profile
    from crosscast.tables.corun.profile_file import write_profile

    target = devices()[0] if device is None else find(device)
    name = _name(subject)
    path = out or Path(f"{name[0]}.json" if size is None else f"{name[0]}-{size}.json")
    check_file("--out", path)
    settings = CoRunSettings(round_time, window, jobs, timeout_s=timeout, sensor=sensor)
    row = known_row(target)
    with LabelStatus() as status, ExitStack() as crews:
        crew = crews.enter_context(Crew(target, settings))
        host = _host(cpu, target)
        mix, notes = ({}, []) if no_mix else _mix(subject, status)
        calibration = calibrate(crew, target.id, static_facts(target), status)
        found = profile_of(
            name,
            subject,
            target,
            crew,
            calibration,
            mix=mix,
            on_cpu=None if host is None else (host, crews.enter_context(Crew(host, settings))),
            note=status,
        )
    write_profile(found.solo, row, path)
    done = CoRunProfile(found.solo, target.id, target.name, calibration, [*notes, *found.notes], path)
    if json:
        print(json_format.dumps(done.to_dict(), allow_nan=False))
    else:
        print_corun_profile(done, sys.stdout)
    print(f"wrote {path}", file=sys.stderr)


def _name(subject: SuiteProblem | LaunchFile) -> tuple[str, str]:
    from crosscast.measure.subjects import LaunchFile, identity, load

    # A launch file is read here already, so that a wrong one is refused before anything runs.
    found = load(subject) if isinstance(subject, LaunchFile) else identity(subject)
    return found.name, found.size


def _host(cpu: str, target: OpenCLDevice) -> OpenCLDevice | None:
    """CPU that tells the features of one, for a device that is none."""
    from crosscast.measure.opencl.devices import devices, find

    if target.type == "cpu" or cpu == "none":
        return None
    if cpu != "auto":
        return find(cpu)
    return next((device for device in devices() if device.type == "cpu"), None)


def _mix(subject: SuiteProblem | LaunchFile, status: LabelStatus) -> tuple[dict[str, float], list[str]]:
    """Shares of the instructions, or why there are none."""
    from crosscast.errors import CrosscastError, MissingExtraError
    from crosscast.measure.child import run_job
    from crosscast.measure.corun.mix import TIMEOUT_S
    from crosscast.measure.jobs import MixJob

    job = MixJob(subject, TIMEOUT_S)
    status(f"characterize {job.label}")
    try:
        return dict(run_job(job, TIMEOUT_S)["mix"]), []
    except MissingExtraError:
        raise
    except CrosscastError as error:
        return {}, [f"no instruction mix: {error}"]
