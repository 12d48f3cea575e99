"""``crosscast calibrate``: what a device of this machine reaches, and how long kernels take on it."""

from __future__ import annotations

from pathlib import Path

from crosscast.cli.options import Output
from crosscast.commands.output import check_output, check_place, show
from crosscast.commands.status import LabelStatus, say, warn
from crosscast.data.files import made
from crosscast.devices.catalogue import catalogue
from crosscast.devices.device_files import check_name, own_folder, write_device
from crosscast.errors import InputError, MissingExtraError
from crosscast.measure.microbenchmarks.backends import Backend, HostBackend, OpenCLBackend
from crosscast.measure.microbenchmarks.bench import SECONDS, Microbenchmarks, measure
from crosscast.measure.subjects import expect_installed
from crosscast.prediction.named_models import models_home
from crosscast.report.catalogues import calibration_report
from crosscast.report.devices import microbenchmark_figures, microbenchmarks_report
from crosscast.report.document import Report
from crosscast.suite.registry import selected

_HOST = "host"


def calibrate(*, device: str | None, minutes: float, name: str, facts_only: bool, output: Output) -> None:
    """Run ``crosscast calibrate``."""
    check_output(output)
    if not 0 < minutes <= 24 * 60:
        raise InputError.of(
            where="--minutes", expected=f"more than 0, at most {24 * 60}", found=f"{minutes:g}"
        )
    if device is None:
        raise InputError("--device: expected an id such as pocl:0 (crosscast devices lists them), or host")
    facts_only = facts_only or device == _HOST

    check_name(name)
    if name in catalogue():
        raise InputError.of(
            where="--name", expected="one that no device of the catalogue has", found=repr(name)
        )
    check_place("XDG_DATA_HOME", own_folder())
    if not facts_only:
        _check_suite(name)
    backend = _backend(device)
    say(f"measuring what {backend.name} reaches, in about {SECONDS} s")
    with LabelStatus() as status:
        facts = measure(backend, status)
    for doubt in facts.doubts:
        warn(doubt)
    path = _written(facts, name)
    reports, answer = [microbenchmarks_report(facts, path)], _facts_dict(facts, name, path)
    if not facts_only:
        # Imported here: --device host needs no OpenCL.
        from crosscast import calibration
        from crosscast.measure.opencl import find

        say(f"measuring kernels for {60 * minutes:.0f} s, then fitting for some seconds")
        with LabelStatus() as status:
            found = calibration.calibrate(
                find(device), name, described=facts.device(name), seconds=60 * minutes, report=status
            )
        for note in found.notes:
            say(f"{note}")
        reports.append(calibration_report(found))
        answer |= found.to_dict()
    show(
        output,
        lambda: answer,
        lambda: Report([part for each in reports for part in each.parts]),
        lambda: microbenchmark_figures(facts),
    )


def _check_suite(name: str) -> None:
    expect_installed(selected(["all"]))
    # Imported here: --device host needs no OpenCL.
    from crosscast import calibration

    calibration.check_name(name)
    check_place("XDG_DATA_HOME", models_home())


def _backend(device: str) -> Backend:
    if device == _HOST:
        return HostBackend()
    try:
        from crosscast.measure.opencl import find
    except MissingExtraError as error:
        raise MissingExtraError("opencl", "calibrating OpenCL devices (--device host needs none)") from error
    return OpenCLBackend(find(device))


def _written(facts: Microbenchmarks, name: str) -> Path:
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
