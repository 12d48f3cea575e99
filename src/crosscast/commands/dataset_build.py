"""``crosscast dataset build``: applications of the suite are characterized and measured."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from crosscast.cli.dataset import DatasetBuildOptions
from crosscast.cli.options import names_in
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


def build(*, options: DatasetBuildOptions) -> int:
    """Run ``crosscast dataset build``; the exit code is 1 if something failed."""
    check_output(options.output)
    applications = selected(names_in("--suite", options.suite))
    expect_installed(applications)
    # Imported here: they need OpenCL, which is a part of what applications need.
    from crosscast.measure.campaign import HERE, Plan
    from crosscast.measure.campaign import build as build_dataset
    from crosscast.measure.opencl import selected as selected_devices
    from crosscast.measure.workers import Workers

    names = names_in("--sizes", options.sizes)
    for name in names:
        working_set(name)
    wanted = names_in("--devices", options.devices)
    with ExitStack() as undo:
        place = HERE
        if options.executor not in (None, "local"):
            place = far = Workers(undo.enter_context(workers(str(options.executor))))
            chosen = far.devices(wanted)
        else:
            chosen = selected_devices(wanted)
        plan = Plan(
            applications=applications,
            sizes=tuple(names),
            devices=tuple(chosen),
            caches=_caches(options.fit),
            settings=Settings(
                options.min_runs, options.min_time, timeout_s=options.timeout, sensor=options.sensor
            ),
            repeats=options.repeats,
            seed=options.seed,
            place=place,
        )
        with TaskStatus() as status:
            outcome = build_dataset(plan, options.out, status, announce)
    print_outcome(outcome)
    description = describe(read_dataset(options.out))
    show(options.output, description.to_dict, lambda: description_report(description))
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
