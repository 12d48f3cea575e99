"""Training a model of configurations that is to be kept: fitted to all, with honest errors on its card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from crosscast.choose.evaluation.protocol import ALONE, evaluate_choices
from crosscast.choose.evaluation.sampler import Sampler
from crosscast.choose.left_out import errors_left_out
from crosscast.choose.methods.registry import method_names, methods_of
from crosscast.choose.named_samples import sample_numbers
from crosscast.choose.samples import two_samples
from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.evaluate.processes import Progress
from crosscast.evaluate.rounds import counted_together
from crosscast.evaluate.seeds import check_seed
from crosscast.predict.configuration.configuration_card import ConfigurationCard
from crosscast.predict.configuration.model import ConfigurationPredictor
from crosscast.predict.configuration.power_totals import power_totals
from crosscast.predict.configuration.registry import configuration_model_named
from crosscast.predict.configuration.surfaces import Surfaces, machines_of
from crosscast.predict.configuration.surfaces_digest import surfaces_digest
from crosscast.tables.configured import configured
from crosscast.tables.dataset import Dataset

__all__ = ["LEAST_PROGRAMS", "TrainedChooser", "machine_of", "train_chooser"]

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
    """The times and powers of the one machine that a dataset, or a part of it, is of.

    Parameters
    ----------
    dataset
        Runs on several configurations.
    devices
        Keys of the devices to choose from; all by default.
    power_domain
        Domain whose power is to be limited; see `crosscast.tables.configured.configured`.

    Raises
    ------
    InputError
        If the devices are of several machines, which have no kernel in common, or have one configuration.
    """
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
    """Fit a model to a machine's kernels, and measure it with each application left out in turn.

    Parameters
    ----------
    surfaces
        Times and powers of the machine.
    name
        Name of the model.
    samples
        Configurations at which a new kernel is run first; by default those that `two_samples` chooses, by
        the training kernels alone where an application is left out.
    power_domain
        Which domain the powers are of, for the card.
    seed
        Start of all random numbers.
    progress
        Called whenever a fit is done; fits for errors and for choices are counted together.
    cache
        Folder that keeps what was chosen in finished folds, which `crosscast evaluate` knows too.
    jobs
        Processes that work at the same time.

    Raises
    ------
    InputError
        If there is no such model, a sample configuration is not known or named twice, or there are too few
        applications.
    """
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
