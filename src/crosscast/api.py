"""The functions `train` and `evaluate` for models of every question, with types by the question's name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from crosscast.errors import InputError, expect_known
from crosscast.evaluation import Question, names_of, options_of
from crosscast.prediction.named_models import HOMES

if TYPE_CHECKING:
    from crosscast.data.configuration import Configuration
    from crosscast.data.dataset import Dataset
    from crosscast.data.times import LaunchTables
    from crosscast.evaluation import Note
    from crosscast.evaluation.configuration import ConfigurationFolds
    from crosscast.evaluation.configuration.evaluation import ConfigurationEvaluation
    from crosscast.evaluation.corun import CoRunFolds
    from crosscast.evaluation.corun.evaluation import CoRunEvaluation
    from crosscast.evaluation.loop import Progress
    from crosscast.evaluation.relative import RelativeFolds, Weighting
    from crosscast.evaluation.relative.evaluation import RelativeEvaluation
    from crosscast.evaluation.time import TimeFolds
    from crosscast.evaluation.time.launch_times import LaunchEvaluation
    from crosscast.evaluation.time.scores import TimeEvaluation
    from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
    from crosscast.prediction.corun.artefact import TrainedCoRunModel
    from crosscast.prediction.relative.artefact import TrainedRelativeModel
    from crosscast.prediction.time.artefact import TrainedTimeModel
    from crosscast.prediction.time.launch_model import TrainedLaunchTimes


class RunKeywords(TypedDict, total=False):
    """Keyword arguments of all questions; `train` describes them."""

    seed: int
    jobs: int | None
    cache: str | Path | None
    progress: Progress | None


AnyQuestion = Question[Any, Any, Any, Any, Any]


class _Questions(Mapping[str, AnyQuestion]):
    """The questions by name; the module of a question is imported on first use."""

    def __getitem__(self, name: str) -> AnyQuestion:
        question: AnyQuestion = importlib.import_module(HOMES[name].question).QUESTION
        return question

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


QUESTIONS: Mapping[str, AnyQuestion] = _Questions()
"""The questions by name."""


@overload
def train(  # type: ignore[overload-overlap]
    dataset: Dataset | LaunchTables,
    question: Literal["time"] = "time",
    *,
    model: Literal["terms"],
    level: float = 0.9,
    **run: Unpack[RunKeywords],
) -> TrainedLaunchTimes: ...


@overload
def train(
    dataset: Dataset,
    question: Literal["time"] = "time",
    model: str | None = None,
    *,
    level: float = 0.9,
    **run: Unpack[RunKeywords],
) -> TrainedTimeModel: ...


@overload
def train(
    dataset: LaunchTables,
    question: Literal["time"] = "time",
    model: str | None = None,
    *,
    level: float = 0.9,
    **run: Unpack[RunKeywords],
) -> TrainedLaunchTimes: ...


@overload
def train(
    dataset: Dataset,
    question: Literal["relative"],
    model: str | None = None,
    *,
    devices: str | Sequence[str] | None = None,
    sources: str | Sequence[str] | None = None,
    level: float = 0.9,
    note: Note | None = None,
    **run: Unpack[RunKeywords],
) -> TrainedRelativeModel: ...


@overload
def train(
    dataset: Dataset,
    question: Literal["configuration"],
    model: str | None = None,
    *,
    devices: str | Sequence[str] | None = None,
    power_domain: str | None = None,
    samples: Sequence[Configuration] | str | None = None,
    held_out: Sequence[str] | None = None,
    **run: Unpack[RunKeywords],
) -> TrainedConfigurationModel: ...


@overload
def train(
    dataset: Dataset,
    question: Literal["corun"],
    model: str | None = None,
    *,
    device: str | None = None,
    level: float = 0.9,
    **run: Unpack[RunKeywords],
) -> TrainedCoRunModel: ...


@overload
def train(
    dataset: Dataset | LaunchTables,
    question: str,
    model: str | None = None,
    **run: Unpack[RunKeywords],
) -> Any: ...


def train(
    dataset: Dataset | LaunchTables,
    question: str = "time",
    model: str | None = None,
    *,
    seed: int = 0,
    jobs: int | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    **options: object,
) -> object:
    """Fit a model to a dataset, and measure its errors with each application held out in turn.

    Parameters
    ----------
    dataset
        Profiles and records for ``time``, or times with the launches that each is of
        (`crosscast.data.times.read_launch_tables`); counted runs or profiles with times on several devices
        for ``relative``; runs with power at many configurations for ``configuration``; isolated runs and
        mixes of co-runners for ``corun``.
    question
        Name of the question that the model answers.
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
        For ``time``, ``relative`` and ``corun``: `level`, the coverage of the intervals that are measured.
        For ``relative``: `devices` to compare and `sources` that counted, lists of their keys, and `note`,
        called with what is left out. For ``configuration``: `devices`; `samples`, the configurations at
        which a new kernel is run first, as `Configuration` or as text such as
        ``node:cpu_cap_w=120;node:cpu_cap_w=65``; `power_domain`; and `held_out`, the applications with which
        errors are measured. For ``corun``: `device`, which the co-runners share.

    Returns
    -------
    TrainedTimeModel, TrainedRelativeModel, TrainedConfigurationModel, TrainedCoRunModel
        The model, as `crosscast.load_model` has it: `card` (data, errors on held-out applications),
        `predict`, and `save`, which writes it to a folder.

    Raises
    ------
    InputError
        If the dataset lacks what the question needs, or an argument is not as expected.
    MissingExtraError
        If what fits models is not installed.

    Examples
    --------
    >>> import crosscast
    >>> trained = crosscast.train(crosscast.bundled_dataset(), model="device-mean", jobs=1)
    >>> trained.card.model, trained.card.training["applications"]
    ('device-mean', 14)
    """
    selected = _question(question)
    _check_data(dataset, question)
    return selected.train(
        dataset,
        selected.check_model(dataset, model),
        options_of(selected.training_options, options, question),
        seed=seed,
        jobs=jobs,
        cache=_folder(cache),
        progress=progress,
    )


@overload
def evaluate(  # type: ignore[overload-overlap]
    dataset: Dataset | LaunchTables,
    question: Literal["time"] = "time",
    *,
    models: Sequence[Literal["terms"]],
    folds: TimeFolds | None = None,
    level: float = 0.9,
    **run: Unpack[RunKeywords],
) -> LaunchEvaluation: ...


@overload
def evaluate(
    dataset: Dataset,
    question: Literal["time"] = "time",
    models: str | Sequence[str] | None = None,
    folds: TimeFolds | None = None,
    *,
    probes: Sequence[int] = (0,),
    level: float = 0.9,
    **run: Unpack[RunKeywords],
) -> TimeEvaluation: ...


@overload
def evaluate(
    dataset: LaunchTables,
    question: Literal["time"] = "time",
    models: str | Sequence[str] | None = None,
    folds: TimeFolds | None = None,
    *,
    level: float = 0.9,
    **run: Unpack[RunKeywords],
) -> LaunchEvaluation: ...


@overload
def evaluate(
    dataset: Dataset | LaunchTables,
    question: Literal["time"] = "time",
    models: str | Sequence[str] | None = None,
    folds: TimeFolds | None = None,
    *,
    probes: Sequence[int] = (0,),
    level: float = 0.9,
    **run: Unpack[RunKeywords],
) -> TimeEvaluation | LaunchEvaluation: ...


@overload
def evaluate(
    dataset: Dataset,
    question: Literal["relative"],
    models: str | Sequence[str] | None = None,
    folds: RelativeFolds | None = None,
    *,
    devices: str | Sequence[str] | None = None,
    sources: str | Sequence[str] | None = None,
    weights: Weighting | None = None,
    note: Note | None = None,
    **run: Unpack[RunKeywords],
) -> RelativeEvaluation: ...


@overload
def evaluate(
    dataset: Dataset,
    question: Literal["configuration"],
    models: str | Sequence[str] | None = None,
    folds: ConfigurationFolds | None = None,
    *,
    devices: str | Sequence[str] | None = None,
    power_domain: str | None = None,
    samples: Sequence[Configuration] | str | None = None,
    groups: Sequence[Sequence[str]] = (),
    max_retunes: int | None = None,
    cap_probability: float | None = None,
    **run: Unpack[RunKeywords],
) -> ConfigurationEvaluation: ...


@overload
def evaluate(
    dataset: Dataset,
    question: Literal["corun"],
    models: str | Sequence[str] | None = None,
    folds: CoRunFolds | None = None,
    *,
    device: str | None = None,
    probes: Sequence[int] = (0,),
    level: float | None = 0.9,
    **run: Unpack[RunKeywords],
) -> CoRunEvaluation: ...


@overload
def evaluate(
    dataset: Dataset | LaunchTables,
    question: str,
    models: str | Sequence[str] | None = None,
    folds: str | None = None,
    **run: Unpack[RunKeywords],
) -> Any: ...


def evaluate(
    dataset: Dataset | LaunchTables,
    question: str = "time",
    models: str | Sequence[str] | None = None,
    folds: str | None = None,
    *,
    seed: int = 0,
    jobs: int | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    **options: object,
) -> object:
    """Evaluate models on held-out data, beside trivial baselines.

    Each group (an application, a kernel, a device, ...) is held out in turn; models are fitted, tuned and
    calibrated with the others alone, and predict it. docs/evaluation.md says what each score means.

    Parameters
    ----------
    dataset
        As of `crosscast.train`.
    question
        Name of the question.
    models
        Names of models (for ``configuration``, of methods), or ``["all"]``; the default one by default. The
        baselines are always there.
    folds
        Groups to hold out, such as ``leave-application-out``: `QUESTIONS` has the folds of each question, the
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
        (``rows``, ``kernels`` or ``applications`` count the same), `note`. For ``configuration``: `devices`,
        `samples`, `power_domain`, `groups` of programs that are held out together, `max_retunes` and
        `cap_probability`. For ``corun``: `device`, `probes`, `level`.

    Returns
    -------
    TimeEvaluation, LaunchEvaluation, RelativeEvaluation, ConfigurationEvaluation or CoRunEvaluation
        Scores with bootstrap intervals, by model: a table; `to_dict()` has them for JSON.

    Raises
    ------
    InputError
        If the dataset has not what the question needs, or an argument is not as expected.
    MissingExtraError
        If what fits models is not installed.

    Examples
    --------
    >>> import crosscast
    >>> evaluation = crosscast.evaluate(crosscast.bundled_dataset(), models=["device-mean"], jobs=1)
    >>> [result.model for result in evaluation.results]
    ['device-mean', 'nearest']
    """
    selected = _question(question)
    split = selected.check_folds(folds)
    chosen = options_of(selected.evaluation_options, options, question)
    _check_data(dataset, question)
    return selected.evaluate(
        dataset,
        names_of(models),
        split,
        chosen,
        seed=seed,
        jobs=jobs,
        cache=_folder(cache),
        progress=progress,
    )


def _question(name: str) -> AnyQuestion:
    expect_known([name], QUESTIONS, where="question")
    return QUESTIONS[name]


def _folder(cache: str | Path | None) -> Path | None:
    if cache is None:
        return None
    if not isinstance(cache, str | Path):
        raise InputError.of(field="cache", expected="a folder", found=type(cache).__name__)
    return Path(cache)


def _check_data(dataset: Dataset | LaunchTables, question: str) -> None:
    """Raise InputError unless it is a dataset, or times of launches for the question ``time``."""
    from crosscast.data.dataset import Dataset
    from crosscast.data.times import LaunchTables

    if not isinstance(dataset, Dataset | LaunchTables):
        expected = "a dataset, as crosscast.read_dataset(folder) gives it"
        raise InputError.of(field="dataset", expected=expected, found=type(dataset).__name__)
    if isinstance(dataset, LaunchTables) and question != "time":
        expected = f"a dataset for the question {question}"
        raise InputError.of(where=dataset.label, expected=expected, found="times of launches")
