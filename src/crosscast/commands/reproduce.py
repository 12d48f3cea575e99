"""``crosscast reproduce``: the tables and figures of published studies, on their data or on your own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from crosscast import questions
from crosscast.commands.evaluate import show_configuration, show_corun, show_relative
from crosscast.commands.options import (
    FigureOutput,
    Output,
    RunOptions,
    warn,
)
from crosscast.commands.output import check_output, check_run, fitting, show
from crosscast.data.dataset import dataset_named
from crosscast.report import cummins2017 as cummins2017_report
from crosscast.report import johnston2018 as johnston2018_report


def johnston2018(
    dataset: Path, /, *, preset: Literal["quick", "default", "paper"], run: RunOptions, output: FigureOutput
) -> None:
    """Run ``crosscast reproduce johnston2018``."""
    found = _fitted(questions.johnston2018, dataset, run, output, "parts", preset=preset)
    show(
        output,
        found.to_dict,
        lambda: johnston2018_report.study_report(found),
        lambda: johnston2018_report.study_figures(found),
    )


def bailey2014(dataset: Path, /, *, run: RunOptions, output: FigureOutput) -> None:
    """Run ``crosscast reproduce bailey2014``."""
    show_configuration(_fitted(questions.bailey2014, dataset, run, output), output)


def cummins2017(dataset: Path, /, *, run: RunOptions, output: Output) -> None:
    """Run ``crosscast reproduce cummins2017``."""
    found = _fitted(questions.cummins2017, dataset, run, output)
    show(output, found.to_dict, lambda: cummins2017_report.study_report(found))


def nichols2024(dataset: Path, /, *, run: RunOptions, output: FigureOutput) -> None:
    """Run ``crosscast reproduce nichols2024``."""
    show_relative(_fitted(questions.nichols2024, dataset, run, output, note=warn), output)


def moolchandani2022(dataset: Path, /, *, run: RunOptions, output: FigureOutput) -> None:
    """Run ``crosscast reproduce moolchandani2022``."""
    show_corun(_fitted(questions.moolchandani2022, dataset, run, output), output)


def _fitted(
    study: Callable[..., Any],
    folder: Path,
    run: RunOptions,
    output: Output,
    noun: str = "fits",
    **options: Any,
) -> Any:
    check_output(output)
    check_run(run)
    dataset = dataset_named(folder)
    with fitting(run, noun) as how:
        return study(dataset, **how, **options)
