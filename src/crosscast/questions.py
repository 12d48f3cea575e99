"""The questions that models answer: the data, models, folds, evaluation and training of each."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from crosscast.errors import InputError
from crosscast.fields import listed

if TYPE_CHECKING:
    from crosscast.configuration import Configuration
    from crosscast.data.dataset import Dataset
    from crosscast.data.times import LaunchTables
    from crosscast.evaluation.configuration import ConfigurationEvaluation
    from crosscast.evaluation.loop import Progress
    from crosscast.evaluation.relative import HeldOutPredictions
    from crosscast.prediction.configuration.data import Surfaces
    from crosscast.prediction.relative.data import Observations, Vectors
    from crosscast.studies.cummins2017 import Cummins2017
    from crosscast.studies.johnston2018 import Johnston2018
    from crosscast.studies.moolchandani2022 import CoRunStudy
    from crosscast.studies.nichols2024 import RelativeStudy


QuestionName = Literal["time", "relative", "configuration", "corun"]

TimeFolds = Literal[
    "leave-application-out",
    "leave-kernel-out",
    "leave-device-out",
    "leave-device-and-application-out",
    "leave-source-out",
]
RelativeFolds = Literal[
    "leave-application-out",
    "leave-kernel-out",
    "leave-configuration-out",
    "leave-machine-out",
    "leave-scale-out",
    "published",
]
ConfigurationFolds = Literal["leave-benchmark-out"]
CoRunFolds = Literal["leave-benchmark-out", "leave-mix-out", "random-80-20"]

TERMS = "terms"
"""The model that learns from times of launches."""

_NAMES = ("devices", "sources")
"""Options that are lists of names, one of which may stand alone."""

Note = Callable[[str], None]


@dataclass(frozen=True)
class Question:
    """A question: how its data are read, and its models, folds, evaluation and training."""

    name: QuestionName
    folds: tuple[str, ...]  # What can be held out; the first by default
    evaluate: Callable[..., Any]
    train: Callable[..., Any] | None = None
    evaluate_options: tuple[str, ...] = ()  # What evaluation takes beside what all take
    train_options: tuple[str, ...] = ()
    registry: str = ""  # Module of the names below, if not that of the question's models
    models: str = "MODELS"
    default: str = "DEFAULT_MODEL"
    baselines: str = "BASELINES"

    def of_registry(self, name: str) -> Any:
        """A part of the registry, which is imported when it is asked for."""
        return getattr(
            importlib.import_module(self.registry or f"crosscast.prediction.{self.name}.models"), name
        )


def train(
    dataset: Dataset | LaunchTables,
    question: QuestionName = "time",
    model: str | None = None,
    *,
    seed: int = 0,
    jobs: int | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Fit a model to a dataset, and measure it with each application held out in turn.

    Parameters
    ----------
    dataset
        Profiles and records for ``time``, or times with the launches that each is of
        (`crosscast.data.times.read_launch_tables`); counted runs or profiles with times on several devices
        for ``relative``; runs with power at many configurations for ``configuration``; isolated runs and
        mixes of co-runners for ``corun``.
    question
        What the model is to predict.
    model
        Its name; the best by default. `crosscast.evaluate` compares them.
    seed
        Random seed.
    jobs
        Worker processes; by default what joblib's ``parallel_config`` says, or one for each processor.
    cache
        Folder from which finished folds are read, and to which they are written; by default none.
    progress
        Called with a state (`done`, `total`, `elapsed_s`, `left_s`, `label`) when a fit is done.
    **options
        For ``relative``: `devices` to compare and `sources` that counted, lists of their keys. For
        ``configuration``: `devices`; `samples`, the configurations at which a new kernel is run first, as
        `Configuration` or as text such as ``node:cpu_cap_w=120;node:cpu_cap_w=65``; and `power_domain`. For
        ``corun``: `device`, which the co-runners share.

    Returns
    -------
    TrainedTimeModel, TrainedRelativeModel, TrainedConfigurationModel or TrainedCoRunModel
        The model, as `crosscast.load_model` has it: `card` (data, errors on held-out applications),
        `predict`, and `save`, which writes it to a folder.

    Raises
    ------
    InputError
        If the dataset has not what the question needs, or an argument is not as expected.
    MissingExtraError
        If what fits models is not installed.

    Examples
    --------
    >>> import crosscast
    >>> trained = crosscast.train(crosscast.bundled_dataset(), model="device-mean", jobs=1)
    >>> trained.card.model, trained.card.training["applications"]
    ('device-mean', 14)
    """
    asked = _question(question)
    if asked.train is None:
        raise InputError(f"question: expected one for which models are kept, found {question!r}")
    known = [TERMS] if _is_of_launches(dataset, question) else list(asked.of_registry(asked.models))
    name = (known[0] if len(known) == 1 else asked.of_registry(asked.default)) if model is None else model
    if name not in known:
        raise InputError(f"model: expected one of {', '.join(known)}, found {name!r}")
    options = _checked(options, asked.train_options, question)
    folder = None if cache is None else Path(cache)
    return asked.train(dataset, name, seed=seed, jobs=_jobs(jobs), cache=folder, progress=progress, **options)


def evaluate(
    dataset: Dataset | LaunchTables,
    question: QuestionName = "time",
    models: Sequence[str] | None = None,
    folds: str | None = None,
    *,
    seed: int = 0,
    jobs: int | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Evaluate models on held-out data, beside trivial baselines.

    Each group (an application, a kernel, a device, ...) is held out in turn; models are fitted, tuned and
    calibrated with the others alone, and predict it. docs/evaluation.md says what each score means.

    Parameters
    ----------
    dataset
        As of `crosscast.train`.
    question
        What is predicted.
    models
        Names of models (for ``configuration``, of methods), or ``["all"]``; the default one by default. The
        baselines are always there.
    folds
        What is held out, such as ``leave-application-out``: `QUESTIONS` has those of each question, the
        default first.
    seed
        Random seed.
    jobs
        Worker processes; by default what joblib's ``parallel_config`` says, or one for each processor.
    cache
        Folder from which finished folds are read, and to which they are written; by default none.
    progress
        Called with a state (`done`, `total`, `elapsed_s`, `left_s`, `label`) when a fit is done.
    **options
        For ``time``: `probes`, numbers of devices on which a kernel is measured before the others are
        predicted, and `level`, the coverage of intervals. For ``relative``: `devices`, `sources`, `weights`
        (``rows``, ``kernels`` or ``applications`` count the same). For ``configuration``: `devices`,
        `samples`, `power_domain`, `groups` of programs that are held out together, `max_retunes` and
        `cap_probability`. For ``corun``: `device`, `probes`, `level`.

    Returns
    -------
    evaluation
        Scores with bootstrap intervals, by model: `to_dict()` has them for JSON.

    Raises
    ------
    InputError
        If the dataset has not what the question needs, or an argument is not as expected.
    MissingExtraError
        If what fits models is not installed.

    Examples
    --------
    >>> import crosscast
    >>> found = crosscast.evaluate(crosscast.bundled_dataset(), models=["device-mean"], jobs=1)
    >>> [result["model"] for result in found.to_dict()["results"]]
    ['device-mean', 'nearest']
    """
    asked = _question(question)
    split = asked.folds[0] if folds is None else folds
    if split not in asked.folds:
        raise InputError(f"folds: expected one of {', '.join(asked.folds)}, found {split!r}")
    options = _checked(options, asked.evaluate_options, question)
    _is_of_launches(dataset, question)
    return asked.evaluate(
        dataset,
        None if models is None else listed(models),
        split,
        seed=seed,
        jobs=_jobs(jobs),
        cache=None if cache is None else Path(cache),
        progress=progress,
        **options,
    )


def model_names(question: QuestionName, names: Sequence[str] | None) -> list[str]:
    """Names of models, by default the default one, each once, with the baselines after them."""
    asked = QUESTIONS[question]
    known = list(asked.of_registry(asked.models))
    chosen = [asked.of_registry(asked.default)] if names is None else list(names)
    if chosen == ["all"]:
        chosen = known
    for name in chosen:
        if name not in known:
            raise InputError(f"models: expected all or some of {', '.join(known)}, found {name!r}")
    baselines = [name for name in asked.of_registry(asked.baselines) if name in known]
    return list(dict.fromkeys([*chosen, *baselines]))


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _jobs(jobs: int | None) -> int | None:
    """Worker processes; ``None`` where the caller has told joblib's ``parallel_config`` how many."""
    joblib = sys.modules.get("joblib")
    if jobs is None and joblib is not None and joblib.parallel.get_active_backend()[1] not in (None, 1):
        return None
    return processors() if jobs is None else jobs


def _checked(options: Mapping[str, Any], known: Sequence[str], question: str) -> dict[str, Any]:
    """Refuse options that the question does not take, such as those that are misspelt."""
    for name in options:
        if name not in known:
            raise InputError(
                f"options: expected some of {', '.join(known)} for the question {question}, found {name!r}"
            )
    return {
        name: listed(value) if name in _NAMES and value is not None else value
        for name, value in options.items()
    }


def _is_of_launches(dataset: Dataset | LaunchTables, question: str) -> bool:
    """Whether data are times of launches, which tell of times alone."""
    from crosscast.data.times import LaunchTables

    found = isinstance(dataset, LaunchTables)
    if found and question != "time":
        expected = f"a dataset for the question {question}"
        raise InputError.of(where=dataset.label, expected=expected, found="times of launches")
    return found


def _question(name: str) -> Question:
    if name not in QUESTIONS:
        raise InputError(f"question: expected one of {', '.join(QUESTIONS)}, found {name!r}")
    return QUESTIONS[name]


def _evaluate_time(
    dataset: Dataset | LaunchTables, models: Sequence[str] | None, folds: str, **how: Any
) -> Any:
    from crosscast.data.times import LaunchTables

    if isinstance(dataset, LaunchTables):
        from crosscast.evaluation.launch_times import evaluate_launch_times

        for name in models or ():
            if name not in (TERMS, "all"):
                raise InputError(f"models: expected {TERMS} for times of launches, found {name!r}")
        if list(how.pop("probes", [0])) != [0]:
            raise InputError(f"probes: {dataset.label} has times of launches, which are forecast without any")
        return evaluate_launch_times(dataset, folds, **how)
    from crosscast.evaluation.time import evaluate_time
    from crosscast.prediction.time.models import model_named

    if folds == "leave-source-out":
        raise InputError(
            f"folds: {dataset.label}: expected tables of times with sources (docs/evaluation.md), found a "
            "dataset of one source"
        )
    return evaluate_time(dataset, [model_named(name) for name in model_names("time", models)], folds, **how)


def _train_time(dataset: Dataset | LaunchTables, model: str, **how: Any) -> Any:
    from crosscast.data.times import LaunchTables

    if isinstance(dataset, LaunchTables):
        from crosscast.evaluation.launch_times import train_terms

        return train_terms(dataset, **how)
    from crosscast.evaluation.time import train_time

    count = len(dataset.records.column("configuration").unique())
    if not dataset.profiles.num_rows and count > 1:
        raise InputError(
            f"{dataset.label}: expected profiles and records, found runs on {count} configurations and no "
            "profiles: crosscast train configuration is for these"
        )
    return train_time(dataset, model, **how)


def johnston2018(
    dataset: Dataset, *, preset: str = "default", jobs: int | None = None, **how: Any
) -> Johnston2018:
    """The study of Johnston, Falzon and Milthorpe 2018; a preset says how many trees and samples."""
    from crosscast.studies.johnston2018 import PRESETS, reproduce

    return reproduce(dataset, preset=PRESETS[preset], jobs=_jobs(jobs), **how)


def cummins2017(dataset: Dataset, *, jobs: int | None = None, **how: Any) -> Cummins2017:
    """The choice of CPU or GPU for the kernels of Cummins et al. 2017, by all protocols."""
    from crosscast.studies.cummins2017 import reproduce

    return reproduce(dataset, jobs=_jobs(jobs), **how)


def relative_vectors(
    dataset: Dataset, devices: Sequence[str] | None, sources: Sequence[str] | None, note: Note | None = None
) -> Vectors:
    """Runs or profiles with the times of their work on several devices; `note` hears of devices left out."""
    from crosscast.prediction.relative.observed import devices_left_out, vectors_of
    from crosscast.prediction.warnings import format_names

    vectors = vectors_of(dataset, devices=devices, sources=sources)
    left_out = devices_left_out(dataset, vectors) if devices is None and note is not None else ()
    if left_out and note is not None:
        note(
            f"devices without times of all this work are left out: {format_names(left_out, _MOST_NAMED)}; "
            "--devices takes others"
        )
    return vectors


_MOST_NAMED = 8


def _evaluate_relative(
    dataset: Dataset,
    models: Sequence[str] | None,
    folds: str,
    *,
    devices: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    weights: Literal["rows", "kernels", "applications"] | None = None,
    note: Note | None = None,
    **how: Any,
) -> RelativeStudy:
    from crosscast.prediction.relative.models import models_named
    from crosscast.studies.nichols2024 import study_relative

    made = models_named(model_names("relative", models))
    vectors = relative_vectors(dataset, devices, sources, note)
    return study_relative(vectors, made, folds, label=dataset.label, weighting=weights, **how)


def held_out_work(
    dataset: Dataset,
    model: str | None,
    folds: str,
    *,
    devices: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    check: Callable[[Observations, Sequence[str]], None] | None = None,
    note: Note | None = None,
    jobs: int | None = None,
    **how: Any,
) -> HeldOutPredictions:
    """Runs with what a model of relative times predicted that was fitted without their group.

    `check` sees the runs and the devices before anything is fitted.
    """
    from crosscast.evaluation.relative import held_out_predictions
    from crosscast.prediction.relative.models import models_named

    name = model_names("relative", None if model is None else [model])[0]
    vectors = relative_vectors(dataset, devices, sources, note)
    if check is not None:
        check(vectors.observations, vectors.devices)
    return held_out_predictions(vectors, models_named([name])[0], folds, jobs=_jobs(jobs), **how)


def nichols2024(dataset: Dataset, *, jobs: int | None = None, **how: Any) -> RelativeStudy:
    """The models and the random split of Nichols et al. 2024, our model beside them, and the studies."""
    from crosscast.prediction.relative.models import DEFAULT_MODEL, MODELS

    names = [DEFAULT_MODEL, *(name for name in MODELS if name.startswith("published-")), "log-mean"]
    return _evaluate_relative(dataset, names, "published", studies=True, jobs=_jobs(jobs), **how)


def _train_relative(
    dataset: Dataset,
    model: str,
    *,
    devices: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    note: Note | None = None,
    **how: Any,
) -> Any:
    from crosscast.evaluation.relative import train_relative
    from crosscast.prediction.relative.models import BASELINES, models_named

    return train_relative(
        relative_vectors(dataset, devices, sources, note),
        models_named([model])[0],
        baselines=models_named(BASELINES),
        label=Path(dataset.label).name,
        **how,
    )


def _evaluate_configuration(
    dataset: Dataset,
    models: Sequence[str] | None,
    folds: str,
    *,
    devices: Sequence[str] | None = None,
    power_domain: str | None = None,
    samples: Sequence[Configuration] | str | None = None,
    groups: Sequence[Sequence[str]] = (),
    max_retunes: int | None = None,
    cap_probability: float | None = None,
    seed: int,
    **how: Any,
) -> ConfigurationEvaluation:
    from crosscast.data.views import configured
    from crosscast.decide.policies import CONFIDENCE, check_method_names, method_names
    from crosscast.decide.samples import two_samples
    from crosscast.evaluation.configuration import evaluate_configuration
    from crosscast.prediction.configuration.data import machines_of

    del folds  # There is one way.
    machines = machines_of(configured(dataset, domain=power_domain), dataset.label, devices)
    spaces = [machine.space for machine in machines]
    names = None if models is None else list(dict.fromkeys(models))
    if names == ["all"]:
        names = list(dict.fromkeys(name for space in spaces for name in method_names(space)))
    if names is not None:
        check_method_names(names, spaces)
    return evaluate_configuration(
        machines,
        names,
        label=dataset.label,
        samples=two_samples if samples is None else _samples(samples, machines),
        confidence=CONFIDENCE if cap_probability is None else cap_probability,
        together=groups,
        budget=max_retunes,
        seed=seed,
        **how,
    )


def bailey2014(
    dataset: Dataset,
    *,
    devices: Sequence[str] | None = None,
    power_domain: str | None = None,
    jobs: int | None = None,
    **how: Any,
) -> ConfigurationEvaluation:
    """The model and policies of Bailey et al. 2014, each benchmark held out, and the offline stage."""
    from crosscast.data.views import configured
    from crosscast.decide.policies import knob_methods
    from crosscast.prediction.configuration.data import machines_of

    machines = machines_of(configured(dataset, domain=power_domain), dataset.label, devices)
    limiters = [each.name for machine in machines for each in knob_methods(machine.space)]
    names = [*limiters, "published", "published+fl", "oracle"]
    words = {"devices": devices, "power_domain": power_domain, "jobs": _jobs(jobs), **how}
    return _evaluate_configuration(dataset, names, get_args(ConfigurationFolds)[0], **words)


def _samples(samples: Sequence[Configuration] | str, machines: Sequence[Surfaces]) -> Sequence[Configuration]:
    from crosscast.configuration import parse_configurations

    if len(machines) > 1:
        found = "; ".join(", ".join(machine.space.devices) for machine in machines)
        raise InputError(
            f"samples: expected one machine, found {len(machines)} ({found}): say which with --devices"
        )
    if isinstance(samples, str):
        return parse_configurations("samples", samples, machines[0].space.devices)
    return samples


def _train_configuration(
    dataset: Dataset,
    model: str,
    *,
    devices: Sequence[str] | None = None,
    power_domain: str | None = None,
    samples: Sequence[Configuration] | str | None = None,
    **how: Any,
) -> Any:
    from crosscast.evaluation.configuration_training import machine_of, train_configuration

    surfaces = machine_of(dataset, devices=devices, power_domain=power_domain)
    chosen = None if samples is None else _samples(samples, [surfaces])
    return train_configuration(surfaces, model, samples=chosen, power_domain=power_domain, **how)


def _evaluate_corun(dataset: Dataset, models: Sequence[str] | None, folds: str, **how: Any) -> CoRunStudy:
    from crosscast.data.corun import co_runs
    from crosscast.prediction.corun.models import BASELINES, models_named
    from crosscast.studies.moolchandani2022 import study_corun

    names = [name for name in model_names("corun", models) if name not in BASELINES]
    baselines = models_named(BASELINES)
    return study_corun(co_runs(dataset), models_named(names), folds, baselines=baselines, **how)


def moolchandani2022(dataset: Dataset, *, jobs: int | None = None, **how: Any) -> CoRunStudy:
    """The models of Moolchandani et al. 2022 beside ours, each application held out, and its studies."""
    from crosscast.prediction.corun.models import DEFAULT_MODEL, MODELS

    names = [DEFAULT_MODEL, *(name for name in MODELS if name.startswith("published-"))]
    return _evaluate_corun(dataset, names, get_args(CoRunFolds)[0], studies=True, jobs=_jobs(jobs), **how)


def _train_corun(dataset: Dataset, model: str, *, device: str | None = None, **how: Any) -> Any:
    from crosscast.data.corun import co_runs
    from crosscast.evaluation.corun import of_one_device, train_corun
    from crosscast.prediction.corun.models import BASELINES, models_named

    chosen = of_one_device(co_runs(dataset), device)
    shared = chosen.bags[0].device
    memory = [row["memory_bytes"] for row in dataset.devices.to_pylist() if row["device"] == shared]
    return train_corun(
        chosen,
        models_named([model])[0],
        baselines=models_named(BASELINES),
        memory_bytes=None if not memory or memory[0] is None else int(memory[0]),
        **how,
    )


_KEPT = (
    Question("time", get_args(TimeFolds), _evaluate_time, _train_time, ("probes", "level"), ("level",)),
    Question(
        "relative",
        get_args(RelativeFolds),
        _evaluate_relative,
        _train_relative,
        ("devices", "sources", "weights", "note"),
        ("devices", "sources", "level", "note"),
    ),
    Question(
        "configuration",
        get_args(ConfigurationFolds),
        _evaluate_configuration,
        _train_configuration,
        ("devices", "power_domain", "samples", "groups", "max_retunes", "cap_probability"),
        ("devices", "power_domain", "samples", "held_out"),
    ),
    Question(
        "corun",
        get_args(CoRunFolds),
        _evaluate_corun,
        _train_corun,
        ("device", "probes", "level", "studies"),
        ("device", "level"),
    ),
)

QUESTIONS: Mapping[str, Question] = MappingProxyType({each.name: each for each in _KEPT})
"""The questions by name."""
