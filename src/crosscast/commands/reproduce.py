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
from crosscast.data.dataset import Dataset, dataset_named
from crosscast.report import cummins2017 as cummins2017_report
from crosscast.report import johnston2018 as johnston2018_report


def johnston2018(
    dataset: Path, /, *, preset: Literal["quick", "default", "paper"], run: RunOptions, output: FigureOutput
) -> None:
    """Run ``crosscast reproduce johnston2018``."""
    found = _fitted(
        dataset, run, output, lambda data, how: questions.johnston2018(data, preset=preset, **how), "parts"
    )

    show(
        output,
        found.to_dict,
        lambda: johnston2018_report.study_report(found),
        lambda: johnston2018_report.study_figures(found),
    )


def bailey2014(
    dataset: Path,
    /,
    *,
    devices: list[str] | None,
    power_domain: str | None,
    run: RunOptions,
    output: FigureOutput,
) -> None:
    """Run ``crosscast reproduce bailey2014``."""
    found = _fitted(
        dataset,
        run,
        output,
        lambda data, how: questions.bailey2014(data, devices=devices, power_domain=power_domain, **how),
    )
    show_configuration(found, output)


def cummins2017(dataset: Path, /, *, run: RunOptions, output: Output) -> None:
    """Run ``crosscast reproduce cummins2017``."""
    found = _fitted(dataset, run, output, lambda data, how: questions.cummins2017(data, **how))

    show(output, found.to_dict, lambda: cummins2017_report.study_report(found))


def nichols2024(
    dataset: Path,
    /,
    *,
    devices: list[str] | None,
    sources: list[str] | None,
    run: RunOptions,
    output: FigureOutput,
) -> None:
    """Run ``crosscast reproduce nichols2024``."""
    found = _fitted(
        dataset,
        run,
        output,
        lambda data, how: questions.nichols2024(data, devices=devices, sources=sources, note=warn, **how),
    )
    show_relative(found, output)


def moolchandani2022(dataset: Path, /, *, device: str | None, run: RunOptions, output: FigureOutput) -> None:
    """Run ``crosscast reproduce moolchandani2022``."""
    found = _fitted(
        dataset, run, output, lambda data, how: questions.moolchandani2022(data, device=device, **how)
    )
    show_corun(found, output)


def _fitted(
    folder: Path,
    run: RunOptions,
    output: Output,
    study: Callable[[Dataset, dict[str, Any]], Any],
    noun: str = "fits",
) -> Any:
    check_output(output)
    check_run(run)
    dataset = dataset_named(folder)
    with fitting(run, noun) as how:
        return study(dataset, how)
