"""Predictions of pairs by models that had not seen them, or not one of the benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from crosscast.arrays import Reals
from crosscast.choose.pairing.bags import DRAWS
from crosscast.choose.pairing.draws import ErrorBags
from crosscast.choose.pairing.experiment import Predicted, Truth
from crosscast.evaluate.corun.quantities import FITS, measured
from crosscast.evaluate.corun.splits import CoRunFold, folds_of
from crosscast.evaluate.corun.task import Answer, CoRunTask, left_out_errors, rehearsal_of, with_bags
from crosscast.evaluate.corun.work import answers_of
from crosscast.evaluate.processes import Progress, one_thread
from crosscast.predict.corun.left_out import LeftOut
from crosscast.predict.corun.model import CoRunModel
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.view import CoRuns

__all__ = ["known_pairs", "unseen_pairs"]

_BAGS, _BENCHMARKS = "leave-bag-out", "leave-benchmark-out"


def known_pairs(
    co_runs: CoRuns,
    model: CoRunModel,
    truth: Truth,
    seed: int = 0,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> Predicted:
    """Pairs of applications that a model knows, each by one that was fitted without the pair.

    The errors that are drawn for a pair are those of the other folds.

    Parameters
    ----------
    co_runs
        Pairs of one device.
    model
        The model.
    truth
        The same, measured.
    seed
        Start of all random numbers.
    progress, cache, jobs
        See `crosscast.evaluate.corun.work.answers_of`.

    Raises
    ------
    InputError
        If there are too few pairs, or the model cannot be fitted to them.
    """
    folds = folds_of(co_runs.bags, _BAGS, seed)
    tasks = [CoRunTask(model, fold, _BAGS, 0, None, seed) for fold in folds]
    answers = answers_of(co_runs, tasks, progress=progress, cache=cache, jobs=jobs)
    errors = _errors(co_runs, folds, answers)
    result = _nothing(truth, len(folds))
    for number, (fold, answer) in enumerate(zip(folds, answers, strict=True)):
        others = _without(errors, number)
        result.relative[number] = ErrorBags.of(others).drawn(2, DRAWS, seed)
        tested = _Tested([co_runs.bags[place] for place in fold.test.tolist()], answer.values["slowdown"])
        tested.put(result, truth, answer.values[FITS], others, number)
    return result


def unseen_pairs(
    co_runs: CoRuns,
    model: CoRunModel,
    truth: Truth,
    seed: int = 0,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> list[Predicted]:
    """The same with each benchmark left out in turn: no model has seen any bag with it.

    The other pairs are those of `known_pairs` among the others, but that what a model rehearses with comes
    from all of these. Errors that are drawn for pairs of the benchmark are those of pairs of the others, each
    left out in turn.

    Returns
    -------
    list of Predicted
        One for each benchmark, in the order of their names.
    """
    found = []
    for fold in folds_of(co_runs.bags, _BENCHMARKS, seed):
        rest = with_bags(co_runs, fold.train)
        bags = [co_runs.bags[place] for place in fold.test.tolist()]
        with one_thread("pairing jobs"):
            predictor = model.fit(rest, seed)
            answer = predictor.predict([bag.solos for bag in bags])
            rehearsal = rehearsal_of(model, predictor)
            errors = left_out_errors(rest, rehearsal, _BENCHMARKS, seed)["slowdown"]
        known = known_pairs(rest, rehearsal, truth, seed, progress=progress, cache=cache, jobs=jobs)
        own = ErrorBags.of(errors).drawn(2, DRAWS, seed)[None]
        result = replace(known, relative=np.concatenate([known.relative, own]))
        _Tested(bags, np.concatenate(answer.slowdown)).put(
            result, truth, answer.fits, errors, len(known.relative)
        )
        found.append(result)
    return found


def _nothing(truth: Truth, sets: int) -> Predicted:
    shape = truth.slowdown.shape
    slowdown, fits, spread = (np.full(shape, np.nan) for _ in range(3))
    return Predicted(slowdown, fits, spread, np.zeros((sets, 2 * DRAWS, 2)), np.zeros(shape, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class _Tested:
    """Pairs that were left out, and slowdowns of their members that were predicted, one after the other."""

    bags: Sequence[Bag]
    slowdowns: Reals

    def put(self, result: Predicted, truth: Truth, fits: Reals, errors: LeftOut, number: int) -> None:
        """Put them where they belong, with the number of their set of errors."""
        place = {solo.key: place for place, solo in enumerate(truth.solos)}
        spreads = errors.spread(np.log(self.slowdowns)).reshape(-1, 2)
        for row, (bag, slow) in enumerate(zip(self.bags, self.slowdowns.reshape(-1, 2), strict=True)):
            first, second = (place[solo.key] for solo in bag.solos)
            for member, pair in enumerate(((first, second), (second, first))):
                result.slowdown[pair], result.spread[pair] = slow[member], spreads[row, member]
                result.fits[pair], result.chosen[pair] = fits[row], number


def _errors(co_runs: CoRuns, folds: Sequence[CoRunFold], answers: Sequence[Answer]) -> LeftOut:
    logs, groups, bags, values = [], [], [], []
    for number, (fold, answer) in enumerate(zip(folds, answers, strict=True)):
        true = measured([co_runs.bags[place] for place in fold.test.tolist()], "slowdown")
        found = np.log(answer.values["slowdown"])
        errors = found - np.log(true.value)
        known = np.isfinite(errors)
        logs.append(errors[known])
        groups.append(np.full(int(known.sum()), number))
        bags.append(fold.test[true.bag[known]])
        values.append(found[known])
    return LeftOut(
        np.concatenate(logs),
        np.concatenate(groups),
        tuple(fold.held_out for fold in folds),
        np.concatenate(bags),
        np.concatenate(values),
    )


def _without(errors: LeftOut, number: int) -> LeftOut:
    """Errors of the other folds."""
    rest = errors.group != number
    bag, value = errors.bag, errors.log_value
    return LeftOut(
        errors.log_error[rest],
        errors.group[rest],
        errors.groups,
        None if bag is None else bag[rest],
        None if value is None else value[rest],
    )
