"""The question of co-runs: slowdowns of applications that share a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, get_args

from crosscast.data.corun import co_runs
from crosscast.data.dataset import Dataset
from crosscast.evaluation.corun.evaluation import CoRunEvaluation, evaluate_corun, of_one_device
from crosscast.evaluation.corun.options import CoRunEvaluationOptions, CoRunFolds, CoRunTrainingOptions
from crosscast.evaluation.corun.training import train_corun
from crosscast.evaluation.loop import RunArguments
from crosscast.evaluation.question import Question, with_baselines
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.corun.models import BASELINES, DEFAULT_MODEL, MODELS, models_named


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
        *,
        seed: int,
        **run: Unpack[RunArguments],
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
            seed=seed,
            **run,
        )

    def train(
        self,
        data: Dataset,
        model: str,
        options: CoRunTrainingOptions,
        *,
        seed: int,
        **run: Unpack[RunArguments],
    ) -> TrainedCoRunModel:
        """Train a model of the mixes of one device, with errors of what was held out."""
        chosen = of_one_device(co_runs(data), options.device)
        shared = chosen.bags[0].device
        memory = [row["memory_bytes"] for row in data.devices.to_pylist() if row["device"] == shared]
        return train_corun(
            chosen,
            models_named([model])[0],
            baselines=models_named(BASELINES),
            memory_bytes=None if not memory or memory[0] is None else int(memory[0]),
            level=options.level,
            seed=seed,
            **run,
        )


QUESTION = CoRunQuestion()
