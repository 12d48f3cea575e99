"""``crosscast dataset import``: datasets from published data, counters of tools, and your runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosscast.characterization.synthesis import profiles_of
from crosscast.cli.dataset import ImportCountersOptions
from crosscast.cli.options import Output, names_in
from crosscast.commands.dataset import check_new, show_described
from crosscast.commands.launch import replay_trace
from crosscast.commands.output import LaunchesStatus, announce, check_output, say
from crosscast.data.counters.common import Circumstances
from crosscast.data.counters.importing import import_counted
from crosscast.data.dataset import Dataset, write_dataset
from crosscast.data.files import locked
from crosscast.data.sources import Importer
from crosscast.data.sources.source import store
from crosscast.errors import InputError
from crosscast.measure.regions.samples import import_runs
from crosscast.tracing.dataset import dataset_of

if TYPE_CHECKING:
    from crosscast.characterization.synthesis import Cells


def published(importer: Importer, path: Path, out: Path, options: Mapping[str, object]) -> None:
    """Run ``crosscast dataset import`` for published data."""
    if not importer.characterizes:
        _store(importer(path, **options), out)
        return
    finished = out.absolute().with_name(f".{out.absolute().name}.profiles.jsonl")
    _store(importer(path, **options, profiles=_characterizer(finished)), out)
    finished.unlink(missing_ok=True)


def counters(
    tool: Literal["hpctoolkit", "caliper", "perf", "ncu"], /, *profiles: Path, options: ImportCountersOptions
) -> None:
    """Run ``crosscast dataset import counters``."""
    if not profiles:
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
    _store(import_counted(tool, profiles, circumstances), options.out)


def own_runs(path: Path, /, *, out: Path, settings: str | None) -> None:
    """Run ``crosscast dataset import runs``."""
    imported = import_runs(path, None if settings is None else names_in("--settings", settings))
    for note in imported.notes:
        print(note, file=sys.stderr)
    if not imported.dataset.energy.num_rows:
        print(
            f"crosscast: note: {path}: no run has a power: the times are for models of times and of relative "
            "times, not for choices under a power cap",
            file=sys.stderr,
        )
    elif not any(map(json.loads, imported.dataset.records.column("configuration").unique().to_pylist())):
        print(
            f"crosscast: warning: {path}: no run has a setting, so that models can choose devices only; name "
            "the columns that are settings with --settings",
            file=sys.stderr,
        )
    _store(imported.dataset, out)


def trace(folder: Path, /, *, out: Path, output: Output) -> None:
    """Run ``crosscast dataset import trace``, with notes about launches that cannot be replayed."""
    check_output(output)
    check_new(out)
    summary, replayed = replay_trace(folder)
    dataset = dataset_of(summary, replayed)
    with locked(out):
        write_dataset(dataset, out)
    for launch_class, replay in zip(summary.classes, replayed, strict=True):
        if replay.profile is None:
            say(f"note: {launch_class.kernel} {launch_class.size_label} is left out: {replay.refused}")
    show_described(dataset, output)


def _store(dataset: Dataset, out: Path) -> None:
    """Write a dataset; a different one is never replaced."""
    store(dataset, out)
    counts = f"{dataset.profiles.num_rows:,} profiles, {dataset.records.num_rows:,} records"
    if dataset.mixes.num_rows:
        counts = f"{dataset.isolated_runs.num_rows:,} isolated runs, {dataset.mixes.num_rows:,} runs in mixes"
    print(f"wrote {out} ({counts})", file=sys.stderr)


_LAUNCH_S = 0.5
"""Approximate time of a synthetic launch, including compilation."""


def _characterizer(finished: Path) -> Callable[[Sequence[tuple[str, int, int]]], list[Cells | str]]:
    """Return a function that characterizes launches with progress, and stores finished ones in a file."""

    def profiles(launches: Sequence[tuple[str, int, int]]) -> list[Cells | str]:
        with ExitStack() as stack:

            def watch(total: int) -> Callable[[], None]:
                announce(total, total * _LAUNCH_S)
                return stack.enter_context(LaunchesStatus(total)).advance

            return profiles_of(launches, finished, watch)

    return profiles
