"""The question of co-runs: slowdowns of applications that share a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack, get_args

from crosscast.data.corun import CoRuns, co_runs
from crosscast.data.dataset import Dataset
from crosscast.evaluation import Question, with_baselines
from crosscast.evaluation.corun import CoRunEvaluationOptions, CoRunFolds, CoRunTrainingOptions
from crosscast.evaluation.corun.evaluation import (
    CoRunEvaluation,
    evaluate_corun,
    of_one_device,
    out_of_fold_errors,
)
from crosscast.evaluation.keep import digest, library_versions
from crosscast.evaluation.loop import RunArguments, SeededRun, one_thread
from crosscast.prediction.corun import CoRunModel
from crosscast.prediction.corun.artefact import (
    KNOWN,
    NEW,
    CoRunCard,
    CoRunErrors,
    FittedCoRun,
    TrainedCoRunModel,
)
from crosscast.prediction.corun.models import BASELINES, DEFAULT_MODEL, MODELS, models_named

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
    sound = replace(co_runs, mixes=tuple(mix for mix in co_runs.mixes if not mix.failed))
    runs = {run.key: run for mix in sound.mixes for run in mix.isolated_runs}
    first = co_runs.mixes[0]
    card = CoRunCard(
        model=model.name,
        seed=seed,
        device=first.device,
        configuration=first.configuration,
        sizes=tuple(sorted({len(mix.members) for mix in sound.mixes})),
        applications=sound.applications,
        memory_bytes=memory_bytes,
        training={
            "dataset": Path(co_runs.label).name,
            "mixes": len(co_runs.mixes),
            "applications": len(co_runs.applications),
            "inputs": len({run.key for mix in co_runs.mixes for run in mix.isolated_runs}),
            "failed_mixes": sum(mix.failed for mix in co_runs.mixes),
            "libraries": library_versions(),
            "sha256": digest((co_runs.isolated_runs, co_runs.mixes)),
        },
        errors={
            "folds": evaluation.split,
            "level": evaluation.level,
            "results": [result.to_dict() for result in evaluation.results],
        },
        inputs=tuple(sorted({run.name for run in runs.values()})),
        runs=tuple(runs[key] for key in sorted(runs)),
    )
    return TrainedCoRunModel(card, FittedCoRun(predictor, errors))


class CoRunQuestion(
    Question[Dataset, CoRunEvaluationOptions, CoRunTrainingOptions, CoRunEvaluation, TrainedCoRunModel]
):
    """Slowdowns, times and power of mixes, learned from isolated runs and measured mixes."""

    name = "corun"
    folds = get_args(CoRunFolds)
    evaluation_options = CoRunEvaluationOptions
    training_options = CoRunTrainingOptions
    all_models = tuple(MODELS)
    best_model = DEFAULT_MODEL

    def evaluate(
        self,
        data: Dataset,
        models: Sequence[str] | None,
        folds: str,
        options: CoRunEvaluationOptions,
        **run: Unpack[SeededRun],
    ) -> CoRunEvaluation:
        """Evaluate models on the mixes of one device."""
        names = with_baselines(models, tuple(MODELS), DEFAULT_MODEL, ())
        models_first = [name for name in names if name not in BASELINES]
        return evaluate_corun(
            of_one_device(co_runs(data), options.device),
            models_named([*models_first, *BASELINES]),
            folds,
            baselines=BASELINES,
            probes=options.probes,
            level=options.level,
            **run,
        )

    def train(
        self,
        data: Dataset,
        model: str,
        options: CoRunTrainingOptions,
        **run: Unpack[SeededRun],
    ) -> TrainedCoRunModel:
        """Train a model of the mixes of one device, with errors of what was held out."""
        chosen = of_one_device(co_runs(data), options.device)
        shared = chosen.mixes[0].device
        memory = [row["memory_bytes"] for row in data.devices.to_pylist() if row["device"] == shared]
        return train_corun(
            chosen,
            models_named([model])[0],
            baselines=models_named(BASELINES),
            memory_bytes=None if not memory or memory[0] is None else int(memory[0]),
            level=options.level,
            **run,
        )


QUESTION = CoRunQuestion()
