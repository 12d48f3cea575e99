"""The question of times: seconds of kernels on each device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, get_args

from crosscast.data.dataset import Dataset
from crosscast.data.times import LaunchTables
from crosscast.errors import InputError
from crosscast.evaluation.loop import RunArguments
from crosscast.evaluation.question import Question, with_baselines
from crosscast.evaluation.time.evaluation import evaluate_time
from crosscast.evaluation.time.launch_times import LaunchEvaluation, evaluate_launch_times, train_terms
from crosscast.evaluation.time.options import TimeEvaluationOptions, TimeFolds, TimeTrainingOptions
from crosscast.evaluation.time.results import TimeEvaluation
from crosscast.evaluation.time.training import train_time
from crosscast.prediction.time.artefact import TrainedTimeModel
from crosscast.prediction.time.joining import launch_tables_of
from crosscast.prediction.time.launch_model import MODEL, TrainedLaunchTimes
from crosscast.prediction.time.models import BASELINES, DEFAULT_MODEL, MODELS, model_named


class TimeQuestion(
    Question[
        Dataset | LaunchTables,
        TimeEvaluationOptions,
        TimeTrainingOptions,
        TimeEvaluation | LaunchEvaluation,
        TrainedTimeModel | TrainedLaunchTimes,
    ]
):
    """Times in seconds, learned from profiles with records, or from times of launches."""

    name = "time"
    folds = get_args(TimeFolds)
    evaluation_options = TimeEvaluationOptions
    training_options = TimeTrainingOptions

    def models(self, data: Dataset | LaunchTables) -> Sequence[str]:
        """Names of the models: `terms` alone for times of launches, and all for profiles with records."""
        return (MODEL,) if isinstance(data, LaunchTables) else (*MODELS, MODEL)

    def default_model(self, data: Dataset | LaunchTables) -> str:
        """The best model of both kinds of data."""
        return MODEL if isinstance(data, LaunchTables) else DEFAULT_MODEL

    def evaluate(
        self,
        data: Dataset | LaunchTables,
        models: Sequence[str] | None,
        folds: str,
        options: TimeEvaluationOptions,
        *,
        seed: int,
        **run: Unpack[RunArguments],
    ) -> TimeEvaluation | LaunchEvaluation:
        """Evaluate models; with probes, kernels are measured on some devices before."""
        if isinstance(data, LaunchTables) or (models is not None and MODEL in models):
            for name in models or ():
                if name not in (MODEL, "all"):
                    expected = f"{MODEL} alone for times of launches"
                    raise InputError.of(where="models", expected=expected, found=repr(name))
            if isinstance(data, Dataset):
                data = launch_tables_of(data)
            if list(options.probes) != [0]:
                raise InputError.of(
                    field="probes",
                    problem=f"{data.label} has times of launches, which are forecast without any",
                )
            return evaluate_launch_times(data, folds, level=options.level, seed=seed, **run)
        if folds == "leave-source-out":
            raise InputError.of(
                where="folds",
                field=data.label,
                expected="tables of times with sources (docs/evaluation.md)",
                found="a dataset of one source",
            )
        names = with_baselines(models, tuple(MODELS), DEFAULT_MODEL, BASELINES)
        return evaluate_time(
            data,
            [model_named(name) for name in names],
            folds,
            probes=options.probes,
            level=options.level,
            seed=seed,
            **run,
        )

    def train(
        self,
        data: Dataset | LaunchTables,
        model: str,
        options: TimeTrainingOptions,
        *,
        seed: int,
        **run: Unpack[RunArguments],
    ) -> TrainedTimeModel | TrainedLaunchTimes:
        """Train a model, with errors of applications that were held out."""
        if isinstance(data, LaunchTables) or model == MODEL:
            tables = data if isinstance(data, LaunchTables) else launch_tables_of(data)
            return train_terms(tables, level=options.level, seed=seed, **run)
        count = len(data.records.column("configuration").unique())
        if not data.profiles.num_rows and count > 1:
            raise InputError(
                f"{data.label}: expected profiles and records, found runs on {count} configurations and no "
                "profiles: crosscast train configuration is for these"
            )
        return train_time(data, model, level=options.level, seed=seed, **run)


QUESTION = TimeQuestion()
