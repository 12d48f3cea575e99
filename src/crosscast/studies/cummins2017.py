"""The choice between a CPU and a GPU on the kernels of Cummins et al. (2017), by several protocols.

The published protocol splits rows at random: other sizes of the same kernel, and kernels that are copies of
it, are learned from. Leaving out kernels, applications or suites asks for what was not seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal, Protocol, Unpack, get_args

import numpy as np

from crosscast.arrays import Arrays, Flags, Integers, Reals
from crosscast.data.dataset import Dataset
from crosscast.errors import InputError
from crosscast.evaluation.keep import digest, fingerprint
from crosscast.evaluation.loop import (
    Fold,
    FoldTask,
    RunArguments,
    check_seed,
    folds_by_group,
    one_thread,
    run_tasks,
)
from crosscast.evaluation.resampling import Confidence, Grouped, Scored, confidences
from crosscast.profile import METRICS
from crosscast.results import Tabular

COUNTERS = ("comp", "rational", "mem", "localmem", "coalesced", "atomic", "transfer", "wgsize")
"""What the source tells of a row."""

PUBLISHED_SEED = 204
"""Seed of the published split, in the authors' notebook."""

_SOURCES = ("studies/cummins2017.py",)
_TEXT = "text_"
_IS_COUNT = np.array([metric.unit not in ("1", "bits") for metric in METRICS])
_TREES = 100
_FOLDS = 10
_INNER = 3


@dataclass(frozen=True, eq=False)
class MappingCases:
    """Kernels at sizes, with a time on each of two devices."""

    devices: tuple[str, str]  # Keys of the CPU and of the GPU
    applications: tuple[str, ...]
    kernels: tuple[str, ...]  # Each with its application before it
    sizes: tuple[str, ...]
    time_s: Reals  # ``(m, 2)``, as `devices`
    counters: Reals  # ``(m, 8)``, as `COUNTERS`
    text: Reals  # ``(m, t)``, what was counted in the kernels' texts
    metrics: Reals  # ``(m, k)``, as `METRICS`; not a number where there is none

    def __len__(self) -> int:
        """How many."""
        return len(self.kernels)

    @cached_property
    def suites(self) -> tuple[str, ...]:
        """The suite of each: what stands before the last dash of its application."""
        return tuple(each.rpartition("-")[0] for each in self.applications)

    @cached_property
    def gain(self) -> Reals:
        """Logarithm of the time on the CPU over that on the GPU: above 0 where the GPU is faster."""
        return np.asarray(np.log(self.time_s[:, 0] / self.time_s[:, 1]))

    @cached_property
    def counted(self) -> Reals:
        """What the source counted, its sizes and their ratios; logarithms of all but shares."""
        comp, _, mem, local, coalesced, _, transfer, group = self.counters.T
        shares = [coalesced / mem, local / mem, comp / mem, np.log1p(local / mem * group)]
        return np.column_stack([np.log1p(self.counters), np.log1p(transfer / (comp + mem)), *shares])

    @cached_property
    def static(self) -> Reals:
        """The same, with what was counted in the text."""
        return np.column_stack([self.counted, np.log1p(self.text)])

    @cached_property
    def profiled(self) -> Reals:
        """The same, with the metrics of launches that were made up; -1 where there is no profile."""
        found = np.where(_IS_COUNT, np.log1p(self.metrics), self.metrics)
        return np.column_stack([self.static, np.nan_to_num(found, nan=-1.0)])

    @cached_property
    def grewe_features(self) -> Reals:
        """The four features of Grewe, Wang and O'Boyle (CGO 2013)."""
        comp, _, mem, local, coalesced, _, transfer, group = self.counters.T
        return np.column_stack([transfer / (comp + mem), coalesced / mem, local / mem * group, comp / mem])


Place = tuple[str, str, str]


def cases_of(dataset: Dataset) -> MappingCases:
    """Rows of a dataset that ``crosscast dataset import cgo17`` made."""
    types = {row["device"]: row["type"] for row in dataset.devices.to_pylist()}
    devices = tuple(name for kind in ("cpu", "gpu") for name, type_ in types.items() if type_ == kind)
    if len(types) != 2 or len(devices) != 2:
        raise InputError.of(
            where=f"{dataset.label}: devices", expected="a CPU and a GPU", found=", ".join(types) or "none"
        )
    known: dict[Place, dict[str, float]] = {}
    for row in dataset.sessions.to_pylist():
        counters = json.loads(row["counters"] or "{}")
        if missing := [name for name in COUNTERS if counters.get(name) is None]:
            place = f"{row['application']}, {row['size']}"
            raise InputError.of(
                where=f"{dataset.label}: sessions",
                field=f"counters of {place}",
                expected=", ".join(missing),
                found="none: import the dataset with crosscast dataset import cgo17",
            )
        (kernel,) = json.loads(row["kernels"])
        known[row["application"], kernel, row["size"]] = counters
    times: dict[Place, dict[str, float]] = {}
    for row in dataset.records.to_pylist():
        at = row["application"], row["kernel"], row["size"]
        times.setdefault(at, {})[row["device"]] = float(np.mean(row["time_s"]))
    places = sorted(place for place, each in times.items() if len(each) == 2)
    found = {(row["application"], row["kernel"], row["size"]): row for row in dataset.profiles.to_pylist()}
    text = sorted({name for each in known.values() for name in each if name.startswith(_TEXT)})
    metrics = [[found.get(place, {}).get(each.name) for each in METRICS] for place in places]
    return MappingCases(
        (devices[0], devices[1]),
        tuple(place[0] for place in places),
        tuple(f"{place[0]}-{place[1]}" for place in places),
        tuple(place[2] for place in places),
        np.array([[times[place][device] for device in devices] for place in places], np.float64),
        np.array([[known[place][name] for name in COUNTERS] for place in places], np.float64),
        np.array([[known[place].get(name, 0.0) for name in text] for place in places], np.float64),
        np.array(metrics, np.float64),
    )


# -- what is held out


def _published(cases: MappingCases) -> tuple[Fold, ...]:
    """Ten folds of rows with as many GPUs each, as Cummins et al. (PACT 2017) split them."""
    from sklearn.model_selection import StratifiedKFold

    split = StratifiedKFold(_FOLDS, shuffle=True, random_state=PUBLISHED_SEED)
    parts = split.split(cases.counters, cases.gain > 0)
    return tuple(Fold(f"rows {number}", train, test) for number, (train, test) in enumerate(parts, 1))


def _ten_folds(groups: str) -> Callable[[MappingCases], tuple[Fold, ...]]:
    """What makes ten folds of kernels or applications, each with all its rows."""

    def folds(cases: MappingCases) -> tuple[Fold, ...]:
        parts = _balanced(getattr(cases, groups), _FOLDS)
        return folds_by_group(groups, groups, [f"{groups} {part + 1}" for part in parts.tolist()], parts)

    return folds


def _balanced(labels: Sequence[str], folds: int) -> Integers:
    """The fold of each row, so that equal labels are together and folds are about as large."""
    from sklearn.model_selection import GroupKFold

    found = np.zeros(len(labels), np.int64)
    count = min(folds, len(set(labels)))
    for number, (_, test) in enumerate(GroupKFold(count).split(found, groups=labels)):
        found[test] = number
    return found


SPLITS: Mapping[str, Callable[[MappingCases], tuple[Fold, ...]]] = {
    "published": _published,
    "leave-kernel-out": _ten_folds("kernels"),
    "leave-application-out": _ten_folds("applications"),
    "leave-suite-out": lambda cases: folds_by_group("suites", "suites", cases.suites),
}
"""Protocols by name, each harder than the one before it."""


def _groups(cases: MappingCases, split: str) -> Sequence[str]:
    """What a protocol keeps together."""
    together = {
        "leave-kernel-out": cases.kernels,
        "leave-application-out": cases.applications,
        "leave-suite-out": cases.suites,
    }
    return together.get(split, tuple(map(str, range(len(cases)))))


# -- models

Features = Literal["counted", "static", "profiled"]
_FEATURES: tuple[Features, ...] = get_args(Features)


@dataclass(frozen=True)
class OneDevice:
    """The device that is faster in most rows that are learned from, for all."""

    name: str = "one-device"

    def scores(self, cases: MappingCases, train: Integers, test: Integers, split: str, seed: int) -> Reals:
        """Above 0 where the GPU is chosen."""
        return np.full(len(test), float(np.mean(cases.gain[train] > 0)) - 0.5)


@dataclass(frozen=True)
class Lookup:
    """The device that is faster at most other sizes of the same kernel, and for a new kernel `OneDevice`.

    It looks at no feature: what it has right in the published protocol is no forecast.
    """

    name: str = "lookup"

    def scores(self, cases: MappingCases, train: Integers, test: Integers, split: str, seed: int) -> Reals:
        """Above 0 where the GPU is chosen."""
        others = OneDevice().scores(cases, train, test, split, seed)
        same = np.array(cases.kernels)[test, None] == np.array(cases.kernels)[train]
        votes = same @ np.where(cases.gain[train] > 0, 1.0, -1.0)
        return np.where(votes != 0, votes, others)


@dataclass(frozen=True)
class GreweTree:
    """The tree of Grewe et al. with the four features, as Cummins et al. (PACT 2017) fit it."""

    name: str = "grewe-tree"

    def scores(self, cases: MappingCases, train: Integers, test: Integers, split: str, seed: int) -> Reals:
        """Above 0 where the GPU is chosen."""
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(max_depth=5, min_samples_leaf=5, random_state=seed)
        tree.fit(cases.grewe_features[train], cases.gain[train] > 0)
        return _margin(tree, cases.grewe_features[test])


@dataclass(frozen=True)
class MappingTrees:
    """Extremely randomized trees (Geurts et al. 2006) on logarithms, of the label or of the gain."""

    name: str
    features: Features  # As `MappingCases` has them
    gain: bool  # Whether the logarithm of the ratio of times is learned, and its sign taken

    def scores(self, cases: MappingCases, train: Integers, test: Integers, split: str, seed: int) -> Reals:
        """Above 0 where the GPU is chosen."""
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

        features: Reals = getattr(cases, self.features)
        if self.gain:
            # As many features are tried at a split as the classifier tries.
            regressor = ExtraTreesRegressor(_TREES, max_features="sqrt", random_state=seed)
            return np.asarray(regressor.fit(features[train], cases.gain[train]).predict(features[test]))
        trees = ExtraTreesClassifier(_TREES, random_state=seed).fit(features[train], cases.gain[train] > 0)
        return _margin(trees, features[test])


class _Classifier(Protocol):
    classes_: Sequence[object]

    def predict_proba(self, rows: Reals, /) -> Reals:
        """The probability of each class, a row a row."""


def _margin(classifier: _Classifier, features: Reals) -> Reals:
    """Probability of the GPU less a half."""
    places = {bool(each): place for place, each in enumerate(classifier.classes_)}
    found = classifier.predict_proba(features)
    return np.asarray(found[:, places[True]] - 0.5 if True in places else np.full(len(features), -0.5))


CANDIDATES: tuple[OneDevice | MappingTrees, ...] = (
    OneDevice(),
    *(MappingTrees(f"{features}-label", features, gain=False) for features in _FEATURES),
    *(MappingTrees(f"{features}-gain", features, gain=True) for features in _FEATURES[1:]),
)


@dataclass(frozen=True)
class Selected:
    """The candidate that is right most often when training rows are held out in the same way, in parts."""

    name: str = "selected"

    def scores(self, cases: MappingCases, train: Integers, test: Integers, split: str, seed: int) -> Reals:
        """Above 0 where the GPU is chosen."""
        groups = np.array(_groups(cases, split))[train]
        if len(set(groups.tolist())) < 2:
            # Of two suites, one is left to learn from.
            groups = np.array(cases.applications)[train]
        part = _balanced(groups.tolist(), _INNER)
        right = np.zeros(len(CANDIDATES))
        for number in range(int(part.max()) + 1):
            inner, held = train[part != number], train[part == number]
            for place, each in enumerate(CANDIDATES):
                chosen = each.scores(cases, inner, held, split, seed) > 0
                right[place] += np.count_nonzero(chosen == (cases.gain[held] > 0))
        return CANDIDATES[int(np.argmax(right))].scores(cases, train, test, split, seed)


Model = OneDevice | Lookup | GreweTree | MappingTrees | Selected
BASELINES = ("one-device", "lookup", "grewe-tree")
MODELS: tuple[Model, ...] = (OneDevice(), Lookup(), GreweTree(), *CANDIDATES[1:], Selected())


# -- evaluation


@dataclass(frozen=True, eq=False)
class DeviceTask(FoldTask[Model, Fold, MappingCases]):
    """A model that chooses for what a fold holds out."""

    split: str

    @property
    def cache_keys(self) -> list[object]:
        """All that the answer depends on besides the cases."""
        return [[fingerprint(self.model), self.split, digest([self.fold.train, self.fold.test]), self.seed]]

    def run(self, data: MappingCases, queries: Sequence[int]) -> list[Arrays]:
        """Fit and choose."""
        with one_thread("choosing devices"):
            scores = self.model.scores(data, self.fold.train, self.fold.test, self.split, self.seed)
        return [{"gpu": scores > 0} for _ in queries]

    def is_valid(self, data: MappingCases, query: int, arrays: Arrays) -> bool:
        """Whether arrays are choices for what is held out."""
        gpu = arrays.get("gpu")
        return gpu is not None and gpu.shape == self.fold.test.shape and gpu.dtype == np.bool_


@dataclass(frozen=True)
class DeviceScores:
    """How good choices are, all rows weighted the same."""

    accuracy: float  # Share in which the faster device was chosen
    speedup: float  # Time on the best single device over that on the chosen one, geometric mean
    regret: float  # Time on the chosen device over that on the faster one, geometric mean
    worst_regret: float  # The same in the row in which it is largest
    mean_speedup: float  # Arithmetic mean of what `speedup` is the geometric one of, as published


@dataclass(frozen=True, eq=False)
class DeviceResult:
    """A model in a protocol."""

    model: str
    baseline: bool
    split: str
    scores: DeviceScores
    by_suite: Mapping[str, float]  # Accuracy in each suite
    gpu: Flags  # Whether the GPU was chosen for each case
    confidence: Confidence  # Intervals of applications that are drawn again

    def to_dict(self) -> dict[str, object]:
        """Everything but choices."""
        facts = {"model": self.model, "baseline": self.baseline, "protocol": self.split}
        return {**facts, **asdict(self.scores), "by_suite": dict(self.by_suite), **self.confidence.to_dict()}


@dataclass(frozen=True, eq=False)
class Cummins2017(Tabular):
    """Results of all models in all protocols."""

    label: str
    cases: MappingCases
    seed: int
    results: tuple[DeviceResult, ...]

    @property
    def single(self) -> str:
        """The best single device: the one that is faster on average, of logarithms."""
        return self.cases.devices[int(self.cases.gain.mean() > 0)]

    @property
    def profiled(self) -> int:
        """Rows that have a profile."""
        return int((~np.isnan(self.cases.metrics).all(axis=1)).sum())

    @property
    def facts(self) -> dict[str, float]:
        """Shares of the rows that say how much of the accuracy is a matter of what is known already."""
        cases = self.cases
        _, kernels, counts = np.unique(cases.kernels, return_inverse=True, return_counts=True)
        return {
            "kernel_has_other_sizes": float((counts[kernels] > 1).mean()),
            "right_by_majority_of_kernel": _right_by_majority(cases, cases.kernels),
            "right_by_majority_of_application": _right_by_majority(cases, cases.applications),
            "within_10_percent": float((np.abs(cases.gain) < np.log(1.1)).mean()),
        }

    def columns(self) -> Mapping[str, Sequence[object]]:
        """A row for each model in each protocol."""
        rows = [each.to_dict() for each in self.results]
        names = ("protocol", "model", "baseline", "accuracy", "speedup", "regret", "worst_regret")
        return {name: [row[name] for row in rows] for name in names}

    def to_dict(self) -> dict[str, object]:
        """Everything but choices, as ``--json`` prints it."""
        return {
            "dataset": self.label,
            "seed": self.seed,
            "rows": len(self.cases),
            "profiled_rows": self.profiled,
            "devices": list(self.cases.devices),
            "best_single_device": self.single,
            "facts": self.facts,
            "results": [each.to_dict() for each in self.results],
        }


def reproduce(
    dataset: Dataset,
    *,
    splits: Sequence[str] = tuple(SPLITS),
    models: Sequence[Model] = MODELS,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> Cummins2017:
    """Let each model choose in each protocol; `run` is as `run_tasks` has it."""
    check_seed(seed)
    cases = cases_of(dataset)
    folds = {split: SPLITS[split](cases) for split in splits}
    tasks = [
        DeviceTask(model, fold, seed, split) for split in splits for model in models for fold in folds[split]
    ]
    answers = iter(run_tasks(tasks, cases, sources=_SOURCES, **run))
    results = []
    for split in splits:
        chosen = {}
        for model in models:
            gpu = np.zeros(len(cases), np.bool_)
            for fold in folds[split]:
                gpu[fold.test] = next(answers)[0]["gpu"]
            chosen[model.name] = gpu
        results += _results(cases, split, chosen, seed)
    return Cummins2017(dataset.label, cases, seed, tuple(results))


def _results(cases: MappingCases, split: str, chosen: Mapping[str, Flags], seed: int) -> list[DeviceResult]:
    _, groups = np.unique(cases.applications, return_inverse=True)
    count = int(groups.max()) + 1
    scored, by_name = [], {}
    for name, gpu in chosen.items():
        quantities = _by_row(cases, gpu)
        means = {each: Grouped(values, groups, count) for each, values in quantities.items()}

        def drawn(weights: Reals, means: Mapping[str, Grouped] = means) -> Mapping[str, Reals]:
            found = {each: grouped.mean(weights) for each, grouped in means.items()}
            return {each: _shown(each, values) for each, values in found.items()}

        observed = {each: float(values[0]) for each, values in drawn(np.ones((1, count))).items()}
        scored.append(Scored(name, name in BASELINES, observed, drawn))
        worst = float(np.exp(quantities["regret"].max()))
        mean = float(np.exp(quantities["speedup"]).mean())
        by_name[name] = DeviceScores(**observed, worst_regret=worst, mean_speedup=mean)
    found = confidences(scored, count, {"accuracy": 1, "speedup": 1, "regret": -1}, seed)
    suites = np.array(cases.suites)
    return [
        DeviceResult(
            name,
            name in BASELINES,
            split,
            by_name[name],
            {
                suite: float((gpu == (cases.gain > 0))[suites == suite].mean())
                for suite in sorted(set(cases.suites))
            },
            gpu,
            confidence,
        )
        for (name, gpu), confidence in zip(chosen.items(), found, strict=True)
    ]


def _right_by_majority(cases: MappingCases, labels: Sequence[str]) -> float:
    """Accuracy of one who knows which device is faster in most rows of each label."""
    _, groups = np.unique(labels, return_inverse=True)
    share = np.bincount(groups, cases.gain > 0) / np.bincount(groups)
    return float(np.maximum(share, 1 - share)[groups].mean())


def _by_row(cases: MappingCases, gpu: Flags) -> dict[str, Reals]:
    """What the scores are means of."""
    times = np.log(cases.time_s)
    own = np.where(gpu, times[:, 1], times[:, 0])
    single = times[:, int(cases.gain.mean() > 0)]
    right = (gpu == (cases.gain > 0)).astype(np.float64)
    return {"accuracy": right, "speedup": single - own, "regret": own - times.min(axis=1)}


def _shown(name: str, values: Reals) -> Reals:
    return values if name == "accuracy" else np.asarray(np.exp(values))
