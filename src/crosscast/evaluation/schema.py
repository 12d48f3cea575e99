"""The form of each question's evaluation in JSON, as types and as JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType, defstruct

from crosscast.errors import expect_known
from crosscast.evaluation import JSON_VERSION
from crosscast.evaluation.configuration.scores import ChoiceMetrics, Regret
from crosscast.evaluation.corun.evaluation import CoRunResult
from crosscast.evaluation.relative.evaluation import RelativeMetrics
from crosscast.evaluation.time.scores import Scores

Kind = TypeVar("Kind", bound=Struct)


class _Object(Struct, forbid_unknown_fields=True):
    """An object that has all fields, and no others."""


def _with(scores: type, without: tuple[str, ...] = ()) -> Callable[[type[Kind]], type[Kind]]:
    """Add the fields of a dataclass or struct, all required; not those whose names begin with some words."""

    def joined(kind: type[Kind]) -> type[Kind]:
        names = [each for each in get_type_hints(scores).items() if not each[0].startswith(without)]
        namespace = {"__doc__": kind.__doc__, "__module__": kind.__module__}
        made = defstruct(kind.__name__, names, bases=(kind,), namespace=namespace, kw_only=True)
        return cast(type[Kind], made)

    return joined


class _Compared(_Object):
    intervals: dict[str, tuple[float, float]]
    against_baseline: dict[str, DifferenceForm]


class DifferenceForm(_Object):
    baseline: str
    difference: float
    low: float
    high: float
    better: bool


class BootstrapForm(_Object):
    draws: int
    share: float
    over: str | UnsetType = UNSET


class _Evaluation(_Object):
    version: Literal[1]
    dataset: str
    folds: str


@_with(Scores)
class TimeScoresForm(_Object): ...


@_with(Scores, without=("top1", "slowdown", "within", "kendall"))
class DeviceScoresForm(_Object): ...


@_with(Scores)
class TimeForecastsForm(_Object):
    model: str
    folds: str
    probes: int
    sets_of_probes: int
    slowdown_mean_without: dict[str, float | None]
    applications: dict[str, TimeScoresForm]
    devices: dict[str, DeviceScoresForm]


@_with(_Compared)
class TimeResultForm(TimeForecastsForm): ...


class SameDeviceForm(TimeForecastsForm):
    device: str


@_with(Scores)
class ApplicationTimesForm(_Compared):
    model: str
    probes: int


class TimeEvaluationForm(_Evaluation):
    question: Literal["time"]
    cells: int
    kernels_at_a_size: int
    kernels: int
    applications: int
    devices: int
    seed: int
    level: float
    baselines: list[str]
    bootstrap: BootstrapForm
    results: list[TimeResultForm]
    whole_applications: list[ApplicationTimesForm]
    noise_floor: TimeForecastsForm
    always_the_same: SameDeviceForm | None


class _LaunchScores(_Object, kw_only=True):
    cells: int
    bias: float
    rmse_log: float
    median_ape: float
    median_ape_by_application: float
    coverage: float
    coverage_over_cells: float
    coverage_worst_application: float
    width: float
    slowdown_mean: float | UnsetType = UNSET


class LaunchResultForm(_LaunchScores):
    source: str | None
    kind: str | None


class LaunchApplicationForm(_LaunchScores):
    application: str


class LaunchDeviceForm(_LaunchScores):
    device: str


class LaunchEvaluationForm(_Evaluation):
    question: Literal["time"]
    model: str
    level: float
    counts: dict[str, int]
    results: list[LaunchResultForm]
    applications: list[LaunchApplicationForm]
    devices: list[LaunchDeviceForm]
    shared_kernels: dict[str, list[str]]


@_with(RelativeMetrics)
class RelativeScoresForm(_Object): ...


@_with(RelativeMetrics)
class RelativeResultForm(_Compared):
    model: str
    folds: str
    weights: str
    validation_mae: float | None
    baseline: bool
    by_weights: dict[str, RelativeScoresForm]
    per_group: dict[str, RelativeScoresForm]


class RelativeEvaluationForm(_Evaluation):
    question: Literal["relative"]
    seed: int
    devices: list[str]
    sources: list[str]
    counts: dict[str, int]
    fold_count: int
    repeated_share: float
    bootstrap: BootstrapForm
    results: list[RelativeResultForm]
    studies: None  # `crosscast reproduce` has some


@_with(ChoiceMetrics)
class ChoiceScoresForm(_Object): ...


@_with(ChoiceMetrics)
class CurvePointForm(_Object):
    budget: int


@_with(Regret)
class RegretPercentilesForm(_Object): ...


class StrictForm(_Object):
    under_limit_share: float | None
    under_performance: float | None


class ToleratedForm(StrictForm):
    tolerance: float


class ToldLessForm(StrictForm):
    guard: float
    score: float | None


class OnRepeatsForm(_Object):
    strict: StrictForm
    tolerated: ToleratedForm
    told_less: ToldLessForm


@_with(ChoiceMetrics)
class ChoiceResultForm(_Compared):
    machine: str
    method: str
    folds: str
    budget: int | None
    confidence: float | None
    programs_above: list[str]
    baseline: bool
    regret: RegretPercentilesForm | None
    on_simulated_repeats: OnRepeatsForm | None
    curve: list[CurvePointForm]
    programs: dict[str, ChoiceScoresForm]
    inputs: dict[str, ChoiceScoresForm]


class LeftOutForm(_Object):
    kernel: str
    reason: str


class SampleForm(_Object):
    device: str
    settings: dict[str, float | str]


class RepeatsForm(_Object):
    simulated: bool
    note: str
    repeats: int
    noise_log_time: float
    noise_log_power: float
    split_half_oracle: ChoiceScoresForm


class PublishedModelForm(_Object):
    note: str
    nothing_to_cluster: bool
    least_correlation: float | None
    most_correlation: float | None
    pairs_without_correlation: int
    clusters: list[list[str]]
    tree: str | None


class MachineForm(_Object):
    machine: str
    devices: list[str]
    configurations: int
    kernels_at_a_size: int
    programs: list[str]
    cases: int
    left_out: list[LeftOutForm]
    left_out_together: list[list[str]]
    samples: dict[str, list[SampleForm]]
    repeats: RepeatsForm | None
    published_model: PublishedModelForm


class ConfigurationEvaluationForm(_Evaluation):
    question: Literal["configuration"]
    weighting: str
    seed: int
    bootstrap: BootstrapForm
    machines: list[MachineForm]
    results: list[ChoiceResultForm]


@_with(CoRunResult, without=("scored",))
class CoRunScoresForm(_Object): ...


class CoRunEvaluationForm(_Evaluation):
    question: Literal["corun"]
    seed: int
    level: float | None
    device: str
    configuration: str
    mixes: int
    failed_mixes: int
    applications: list[str]
    results: list[CoRunScoresForm]


class OptimumShareForm(_Object):
    kernel: str
    device: str
    method: str
    variants: int
    fraction: list[float | None]
    deviation: list[float] | UnsetType = UNSET


class TuningEvaluationForm(_Object):
    version: Literal[1]
    question: Literal["tune"]
    held_out: bool
    profiled: dict[str, int]
    budgets: list[int]
    results: list[OptimumShareForm]


FORMS: Mapping[str, Sequence[type[Struct]]] = {
    "time": (TimeEvaluationForm, LaunchEvaluationForm),
    "relative": (RelativeEvaluationForm,),
    "configuration": (ConfigurationEvaluationForm,),
    "corun": (CoRunEvaluationForm,),
    "tune": (TuningEvaluationForm,),
}
"""Forms of the evaluation of each question; times of launches have their own."""


def evaluation_schema(question: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of what ``crosscast evaluate QUESTION --json`` prints.

    Parameters
    ----------
    question
        Name of the question, or ``tune``.

    Returns
    -------
    dict
        The schema, for JSON. Its `version` rises when a field changes its name or meaning, comes or goes.

    Raises
    ------
    InputError
        If there is no such question.
    MissingExtraError
        If what evaluations need is not installed.

    Examples
    --------
    >>> import crosscast
    >>> crosscast.evaluation_schema("corun")["$defs"]["CoRunEvaluationForm"]["properties"]["version"]
    {'enum': [1]}
    """
    expect_known([question], FORMS, where="question")
    forms, parts = msgspec.json.schema_components(FORMS[question], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"crosscast evaluate {question} --json, version {JSON_VERSION}",
        "anyOf": list(forms),
        "$defs": parts,
    }
