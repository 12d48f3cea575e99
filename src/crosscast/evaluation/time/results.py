"""Results of models of times: scores with intervals, by application and device, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial

import numpy as np

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.evaluation.resampling import DRAWS, SHARE, Confidence, Scored, confidences
from crosscast.evaluation.time.scores import (
    BETTER,
    Scores,
    Tally,
    TimeOutcome,
    of_applications,
    score_values,
    tally_of,
    weighted_scores,
)
from crosscast.prediction.time.data import Grid
from crosscast.prediction.time.models import BASELINES
from crosscast.results import Tabular, columns_of


@dataclass(frozen=True, eq=False)
class Result:
    """Forecasts and scores of one model."""

    model: str
    folds: str
    probes: int  # Number of devices on which each held-out kernel was measured before
    level: float  # Probability that the intervals were to hold
    names: tuple[str, ...]  # Names of all applications, sorted
    outcomes: tuple[TimeOutcome, ...]  # One for each set of measured devices

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """Tallies of the scores, one for each outcome."""
        return tuple(tally_of(outcome, self.names, self.level) for outcome in self.outcomes)

    @cached_property
    def scores(self) -> Scores:
        """Scores, as means over the sets of measured devices."""
        return weighted_scores(self.tallies, np.ones((1, len(self.names))))[0]

    @cached_property
    def applications(self) -> dict[str, Scores]:
        """Scores within each application alone, by its name."""
        return self._weighted(np.eye(len(self.names)))

    @cached_property
    def without(self) -> dict[str, Scores]:
        """Scores over all applications but one, by the name of that one."""
        return self._weighted(1 - np.eye(len(self.names)))

    def _weighted(self, weights: Reals) -> dict[str, Scores]:
        return dict(zip(self.names, weighted_scores(self.tallies, weights), strict=True))

    def on(self, device: int) -> Result:
        """The result on a single device, by index."""
        return replace(self, outcomes=tuple(outcome.on(device) for outcome in self.outcomes))

    def of_applications(self, grid: Grid) -> Result:
        """The result of whole applications at a size, instead of kernels."""
        totals = (of_applications(outcome, grid.profiles) for outcome in self.outcomes)
        return replace(self, outcomes=tuple(totals))

    def to_dict(self, devices: Sequence[Device]) -> dict[str, object]:
        """Scores, also of each application and device; those of devices have no choices."""
        of_choices = ("top1", "slowdown", "within", "kendall")
        on_devices = {device.key: asdict(self.on(index).scores) for index, device in enumerate(devices)}
        return {
            "model": self.model,
            "split": self.folds,
            "probes": self.probes,
            "sets_of_probes": len(self.outcomes),
            **asdict(self.scores),
            "slowdown_mean_without": {name: each.slowdown_mean for name, each in self.without.items()},
            "applications": {name: asdict(each) for name, each in self.applications.items()},
            "devices": {
                key: {name: value for name, value in scores.items() if not name.startswith(of_choices)}
                for key, scores in on_devices.items()
            },
        }


@dataclass(frozen=True, eq=False)
class TimeEvaluation(Tabular):
    """Results of models of times on a dataset."""

    label: str  # Of the dataset
    grid: Grid  # Times and profiles that folds split
    folds: str  # Their name
    seed: int
    level: float
    results: tuple[Result, ...]  # One for each model and number of probes, in the order of their names
    noise: Result  # One run of a cell as the forecast of its median; without scores for a grid alone
    # The best single device for all kernels, and its result; `None` where there is no choice
    always: tuple[str, Result] | None

    @cached_property
    def confidences(self) -> tuple[Confidence, ...]:
        """Bootstrap intervals over applications of each result's scores."""
        return self._confidences(self.results)

    @cached_property
    def totals(self) -> tuple[Result, ...]:
        """Results of whole applications, with kernels as often as they are launched, for each result."""
        return tuple(each.of_applications(self.grid) for each in self.results)

    @cached_property
    def total_confidences(self) -> tuple[Confidence, ...]:
        """Bootstrap intervals over applications of the scores of each of `totals`."""
        return self._confidences(self.totals)

    def _confidences(self, results: Sequence[Result]) -> tuple[Confidence, ...]:
        scored = []
        for each in results:
            drawn = partial(score_values, each.tallies)
            baseline = each.model in BASELINES
            scored.append(Scored(each.model, baseline, asdict(each.scores), drawn, each.probes))
        return confidences(scored, len(self.grid.applications), BETTER, self.seed)

    @cached_property
    def scored(self) -> list[dict[str, object]]:
        """Scores of each result with their confidence, as objects of JSON."""
        return [
            result.to_dict(self.grid.devices) | confidence.to_dict()
            for result, confidence in zip(self.results, self.confidences, strict=True)
        ]

    @cached_property
    def noise_scores(self) -> dict[str, object]:
        """Scores of `noise`, as an object of JSON."""
        return self.noise.to_dict(self.grid.devices)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of cells, kernels at a size, kernels, applications and devices."""
        return {
            "cells": int((self.grid.runs > 0).sum()),
            "kernels_at_a_size": len(self.grid.profiles),
            "kernels": len(np.unique(self.grid.profiles.groups("kernel"))),
            "applications": len(self.grid.applications),
            "devices": len(self.grid.devices),
        }

    def best(self, probes: int) -> Result | None:
        """The model with the least RMSE at a number of probes; a baseline only if there is no other."""
        ranked = [
            (result.model in BASELINES, score, result)
            for result in self.results
            if result.probes == probes and (score := result.scores.rmse_log) is not None
        ]
        return min(ranked, key=lambda each: each[:2])[2] if ranked else None

    def columns(self) -> Mapping[str, Sequence[object]]:
        """A row for each result: its scores."""
        rows = [
            {"model": each.model, "folds": each.folds, "probes": each.probes, **asdict(each.scores)}
            for each in self.results
        ]
        return columns_of(rows)

    def to_dict(self) -> dict[str, object]:
        """All but the forecasts, as the object that ``--json`` prints; unknown values are null."""
        present = {result.model for result in self.results}
        device, always = self.always or (None, None)
        return {
            "protocol": self.folds,
            "dataset": self.label,
            **self.counts,
            "seed": self.seed,
            "level": self.level,
            "baselines": [name for name in BASELINES if name in present],
            "bootstrap": {"over": "applications", "draws": DRAWS, "share": SHARE},
            "results": self.scored,
            "whole_applications": [
                {"model": total.model, "probes": total.probes, **asdict(total.scores), **confidence.to_dict()}
                for total, confidence in zip(self.totals, self.total_confidences, strict=True)
            ],
            "noise_floor": self.noise_scores,
            "always_the_same": None if always is None else {"device": device, **always.to_dict(())},
        }
