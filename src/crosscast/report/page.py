"""HTML page about a dataset: its contents, and an evaluation of models that answer a question about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from crosscast.evaluation.time.results import Result, TimeEvaluation
from crosscast.evaluation.time.scores import choices
from crosscast.prediction.named_models import QuestionName
from crosscast.prediction.time.grids import devices_of, grid_of
from crosscast.prediction.time.models import BASELINES
from crosscast.report import (
    configuration_evaluation,
    configuration_figures,
    corun_evaluation,
    relative,
    time,
)
from crosscast.report.dataset import description_report
from crosscast.report.document import Heading, Part, Ranges, Report, Text
from crosscast.report.fields import table_of
from crosscast.report.numbers import factor, level_percent, percent, plural, times
from crosscast.report.pictures import figure_parts
from crosscast.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLES: Mapping[QuestionName, str] = {
    "time": "Predicted kernel times",
    "relative": "Predicted relative performance",
    "configuration": "Chosen configurations",
    "corun": "Predicted co-runs",
}


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
            content["cells"] = [point.to_dict() for point in self.details.points]
        return content


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

    def to_dict(self) -> dict[str, object]:
        """Return the point for JSON, with unknown values as null."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in self._asdict().items()
        }


@dataclass(frozen=True)
class ApplicationDetails:
    """The model with the least error, and the application shown in detail."""

    study: TimeEvaluation
    result: Result
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
        return cls(study, result, application or _in_the_middle(result))

    @property
    def confidence(self) -> Confidence:
        """Confidence intervals of the model's scores."""
        index = next(index for index, result in enumerate(self.study.results) if result is self.result)
        return self.study.confidences[index]

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
        columns: dict[str, str | Callable[[Point], object]] = {
            "kernel": "kernel",
            "size": "size",
            "device": "device",
            "measured": "measured_s",
            "predicted": "predicted_s",
            f"{level} interval": lambda point: times(point.low_s, point.high_s),
            "within": lambda point: "yes" if point.low_s <= point.measured_s <= point.high_s else "no",
            "predicted / measured": lambda point: factor(point.predicted_s / point.measured_s),
        }
        choice = any(math.isfinite(point.slowdown) for point in points)
        if choice:
            columns["cost of the recommended"] = "slowdown"
        table = table_of(
            points,
            columns,
            caption=f"All measurement points of {self.application}",
            words=(0, 1, 2, 5, 6),
            bold=[index for index, point in enumerate(points) if choice and point.recommended],
            fold=f"All {plural(len(points), 'measurement point')}",
            ranges=Ranges(
                [(point.low_s, point.predicted_s, point.high_s) for point in points],
                format_seconds,
                "predicted time",
            ),
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
        return Text(list(self._limits()), "list")

    def _limits(self) -> Iterator[str]:
        counts, difference = self.study.counts, self.confidence.differences.get("rmse_log")
        if difference is None:
            yield (
                "No baseline stands beside this model, so nothing here says that it is better than a trivial "
                "one."
            )
        else:
            low, high = (f"{limit:+.2f}" for limit in (difference.interval.low, difference.interval.high))
            better = "better (the range excludes 0)" if difference.better else "not shown to be better"
            yield (
                f"The root mean square error of ln(time) of {self.result.model} less that of the best "
                f"baseline, {difference.baseline}, is {difference.value:+.2f}, and {low} to {high} over the "
                f"draws of applications: {better}."
            )
        applications = plural(counts["applications"], "application")
        few = f"{applications} are few. " if counts["applications"] < _FEW else ""
        yield (
            f"{few}Kernels of an application resemble each other, so the ranges are over applications, and "
            f"not over {plural(counts['cells'], 'point')}. They hold for applications drawn from the same "
            "pool as these, and for no others."
        )
        yield (
            "The model had seen these devices run other applications. Nothing here says how well another "
            "device is predicted, or another compiler or driver."
        )
        yield (
            "A single application can be predicted far worse than the scores over all say: look at its row "
            "in the table by application."
        )
        candidates = sum(result.model not in BASELINES for result in self.study.results)
        if candidates > 1:
            yield (
                f"{self.result.model} has the least error of {candidates} models on these same "
                "applications: its scores have a selection bias."
            )
        yield (
            "Times are those of kernels, as the dataset records them, without copies of data, energy or "
            "costs."
        )


def _in_the_middle(result: Result) -> str:
    """Find the application whose median error is the median of all; the better of two."""
    errors = sorted(
        (scores.median_ape, name)
        for name, scores in result.applications.items()
        if scores.median_ape is not None
    )
    return errors[(len(errors) - 1) // 2][1]
