"""HTML page about a dataset: its contents, and an evaluation of models that answer a question about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import crosscast
from crosscast.api import evaluate
from crosscast.data.dataset import Dataset
from crosscast.data.description import Description, describe
from crosscast.data.schema import size_order
from crosscast.errors import InputError, expect_known
from crosscast.evaluation.loop import Progress
from crosscast.evaluation.resampling import Confidence
from crosscast.evaluation.time.scores import Result, TimeEvaluation, choices
from crosscast.prediction.named_models import QuestionName
from crosscast.prediction.time.datasets import devices_of, grid_of
from crosscast.prediction.time.models import BASELINES
from crosscast.report import configuration, configuration_evaluation, corun, relative, time
from crosscast.report.dataset import description_report
from crosscast.report.document import Heading, Part, Report, Text, figure_parts
from crosscast.report.fields import Column, factor, level_percent, percent, plural, table_of
from crosscast.results import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Pages(NamedTuple):
    """Reports on a question: the title, tables and figures of an evaluation, and what a card says."""

    title: str
    report: Callable[[Any], Report]
    figures: Callable[[Any], Mapping[str, Figure]]
    training: Callable[..., Report]


PAGES: Mapping[QuestionName, Pages] = {
    "time": Pages(
        "Predicted kernel times", time.evaluation_report, time.evaluation_figures, time.training_report
    ),
    "relative": Pages(
        "Predicted relative performance",
        relative.evaluation_report,
        relative.evaluation_figures,
        relative.training_report,
    ),
    "configuration": Pages(
        "Chosen configurations",
        configuration_evaluation.evaluation_report,
        configuration_evaluation.evaluation_figures,
        configuration.training_report,
    ),
    "corun": Pages(
        "Predicted co-runs", corun.evaluation_report, corun.evaluation_figures, corun.training_report
    ),
}


@dataclass(frozen=True)
class Subject:
    """Contents of the page."""

    dataset: Dataset
    description: Description  # Description of the dataset
    question: QuestionName
    evaluation: Any  # Evaluation of models on held-out data, with its `seed` and `to_dict`
    title: str  # Title of the page
    details: ApplicationDetails | None = None  # For times, details of one application

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        evaluation: Any,
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
        named = f"{PAGES[question].title}: {Path(dataset.label).resolve().name}"
        return cls(dataset, describe(dataset), question, evaluation, title or named, details)

    @cached_property
    def report(self) -> Report:
        """Tables of the evaluation."""
        return PAGES[self.question].report(self.evaluation)

    @property
    def headline(self) -> str:
        """The result in a sentence."""
        return self.details.headline if self.details is not None else self.report.title

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
            "devices": [
                {
                    "device": device.key,
                    "name": device.name,
                    **{name: getattr(device, name) or None for name in ("vendor", "type", "series")},
                    **device.numbers,
                }
                for device in map(devices.__getitem__, description.devices)
            ],
            "cells": description.cells,
            "records": description.records,
            "profiles": description.profiles,
        }
        content["evaluation"] = self.evaluation.to_dict()
        if self.details is not None:
            content["cells"] = [plain(point._asdict()) for point in self.details.points]
        return content


def page_of(subject: Subject) -> Report:
    """Make the page."""
    details, figures = subject.details, PAGES[subject.question].figures(subject.evaluation)
    parts: list[Part] = [Heading(subject.title, 1)]
    if details is not None:
        parts += [Heading("In short", id="short"), details.headline]
    parts += [
        Heading("What the dataset holds", id="dataset"),
        *_below(description_report(subject.description)),
    ]
    parts += [Heading("Scores on held-out data", id="scores"), *_below(subject.report)]
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
    evaluation = evaluate(
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


_MOST_LOG = 700.0
_TIMES = ("measured_s", "predicted_s", "low_s", "high_s")
_FEW = 20
"""With fewer applications, the page notes that they are few."""


class Point(NamedTuple):
    """Measured and predicted time of a kernel on a device, in seconds; NaN where not known."""

    application: str
    kernel: str
    size: str
    device: str
    measured_s: float
    predicted_s: float
    low_s: float
    high_s: float
    recommended: bool
    slowdown: float  # Time over that of the fastest device, for the recommended one; else NaN

    @property
    def within(self) -> str:
        """Whether the measured time is within the interval."""
        return "yes" if self.low_s <= self.measured_s <= self.high_s else "no"


@dataclass(frozen=True)
class ApplicationDetails:
    """The model with the least error, and the application shown in detail."""

    study: TimeEvaluation
    result: Result
    confidence: Confidence  # Confidence intervals of the model's scores
    application: str

    @classmethod
    def of(cls, study: TimeEvaluation, application: str | None = None) -> ApplicationDetails:
        """Take the best model, and an application: by default the one with the middle median error."""
        result = study.best(0)
        if result is None:
            raise InputError.of(
                where=study.label, expected="a measurement point that is predicted and measured", found="none"
            )
        if application is not None:
            expect_known(application, study.grid.applications, where="application")
        confidence = study.confidences[study.results.index(result)]
        return cls(study, result, confidence, application or _in_the_middle(result))

    @cached_property
    def points(self) -> list[Point]:
        """All kernels on all devices, times in seconds."""
        (outcome,) = self.result.outcomes
        profiles = self.study.grid.profiles
        slowdown = choices(outcome)["slowdown"]
        recommended = np.argmin(np.where(np.isfinite(outcome.measured), outcome.centre, np.inf), axis=1)
        logs = (outcome.measured, outcome.centre, outcome.low, outcome.high)
        # Clipped, as JSON has no infinity.
        seconds = np.exp(np.clip(np.stack(logs), -_MOST_LOG, _MOST_LOG))
        return [
            Point(
                application=profiles.application[outcome.rows[row]],
                kernel=profiles.kernel[outcome.rows[row]],
                size=profiles.size[outcome.rows[row]],
                device=device.key,
                **dict(zip(_TIMES, seconds[:, row, column].tolist(), strict=True)),
                recommended=bool(column == recommended[row]),
                slowdown=float(slowdown[row]) if column == recommended[row] else math.nan,
            )
            for row in np.argsort(outcome.rows, kind="stable").tolist()
            for column, device in enumerate(self.study.grid.devices)
        ]

    @property
    def headline(self) -> str:
        """The accuracy of predicted times and recommended devices, in a sentence."""
        scores, interval = self.result.scores, self.confidence.intervals.get("median_ape")
        sentence = f"Half of the predicted times are within {percent(scores.median_ape)} of the measured ones"
        if interval is not None:
            sentence += (
                f" ({percent(interval.low)} to {percent(interval.high)} over bootstrap draws of the "
                "applications)"
            )
        if scores.slowdown_mean is not None:
            sentence += (
                ", and the device recommended for a kernel takes "
                f"{factor(scores.slowdown_mean)} the time of the fastest on average"
            )
        return f"{sentence}."

    def parts(self) -> list[Part]:
        """The scores of the application, and a table of its measured and predicted times."""
        scores, level = self.result.applications[self.application], level_percent(self.result.level)
        others = plural(len(self.result.names) - 1, "application")
        points = [
            point
            for point in self.points
            if point.application == self.application and math.isfinite(point.measured_s)
        ]
        points.sort(key=lambda point: (point.kernel, size_order(point.size)))
        columns: dict[str, Column[Point]] = {
            **{name: name for name in ("kernel", "size", "device")},
            "measured": "measured_s",
            "predicted": "predicted_s",
            f"{level} interval": ("low_s", "high_s"),
            "within": "within",
            "predicted / measured": lambda point: point.predicted_s / point.measured_s,
        }
        choice = any(math.isfinite(point.slowdown) for point in points)
        if choice:
            columns["cost of the recommended"] = "slowdown"
        table = table_of(
            points,
            columns,
            caption=f"All measurement points of {self.application}",
            formats={"predicted / measured": factor},
            bold=[index for index, point in enumerate(points) if choice and point.recommended],
            fold=f"All {plural(len(points), 'measurement point')}",
            ranges=("low_s", "predicted_s", "high_s"),
        )
        recommended = (
            " The recommended device (bold) is the one with the least predicted time, of those that the "
            "kernel was measured on; its cost is its measured time over that of the fastest device."
        )
        summary = (
            f"{self.application}, predicted by the model {self.result.model} fitted to the other {others}: "
            f"median error {percent(scores.median_ape)}, coverage of {level} intervals "
            f"{percent(scores.coverage)}.{recommended if choice else ''}"
        )
        return [summary, table]

    def limits(self) -> Text:
        """List the limitations of the scores."""
        study, model = self.study, self.result.model
        counts, difference = study.counts, self.confidence.differences.get("rmse_log")
        applications = plural(counts["applications"], "application")
        against = (
            "No baseline stands beside this model, so nothing here says that it is better than a trivial one."
        )
        if difference is not None:
            low, high = (f"{limit:+.2f}" for limit in (difference.interval.low, difference.interval.high))
            better = "better (the range excludes 0)" if difference.better else "not shown to be better"
            against = (
                f"The root mean square error of ln(time) of {model} less that of the best baseline, "
                f"{difference.baseline}, is {difference.value:+.2f}, and {low} to {high} over the draws of "
                f"applications: {better}."
            )
        lines = [
            against,
            f"{f'{applications} are few. ' if counts['applications'] < _FEW else ''}Kernels of an "
            "application resemble each other, so the ranges are over applications, and not over "
            f"{plural(counts['cells'], 'point')}. They hold for applications drawn from the same pool as "
            "these, and for no others.",
            "The model had seen these devices run other applications. Nothing here says how well another "
            "device is predicted, or another compiler or driver.",
            "A single application can be predicted far worse than the scores over all say: look at its row "
            "in the table by application.",
        ]
        candidates = sum(result.model not in BASELINES for result in study.results)
        if candidates > 1:
            lines.append(
                f"{model} has the least error of {candidates} models on these same applications: its scores "
                "have a selection bias."
            )
        lines.append(
            "Times are those of kernels, as the dataset records them, without copies of data, energy or "
            "costs."
        )
        return Text(lines, "list")


def _in_the_middle(result: Result) -> str:
    """Find the application whose median error is the median of all; the better of two."""
    errors = sorted(
        (scores.median_ape, name)
        for name, scores in result.applications.items()
        if scores.median_ape is not None
    )
    return errors[(len(errors) - 1) // 2][1]
