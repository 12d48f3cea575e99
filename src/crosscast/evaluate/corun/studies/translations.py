"""Bags on one device predicted from another: by a model there, and a line through times (section 9)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.evaluate.corun.splits import folds_of
from crosscast.evaluate.corun.studies.not_made import NotMade
from crosscast.evaluate.corun.task import CoRunTask
from crosscast.evaluate.corun.training import of_one_device
from crosscast.evaluate.corun.translation import (
    SharedTimes,
    TranslationScore,
    bag_key,
    shared_times,
    translation_scores,
)
from crosscast.evaluate.corun.work import answers_of
from crosscast.evaluate.processes import Progress
from crosscast.predict.corun.model import CoRunModel
from crosscast.predict.corun.time_line import LOGARITHMIC, PLAIN, TimeLine
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.view import CoRuns

__all__ = ["Predicted", "TranslationStudy", "translation_studies"]

_SPLIT = "leave-benchmark-out"


@dataclass(frozen=True)
class Predicted:
    """Slowdowns of members on the other device, each benchmark left out of model and line.

    Parameters
    ----------
    model
        The model that predicts slowdowns on the first device.
    form
        Form of the line.
    own_mape
        Its mean absolute percentage error there: of times of jobs in bags, and of slowdowns alike.
    time_mape, slowdown_mape
        Errors of what is made of that on the other device.
    rows
        Members of bags.
    """

    model: str
    form: str
    own_mape: float
    time_mape: float
    slowdown_mape: float
    rows: int


@dataclass(frozen=True)
class TranslationStudy:
    """From one device to another.

    Parameters
    ----------
    source, target
        Keys of the devices.
    applications
        How many were timed on both.
    scores
        Errors of lines alone.
    predicted
        Errors with a model, by form; none where no bags ran on both.
    """

    source: str
    target: str
    applications: int
    scores: tuple[TranslationScore, ...]
    predicted: tuple[Predicted, ...]

    def to_dict(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {
            "from": self.source,
            "to": self.target,
            "applications": self.applications,
            "scores": [each.to_dict() for each in self.scores],
            "predicted": [dict(vars(each)) for each in self.predicted],
        }


def translation_studies(
    co_runs: CoRuns,
    device: str,
    model: CoRunModel,
    seed: int,
    *,
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> tuple[TranslationStudy, ...] | NotMade:
    """Translate from a device to each other one on which the same bags ran.

    Parameters
    ----------
    co_runs
        Bags of all devices.
    device
        Key of the device from which times are translated.
    model
        The model that predicts bags on it.
    seed, progress, cache, jobs
        As `evaluate_corun` has them.

    Raises
    ------
    InputError
        If the model cannot be fitted, or the cache cannot be written.
    """
    others = sorted({bag.device for bag in co_runs.bags} - {device})
    if not others:
        return NotMade("translation takes bags on at least two devices")
    found = []
    for target in others:
        try:
            shared = shared_times(co_runs, device, target)
            scores = translation_scores(shared)
        except InputError:
            # Too little ran on both.
            continue
        predicted = _predicted(co_runs, shared, model, seed, progress, cache, jobs)
        found.append(TranslationStudy(device, target, len(shared.names), tuple(scores), predicted))
    if not found:
        return NotMade(f"too few applications were timed on {device} and another device")
    return tuple(found)


def _predicted(
    co_runs: CoRuns,
    shared: SharedTimes,
    model: CoRunModel,
    seed: int,
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> tuple[Predicted, ...]:
    here = of_one_device(co_runs, shared.source)
    there = {bag_key(bag): bag for bag in co_runs.bags if bag.device == shared.target and not bag.failed}
    folds = folds_of(here.bags, _SPLIT, seed)
    tasks = [CoRunTask(model, fold, _SPLIT, 0, None, seed) for fold in folds]
    answers = answers_of(here, tasks, progress=progress, cache=cache, jobs=jobs)
    errors: dict[str, list[tuple[float, float, float]]] = {PLAIN: [], LOGARITHMIC: []}
    for fold, answer in zip(folds, answers, strict=True):
        left = ~shared.having(fold.held_out)
        lines = {form: TimeLine.fit(form, shared.source_s[left], shared.target_s[left]) for form in errors}
        slowdowns = iter(answer.values["slowdown"].tolist())
        for place in fold.test.tolist():
            bag = here.bags[place]
            values = np.array([next(slowdowns) for _ in bag.members])
            other = there.get(bag_key(bag))
            if other is None or bag.failed:
                continue
            for form, line in lines.items():
                errors[form] += _errors(line, bag, other, values)
    return tuple(
        _summary(model.name, form, 100 * np.mean(found, axis=0), len(found))
        for form, found in errors.items()
        if found
    )


def _summary(model: str, form: str, means: Reals, rows: int) -> Predicted:
    own, time, slowdown = means.tolist()
    return Predicted(model, form, own, time, slowdown, rows)


def _errors(line: TimeLine, here: Bag, there: Bag, slowdowns: Reals) -> list[tuple[float, float, float]]:
    """For each member: relative error of its slowdown here, and of its time and slowdown there."""
    rows = []
    for one, other, found in zip(here.members, there.members, slowdowns.tolist(), strict=True):
        a, b = one.solo.time_s, other.solo.time_s
        if not (a and b and one.slowdown and other.slowdown and np.isfinite(found)):
            continue
        time = float(line(np.array([a * found]))[0])
        slowdown = float(line.slowdown(np.array([a]), np.array([found]))[0])
        rows.append(
            (
                abs(found / one.slowdown - 1),
                abs(time / (b * other.slowdown) - 1),
                abs(slowdown / other.slowdown - 1),
            )
        )
    return rows
