"""One page about a dataset: how well its kernels' times are predicted, in a single file of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import crosscast
from crosscast.api import evaluate
from crosscast.data.dataset import Dataset
from crosscast.data.description import describe
from crosscast.errors import InputError
from crosscast.evaluation.loop import Progress
from crosscast.prediction.time.data import grid_of
from crosscast.report.document import Heading, Part, Report, Text
from crosscast.report.numbers import plural
from crosscast.report.page_sections import SECTIONS
from crosscast.report.page_subject import Subject, check_application

__all__ = ["Subject", "page_of", "write_report"]


def page_of(subject: Subject) -> Report:
    """The page."""
    study = subject.study
    parts: list[Part] = [Heading(subject.title, 1)]
    for name, title, section in SECTIONS:
        parts += [Heading(title, 2, name), *section(subject)]
    made = f"Crosscast {crosscast.__version__}; {subject.result.model}, {study.folds}, seed {study.seed}."
    return Report([*parts, Text([made], "note")])


def write_report(
    dataset: Dataset,
    path: str | Path,
    models: Sequence[str] | None = None,
    *,
    application: str | None = None,
    title: str | None = None,
    seed: int = 0,
    jobs: int | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Subject:
    """Write a page about a dataset, and how well the times of its kernels are predicted.

    Parameters
    ----------
    dataset
        Profiles and records.
    path
        The page: one file of HTML that needs nothing else.
    models
        Names of models of times, or ``["all"]``; the default one by default. The page shows the one that errs
        least, and the baselines beside it.
    application
        The application to look at closely; by default the one whose median error is in the middle.
    title
        Title of the page.
    seed, jobs, cache, progress
        As `crosscast.evaluate` has them.

    Returns
    -------
    Subject
        What is in the page; `to_dict()` has it for JSON.

    Raises
    ------
    InputError
        If the dataset has not what a page needs, there is no such application or model, or the page cannot be
        written.
    MissingExtraError
        If matplotlib, or what fits models, is not installed.
    """
    _check_times(dataset)
    if application is not None:
        # Before the long run.
        check_application(grid_of(dataset), application)
    found = evaluate(dataset, "time", models, seed=seed, jobs=jobs, cache=cache, progress=progress)
    # Whoever gets the page knows the dataset by its name, wherever it was.
    named = replace(found, label=Path(dataset.label).resolve().name)
    subject = Subject.of(dataset, named, application=application, title=title)
    page_of(subject).write_html(Path(path))
    return subject


def _check_times(dataset: Dataset) -> None:
    """Refuse a dataset whose times of kernels cannot be predicted, and say what it holds instead."""
    found = describe(dataset)
    if found.records and found.profiles:
        return
    counts = [
        plural(number, noun, several)
        for number, noun, several in (
            (found.records, "record", "records"),
            (found.profiles, "profile", "profiles"),
            (len(found.corun.solos), "device with isolated runs", "devices with isolated runs"),
            (sum(each.bags for each in found.corun.bags), "co-run mix", "co-run mixes"),
        )
        if number
    ]
    raise InputError.of(
        where=dataset.label,
        expected="records of kernels' times, and profiles of the kernels, to predict the times",
        found=", ".join(counts) or "neither",
    )
