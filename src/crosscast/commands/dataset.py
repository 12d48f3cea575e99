"""``crosscast dataset``: build, merge and describe."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.dataset import DatasetBuildOptions
from crosscast.cli.options import Output, names_in
from crosscast.commands.output import TaskStatus, announce, check_output, check_writable, say, show
from crosscast.data import description
from crosscast.data.dataset import Dataset, dataset_named, read_dataset, write_dataset
from crosscast.data.files import locked
from crosscast.data.merge import hosts_of, merged
from crosscast.data.sources import IMPORTERS
from crosscast.errors import InputError, expect_known
from crosscast.evaluation.executor import workers
from crosscast.measure.subjects import Settings, expect_installed
from crosscast.report.catalogues import sources_report
from crosscast.report.dataset import description_report
from crosscast.suite.application import TYPICAL, Caches, working_set
from crosscast.suite.registry import selected


def check_new(out: Path) -> None:
    """Raise InputError unless a folder is new or empty, and writable."""
    check_writable("--out", out)
    if out.is_dir() and any(out.iterdir()):
        raise InputError.of(where="--out", expected="a new or empty folder", found=f"{out} with files")


def show_described(dataset: Dataset, output: Output) -> None:
    """Show what a dataset contains."""
    described = description.describe(dataset)
    show(output, described.to_dict, lambda: description_report(described))


def merge(folder: Path, /, *more: Path, out: Path, output: Output) -> None:
    """Run ``crosscast dataset merge``."""
    check_output(output)
    check_new(out)
    dataset = merged(list(map(dataset_named, (folder, *more))), str(out))
    with locked(out):
        write_dataset(dataset, out)
    for device, hosts in hosts_of(dataset.sessions.to_pylist()).items():
        if len(hosts) > 1:
            say(f"note: {device} was measured on {', '.join(hosts)}")
    show_described(dataset, output)


def describe(folder: Path, /, *, output: Output) -> None:
    """Run ``crosscast dataset describe``."""
    show_described(dataset_named(folder), output)


def sources(*, output: Output) -> None:
    """Run ``crosscast dataset sources``."""
    check_output(output)

    rows = [importer.to_dict() for importer in IMPORTERS.values()]
    show(output, lambda: rows, lambda: sources_report(rows))


if TYPE_CHECKING:
    from crosscast.measure.campaign import CampaignOutcome

_FAILED = 1


def build(*, options: DatasetBuildOptions) -> int:
    """Run ``crosscast dataset build``; the exit code is 1 if something failed."""
    check_output(options.output)
    applications = selected(names_in("--suite", options.suite))
    expect_installed(applications)
    # Imported here, as they need OpenCL, which `expect_installed` has checked.
    from crosscast.measure import campaign, opencl
    from crosscast.measure.workers import Workers

    names = names_in("--sizes", options.sizes)
    for name in names:
        working_set(name)
    wanted = names_in("--devices", options.devices)
    with ExitStack() as undo:
        runner = campaign.LOCAL
        if options.executor not in (None, "local"):
            runner = remote = Workers(undo.enter_context(workers(str(options.executor))))
            chosen = remote.devices(wanted)
        else:
            chosen = opencl.selected(wanted)
        plan = campaign.CampaignPlan(
            applications=applications,
            sizes=tuple(names),
            devices=tuple(chosen),
            caches=_caches(options.fit),
            settings=Settings(
                options.min_runs, options.min_time, timeout_s=options.timeout, sensor=options.sensor
            ),
            repeats=options.repeats,
            seed=options.seed,
            runner=runner,
        )
        with TaskStatus() as status:
            outcome = campaign.build(plan, options.out, status, announce)
    print_outcome(outcome)
    show_described(read_dataset(options.out), options.output)
    return _FAILED if outcome.failures else 0


def _caches(fit: str) -> Caches:
    if fit == "typical":
        return TYPICAL
    from crosscast.measure import inventory, opencl

    by_id = {device.id: device for device in opencl.devices()}
    expect_known(fit, by_id, where="--fit", words="one of typical,")
    return inventory.caches_of(by_id[fit])


def print_outcome(outcome: CampaignOutcome) -> None:
    """Print the notes and failures of a campaign on standard error."""
    for note in outcome.notes:
        print(f"crosscast: note: {note}", file=sys.stderr)
    for failure in outcome.failures:
        print(f"crosscast: failed: {failure.task.label}: {failure.reason}", file=sys.stderr)
