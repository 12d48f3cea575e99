"""One fit of an evaluation: a model learns from some bags, learns how wrong it is, and predicts others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.evaluate.corun.probing import Probing, probing_of
from crosscast.evaluate.corun.quantities import FITS, QUANTITIES, Rows, measured, predicted
from crosscast.evaluate.corun.splits import CoRunFold, folds_of, with_repeats
from crosscast.predict.corun.left_out import LeftOut
from crosscast.predict.corun.model import CoRunModel, CoRunPredictor
from crosscast.predict.corun.prediction import CoRunPrediction
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.view import CoRuns

__all__ = ["Answer", "CoRunTask", "answer_of", "left_out_errors", "rehearsal_of", "with_bags"]


_OF_MEMBERS = ("slowdown", "speed")


@dataclass(frozen=True, eq=False)
class CoRunTask:
    """What to do.

    Parameters
    ----------
    model
        The model.
    fold
        What is held out.
    split
        How: what is held out within the training bags to learn how wrong the model is.
    probes
        Bags with each input of what is left out that are known.
    level
        Probability that intervals are to hold; ``None`` for no intervals.
    seed
        Start of all random numbers.
    """

    model: CoRunModel
    fold: CoRunFold
    split: str
    probes: int
    level: float | None
    seed: int

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.model.name}, {self.fold.held_out} held out"


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of a task.

    Parameters
    ----------
    values
        For each quantity what was predicted, in the rows of `crosscast.evaluate.corun.quantities`.
    reach
        For each quantity how far the interval of each reaches, in logarithms; not a number without.
    """

    values: Mapping[str, Reals]
    reach: Mapping[str, Reals]


@runtime_checkable
class _Rehearsed(Protocol):
    """A model that finds out slowly what its fits to parts of the same bags may share."""

    def rehearsal(self, predictor: CoRunPredictor) -> CoRunModel:
        """A quicker form of the model, with what a fitted one found out."""
        ...


def rehearsal_of(model: CoRunModel, predictor: CoRunPredictor) -> CoRunModel:
    """What is fitted to parts of the bags that a model was fitted to: its quicker form if it has one."""
    return model.rehearsal(predictor) if isinstance(model, _Rehearsed) else model


def with_bags(co_runs: CoRuns, places: Integers) -> CoRuns:
    """The same solo runs with some of the bags."""
    return replace(co_runs, bags=tuple(co_runs.bags[place] for place in places.tolist()))


def answer_of(co_runs: CoRuns, task: CoRunTask) -> Answer:
    """Fit the model to the bags of training alone, and let it predict those that are held out.

    Raises
    ------
    InputError
        If the model cannot be fitted to these bags.
    """
    training = with_bags(co_runs, task.fold.train)
    tested = [co_runs.bags[place] for place in task.fold.test.tolist()]
    try:
        probing = probing_of(training, task.seed) if task.probes else None
        known, told = _with_probes(training, tested, task.fold.held_out, task.probes, probing)
        predictor = task.model.fit(known, task.seed)
        found = predictor.predict([bag.solos for bag in tested])
        errors = (
            left_out_errors(
                training,
                rehearsal_of(task.model, predictor),
                task.split,
                task.seed,
                probes=task.probes,
                probing=probing,
            )
            if task.level is not None
            else {}
        )
    except InputError as error:
        raise InputError(f"{task.label}: {error}") from error
    values = {name: _untold(predicted(found, name), told) for name in (*QUANTITIES, FITS)}
    return Answer(
        values, {name: _reach(errors.get(name), task.level, values[name], name) for name in QUANTITIES}
    )


def _with_probes(
    training: CoRuns, tested: Sequence[Bag], held_out: str, count: int, probing: Probing | None
) -> tuple[CoRuns, tuple[int, ...]]:
    """The training with the probes of what is tested, and the places there of what these tell."""
    if probing is None:
        return training, ()
    probes = probing.places(training.bags, tested, held_out, count)
    # What came of a probe tells what comes of the same bag again.
    return (
        replace(training, bags=(*training.bags, *(tested[place] for place in probes))),
        with_repeats(tested, probes),
    )


def _reach(errors: LeftOut | None, level: float | None, values: Reals, name: str) -> Reals:
    if errors is None or level is None:
        return np.full_like(values, np.nan)
    # A speed is as sure as the slowdown that it is the inverse of.
    logs = -np.log(values) if name == "speed" else np.log(values)
    reach: Reals = errors.reach(level, logs)
    return reach


def _untold(rows: Rows, probes: Sequence[int]) -> Reals:
    """Values without those of bags that were known."""
    return np.where(np.isin(rows.bag, probes), np.nan, rows.value)


def left_out_errors(
    co_runs: CoRuns,
    model: CoRunModel,
    split: str,
    seed: int,
    *,
    probes: int = 0,
    probing: Probing | None = None,
) -> dict[str, LeftOut]:
    """Errors of a model on what it is not fitted to, by quantity, of quantities that it tells.

    Parameters
    ----------
    co_runs
        Bags to learn from.
    model
        The model.
    split
        What is left out, as in `folds_of`; bags in folds where it is a part at random.
    seed
        Start of all random numbers.
    probes
        Bags with each input of what is left out that are known.
    probing
        What chooses them.
    """
    way = "leave-bag-out" if split == "random-80-20" else split
    logs: dict[str, list[Reals]] = {name: [] for name in QUANTITIES}
    values: dict[str, list[Reals]] = {name: [] for name in QUANTITIES}
    numbers: dict[str, list[Integers]] = {name: [] for name in QUANTITIES}
    held_out = []
    before = 0
    for fold in folds_of(co_runs.bags, way, seed):
        training = with_bags(co_runs, fold.train)
        bags = [co_runs.bags[place] for place in fold.test.tolist()]
        training, told = _with_probes(training, bags, fold.held_out, probes, probing)
        bags = [bag for place, bag in enumerate(bags) if place not in told]
        found = model.fit(training, seed).predict([bag.solos for bag in bags])
        held_out.append(fold.held_out)
        for name in QUANTITIES:
            errors, places, slowdowns = _log_errors(found, bags, name)
            logs[name].append(errors)
            values[name].append(slowdowns)
            numbers[name].append(before + places)
        before += len(bags)
    return {
        name: LeftOut(
            np.concatenate(parts),
            np.repeat(np.arange(len(kept)), [len(part) for part in parts]),
            tuple(held_out[place] for place in kept),
            np.concatenate([numbers[name][place] for place in kept]),
            np.concatenate([values[name][place] for place in kept]) if name in _OF_MEMBERS else None,
        )
        for name, all_parts in logs.items()
        if (kept := [place for place, part in enumerate(all_parts) if len(part)])
        for parts in [[all_parts[place] for place in kept]]
    }


def _log_errors(found: CoRunPrediction, bags: list[Bag], name: str) -> tuple[Reals, Integers, Reals]:
    """Errors that there are, the place of the bag of each, and the logarithm of the predicted slowdown."""
    true = measured(bags, name)
    values = predicted(found, name).value
    with np.errstate(invalid="ignore", divide="ignore"):
        # What is predicted below 0 has no logarithm.
        errors = np.log(values / true.value)
    known = np.isfinite(errors)
    logs = np.log(values[known])
    return errors[known], true.bag[known], -logs if name == "speed" else logs
