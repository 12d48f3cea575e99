"""Bags of more members: a predictor a size, as published, against one for all (paper 004, section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Integers
from crosscast.errors import InputError
from crosscast.evaluate.corun.protocol import results_of
from crosscast.evaluate.corun.result import CoRunResult
from crosscast.evaluate.corun.splits import CoRunFold, folds_of
from crosscast.evaluate.corun.studies.not_made import NotMade
from crosscast.evaluate.corun.task import CoRunTask, with_bags
from crosscast.evaluate.corun.work import answers_of
from crosscast.evaluate.processes import Progress, one_thread
from crosscast.predict.corun.model import CoRunModel
from crosscast.tables.corun.view import CoRuns

__all__ = ["ALL", "OWN", "SizeResult", "SizeStudy", "fitted_to_fewest", "sizes_study"]

OWN, ALL = "bags of that size", "bags of all sizes"
"""What models were fitted to; the third is `fitted_to_fewest`."""

_SPLIT = "leave-benchmark-out"
_SHOWN = ("slowdown", "time", "power")


@dataclass(frozen=True, eq=False)
class SizeResult:
    """How good a model is at bags of a size.

    Parameters
    ----------
    fitted_to
        Which of the bags without the benchmark it was fitted to.
    result
        Its errors at one quantity.
    """

    fitted_to: str
    result: CoRunResult


@dataclass(frozen=True, eq=False)
class SizeStudy:
    """Models on bags of several sizes, each benchmark left out.

    Parameters
    ----------
    sizes
        Members of the bags, ascending.
    results
        By size, what the model was fitted to, quantity, and model.
    of_one_size
        Models that predict bags of the sizes that they were fitted to alone.
    """

    sizes: tuple[int, ...]
    results: tuple[SizeResult, ...]
    of_one_size: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {
            "sizes": list(self.sizes),
            "one_predictor_a_size": list(self.of_one_size),
            "results": [
                {
                    "model": each.result.model,
                    "fitted_to": each.fitted_to,
                    "bag_size": each.result.bag_size,
                    "quantity": each.result.quantity,
                    "rows": each.result.rows,
                    "mape": each.result.mape,
                }
                for each in self.results
            ],
        }


def fitted_to_fewest(size: int) -> str:
    """What a model was fitted to that is asked for larger bags."""
    return f"bags of {size} alone"


def sizes_study(
    co_runs: CoRuns,
    models: Sequence[CoRunModel],
    seed: int,
    *,
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> SizeStudy | NotMade:
    """Fit models to bags of the size that is asked for, of all sizes, and of the smallest size alone.

    Parameters
    ----------
    co_runs
        Bags of one device.
    models
        The models. Those that predict one size at a time are fitted to bags of that size only.
    seed, progress, cache, jobs
        As `evaluate_corun` has them.

    Raises
    ------
    InputError
        If a model cannot be fitted, or the cache cannot be written.
    """
    counts = np.array([len(bag.members) for bag in co_runs.bags], dtype=np.int64)
    sizes = tuple(size for size in np.unique(counts).tolist() if size > 1)
    if len(sizes) < 2:
        found = f"all have {sizes[0]} members" if sizes else "there are none"
        return NotMade(f"sizes take bags of at least two sizes, and {found}")
    folds = folds_of(co_runs.bags, _SPLIT, seed)
    flexible = {model.name: _any_size(co_runs, model, counts == sizes[0], sizes[1]) for model in models}
    asked = []
    for model in models:
        for size in sizes:
            asked.append((model, OWN, size, _folds(folds, counts == size, counts == size)))
            if flexible[model.name]:
                asked.append((model, ALL, size, _folds(folds, counts > 1, counts == size)))
                if size > sizes[0]:
                    few = _folds(folds, counts == sizes[0], counts == size)
                    asked.append((model, fitted_to_fewest(sizes[0]), size, few))
    tasks = [CoRunTask(model, fold, _SPLIT, 0, None, seed) for model, _, _, parts in asked for fold in parts]
    answers = iter(answers_of(co_runs, tasks, progress=progress, cache=cache, jobs=jobs))
    results = []
    for model, fitted_to, _, parts in asked:
        scored = results_of(co_runs, model.name, False, _SPLIT, 0, parts, [next(answers) for _ in parts])
        results += [
            SizeResult(fitted_to, each) for each in scored if each.bag_size and each.quantity in _SHOWN
        ]
    order = {name: place for place, name in enumerate(dict.fromkeys(model.name for model in models))}
    ways = (OWN, ALL, fitted_to_fewest(sizes[0]))
    results.sort(
        key=lambda each: (
            _SHOWN.index(each.result.quantity),
            order[each.result.model],
            ways.index(each.fitted_to),
            each.result.bag_size or 0,
        )
    )
    single = tuple(name for name, every in flexible.items() if not every)
    return SizeStudy(sizes, tuple(results), single)


def _any_size(co_runs: CoRuns, model: CoRunModel, smallest: Any, size: int) -> bool:
    """Whether a model that was fitted to the smallest bags predicts larger ones."""
    larger = next(bag for bag in co_runs.bags if len(bag.members) == size)
    with one_thread("fitting a model"):
        fitted = model.fit(with_bags(co_runs, np.flatnonzero(smallest)), 0)
        try:
            fitted.predict([larger.solos])
        except InputError:
            return False
    return True


def _folds(folds: Sequence[CoRunFold], train: Any, test: Any) -> list[CoRunFold]:
    """The same folds with some of the bags; none where nothing is left to fit to, or to test on."""
    cut = [CoRunFold(fold.held_out, _where(fold.train, train), _where(fold.test, test)) for fold in folds]
    return [fold for fold in cut if len(fold.train) and len(fold.test)]


def _where(places: Integers, chosen: Any) -> Integers:
    kept: Integers = places[chosen[places]]
    return kept
