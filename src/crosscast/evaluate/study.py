"""An evaluation with all that belongs beside it: how sure it is, the noise floor, and what needs no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crosscast.device import Device
from crosscast.evaluate.bootstrap import BASELINES, bootstrap
from crosscast.evaluate.confidence import DRAWS, SHARE, Confidence
from crosscast.evaluate.noise import AlwaysTheSame, always_the_same, noise_floor
from crosscast.evaluate.processes import Progress
from crosscast.evaluate.protocol import Evaluation, Result, evaluate
from crosscast.evaluate.scores import Scores
from crosscast.evaluate.splits import DEFAULT
from crosscast.predict.model import Model
from crosscast.predict.observed import grid_of
from crosscast.tables.dataset import Dataset

__all__ = ["Study", "study"]


@dataclass(frozen=True)
class Study:
    """How models did on a dataset.

    Parameters
    ----------
    label
        Which dataset.
    evaluation
        What they forecast.
    confidences
        How sure the scores of each result are.
    noise
        The noise floor: one run of a cell as the forecast of its median.
    always
        What taking always the same device costs; ``None`` where there is no choice.
    """

    label: str
    evaluation: Evaluation
    confidences: tuple[Confidence, ...]
    noise: Result
    always: AlwaysTheSame | None

    @property
    def counts(self) -> dict[str, int]:
        """How many cells, kernels at a size, kernels, applications and devices there are."""
        grid = self.evaluation.grid
        return {
            "cells": int((grid.runs > 0).sum()),
            "kernels_at_a_size": len(grid.profiles),
            "kernels": len(set(grid.profiles.groups("kernel").tolist())),
            "applications": len(set(grid.profiles.application)),
            "devices": len(grid.devices),
        }

    def best(self, probes: int) -> Result | None:
        """The model with the least RMSE at a number of probes; a baseline only if there is no other."""
        ranked = [
            (result.model in BASELINES, score, result)
            for result in self.evaluation.results
            if result.probes == probes and (score := result.scores.rmse_log) is not None
        ]
        return min(ranked, key=lambda each: each[:2])[2] if ranked else None

    def to_dict(self) -> dict[str, Any]:
        """Everything but the forecasts, as the object that ``--json`` prints: what is not known is null."""
        evaluation = self.evaluation
        present = {result.model for result in evaluation.results}
        return {
            "protocol": evaluation.split,
            "dataset": self.label,
            **self.counts,
            "seed": evaluation.seed,
            "level": evaluation.level,
            "baselines": [name for name in BASELINES if name in present],
            "bootstrap": {"over": "applications", "draws": DRAWS, "share": SHARE},
            "results": [
                _listed(result, evaluation.grid.devices) | confidence.to_dict()
                for result, confidence in zip(evaluation.results, self.confidences, strict=True)
            ],
            "noise_floor": _listed(self.noise, evaluation.grid.devices),
            "always_the_same": None
            if self.always is None
            else {"device": self.always.device, **_listed(self.always.result, ())},
        }


def _listed(result: Result, devices: Sequence[Device]) -> dict[str, Any]:
    return {
        "model": result.model,
        "split": result.split,
        "probes": result.probes,
        "sets_of_probes": len(result.outcomes),
        **asdict(result.scores),
        "slowdown_mean_without": {name: each.slowdown_mean for name, each in result.without.items()},
        "applications": {name: asdict(each) for name, each in result.applications.items()},
        "devices": {device.key: _of_cells(result.on(place).scores) for place, device in enumerate(devices)},
    }


_OF_CHOICES = ("top1", "slowdown", "within", "kendall")


def _of_cells(scores: Scores) -> dict[str, float | None]:
    """Scores that a device alone has: those of cells, and none of choices."""
    return {name: value for name, value in asdict(scores).items() if not name.startswith(_OF_CHOICES)}


def study(
    dataset: Dataset,
    models: Sequence[Model],
    split: str = DEFAULT,
    *,
    probes: Sequence[int] = (0,),
    seed: int = 0,
    level: float = 0.9,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> Study:
    """Evaluate models on a dataset, with the noise floor and the bootstrap.

    Arguments and errors are those of `crosscast.evaluate.protocol.evaluate`, with the dataset in place of
    its grid.
    """
    grid = grid_of(dataset)
    evaluation = evaluate(
        grid,
        models,
        split,
        probes=probes,
        seed=seed,
        level=level,
        progress=progress,
        cache=cache,
        jobs=jobs,
    )
    return Study(
        dataset.label,
        evaluation,
        bootstrap(evaluation),
        noise_floor(dataset, grid, seed, level),
        always_the_same(grid, level),
    )
