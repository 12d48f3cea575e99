"""Train a model of co-runs, and evaluate it with applications and mixes held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from crosscast.data.corun import CoRuns
from crosscast.evaluation.corun.evaluation import evaluate_corun, out_of_fold_errors
from crosscast.evaluation.keep import digest, library_versions
from crosscast.evaluation.loop import RunArguments, one_thread
from crosscast.prediction.corun.artefact import (
    KNOWN,
    NEW,
    CoRunCard,
    CoRunErrors,
    FittedCoRun,
    TrainedCoRunModel,
)
from crosscast.prediction.corun.forecast import CoRunModel

_SPLITS = {NEW: "leave-benchmark-out", KNOWN: "leave-mix-out"}


def train_corun(
    co_runs: CoRuns,
    model: CoRunModel,
    *,
    baselines: Sequence[CoRunModel] = (),
    memory_bytes: int | None = None,
    level: float = 0.9,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> TrainedCoRunModel:
    """Fit a model to mixes, and evaluate it with each application, and with mixes, held out in turn."""
    with one_thread("training a model"):
        # First the model itself, so that unsuitable data fails at once.
        predictor = model.fit(co_runs, seed)
        refit = model.refit(predictor)
        errors: CoRunErrors = {
            whose: out_of_fold_errors(co_runs, refit, split, seed) for whose, split in _SPLITS.items()
        }
    models = [model, *(each for each in baselines if each.name != model.name)]
    names = [each.name for each in baselines]
    evaluation = evaluate_corun(co_runs, models, _SPLITS[NEW], baselines=names, level=level, seed=seed, **run)
    sound = replace(co_runs, bags=tuple(mix for mix in co_runs.bags if not mix.failed))
    runs = {run.key: run for mix in sound.bags for run in mix.solos}
    first = co_runs.bags[0]
    card = CoRunCard(
        model=model.name,
        seed=seed,
        device=first.device,
        configuration=first.configuration,
        sizes=tuple(sorted({len(mix.members) for mix in sound.bags})),
        applications=sound.applications,
        memory_bytes=memory_bytes,
        training={
            "dataset": Path(co_runs.label).name,
            "bags": len(co_runs.bags),
            "applications": len(co_runs.applications),
            "inputs": len({run.key for mix in co_runs.bags for run in mix.solos}),
            "failed_bags": sum(mix.failed for mix in co_runs.bags),
            "libraries": library_versions(),
            "sha256": digest((co_runs.solos, co_runs.bags)),
        },
        errors={
            "protocol": evaluation.split,
            "level": evaluation.level,
            "results": [result.to_dict() for result in evaluation.results],
        },
        inputs=tuple(sorted({run.name for run in runs.values()})),
        runs=tuple(runs[key] for key in sorted(runs)),
    )
    return TrainedCoRunModel(card, FittedCoRun(predictor, errors))
