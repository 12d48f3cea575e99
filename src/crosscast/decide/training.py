"""How wrong a model of configurations is on programs that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.configuration import Configuration
from crosscast.decide.cases import Sampler
from crosscast.decide.evaluation import ALONE, evaluate_choices
from crosscast.decide.policies import method_names, methods_of
from crosscast.decide.samples import sample_numbers, two_samples
from crosscast.errors import InputError
from crosscast.evaluation.processes import (
    Progress,
    check_jobs,
    check_seed,
    counted_together,
    done_pieces,
    one_thread,
    told,
)
from crosscast.predict.configuration.artefact import ConfigurationCard
from crosscast.predict.configuration.bailey2014 import PublishedModel, PublishedPredictor
from crosscast.predict.configuration.data import Surfaces, machines_of, power_totals, surfaces_digest
from crosscast.predict.configuration.forecast import ConfigurationModel, ConfigurationPredictor, Quantity
from crosscast.predict.configuration.models import configuration_model_named
from crosscast.tables.configured import configured
from crosscast.tables.dataset import Dataset


@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """Errors at the configurations that were not measured, of each program left out."""

    level: float  # Probability that the intervals were to hold
    # For each program `(m,)` logarithms of predicted over true values; without programs that did not run at
    # the samples
    time: dict[str, Reals]
    power: dict[str, Reals]
    # For each program `(m,)` whether the true value was within the interval; none where the model does not
    # know how sure it is
    time_inside: dict[str, Flags]
    power_inside: dict[str, Flags]

    def to_dict(self) -> dict[str, Any]:
        """Scores in which programs weigh the same, as a JSON object; what is not known is null.

        Root mean squared errors of logarithms, medians of the absolute errors over the true values, and
        shares of values within the intervals.
        """
        return {
            "protocol": "leave-application-out",
            "level": self.level,
            "programs": len(self.time),
            "cells": sum(len(each) for each in self.time.values()),
            "rmse_log_time": _rmse(self.time),
            "rmse_log_power": _rmse(self.power),
            "median_ape_time": _median(self.time),
            "median_ape_power": _median(self.power),
            "coverage_time": _mean(self.time_inside),
            "coverage_power": _mean(self.power_inside),
            "by_program": {
                name: {
                    "rmse_log_time": _rmse({name: self.time[name]}),
                    "rmse_log_power": _rmse({name: self.power[name]}),
                }
                for name in self.time
            },
        }


def _rmse(errors: dict[str, Reals]) -> float | None:
    squares = [float(np.mean(each**2)) for each in errors.values()]
    return float(np.sqrt(np.mean(squares))) if squares else None


def _median(errors: dict[str, Reals]) -> float | None:
    medians = [float(np.median(np.abs(np.expm1(each)))) for each in errors.values()]
    return float(np.mean(medians)) if medians else None


def _mean(inside: dict[str, Flags]) -> float | None:
    shares = [float(np.mean(each)) for each in inside.values()]
    return float(np.mean(shares)) if shares else None


def errors_left_out(
    surfaces: Surfaces,
    model: ConfigurationModel,
    *,
    samples: Sequence[int] | Sampler,
    level: float = 0.9,
    seed: int = 0,
    progress: Progress | None = None,
    jobs: int = 1,
) -> LeftOutErrors:
    """Fit a model to all applications but one, and predict the kernels of that one, for each."""
    check_jobs(jobs)
    names = surfaces.applications
    pieces = {name: name for name in names}
    done = done_pieces(pieces, _worker, (surfaces, model, samples, level, seed), jobs, "fitted a model")
    labelled = told(done, len(names), lambda name: f"{model.name}, {name} held out", progress)
    by_name = dict(labelled)
    found = {name: by_name[name] for name in names if len(by_name[name].time)}
    return LeftOutErrors(
        level,
        {name: each.time for name, each in found.items()},
        {name: each.power for name, each in found.items()},
        {name: each.time_inside for name, each in found.items() if each.time_inside is not None},
        {name: each.power_inside for name, each in found.items() if each.power_inside is not None},
    )


@dataclass(frozen=True, eq=False)
class _Fold:
    """Errors of one program."""

    time: Reals
    power: Reals
    time_inside: Flags | None
    power_inside: Flags | None


def _worker(*arguments: Any) -> Callable[[str], _Fold]:
    return partial(_fold, *arguments)


def _fold(
    surfaces: Surfaces,
    model: ConfigurationModel,
    samples: Sequence[int] | Sampler,
    level: float,
    seed: int,
    held_out: str,
) -> _Fold:
    own = surfaces.rows_of([held_out])
    train = surfaces.take(~own)
    numbers = samples(train, seed) if callable(samples) else tuple(samples)
    with one_thread("training a model"):
        try:
            fitted = model.fit(train, numbers, seed)
        except InputError as error:
            raise InputError(f"{model.name}, {held_out} held out: {error}") from error
        found = []
        for row in np.flatnonzero(own & surfaces.known[:, list(numbers)].all(axis=1)).tolist():
            forecast = fitted.forecast(surfaces.observed(row, numbers))
            asked = surfaces.known[row] & ~forecast.measured & np.isfinite(forecast.time.centre)
            found.append(
                (
                    *_errors(forecast.time, surfaces.time_s[row], asked, level),
                    *_errors(forecast.power, surfaces.power_w[row], asked, level),
                )
            )
    time, time_inside, power, power_inside = zip(*found, strict=True) if found else [()] * 4
    return _Fold(_joined(time), _joined(power), _known(time_inside), _known(power_inside))


def _errors(quantity: Quantity, true: Reals, asked: Flags, level: float) -> tuple[Reals, Flags | None]:
    errors: Reals = np.log(quantity.centre[asked] / true[asked])
    if not quantity.errors.size:
        return errors, None
    low, high = (quantity.quantile(share)[asked] for share in ((1 - level) / 2, (1 + level) / 2))
    return errors, (low <= true[asked]) & (true[asked] <= high)


def _joined(parts: Sequence[Reals]) -> Reals:
    return np.concatenate(parts) if parts else np.empty(0)


def _known(parts: Sequence[Flags | None]) -> Flags | None:
    there = [each for each in parts if each is not None]
    return np.concatenate(there) if there else None


LEAST_PROGRAMS = 3
"""Fewer leave too few when one is held out."""

_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_OF_RESULT = (
    "method",
    "protocol",
    "under_limit_share",
    "under_performance",
    "under_power",
    "over_power",
    "over_performance",
    "score",
    "extra_runs",
    "violations",
    "under_limit_share_within_1pct",
    "under_performance_within_1pct",
    "confidence",
    "programs_above",
    "intervals",
)


@dataclass(frozen=True)
class TrainedChooser:
    """A fitted model and its card."""

    predictor: ConfigurationPredictor
    card: ConfigurationCard


def machine_of(
    dataset: Dataset, *, devices: Sequence[str] | None = None, power_domain: str | None = None
) -> Surfaces:
    """The times and powers of the one machine that a dataset, or a part of it, is of."""
    label = Path(dataset.label).name
    machines = machines_of(configured(dataset, domain=power_domain), label, devices)
    if len(machines) > 1:
        listed = "; ".join(", ".join(each.space.devices) for each in machines)
        raise InputError(
            f"device: expected those of one machine, found {len(machines)} machines without a kernel in "
            f"common ({listed}): name the devices of one"
        )
    if len(machines[0].space) < 2:
        raise InputError(f"{label}: expected at least 2 configurations to choose from, found 1")
    return machines[0]


def train_chooser(
    surfaces: Surfaces,
    name: str,
    *,
    samples: Sequence[Configuration] | None = None,
    power_domain: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> TrainedChooser:
    """Fit a model to a machine's kernels, and measure it with each application left out in turn."""
    check_seed(seed)
    model = configuration_model_named(name)
    if len(surfaces.applications) < LEAST_PROGRAMS:
        raise InputError(
            f"{surfaces.label}: expected at least {LEAST_PROGRAMS} applications to train and test a model, "
            f"found {', '.join(surfaces.applications)}"
        )
    numbers = two_samples(surfaces, seed) if samples is None else sample_numbers(surfaces.space, samples)
    # First the model itself: what cannot be learned is said at once.
    predictor = model.fit(surfaces, numbers, seed)
    wanted: Sequence[int] | Sampler = two_samples if samples is None else numbers
    methods = _methods(surfaces, name)
    fits = len(surfaces.applications)
    first, second = (
        (None, None) if progress is None else counted_together(progress, (fits, fits if methods else 0))
    )
    errors = errors_left_out(surfaces, model, samples=wanted, seed=seed, progress=first, jobs=jobs)
    choices = _choices(surfaces, methods, samples, seed=seed, progress=second, cache=cache, jobs=jobs)
    card = ConfigurationCard(
        model=name,
        seed=seed,
        space=surfaces.space,
        samples=numbers,
        power_domain=power_domain,
        totals=power_totals(surfaces),
        domains=tuple(sorted(surfaces.domains)),
        counters=tuple(sorted(surfaces.counters)),
        training=_training(surfaces),
        errors={**errors.to_dict(), "choices": choices},
    )
    return TrainedChooser(predictor, card)


def _methods(surfaces: Surfaces, name: str) -> list[str]:
    """Names of the methods that choose by the model, without and with limiting, as far as there are any."""
    return [each for each in (name, f"{name}-strict", f"{name}+fl") if each in method_names(surfaces.space)]


def _choices(
    surfaces: Surfaces,
    methods: Sequence[str],
    samples: Sequence[Configuration] | None,
    *,
    seed: int,
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> list[dict[str, Any]]:
    """Scores of the methods' choices."""
    if not methods:
        return []
    found = evaluate_choices(
        surfaces,
        methods_of(surfaces.space, methods),
        samples=two_samples if samples is None else samples,
        duplicates_too=False,
        seed=seed,
        progress=progress,
        cache=cache,
        jobs=jobs,
    )
    listed = [each.to_dict() for each in found.results if each.protocol == ALONE]
    return [{key: each[key] for key in _OF_RESULT} for each in listed]


def _training(surfaces: Surfaces) -> dict[str, Any]:
    return {
        "dataset": surfaces.label,
        "cells": int(surfaces.known.sum()),
        "kernels_at_a_size": len(surfaces.kernels),
        "kernels": len({(each.application, each.kernel) for each in surfaces.kernels}),
        "applications": len(surfaces.applications),
        "configurations": len(surfaces.space),
        "names": list(surfaces.applications),
        "sha256": surfaces_digest(surfaces),
        "libraries": {name: metadata.version(name) for name in _LIBRARIES},
    }


@dataclass(frozen=True, eq=False)
class OfflineStage:
    """What the published model finds in all programs; no number of an evaluation comes from it."""

    samples: tuple[int, ...]  # The sample configurations
    predictor: PublishedPredictor  # The published model, fitted to all programs

    def to_dict(self) -> dict[str, Any]:
        """The clusters and the tree as an object of JSON; no clusters where there is nothing to cluster."""
        found = self.predictor.clusters
        groups = [] if found.nothing_to_cluster else [[str(each) for each in of] for of in found.members]
        return {
            "note": found.note,
            "nothing_to_cluster": found.nothing_to_cluster,
            "least_correlation": found.least_correlation,
            "most_correlation": found.most_correlation,
            "pairs_without_correlation": found.undefined,
            "clusters": groups,
            "tree": None if found.nothing_to_cluster else self.predictor.tree.text(),
        }


def offline_stage(
    surfaces: Surfaces,
    *,
    samples: Sequence[Configuration] | Sampler = two_samples,
    seed: int = 0,
) -> OfflineStage:
    """Fit the published model to all programs (Bailey et al. 2014, section III-B)."""
    numbers = samples(surfaces, seed) if callable(samples) else sample_numbers(surfaces.space, samples)
    return OfflineStage(numbers, PublishedModel().fit(surfaces, numbers, seed))
