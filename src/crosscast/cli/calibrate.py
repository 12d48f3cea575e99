"""``crosscast calibrate``: what a device of this machine reaches, and how long kernels take on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.options import OUTPUT, Flag, Output, check_place, tell, warn
from crosscast.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from crosscast.measure.microbenchmarks.backends import Backend
    from crosscast.measure.microbenchmarks.bench import Microbenchmarks

__all__ = ["calibrate"]

_HOST = "host"


def calibrate(
    *,
    device: str | None = None,
    minutes: float = 2.0,
    name: str = "mine",
    facts_only: Flag = False,
    output: Output = OUTPUT,
) -> None:
    """Measure a device of this machine, so that forecasts, verdicts and choices know it by its name.

    First, in about ten seconds, what it reaches: bandwidth by working set, rates by class, launches, local
    memory, scattered access, transfers. That is written as a file of a device (`--device-file`). Then kernels
    of the suite are measured, and it joins the bundled model of times. What was measured is kept in
    `XDG_DATA_HOME/crosscast`, by default `~/.local/share/crosscast`: the same command resumes a calibration
    that was interrupted, and one with more minutes adds to it.

    Parameters
    ----------
    device
        Device id, as `crosscast devices` shows it, such as `pocl:0`, or platform and name, such as
        `pocl:amd-epyc-2cu`; or `host`, the CPU without OpenCL.
    minutes
        How long to measure kernels; with less than about a quarter, few can be measured.
    name
        What the device is called from now on.
    facts_only
        Stop after the first ten seconds.
    """
    output.check()
    if not 0 < minutes <= 24 * 60:
        raise InputError(f"--minutes: expected more than 0, at most {24 * 60}, found {minutes:g}")
    if device is None:
        raise InputError("--device: expected an id such as pocl:0 (crosscast devices lists them), or host")
    facts_only = facts_only or device == _HOST
    # Imported here: `--help` needs no OpenCL and no NumPy.
    from crosscast.cli.running import LabelStatus
    from crosscast.devices.catalogue import catalogue
    from crosscast.devices.device_files import check_name, own_folder
    from crosscast.measure.microbenchmarks.bench import SECONDS, measure
    from crosscast.report.document import Report
    from crosscast.report.microbenchmarks import microbenchmark_figures, microbenchmarks_report

    check_name(name)
    if name in catalogue():
        raise InputError(f"--name: expected one that no device of the catalogue has, found {name!r}")
    check_place("XDG_DATA_HOME", own_folder())
    if not facts_only:
        _check_suite(name)
    backend = _backend(device)
    tell(f"crosscast: measuring what {backend.name} reaches, in about {SECONDS} s")
    with LabelStatus() as status:
        facts = measure(backend, status)
    for doubt in facts.doubts:
        warn(doubt)
    path = _written(facts, name)
    reports, answer = [microbenchmarks_report(facts, path)], _facts_dict(facts, name, path)
    if not facts_only:
        from crosscast import calibration
        from crosscast.measure.opencl import find
        from crosscast.report.models import calibration_report

        tell(f"crosscast: measuring kernels for {60 * minutes:.0f} s, then fitting for some seconds")
        with LabelStatus() as status:
            found = calibration.calibrate(
                find(device), name, described=facts.device(name), seconds=60 * minutes, report=status
            )
        for note in found.notes:
            tell(f"crosscast: {note}")
        reports.append(calibration_report(found))
        answer |= found.to_dict()
    output.show(
        lambda: answer,
        lambda: Report([part for each in reports for part in each.parts]),
        lambda: microbenchmark_figures(facts),
    )


def _check_suite(name: str) -> None:
    from crosscast.measure.subjects import expect_installed
    from crosscast.suite.registry import selected

    expect_installed(selected(["all"]))
    from crosscast import calibration
    from crosscast.prediction.named_models import models_home

    calibration.check_name(name)
    check_place("XDG_DATA_HOME", models_home())


def _backend(device: str) -> Backend:
    from crosscast.measure.microbenchmarks.backends import HostBackend, OpenCLBackend

    if device == _HOST:
        return HostBackend()
    try:
        from crosscast.measure.opencl import find
    except MissingExtraError as error:
        raise MissingExtraError("opencl", "calibrating OpenCL devices (--device host needs none)") from error
    return OpenCLBackend(find(device))


def _written(facts: Microbenchmarks, name: str) -> Path:
    from crosscast.data.files import made
    from crosscast.devices.device_files import own_folder, write_device

    path = made(own_folder(), "XDG_DATA_HOME") / f"{name}.toml"
    how = {key: str(each) for key, each in facts.values.items()}
    conditions = {"measured_on": facts.id, "seconds": facts.seconds, "doubts": list(facts.doubts)}
    write_device(path, facts.device(name), how=how, conditions=conditions, working_sets=facts.working_sets)
    return path


def _facts_dict(facts: Microbenchmarks, name: str, path: Path) -> dict[str, object]:
    measured = {key: {**vars(each), "spread": each.spread} for key, each in facts.values.items()}
    return {
        "device": name,
        "file": str(path),
        "measured": measured,
        "working_sets": facts.working_sets,
        "unsure": facts.unsure(),
        "doubts": list(facts.doubts),
        "microbenchmarks_s": facts.seconds,
    }
