"""A question of its own: how much the times of repeated runs scatter. CONTRIBUTING.md explains each part.

In the package this would be the folder ``evaluation/scatter/`` and the name ``scatter`` in
``prediction/named_models.py``; ``tests/test_api.py`` enters it there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from crosscast.arrays import Arrays, Reals
from crosscast.data.dataset import Dataset
from crosscast.errors import InputError
from crosscast.evaluation import Question, with_baselines
from crosscast.evaluation.loop import Fold, FoldTask, RunArguments, folds_by_group, run_tasks


@dataclass(frozen=True)
class Runs:
    """Relative standard deviations of the runs of ``n`` kernels, and their applications."""

    scatter: Reals
    application: tuple[str, ...]


def runs_of(dataset: Dataset) -> Runs:
    """The kernels of a dataset that were run several times."""
    rows = [row for row in dataset.records.to_pylist() if len(row["time_s"]) > 1]
    if not rows:
        raise InputError.of(where=dataset.label, expected="kernels that were run several times", found="none")
    scatter = np.array([np.std(row["time_s"]) / np.mean(row["time_s"]) for row in rows])
    return Runs(scatter, tuple(row["application"] for row in rows))


@dataclass(frozen=True)
class Middle:
    """A model: all kernels scatter as much as the middle one of those known."""

    name: str = "middle"
    quantile: float = 0.5

    def fit(self, runs: Runs) -> float:
        """The scatter that it says of any kernel."""
        return float(np.quantile(runs.scatter, self.quantile))


@dataclass(frozen=True)
class Without(FoldTask[Middle, Fold, Runs]):
    """A fit without an application, and how far it is from that application's kernels."""

    @property
    def cache_keys(self) -> Sequence[object]:
        """All that the answer depends on besides the data."""
        return [{"model": self.model.name, "quantile": self.model.quantile, "test": self.fold.test.tolist()}]

    def run(self, data: Runs, queries: Sequence[int]) -> list[Arrays]:
        """Absolute errors on what was held out."""
        seen = Runs(data.scatter[self.fold.train], ())
        errors = np.abs(self.model.fit(seen) - data.scatter[self.fold.test])
        return [{"error": errors} for _ in queries]

    def is_valid(self, data: Runs, query: int, arrays: Arrays) -> bool:
        """Whether a kept answer is of this fold."""
        return set(arrays) == {"error"} and arrays["error"].shape == self.fold.test.shape


@dataclass(frozen=True)
class ScatterOptions:
    """Options of `crosscast.train` and `crosscast.evaluate` for ``scatter``."""

    quantile: float = 0.5  # Which kernel of those known is the middle one


@dataclass(frozen=True)
class Scores:
    """Mean absolute error of each model over applications, each held out in turn."""

    error: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {"results": [{"model": name, "error": error} for name, error in self.error.items()]}


class ScatterQuestion(Question[Dataset, ScatterOptions, ScatterOptions, Scores, float]):
    """How much the times of a kernel's runs scatter."""

    name = "scatter"
    folds = ("leave-application-out",)
    evaluation_options = ScatterOptions
    training_options = ScatterOptions
    all_models = (Middle.name,)
    best_model = Middle.name

    def evaluate(
        self,
        data: Dataset,
        models: Sequence[str] | None,
        folds: str,
        options: ScatterOptions,
        *,
        seed: int,
        **run: Unpack[RunArguments],
    ) -> Scores:
        """Hold each application out in turn."""
        runs, (name,) = runs_of(data), with_baselines(models, self.all_models, self.best_model, ())
        held_out = folds_by_group(folds, "applications", list(runs.application))
        tasks = [Without(Middle(name, options.quantile), fold, seed) for fold in held_out]
        errors = [answers[0]["error"].mean() for answers in run_tasks(tasks, runs, **run)]
        return Scores({name: float(np.mean(errors))})

    def train(
        self, data: Dataset, model: str, options: ScatterOptions, *, seed: int, **run: Unpack[RunArguments]
    ) -> float:
        """The scatter of any kernel; a model that is to be stored would be a `Trained`."""
        return Middle(model, options.quantile).fit(runs_of(data))


QUESTION = ScatterQuestion()
