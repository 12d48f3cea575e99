"""``crosscast reproduce``: the tables and figures of published studies, on their data or on your own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from crosscast.commands.evaluate import show_configuration
from crosscast.commands.options import (
    FigureOutput,
    Output,
    RunOptions,
    warn,
)
from crosscast.commands.output import check_output, check_run, fitting, show
from crosscast.data.dataset import dataset_named
from crosscast.studies import bailey2014 as bailey2014_study
from crosscast.studies import (
    bailey2014_figures,
    cummins2017_report,
    johnston2018_report,
    moolchandani2022_figures,
    moolchandani2022_report,
    nichols2024_report,
)
from crosscast.studies import cummins2017 as cummins2017_study
from crosscast.studies import johnston2018 as johnston2018_study
from crosscast.studies import moolchandani2022 as moolchandani2022_study
from crosscast.studies import nichols2024 as nichols2024_study


def johnston2018(
    dataset: Path, /, *, preset: Literal["quick", "default", "paper"], run: RunOptions, output: FigureOutput
) -> None:
    """Run ``crosscast reproduce johnston2018``."""
    found = _fitted(
        johnston2018_study.reproduce, dataset, run, output, "parts", preset=johnston2018_study.PRESETS[preset]
    )
    show(
        output,
        found.to_dict,
        lambda: johnston2018_report.study_report(found),
        lambda: johnston2018_report.study_figures(found),
    )


def bailey2014(dataset: Path, /, *, run: RunOptions, output: FigureOutput) -> None:
    """Run ``crosscast reproduce bailey2014``."""
    found = _fitted(bailey2014_study.reproduce, dataset, run, output)
    show_configuration(found, output, bailey2014_figures.study_figures)


def cummins2017(dataset: Path, /, *, run: RunOptions, output: Output) -> None:
    """Run ``crosscast reproduce cummins2017``."""
    found = _fitted(cummins2017_study.reproduce, dataset, run, output)
    show(output, found.to_dict, lambda: cummins2017_report.study_report(found))


def nichols2024(dataset: Path, /, *, run: RunOptions, output: FigureOutput) -> None:
    """Run ``crosscast reproduce nichols2024``."""
    found = _fitted(nichols2024_study.reproduce, dataset, run, output, note=warn)
    show(
        output,
        found.to_dict,
        lambda: nichols2024_report.study_report(found),
        lambda: nichols2024_report.study_figures(found),
    )


def moolchandani2022(dataset: Path, /, *, run: RunOptions, output: FigureOutput) -> None:
    """Run ``crosscast reproduce moolchandani2022``."""
    found = _fitted(moolchandani2022_study.reproduce, dataset, run, output)
    show(
        output,
        found.to_dict,
        lambda: moolchandani2022_report.study_report(found),
        lambda: moolchandani2022_figures.study_figures(found),
    )


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
