"""The whole of the published study on a dataset."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crosscast.evaluate.cache import grid_digest
from crosscast.evaluate.processes import Progress, check_jobs, done_pieces, told
from crosscast.evaluate.published.amount import USUAL, Amount
from crosscast.evaluate.published.annealing import Search
from crosscast.evaluate.published.energy import Energy, energy
from crosscast.evaluate.published.headline import Headline, KnownCells, headline
from crosscast.evaluate.published.honest import Honest, honest
from crosscast.evaluate.published.kept import Keeper, Part
from crosscast.evaluate.published.learning import Learning, counts_of, learn
from crosscast.evaluate.published.omission import Omitted, omit
from crosscast.evaluate.published.runs import Runs, runs_of
from crosscast.evaluate.published.tuning import Tuning, tune
from crosscast.evaluate.seeds import check_seed
from crosscast.tables.dataset import Dataset

__all__ = ["PublishedStudy", "run"]


@dataclass(frozen=True)
class PublishedStudy:
    """All tables and figures of the paper, on a dataset.

    Parameters
    ----------
    label
        Where the dataset is from.
    runs
        Its runs, whose kernels and devices the arrays of the parts are about.
    seed
        Start of all random numbers.
    amount
        How much work was done.
    headline
        The 1.2 %, and figures 4 to 6.
    tuning
        Figures 1 and 2.
    omitted
        Algorithm 1 and table III, a row a kernel, in the order of their names.
    learning
        Algorithm 2 and figure 3, a row for each number of kernels.
    honest
        The same forest on applications that it has not seen; ``None`` where there is one application.
    energy
        Energy in place of time; ``None`` where too few applications were watched.
    """

    label: str
    runs: Runs
    seed: int
    amount: Amount
    headline: Headline
    tuning: Tuning
    omitted: tuple[Omitted, ...]
    learning: tuple[Learning, ...]
    honest: Honest | None
    energy: Energy | None

    def median_parameters(self) -> tuple[float, float]:
        """Medians over the omitted kernels of the tuned numbers of trees and of features tried."""
        return (
            statistics.median(row.trees for row in self.omitted),
            statistics.median(row.tried for row in self.omitted),
        )

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints: times in seconds, relative errors as fractions."""
        trees, tried = self.median_parameters()
        profiles = self.runs.grid.profiles
        found = {
            "dataset": self.label,
            "seed": self.seed,
            "amount": asdict(self.amount),
            "kernels": [
                {"application": application, "kernel": kernel, "size": size}
                for application, kernel, size in zip(
                    profiles.application, profiles.kernel, profiles.size, strict=True
                )
            ],
            "devices": [device.key for device in self.runs.grid.devices],
            "headline": asdict(self.headline),
            "tuning": asdict(self.tuning),
            "omitted": {"median_trees": trees, "median_tried": tried, "rows": [*map(asdict, self.omitted)]},
            "learning": [*map(asdict, self.learning)],
            "honest": None if self.honest is None else asdict(self.honest),
            "energy": None if self.energy is None else asdict(self.energy),
        }
        cleaned: dict[str, Any] = _without_nan(found)
        return cleaned


def _without_nan(value: Any) -> Any:
    """The same with null for what is not a number, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def run(
    dataset: Dataset,
    *,
    seed: int = 0,
    amount: Amount = USUAL,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> PublishedStudy:
    """Do the published study on a dataset.

    Parameters
    ----------
    dataset
        Any dataset with profiles and records; that of the paper is imported with
        ``crosscast dataset import aiwc2018``.
    seed
        Start of all random numbers.
    amount
        How much work to do.
    progress
        Called whenever a part is done.
    cache
        Folder that keeps finished parts; nothing is kept by default.
    jobs
        Processes that work at the same time; the results are the same.

    Raises
    ------
    InputError
        If `jobs` is below 1, the seed is negative or too large, or the dataset has fewer than two kernels
        with profiles and records, or a device with more than one configuration.
    MissingExtraError
        If scikit-learn or scipy is not installed.
    EnvironmentFault
        If a process that worked was ended by another.
    """
    check_seed(seed)
    check_jobs(jobs)
    runs = runs_of(dataset)
    parts = _parts(dataset, runs, amount, seed)
    keeper = Keeper(cache, runs.digest() + grid_digest(runs.grid))
    made = {name: found for name, part in parts.items() if (found := keeper.load(part)) is not None}
    left = [name for name in parts if name not in made]
    done = done_pieces({name: name for name in left}, _maker, (dataset, amount, seed), jobs, _WHAT)
    for name, found in told(done, len(left), str, progress):
        made[name] = found
        keeper.save(parts[name], found)
    return PublishedStudy(
        label=dataset.label,
        runs=runs,
        seed=seed,
        amount=amount,
        headline=made["headline"],
        tuning=made["tuning"],
        omitted=tuple(made[name] for name in parts if name.startswith("without ")),
        learning=tuple(made[name] for name in parts if name.startswith("trained on ")),
        honest=made["honest"].found,
        energy=made["energy"].found,
    )


@dataclass(frozen=True)
class _Perhaps:
    """A part that a dataset may be too small for."""

    found: Any


def _parts(dataset: Dataset, runs: Runs, amount: Amount, seed: int) -> dict[str, Part[Any]]:
    """All parts, the longest first, by name."""
    watched = json.dumps(dataset.energy.to_pylist(), sort_keys=True, default=str)
    energy_digest = hashlib.sha256(watched.encode()).hexdigest()
    parts: list[Part[Any]] = [
        Part(
            "tuning",
            (amount.surface_trees, amount.steps, seed),
            lambda: tune(runs, amount.surface_trees, amount.steps, seed),
            lambda found: Tuning(**{**found, "search": Search(**found["search"])}),
        ),
        Part(
            "headline",
            (amount.forest_trees, seed),
            lambda: headline(runs, amount.forest_trees, seed),
            lambda found: Headline(
                **{**found, "forest": KnownCells(**found["forest"]), "lookup": KnownCells(**found["lookup"])}
            ),
        ),
        Part(
            "honest",
            (amount.honest_trees, seed),
            lambda: _Perhaps(_honest(runs, amount, seed)),
            lambda found: _Perhaps(found["found"] and Honest(**found["found"])),
        ),
        Part(
            "energy",
            (energy_digest, amount.forest_trees, seed),
            lambda: _Perhaps(energy(dataset, runs, amount.forest_trees, seed)),
            lambda found: _Perhaps(found["found"] and Energy(**found["found"])),
        ),
    ]
    names = runs.kernel_names()
    parts += [_omitted(runs, name, amount, seed) for name in names]
    parts += [_learning(runs, count, amount, seed) for count in counts_of(len(names), amount.sample_counts)]
    return {part.name: part for part in parts}


def _honest(runs: Runs, amount: Amount, seed: int) -> Honest | None:
    if len(set(runs.grid.profiles.application)) < 2:
        return None
    return honest(runs.grid, amount.honest_trees, seed)


def _omitted(runs: Runs, kernel: str, amount: Amount, seed: int) -> Part[Omitted]:
    trees, steps = amount.omitted_trees, amount.omitted_steps
    return Part(
        f"without {kernel}",
        (trees, steps, seed),
        lambda: omit(runs, kernel, trees, steps, seed),
        lambda found: Omitted(**found),
    )


def _learning(runs: Runs, count: int, amount: Amount, seed: int) -> Part[Learning]:
    samples, trees = amount.samples, amount.sample_trees
    return Part(
        f"trained on {count} kernels",
        (samples, trees, seed),
        lambda: learn(runs, count, samples, trees, seed),
        lambda found: Learning(**found),
    )


_WHAT = "made a part of the study"


def _maker(dataset: Dataset, amount: Amount, seed: int) -> Callable[[str], Any]:
    """What makes a part by its name."""
    parts = _parts(dataset, runs_of(dataset), amount, seed)
    return lambda name: parts[name].make()
