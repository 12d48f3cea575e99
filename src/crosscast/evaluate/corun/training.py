"""Training a model of co-running that is to be kept: fitted to all, with honest errors on its card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosscast.errors import InputError
from crosscast.evaluate.corun.co_runs_digest import co_runs_digest
from crosscast.evaluate.corun.protocol import CoRunEvaluation, evaluate_corun
from crosscast.evaluate.corun.task import left_out_errors, rehearsal_of
from crosscast.evaluate.fingerprint import library_versions
from crosscast.evaluate.processes import Progress, one_thread
from crosscast.predict.corun.artefact import KNOWN, NEW, CoRunErrors
from crosscast.predict.corun.card import CoRunCard
from crosscast.predict.corun.model import CoRunModel, CoRunPredictor
from crosscast.tables.corun.view import CoRuns

__all__ = ["TrainedCoRun", "of_one_device", "train_corun"]

_SPLITS = {NEW: "leave-benchmark-out", KNOWN: "leave-bag-out"}


@dataclass(frozen=True)
class TrainedCoRun:
    """A fitted model, its errors on what was left out, and its card."""

    predictor: CoRunPredictor
    errors: CoRunErrors
    card: CoRunCard


def of_one_device(co_runs: CoRuns, device: str | None = None, configuration: str | None = None) -> CoRuns:
    """The bags of one device and way of sharing, as no model learns from several.

    Parameters
    ----------
    co_runs
        Bags of any devices.
    device
        Key of the device; the one with the most bags by default.
    configuration
        Settings of the device as JSON; the ones with the most bags on it by default.

    Raises
    ------
    InputError
        If there are no such bags.
    """
    found = [bag for bag in co_runs.bags if device in (None, bag.device)]
    found = [bag for bag in found if configuration in (None, bag.configuration)]
    if not found:
        there = ", ".join(sorted({f"{bag.device} {bag.configuration}" for bag in co_runs.bags})) or "none"
        raise InputError(f"{co_runs.label}: expected bags on {device or 'a device'}, found those on {there}")
    counts: dict[tuple[str, str], int] = {}
    for bag in found:
        key = bag.device, bag.configuration
        counts[key] = counts.get(key, 0) + 1
    chosen = max(sorted(counts), key=lambda key: counts[key])
    kept = tuple(bag for bag in found if (bag.device, bag.configuration) == chosen)
    solos = tuple(solo for solo in co_runs.solos if solo.device == chosen[0])
    return replace(co_runs, solos=solos, bags=kept)


def train_corun(
    co_runs: CoRuns,
    model: CoRunModel,
    *,
    baselines: Sequence[CoRunModel] = (),
    memory_bytes: int | None = None,
    level: float = 0.9,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> TrainedCoRun:
    """Fit a model to bags, and measure it with each application left out in turn, and with bags left out.

    Parameters
    ----------
    co_runs
        What to learn from, of one device.
    model
        The model.
    baselines
        Models whose scores are put beside its own.
    memory_bytes
        Memory of the device.
    level
        Probability of the intervals whose coverage is put on the card.
    seed
        Start of all random numbers.
    progress
        Called whenever a fit is done.
    cache
        Folder that keeps what was predicted in finished folds, which `crosscast evaluate` knows too.
    jobs
        Processes that work at the same time; the result is the same.

    Raises
    ------
    InputError
        If there are too few applications or bags, the model cannot be fitted to them, or the cache cannot be
        written.
    """
    with one_thread("training a model"):
        # First the model itself: what cannot be learned is said at once.
        predictor = model.fit(co_runs, seed)
        rehearsal = rehearsal_of(model, predictor)
        errors = {whose: left_out_errors(co_runs, rehearsal, split, seed) for whose, split in _SPLITS.items()}
    models = [model, *(each for each in baselines if each.name != model.name)]
    evaluation = evaluate_corun(
        co_runs,
        models,
        _SPLITS[NEW],
        baselines=[each.name for each in baselines],
        level=level,
        seed=seed,
        progress=progress,
        cache=cache,
        jobs=jobs,
    )
    first = co_runs.bags[0]
    sound = replace(co_runs, bags=tuple(bag for bag in co_runs.bags if not bag.failed))
    card = CoRunCard(
        model=model.name,
        seed=seed,
        device=first.device,
        configuration=first.configuration,
        sizes=tuple(sorted({len(bag.members) for bag in sound.bags})),
        applications=sound.applications,
        memory_bytes=memory_bytes,
        training=_training(co_runs),
        errors=_scores(evaluation),
        inputs=tuple(sorted({solo.name for bag in sound.bags for solo in bag.solos})),
    )
    return TrainedCoRun(predictor, errors, card)


def _training(co_runs: CoRuns) -> dict[str, Any]:
    bags = co_runs.bags
    return {
        "dataset": Path(co_runs.label).name,
        "bags": len(bags),
        "applications": len(co_runs.applications),
        "inputs": len({solo.key for bag in bags for solo in bag.solos}),
        "failed_bags": sum(bag.failed for bag in bags),
        "libraries": library_versions(),
        "sha256": co_runs_digest(co_runs),
    }


def _scores(evaluation: CoRunEvaluation) -> dict[str, Any]:
    return {
        "protocol": evaluation.split,
        "level": evaluation.level,
        "results": [result.to_dict() for result in evaluation.results],
    }
