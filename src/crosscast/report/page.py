"""One page about a dataset: what it holds, and how well a question about it is answered, as one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import crosscast
from crosscast.api import evaluate
from crosscast.data.dataset import Dataset
from crosscast.data.description import Description, describe
from crosscast.errors import InputError
from crosscast.evaluation.loop import Progress
from crosscast.evaluation.time.results import TimeEvaluation
from crosscast.prediction.registry import QuestionName
from crosscast.prediction.time.data import devices_of, grid_of
from crosscast.report import (
    configuration_evaluation,
    configuration_figures,
    corun_evaluation,
    relative,
    time,
    time_figures,
)
from crosscast.report.dataset import description_report
from crosscast.report.document import Heading, Part, Report, Text
from crosscast.report.numbers import plural
from crosscast.report.page_application import Closer, check_application
from crosscast.report.pictures import figure_parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.device import Device


__all__ = ["Subject", "page_of", "write_report"]

_TITLES: Mapping[QuestionName, str] = {
    "time": "Predicted kernel times",
    "relative": "Predicted relative performance",
    "configuration": "Chosen configurations",
    "corun": "Predicted co-runs",
}


class Evaluation(Protocol):
    """How models answer a question where the answers are held out."""

    @property
    def seed(self) -> int:
        """Where its random numbers start."""

    def to_dict(self) -> dict[str, object]:
        """All of it, for JSON."""


_Writer = tuple[Callable[[Any], Report], Callable[[Any], Mapping[str, "Figure"]]]

_REPORTS: Mapping[QuestionName, _Writer] = {
    "time": (time.evaluation_report, time_figures.evaluation_figures),
    "relative": (relative.evaluation_report, relative.evaluation_figures),
    "configuration": (configuration_evaluation.evaluation_report, configuration_figures.evaluation_figures),
    "corun": (corun_evaluation.evaluation_report, corun_evaluation.evaluation_figures),
}
"""Tables and figures of evaluations."""


@dataclass(frozen=True)
class Subject:
    """All that the page shows."""

    dataset: Dataset  # The dataset
    description: Description  # What is in it
    question: QuestionName
    evaluation: Evaluation  # How models answer the question where the answers are held out
    title: str  # Title of the page
    closer: Closer | None = None  # Of times: the application that is looked at closely

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
        """Choose what to show."""
        closer = Closer.of(evaluation, application) if isinstance(evaluation, TimeEvaluation) else None
        # Whoever gets the page knows the dataset by its name, wherever it was.
        named = f"{_TITLES[question]}: {Path(dataset.label).resolve().name}"
        return cls(dataset, describe(dataset), question, evaluation, title or named, closer)

    @property
    def headline(self) -> str:
        """The result in a sentence."""
        return self.closer.headline if self.closer is not None else _reports(self)[0].title

    def to_dict(self) -> dict[str, object]:
        """What is in the page, as the object that ``--json`` prints; shares are fractions."""
        description, devices = self.description, devices_of(self.dataset)
        found: dict[str, object] = {"title": self.title, "question": self.question}
        if self.closer is not None:
            found |= {"model": self.closer.result.model, "application": self.closer.application}
        found["contents"] = {
            "applications": list(description.applications),
            "kernels": list(description.kernels),
            "sizes": list(description.sizes),
            "devices": [_listed(devices[key]) for key in description.devices],
            "cells": description.cells,
            "records": description.records,
            "profiles": description.profiles,
        }
        found["evaluation"] = self.evaluation.to_dict()
        return (
            found
            if self.closer is None
            else {**found, "cells": [each.to_dict() for each in self.closer.points]}
        )


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
    """The tables and the figures of the evaluation."""
    report, figures = _REPORTS[subject.question]
    return report(subject.evaluation), figures(subject.evaluation)


def page_of(subject: Subject) -> Report:
    """The page."""
    report, figures = _reports(subject)
    closer = subject.closer
    parts: list[Part] = [Heading(subject.title, 1)]
    if closer is not None:
        parts += [Heading("In short", id="short"), closer.headline]
    parts += [
        Heading("What the dataset holds", id="dataset"),
        *_below(description_report(subject.description)),
    ]
    parts += [Heading("Scores on held-out data", id="scores"), *_below(report)]
    parts += [Heading("Figures", id="figures"), *figure_parts(figures)]
    if closer is not None:
        parts += [Heading("One application in detail", id="closer"), *closer.parts()]
        parts += [Heading("Limitations", id="limits"), closer.limits()]
    return Report(
        [*parts, Text([f"Crosscast {crosscast.__version__}; seed {subject.evaluation.seed}."], "note")]
    )


def _below(report: Report) -> list[Part]:
    """Parts of a report that stands in a page: its title is a sentence, and its headings are lower ones."""
    return [
        each
        if not isinstance(each, Heading)
        else f"{each.text}."
        if each.level == 1
        else replace(each, level=max(each.level, 3))
        for each in report.parts
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
    """Write a page about a dataset, and how well a question about it is answered.

    Parameters
    ----------
    dataset
        Profiles and records, or what another question is about.
    path
        The page: one file of HTML that needs nothing else.
    models
        Names of models, or ``["all"]``; the default one by default, with the baselines beside it.
    question
        The question; by default the first of times, configurations and co-runs that the dataset has data for.
    application
        Of times, the application to look at closely; by default the one whose median error is in the middle.
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
    chosen = question or _question_of(dataset)
    if application is not None:
        if chosen != "time":
            raise InputError.of(
                where="application", expected="none, as no times are predicted", found=repr(application)
            )
        # Before the long run.
        check_application(grid_of(dataset), application)
    found: Evaluation = evaluate(
        replace(dataset, label=Path(dataset.label).resolve().name),
        chosen,
        models,
        seed=seed,
        jobs=jobs,
        cache=cache,
        progress=progress,
    )
    subject = Subject.of(dataset, found, question=chosen, application=application, title=title)
    page_of(subject).write_html(Path(path))
    return subject


def _question_of(dataset: Dataset) -> QuestionName:
    """The question that a dataset has data for; refuse one that has none, and say what it holds instead."""
    found = describe(dataset)
    if found.records and found.profiles:
        return "time"
    if found.energy and any(each.settings for each in found.configurations):
        return "configuration"
    if found.corun.solos and found.corun.bags:
        return "corun"
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
