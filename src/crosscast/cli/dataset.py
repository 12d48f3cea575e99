"""``crosscast dataset``: build, import, merge and describe."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts
from cyclopts import Parameter

from crosscast.cli.dataset_import import app as imports
from crosscast.cli.options import OUTPUT, Executor, Output, Whole, check_place, dataset_named, names_in, tell
from crosscast.cli.running import TaskStatus, announce, print_outcome
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.suite.application import Caches


_FAILED = 1


def build(
    *,
    out: Path,
    suite: str = "all",
    sizes: str = "tiny,small",
    devices: str = "all",
    fit: str = "typical",
    repeats: Whole = 1,
    min_runs: Whole = 50,
    min_time: float = 2.0,
    warmups: Whole = 2,
    seed: Whole = 0,
    sensor: str = "auto",
    timeout: float = 600.0,
    trace: Annotated[Path | None, Parameter(name="--from")] = None,
    executor: Executor = None,
    output: Output = OUTPUT,
) -> int:
    """Characterize and measure applications of the suite, into a dataset.

    What the dataset has already is not measured again: the same command resumes an interrupted build, and one
    with more sizes, devices or applications adds to it. An application that fails is recorded as failed, and
    the build continues; the exit code is 1 then.

    Parameters
    ----------
    out
        Folder of the dataset.
    suite
        Applications, separated by commas: `all`, folders of your own (docs/suite.md), or names of the suite:
        bfs, cfd, crc, csr, dwt, fft, gem, hmm, kmeans, lud, nqueens, nw, srad, swat.
    sizes
        Problem sizes, separated by commas: `tiny`, `small`, `medium`, `large`.
    devices
        Device ids, as `crosscast devices` shows them, or `all`.
    fit
        Caches that the problem sizes fit into: those of a `typical` CPU, so that datasets can be compared, or
        of the device with this id.
    repeats
        Number of processes that repeat each measurement.
    min_runs
        Minimum number of recorded runs for each application, size and device.
    min_time
        Minimum total time of these runs, in seconds.
    warmups
        Warm-up runs before the recorded ones.
    seed
        Random seed of the problems.
    sensor
        Energy sensor: `auto`, `none`, `rapl`, `nvml` or `replay:PATH`.
    timeout
        Time limit of a process, in seconds.
    trace
        Take a recorded program (`crosscast capture`) instead, with the times that its device measured.
    """
    output.check()
    if trace is not None:
        return _of_trace(trace, out, output)
    # Imported here: `--help` needs no OpenCL and no pyarrow.
    from crosscast.measure.subjects import expect_installed
    from crosscast.suite.registry import selected

    applications = selected(names_in("--suite", suite))
    expect_installed(applications)
    # Imported here, as they need what the line above found.
    from crosscast.data.dataset import read_dataset
    from crosscast.data.description import describe
    from crosscast.measure.campaign import HERE, Plan
    from crosscast.measure.campaign import build as build_dataset
    from crosscast.measure.opencl import selected as selected_devices
    from crosscast.measure.subjects import Settings
    from crosscast.report.dataset import description_report
    from crosscast.suite.application import working_set

    names = names_in("--sizes", sizes)
    for name in names:
        working_set(name)
    wanted = names_in("--devices", devices)
    with ExitStack() as undo:
        place = HERE
        if executor not in (None, "local"):
            from crosscast.executor import workers
            from crosscast.measure.workers import Workers

            place = far = Workers(undo.enter_context(workers(str(executor))))
            chosen = far.devices(wanted)
        else:
            chosen = selected_devices(wanted)
        plan = Plan(
            applications=applications,
            sizes=tuple(names),
            devices=tuple(chosen),
            caches=_caches(fit),
            settings=Settings(min_runs, min_time, warmups, timeout, sensor),
            repeats=repeats,
            seed=seed,
            place=place,
        )
        with TaskStatus() as status:
            outcome = build_dataset(plan, out, status, announce)
    print_outcome(outcome)
    description = describe(read_dataset(out))
    output.show(description.to_dict, lambda: description_report(description))
    return _FAILED if outcome.failures else 0


def _of_trace(trace: Path, out: Path, output: Output) -> int:
    """A dataset of a recorded program; each class of launches that cannot be run again is told."""
    from crosscast.cli.running import replay_trace
    from crosscast.data.dataset import write_dataset
    from crosscast.data.description import describe
    from crosscast.data.files import locked
    from crosscast.report.dataset import description_report
    from crosscast.tracing.dataset import dataset_of

    _check_new(out)
    summary, found = replay_trace(trace)
    dataset = dataset_of(summary, found)
    with locked(out):
        write_dataset(dataset, out)
    for each, one in zip(summary.classes, found, strict=True):
        if one.profile is None:
            tell(f"crosscast: note: {each.kernel} {each.size_label} is left out: {one.refused}")
    description = describe(dataset)
    output.show(description.to_dict, lambda: description_report(description))
    return 0


def _check_new(out: Path) -> None:
    """Refuse a folder with something in it."""
    check_place("--out", out)
    if out.is_dir() and any(out.iterdir()):
        raise InputError(f"--out: expected a new or empty folder, found {out} with files")


def _caches(fit: str) -> Caches:
    from crosscast.measure.inventory import caches_of
    from crosscast.measure.opencl import devices
    from crosscast.suite.application import TYPICAL

    if fit == "typical":
        return TYPICAL
    there = {device.id: device for device in devices()}
    if fit not in there:
        raise InputError(f"--fit: expected one of typical, {', '.join(there)}, found {fit!r}")
    return caches_of(there[fit])


def merge(folder: Path, /, *more: Path, out: Path, output: Output = OUTPUT) -> None:
    """Join datasets that were built on several machines, or piece by piece, into one.

    Equal devices become one, with the sessions of all hosts. Entries that are there several times must be
    equal; the first that is not is refused by name.

    Parameters
    ----------
    folder
        Folder of a dataset.
    more
        Folders of further ones.
    out
        Folder for the joined dataset; it must be new or empty.
    """
    # Imported here: `--help` needs no pyarrow.
    from crosscast.data.dataset import read_dataset, write_dataset
    from crosscast.data.description import describe
    from crosscast.data.files import locked
    from crosscast.data.merge import hosts_of, merged
    from crosscast.report.dataset import description_report

    output.check()
    _check_new(out)
    found = merged([read_dataset(each) for each in (folder, *more)], str(out))
    with locked(out):
        write_dataset(found, out)
    for device, hosts in hosts_of(found.sessions.to_pylist()).items():
        if len(hosts) > 1:
            tell(f"crosscast: note: {device} was measured on {', '.join(hosts)}")
    description = describe(found)
    output.show(description.to_dict, lambda: description_report(description))


def describe(folder: Path, /, *, output: Output = OUTPUT) -> None:
    """Summarize a dataset: contents, missing measurements, noise and warnings.

    A build need not be finished.

    Parameters
    ----------
    folder
        Folder of the dataset, or `bundled` or `bundled-corun` for those that come with Crosscast.
    """
    # Imported here: `--help` needs no pyarrow.
    from crosscast.data import description
    from crosscast.report.dataset import description_report

    found = description.describe(dataset_named(folder))
    output.show(found.to_dict, lambda: description_report(found))


def sources(*, output: Output = OUTPUT) -> None:
    """List what can be imported: what it is, its licence, where it is from, and which files are wanted."""
    output.check()
    # Imported here: `--help` needs no pyarrow.
    from crosscast.data.sources import IMPORTERS
    from crosscast.report.catalogues import sources_report

    found = [importer.to_dict() for importer in IMPORTERS.values()]
    output.show(lambda: found, lambda: sources_report(found))


app = cyclopts.App(name="dataset", help="Import, build, merge and describe datasets.")
app.command(build)
app.command(merge)
app.command(imports)
app.command(describe)
app.command(sources)
