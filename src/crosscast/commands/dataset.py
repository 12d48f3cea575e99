"""``crosscast dataset``: build, import, merge and describe."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosscast.characterization.synthesis import profiles_of
from crosscast.cli import dataset as cli
from crosscast.cli.options import Output
from crosscast.commands.launch import replay_trace
from crosscast.commands.output import (
    LaunchesStatus,
    TaskStatus,
    announce,
    check_writable,
    say,
    show,
    tell,
    warn,
)
from crosscast.data import description
from crosscast.data.dataset import Dataset, dataset_named, read_dataset, write_dataset
from crosscast.data.files import locked
from crosscast.data.merge import hosts_of, merged
from crosscast.data.sources import Importer
from crosscast.data.sources.counted import Circumstances
from crosscast.data.sources.counter_profiles import import_counted
from crosscast.data.sources.source import store
from crosscast.data.table import notes_of
from crosscast.errors import InputError, expect_known
from crosscast.evaluation.executor import workers
from crosscast.measure.regions import import_runs
from crosscast.measure.subjects import Settings, expect_installed
from crosscast.report.dataset import description_report
from crosscast.suite.application import TYPICAL, Caches, selected, working_set
from crosscast.tracing.dataset import dataset_of

if TYPE_CHECKING:
    from crosscast.characterization.synthesis import Cells
    from crosscast.measure.campaign import CampaignOutcome


def _check_new(out: Path) -> None:
    """Raise InputError unless a folder is new or empty, and writable."""
    check_writable("--out", out)
    if out.is_dir() and any(out.iterdir()):
        raise InputError.of(where="--out", expected="a new or empty folder", found=f"{out} with files")


def _write(dataset: Dataset, out: Path) -> None:
    with locked(out):
        write_dataset(dataset, out)


def _show_described(dataset: Dataset, output: Output) -> None:
    described = description.describe(dataset)
    show(output, described.to_dict, lambda: description_report(described))


def merge(options: cli.DatasetMerge) -> None:
    """Run ``crosscast dataset merge``."""
    _check_new(options.out)
    dataset = merged(list(map(dataset_named, (options.folder, *options.more))), str(options.out))
    _write(dataset, options.out)
    for device, hosts in hosts_of(dataset.sessions.to_pylist()).items():
        if len(hosts) > 1:
            say(f"note: {device} was measured on {', '.join(hosts)}")
    _show_described(dataset, options.output)


def describe(options: cli.DatasetDescribe) -> None:
    """Run ``crosscast dataset describe``."""
    _show_described(dataset_named(options.folder), options.output)


def build(options: cli.DatasetBuild) -> int:
    """Run ``crosscast dataset build``; the exit code is 1 if something failed."""
    applications = selected(options.suite)
    expect_installed(applications)
    # Imported here, as they need OpenCL, which `expect_installed` has checked.
    from crosscast.measure import campaign, inventory, opencl

    for name in options.sizes:
        working_set(name)
    with ExitStack() as undo:
        runner = inventory.LOCAL
        if options.executor not in (None, "local"):
            runner = remote = inventory.Workers(undo.enter_context(workers(str(options.executor))))
            chosen = remote.devices(options.devices)
        else:
            chosen = opencl.selected(list(options.devices))
        plan = campaign.CampaignPlan(
            applications=applications,
            sizes=tuple(options.sizes),
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
    _show_described(read_dataset(options.out), options.output)
    return 1 if outcome.failures else 0


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
        say(f"note: {note}")
    for failure in outcome.failures:
        say(f"failed: {failure.task.label}: {failure.reason}")


def published(options: Any) -> None:
    """Run ``crosscast dataset import`` for published data, with the options of their importer."""
    importer: Importer = options.importer
    given = {each.name: getattr(options, each.name) for each in importer.options}
    if not importer.characterizes:
        dataset = importer(options.path, **given)
        if importer.tells is not None:
            say(f"{importer.tells}: {notes_of(dataset.records)[importer.tells]}")
        _store(dataset, options.out)
        return
    out = options.out.absolute()
    finished = out.with_name(f".{out.name}.profiles.jsonl")
    _store(importer(options.path, **given, profiles=partial(_characterized, finished)), options.out)
    finished.unlink(missing_ok=True)


def counters(options: cli.ImportCounters) -> None:
    """Run ``crosscast dataset import counters``."""
    if not options.profiles:
        raise InputError.of(where="profiles", expected="one path or more", found="none")
    circumstances = Circumstances(
        device=options.device,
        application=options.application,
        kernel=options.kernel,
        size=options.size,
        nodes=options.nodes,
        cores=options.cores,
        uses_gpu=options.gpu,
        time_s=options.time,
    )
    _store(import_counted(options.tool, options.profiles, circumstances), options.out)


def runs(options: cli.ImportRuns) -> None:
    """Run ``crosscast dataset import runs``."""
    path, imported = options.path, import_runs(options.path, options.settings)
    for note in imported.notes:
        tell(note)
    if not imported.dataset.energy.num_rows:
        say(
            f"note: {path}: no run has a power: the times are for models of times and of relative times, not "
            "for choices under a power cap"
        )
    elif not any(map(json.loads, imported.dataset.records.column("configuration").unique().to_pylist())):
        warn(
            f"{path}: no run has a setting, so that models can choose devices only; name the columns that "
            "are settings with --settings"
        )
    _store(imported.dataset, options.out)


def trace(options: cli.ImportTrace) -> None:
    """Run ``crosscast dataset import trace``, with notes about launches that cannot be replayed."""
    _check_new(options.out)
    summary, replayed = replay_trace(options.folder)
    dataset = dataset_of(summary, replayed)
    _write(dataset, options.out)
    for launch_class, replay in zip(summary.classes, replayed, strict=True):
        if replay.profile is None:
            say(f"note: {launch_class.kernel} {launch_class.size_label} is left out: {replay.refused}")
    _show_described(dataset, options.output)


def _store(dataset: Dataset, out: Path) -> None:
    """Write a dataset; a different one is never replaced."""
    store(dataset, out)
    counts = f"{dataset.profiles.num_rows:,} profiles, {dataset.records.num_rows:,} records"
    if dataset.mixes.num_rows:
        counts = f"{dataset.isolated_runs.num_rows:,} isolated runs, {dataset.mixes.num_rows:,} runs in mixes"
    tell(f"wrote {out} ({counts})")


_LAUNCH_S = 0.5
"""Approximate time of a synthetic launch, including compilation."""


def _characterized(finished: Path, launches: Sequence[tuple[str, int, int]]) -> list[Cells | str]:
    """Characterize launches with progress, and store finished ones in a file."""
    with ExitStack() as stack:

        def watch(total: int) -> Callable[[], None]:
            announce(total, total * _LAUNCH_S)
            return stack.enter_context(LaunchesStatus(total)).advance

        return profiles_of(launches, finished, watch)
