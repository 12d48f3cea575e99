"""HTML page about a dataset: its contents, and an evaluation of models that answer a question about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import crosscast
from crosscast.api import evaluate
from crosscast.data.dataset import Dataset
from crosscast.data.description import Description, describe
from crosscast.errors import InputError, expect_known
from crosscast.evaluation.loop import Progress
from crosscast.evaluation.time.results import TimeEvaluation
from crosscast.prediction.named_models import QuestionName
from crosscast.prediction.time.data import devices_of, grid_of
from crosscast.report import (
    configuration_evaluation,
    configuration_figures,
    corun_evaluation,
    relative,
    time,
)
from crosscast.report.dataset import description_report
from crosscast.report.document import Heading, Part, Report, Text
from crosscast.report.numbers import plural
from crosscast.report.page_application import ApplicationDetails
from crosscast.report.pictures import figure_parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.device import Device


__all__ = ["REPORTS", "Subject", "page_of", "write_report"]

_TITLES: Mapping[QuestionName, str] = {
    "time": "Predicted kernel times",
    "relative": "Predicted relative performance",
    "configuration": "Chosen configurations",
    "corun": "Predicted co-runs",
}


class Evaluation(Protocol):
    """Evaluation of models on held-out data."""

    @property
    def seed(self) -> int:
        """Random seed."""

    def to_dict(self) -> dict[str, object]:
        """Return the evaluation for JSON."""


_Writer = tuple[Callable[[Any], Report], Callable[[Any], Mapping[str, "Figure"]]]

REPORTS: Mapping[QuestionName, _Writer] = {
    "time": (time.evaluation_report, time.evaluation_figures),
    "relative": (relative.evaluation_report, relative.evaluation_figures),
    "configuration": (configuration_evaluation.evaluation_report, configuration_figures.evaluation_figures),
    "corun": (corun_evaluation.evaluation_report, corun_evaluation.evaluation_figures),
}
"""Functions that make the tables and the figures of evaluations."""


@dataclass(frozen=True)
class Subject:
    """Contents of the page."""

    dataset: Dataset
    description: Description  # Description of the dataset
    question: QuestionName
    evaluation: Evaluation
    title: str  # Title of the page
    details: ApplicationDetails | None = None  # For times, details of one application

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        evaluation: Evaluation,
        *,
        question: QuestionName = "time",
        application: str | None = None,
        title: str | None = None,
    ) -> Subject:
        """Choose the contents."""
        details = (
            ApplicationDetails.of(evaluation, application) if isinstance(evaluation, TimeEvaluation) else None
        )
        # A reader of the page knows the dataset by its name, not by its path.
        named = f"{_TITLES[question]}: {Path(dataset.label).resolve().name}"
        return cls(dataset, describe(dataset), question, evaluation, title or named, details)

    @property
    def headline(self) -> str:
        """The result in a sentence."""
        return self.details.headline if self.details is not None else _reports(self)[0].title

    def to_dict(self) -> dict[str, object]:
        """Return the contents as the object that ``--json`` prints; shares are fractions."""
        description, devices = self.description, devices_of(self.dataset)
        content: dict[str, object] = {"title": self.title, "question": self.question}
        if self.details is not None:
            content |= {"model": self.details.result.model, "application": self.details.application}
        content["contents"] = {
            "applications": list(description.applications),
            "kernels": list(description.kernels),
            "sizes": list(description.sizes),
            "devices": [_listed(devices[key]) for key in description.devices],
            "cells": description.cells,
            "records": description.records,
            "profiles": description.profiles,
        }
        content["evaluation"] = self.evaluation.to_dict()
        if self.details is not None:
            content["cells"] = [point.to_dict() for point in self.details.points]
        return content


def _listed(device: Device) -> dict[str, object]:
    return {
        "device": device.key,
        "name": device.name,
        "vendor": device.vendor or None,
        "type": device.type or None,
        "series": device.series or None,
        **device.numbers,
    }


def _reports(subject: Subject) -> tuple[Report, Mapping[str, Figure]]:
    """Make the tables and the figures of the evaluation."""
    report, figures = REPORTS[subject.question]
    return report(subject.evaluation), figures(subject.evaluation)


def page_of(subject: Subject) -> Report:
    """Make the page."""
    report, figures = _reports(subject)
    details = subject.details
    parts: list[Part] = [Heading(subject.title, 1)]
    if details is not None:
        parts += [Heading("In short", id="short"), details.headline]
    parts += [
        Heading("What the dataset holds", id="dataset"),
        *_below(description_report(subject.description)),
    ]
    parts += [Heading("Scores on held-out data", id="scores"), *_below(report)]
    parts += [Heading("Figures", id="figures"), *figure_parts(figures)]
    if details is not None:
        parts += [Heading("One application in detail", id="application"), *details.parts()]
        parts += [Heading("Limitations", id="limits"), details.limits()]
    return Report(
        [*parts, Text([f"Crosscast {crosscast.__version__}; seed {subject.evaluation.seed}."], "note")]
    )


def _below(report: Report) -> list[Part]:
    """Parts of a report for a section: the title becomes a sentence, headings are of level 3 or deeper."""
    return [
        part
        if not isinstance(part, Heading)
        else f"{part.text}."
        if part.level == 1
        else replace(part, level=max(part.level, 3))
        for part in report.parts
    ]


def write_report(
    dataset: Dataset,
    path: str | Path,
    models: Sequence[str] | None = None,
    *,
    question: QuestionName | None = None,
    application: str | None = None,
    title: str | None = None,
    seed: int = 0,
    jobs: int | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Subject:
    """Evaluate models on a dataset, and write a page about both.

    Parameters
    ----------
    dataset
        Profiles and records, or the data of another question.
    path
        The page: one HTML file without external parts.
    models
        Names of models, or ``["all"]``; the default one by default, with the baselines beside it.
    question
        The question; by default the first of times, configurations and co-runs that the dataset has data for.
    application
        For times, the application shown in detail; by default the one with the median error in the middle.
    title
        Title of the page.
    seed, jobs, cache, progress
        As `crosscast.evaluate` has them.

    Returns
    -------
    Subject
        Contents of the page; `to_dict()` returns them for JSON.

    Raises
    ------
    InputError
        If the dataset lacks what a page needs, the application or model is not known, or the page cannot be
        written.
    MissingExtraError
        If matplotlib, or what fits models, is not installed.
    """
    chosen = question or _question_of(dataset)
    if application is not None:
        if chosen != "time":
            raise InputError.of(
                where="application", expected="none, as no times are predicted", found=repr(application)
            )
        # Checked before the long evaluation.
        expect_known(application, grid_of(dataset).applications, where="application")
    evaluation: Evaluation = evaluate(
        replace(dataset, label=Path(dataset.label).resolve().name),
        chosen,
        models,
        seed=seed,
        jobs=jobs,
        cache=cache,
        progress=progress,
    )
    subject = Subject.of(dataset, evaluation, question=chosen, application=application, title=title)
    page_of(subject).write_html(Path(path))
    return subject


def _question_of(dataset: Dataset) -> QuestionName:
    """Find the question for which a dataset has data; if there is none, the error lists its contents."""
    contents = describe(dataset)
    if contents.records and contents.profiles:
        return "time"
    if contents.energy and any(device.settings for device in contents.configurations):
        return "configuration"
    if contents.corun.isolated_runs and contents.corun.mixes:
        return "corun"
    counts = [
        plural(number, noun, several)
        for number, noun, several in (
            (contents.records, "record", "records"),
            (contents.profiles, "profile", "profiles"),
            (len(contents.corun.isolated_runs), "device with isolated runs", "devices with isolated runs"),
            (sum(count.mixes for count in contents.corun.mixes), "co-run mix", "co-run mixes"),
        )
        if number
    ]
    raise InputError.of(
        where=dataset.label,
        expected="records of kernels' times, and profiles of the kernels, to predict the times",
        found=", ".join(counts) or "neither",
    )
