"""``crosscast dataset build``: applications of the suite are characterized and measured."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.commands.options import Output, names_in
from crosscast.commands.output import check_output, show
from crosscast.commands.status import TaskStatus, announce
from crosscast.data.dataset import read_dataset
from crosscast.data.description import describe
from crosscast.errors import InputError
from crosscast.executor import workers
from crosscast.measure.subjects import Settings, expect_installed
from crosscast.report.dataset import description_report
from crosscast.suite.application import TYPICAL, Caches, working_set
from crosscast.suite.registry import selected

if TYPE_CHECKING:
    from crosscast.measure.campaign import Outcome

_FAILED = 1


def build(
    *,
    out: Path,
    suite: str,
    sizes: str,
    devices: str,
    fit: str,
    repeats: int,
    min_runs: int,
    min_time: float,
    seed: int,
    sensor: str,
    timeout: float,
    executor: str | None,
    output: Output,
) -> int:
    """Run ``crosscast dataset build``; the exit code is 1 if something failed."""
    check_output(output)
    applications = selected(names_in("--suite", suite))
    expect_installed(applications)
    # Imported here: they need OpenCL, which is a part of what applications need.
    from crosscast.measure.campaign import HERE, Plan
    from crosscast.measure.campaign import build as build_dataset
    from crosscast.measure.opencl import selected as selected_devices
    from crosscast.measure.workers import Workers

    names = names_in("--sizes", sizes)
    for name in names:
        working_set(name)
    wanted = names_in("--devices", devices)
    with ExitStack() as undo:
        place = HERE
        if executor not in (None, "local"):
            place = far = Workers(undo.enter_context(workers(str(executor))))
            chosen = far.devices(wanted)
        else:
            chosen = selected_devices(wanted)
        plan = Plan(
            applications=applications,
            sizes=tuple(names),
            devices=tuple(chosen),
            caches=_caches(fit),
            settings=Settings(min_runs, min_time, timeout_s=timeout, sensor=sensor),
            repeats=repeats,
            seed=seed,
            place=place,
        )
        with TaskStatus() as status:
            outcome = build_dataset(plan, out, status, announce)
    print_outcome(outcome)
    description = describe(read_dataset(out))
    show(output, description.to_dict, lambda: description_report(description))
    return _FAILED if outcome.failures else 0


def _caches(fit: str) -> Caches:
    if fit == "typical":
        return TYPICAL
    from crosscast.measure.inventory import caches_of
    from crosscast.measure.opencl import devices

    there = {device.id: device for device in devices()}
    if fit not in there:
        raise InputError.of(where="--fit", expected=f"one of typical, {', '.join(there)}", found=repr(fit))
    return caches_of(there[fit])


def print_outcome(outcome: Outcome) -> None:
    """Print the notes and failures of a campaign on standard error."""
    for note in outcome.notes:
        print(f"crosscast: note: {note}", file=sys.stderr)
    for failure in outcome.failures:
        print(f"crosscast: failed: {failure.task.label}: {failure.reason}", file=sys.stderr)
