"""What XGBoost looks at (Figure 8): average gain, and what is lost when a feature is shuffled."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.evaluate.processes import one_thread
from crosscast.evaluate.relative.metrics import row_scores
from crosscast.evaluate.relative.splits import split_named
from crosscast.predict.relative.observations import Vectors
from crosscast.predict.relative.published.trees import TreesPredictor
from crosscast.predict.relative.published.xgboost import PublishedXGBoost

__all__ = ["CAUTION", "SHUFFLES", "Importance", "Importances", "importances"]

SHUFFLES = 5
"""How often each feature is shuffled in each fold."""

CAUTION = (
    "Gain says what the trees split at, not what performance depends on: among features that go together it "
    "falls to either, it favours those with many values, and it counts what is learned by heart. The rise of "
    "the error when a feature is shuffled among runs that were held out is of use, not of habit, but it too "
    "is small for each of several features that say the same."
)
"""What to keep in mind, in two sentences."""


@dataclass(frozen=True)
class Importance:
    """How much a feature matters.

    Parameters
    ----------
    feature
        Its name.
    gain
        Average gain of the splits at it, as a share of the sum over all features; in a fit to all rows.
    rise
        By how much the MAE of held-out rows rises when it is shuffled: mean over folds and shuffles, rows
        weighted the same. Less than 0 where shuffling helps.
    """

    feature: str
    gain: float
    rise: float


@dataclass(frozen=True)
class Importances:
    """How much the features of a model matter.

    Parameters
    ----------
    model
        Its name.
    split
        What was held out for shuffling.
    mae
        MAE of what was held out without shuffling.
    features
        The features, most gain first.
    """

    model: str
    split: str
    mae: float
    features: tuple[Importance, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as an object of JSON."""
        return {
            "model": self.model,
            "split": self.split,
            "mae": self.mae,
            "caution": CAUTION,
            "features": [asdict(each) for each in self.features],
        }


def importances(
    vectors: Vectors,
    split: str,
    *,
    model: PublishedXGBoost | None = None,
    seed: int = 0,
) -> Importances:
    """Average gains in a fit to all rows, and permutation importances on held-out rows.

    A held-out row is given another row's value of the feature. Rows of the same kernel at the same size on
    the same device get the same, and donors are among all rows: within one application a feature may hardly
    differ, and shuffling there would show nothing.

    Parameters
    ----------
    vectors
        All rows.
    split
        Name of the split.
    model
        The model; by default the published one.
    seed
        Start of all random numbers.

    Raises
    ------
    InputError
        If there are fewer than two groups to split by, or the model cannot be fitted.
    """
    model = PublishedXGBoost() if model is None else model
    with one_thread("evaluating models"):
        whole = model.fit(vectors, seed)
        names = whole.features.names
        folds = split_named(split).folds_of(vectors.observations, seed)
        rng = np.random.default_rng(seed)
        errors = np.zeros(len(vectors))
        shuffled = np.zeros((len(names), len(vectors)))
        tested = np.zeros(len(vectors), dtype=np.bool_)
        works = _works(vectors)
        for fold in folds:
            if tested[fold.test].any():
                # Folds within the training rows of the published split.
                continue
            tested[fold.test] = True
            fitted = model.fit(vectors.rows(fold.train), seed)
            test = vectors.rows(fold.test)
            own = fitted.features.transform(test.observations)
            donors = fitted.features.transform(vectors.observations)
            errors[fold.test] = _errors(fitted, test, own)
            # What is no feature of this fit cannot be lost.
            shuffled[:, fold.test] = errors[fold.test]
            for place, name in enumerate(fitted.features.names):
                if name in names:
                    others = _others(donors[:, place], works[fold.test], rng)
                    shuffled[names.index(name), fold.test] = _shuffled(fitted, test, own, place, others)
    rise = shuffled[:, tested].mean(axis=1) - errors[tested].mean()
    gain = whole.gain / max(float(whole.gain.sum()), np.finfo(float).tiny)
    order = np.argsort(-gain, kind="stable")
    return Importances(
        model.name,
        split,
        float(errors[tested].mean()),
        tuple(Importance(str(names[place]), float(gain[place]), float(rise[place])) for place in order),
    )


def _works(vectors: Vectors) -> Integers:
    """A number for each row, the same for rows of a kernel at a size on a device."""
    rows = vectors.observations
    names = list(zip(rows.works, rows.source, strict=True))
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], dtype=np.int64)


def _errors(fitted: TreesPredictor, test: Vectors, rows: Reals) -> Reals:
    return row_scores(test.times_s, fitted.predict_features(rows)).absolute_error


def _others(donors: Reals, works: Integers, rng: np.random.Generator) -> Reals:
    """Values of a feature of other rows, of shape ``(SHUFFLES, rows)``."""
    _, place = np.unique(works, return_inverse=True)
    given = rng.integers(len(donors), size=(SHUFFLES, int(place.max()) + 1))
    return donors[given[:, place]]


def _shuffled(fitted: TreesPredictor, test: Vectors, own: Reals, place: int, others: Reals) -> Reals:
    """Mean error of each row over the shuffles of a feature."""
    rows = np.tile(own, (SHUFFLES, 1))
    rows[:, place] = others.ravel()
    again = test.rows(np.tile(np.arange(len(test)), SHUFFLES))
    means: Reals = _errors(fitted, again, rows).reshape(SHUFFLES, len(test)).mean(axis=0)
    return means
