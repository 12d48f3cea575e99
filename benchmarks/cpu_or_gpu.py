"""CPU or GPU for the kernels of Cummins et al. (2017), with several splits.

``crosscast dataset import cgo17 PATH --out mapping/`` makes the dataset, and ``python -m
benchmarks.cpu_or_gpu mapping/`` prints how good the choices of each model are, in about ten minutes.

The published split is of rows at random: other sizes of a test kernel, and copies of it, are in training.
Leaving out kernels, applications or suites tests on unseen ones.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.dataset import Dataset, read_dataset
from crosscast.errors import InputError
from crosscast.evaluation.loop import Fold, folds_by_group
from crosscast.evaluation.resampling import Confidence, Grouped, Scored, confidences
from crosscast.profile import METRICS
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.fields import MARK, named, percent, score_table, scores_of

COUNTERS = ("comp", "rational", "mem", "localmem", "coalesced", "atomic", "transfer", "wgsize")
"""Counters of a row of the source."""

PUBLISHED_SEED = 204
"""Seed of the published split, in the authors' notebook."""

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
    kernels: tuple[str, ...]  # Names prefixed with the application
    time_s: Reals  # ``(m, 2)``, as `devices`
    counters: Reals  # ``(m, 8)``, as `COUNTERS`
    text: Reals  # ``(m, t)``, counts in the kernels' sources
    metrics: Reals  # ``(m, k)``, as `METRICS`; NaN where there is none

    def __len__(self) -> int:
        return len(self.kernels)

    @cached_property
    def suites(self) -> tuple[str, ...]:
        """Suite of each case: the part of its application before the last dash."""
        return tuple(name.rpartition("-")[0] for name in self.applications)

    @cached_property
    def gain(self) -> Reals:
        """Logarithm of the time on the CPU over that on the GPU: positive where the GPU is faster."""
        return np.asarray(np.log(self.time_s[:, 0] / self.time_s[:, 1]))

    @cached_property
    def counted(self) -> Reals:
        """Features from the source's counters, sizes and their ratios; logarithms of all but shares."""
        comp, _, mem, local, coalesced, _, transfer, group = self.counters.T
        shares = [coalesced / mem, local / mem, comp / mem, np.log1p(local / mem * group)]
        return np.column_stack([np.log1p(self.counters), np.log1p(transfer / (comp + mem)), *shares])

    @cached_property
    def static(self) -> Reals:
        """Features `counted`, and the counts in the kernels' sources."""
        return np.column_stack([self.counted, np.log1p(self.text)])

    @cached_property
    def profiled(self) -> Reals:
        """Features `static`, and the metrics of synthetic launches; -1 where there is no profile."""
        metrics = np.where(_IS_COUNT, np.log1p(self.metrics), self.metrics)
        return np.column_stack([self.static, np.nan_to_num(metrics, nan=-1.0)])

    @cached_property
    def grewe_features(self) -> Reals:
        """The four features of Grewe, Wang and O'Boyle (CGO 2013)."""
        comp, _, mem, local, coalesced, _, transfer, group = self.counters.T
        return np.column_stack([transfer / (comp + mem), coalesced / mem, local / mem * group, comp / mem])


def cases_of(dataset: Dataset) -> MappingCases:
    """Make the cases of a dataset that ``crosscast dataset import cgo17`` made."""
    types = {row["device"]: row["type"] for row in dataset.devices.to_pylist()}
    devices = tuple(name for kind in ("cpu", "gpu") for name, type_ in types.items() if type_ == kind)
    if len(types) != 2 or len(devices) != 2:
        raise InputError.of(
            where=f"{dataset.label}: devices", expected="a CPU and a GPU", found=", ".join(types) or "none"
        )
    counters_of: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in dataset.sessions.to_pylist():
        (kernel,) = json.loads(row["kernels"])
        counters_of[row["application"], kernel, row["size"]] = json.loads(row["counters"])
    times: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in dataset.records.to_pylist():
        key = row["application"], row["kernel"], row["size"]
        times.setdefault(key, {})[row["device"]] = float(np.mean(row["time_s"]))
    keys = sorted(key for key, by_device in times.items() if len(by_device) == 2)
    profiles = {(row["application"], row["kernel"], row["size"]): row for row in dataset.profiles.to_pylist()}
    text = sorted({name for counters in counters_of.values() for name in counters if name.startswith(_TEXT)})
    metrics = [[profiles.get(key, {}).get(metric.name) for metric in METRICS] for key in keys]
    return MappingCases(
        (devices[0], devices[1]),
        tuple(application for application, _, _ in keys),
        tuple(f"{application}-{kernel}" for application, kernel, _ in keys),
        np.array([[times[key][device] for device in devices] for key in keys], np.float64),
        np.array([[counters_of[key][name] for name in COUNTERS] for key in keys], np.float64),
        np.array([[counters_of[key].get(name, 0.0) for name in text] for key in keys], np.float64),
        np.array(metrics, np.float64),
    )


def _published(cases: MappingCases) -> tuple[Fold, ...]:
    """Ten folds of rows, stratified by the faster device, as in Cummins et al. (PACT 2017)."""
    split = StratifiedKFold(_FOLDS, shuffle=True, random_state=PUBLISHED_SEED)
    parts = split.split(cases.counters, cases.gain > 0)
    return tuple(Fold(f"rows {number}", train, test) for number, (train, test) in enumerate(parts, 1))


def _ten_folds(groups: str, cases: MappingCases) -> tuple[Fold, ...]:
    """Make ten folds of kernels or applications with all their rows."""
    parts = _balanced(getattr(cases, groups), _FOLDS)
    return folds_by_group(groups, groups, [f"{groups} {part + 1}" for part in parts.tolist()], parts)


def _balanced(labels: Sequence[str], folds: int) -> Integers:
    """Assign rows to folds of similar size, equal labels to one fold."""
    fold_of_row = np.zeros(len(labels), np.int64)
    count = min(folds, len(set(labels)))
    for number, (_, test) in enumerate(GroupKFold(count).split(fold_of_row, groups=labels)):
        fold_of_row[test] = number
    return fold_of_row


SPLITS: Mapping[str, Callable[[MappingCases], tuple[Fold, ...]]] = {
    "published": _published,
    "leave-kernel-out": partial(_ten_folds, "kernels"),
    "leave-application-out": partial(_ten_folds, "applications"),
    "leave-suite-out": lambda cases: folds_by_group("suites", "suites", cases.suites),
}
"""Splits by name, in increasing difficulty."""

_KEPT_TOGETHER = {
    "leave-kernel-out": "kernels",
    "leave-application-out": "applications",
    "leave-suite-out": "suites",
}

Model = Callable[[MappingCases, Integers, Integers, str], Reals]
"""Scores of test rows, after fitting to training rows; positive ones choose the GPU."""


def one_device(cases: MappingCases, train: Integers, test: Integers, split: str) -> Reals:
    """Choose the device that is faster in most training rows."""
    return np.full(len(test), float(np.mean(cases.gain[train] > 0)) - 0.5)


def lookup(cases: MappingCases, train: Integers, test: Integers, split: str) -> Reals:
    """Choose the device that is faster at most other sizes of the kernel; for a new kernel as `one_device`.

    It uses no features, so that its accuracy with the published split is not that of a prediction.
    """
    same = np.array(cases.kernels)[test, None] == np.array(cases.kernels)[train]
    votes = same @ np.where(cases.gain[train] > 0, 1.0, -1.0)
    return np.where(votes != 0, votes, one_device(cases, train, test, split))


def grewe_tree(cases: MappingCases, train: Integers, test: Integers, split: str) -> Reals:
    """Use the tree of Grewe et al. with the four features, fitted as in Cummins et al. (PACT 2017)."""
    tree = DecisionTreeClassifier(max_depth=5, min_samples_leaf=5, random_state=0)
    return _margin(tree.fit(cases.grewe_features[train], cases.gain[train] > 0), cases.grewe_features[test])


def trees_of_label(features: str, cases: MappingCases, train: Integers, test: Integers, split: str) -> Reals:
    """Use extremely randomized trees (Geurts et al. 2006) of the label on features by their name."""
    rows: Reals = getattr(cases, features)
    trees = ExtraTreesClassifier(_TREES, random_state=0).fit(rows[train], cases.gain[train] > 0)
    return _margin(trees, rows[test])


def trees_of_gain(features: str, cases: MappingCases, train: Integers, test: Integers, split: str) -> Reals:
    """Use trees of the logarithm of the ratio of times, whose sign decides."""
    rows: Reals = getattr(cases, features)
    # The classifier's default, too.
    trees = ExtraTreesRegressor(_TREES, max_features="sqrt", random_state=0)
    return np.asarray(trees.fit(rows[train], cases.gain[train]).predict(rows[test]))


def _margin(classifier: Any, features: Reals) -> Reals:
    """Probability of the GPU minus one half."""
    columns = {bool(label): column for column, label in enumerate(classifier.classes_)}
    shares = classifier.predict_proba(features)
    return np.asarray(shares[:, columns[True]] - 0.5 if True in columns else np.full(len(features), -0.5))


CANDIDATES: Mapping[str, Model] = {
    "one-device": one_device,
    **{f"{name}-label": partial(trees_of_label, name) for name in ("counted", "static", "profiled")},
    **{f"{name}-gain": partial(trees_of_gain, name) for name in ("static", "profiled")},
}


def selected(cases: MappingCases, train: Integers, test: Integers, split: str) -> Reals:
    """Use the candidate with the best accuracy in cross-validation of the training rows with the split."""
    together = _KEPT_TOGETHER.get(split)
    groups = np.arange(len(cases)).astype(str) if together is None else np.array(getattr(cases, together))
    if len(set(groups[train].tolist())) < 2:
        # With two suites, only one is in training.
        groups = np.array(cases.applications)
    part = _balanced(groups[train].tolist(), _INNER)
    right = dict.fromkeys(CANDIDATES, 0)
    for number in range(int(part.max()) + 1):
        inner, validation = train[part != number], train[part == number]
        for name, candidate in CANDIDATES.items():
            chosen = candidate(cases, inner, validation, split) > 0
            right[name] += int(np.count_nonzero(chosen == (cases.gain[validation] > 0)))
    return CANDIDATES[max(right, key=right.__getitem__)](cases, train, test, split)


BASELINES: Mapping[str, Model] = {"one-device": one_device, "lookup": lookup, "grewe-tree": grewe_tree}
MODELS: Mapping[str, Model] = {**BASELINES, **CANDIDATES, "selected": selected}


class DeviceScores(NamedTuple):
    """Quality of choices, all rows with equal weight."""

    accuracy: float  # Share in which the faster device was chosen
    speedup: float  # Time on the best single device over that on the chosen one, geometric mean
    regret: float  # Time on the chosen device over that on the faster one, geometric mean
    worst_regret: float  # Largest regret of a row
    mean_speedup: float  # Arithmetic mean of speed-ups, as published


def choices(cases: MappingCases, split: str, models: Mapping[str, Model] = MODELS) -> dict[str, Flags]:
    """Whether each model chooses the GPU for each case, which is held out."""
    folds = SPLITS[split](cases)
    tasks = [(name, fold) for name in models for fold in folds]
    scores = Parallel(n_jobs=-1)(
        delayed(models[name])(cases, fold.train, fold.test, split) for name, fold in tasks
    )
    chosen = {name: np.zeros(len(cases), np.bool_) for name in models}
    for (name, fold), of_fold in zip(tasks, scores, strict=True):
        chosen[name][fold.test] = of_fold > 0
    return chosen


def scored(cases: MappingCases, chosen: Mapping[str, Flags]) -> dict[str, tuple[DeviceScores, Confidence]]:
    """Scores of choices, with intervals by resampling of applications."""
    _, groups = np.unique(cases.applications, return_inverse=True)
    count = int(groups.max()) + 1
    rows, scores = [], {}
    for name, gpu in chosen.items():
        quantities = _by_row(cases, gpu)
        means = {score: Grouped(values, groups, count) for score, values in quantities.items()}

        def drawn(weights: Reals, means: Mapping[str, Grouped] = means) -> Mapping[str, Reals]:
            values = {score: grouped.mean(weights) for score, grouped in means.items()}
            return {score: mean if score == "accuracy" else np.exp(mean) for score, mean in values.items()}

        observed = {score: float(values[0]) for score, values in drawn(np.ones((1, count))).items()}
        rows.append(Scored(name, name in BASELINES, observed, drawn))
        worst, mean = np.exp(quantities["regret"].max()), np.exp(quantities["speedup"]).mean()
        scores[name] = DeviceScores(**observed, worst_regret=float(worst), mean_speedup=float(mean))
    intervals = confidences(rows, count, {"accuracy": 1, "speedup": 1, "regret": -1}, 0)
    return dict(zip(scores, zip(scores.values(), intervals, strict=True), strict=True))


def _by_row(cases: MappingCases, gpu: Flags) -> dict[str, Reals]:
    """Values of each row, of which the scores are means; logarithms of speed-ups and regrets."""
    times = np.log(cases.time_s)
    chosen = np.where(gpu, times[:, 1], times[:, 0])
    right = (gpu == (cases.gain > 0)).astype(np.float64)
    return {
        "accuracy": right,
        "speedup": times[:, single(cases)] - chosen,
        "regret": chosen - times.min(axis=1),
    }


def single(cases: MappingCases) -> int:
    """Number of the best single device, by the mean logarithm of times."""
    return int(cases.gain.mean() > 0)


def right_by_majority(cases: MappingCases, labels: Sequence[str]) -> float:
    """Accuracy if the device that is faster in most rows of each label were known."""
    _, groups = np.unique(labels, return_inverse=True)
    share = np.bincount(groups, cases.gain > 0) / np.bincount(groups)
    return float(np.maximum(share, 1 - share)[groups].mean())


_HELD_OUT = {
    "published": "As published: ten folds of rows at random; other sizes of most kernels are known.",
    "leave-kernel-out": "Ten folds of kernels, each with all its sizes; others of its program are known.",
    "leave-application-out": "Ten folds of programs, each with all its kernels: the honest figure.",
    "leave-suite-out": "Each suite held out with all its programs.",
}
_SCORES = scores_of("accuracy± speedup mean_speedup regret worst_regret")


def report_of(cases: MappingCases, label: str) -> Report:
    """Make a table of accuracy, speed-up and regret with each split, and sentences about the rows."""
    suites = set(cases.suites)
    with_profile = int((~np.isnan(cases.metrics).all(axis=1)).sum())
    parts: list[Part] = [
        Heading(
            f"{label}: {len(cases):,} rows of {len(set(cases.kernels)):,} kernels of "
            f"{len(set(cases.applications))} programs of {len(suites)} suites, on {cases.devices[0]} and "
            f"{cases.devices[1]}; {with_profile:,} rows with a profile",
            1,
        )
    ]
    for split, held_out in _HELD_OUT.items():
        chosen = choices(cases, split)
        results = scored(cases, chosen)
        rows = [([named(name, name in BASELINES)], *result) for name, result in results.items()]
        parts += ["", Heading(split), held_out, "", score_table(["model"], rows, _SCORES)]
        best = max(
            (name for name in results if name not in BASELINES), key=lambda name: results[name][0].accuracy
        )
        right = chosen[best] == (cases.gain > 0)
        if split in ("leave-application-out", "leave-suite-out"):
            by_suite = [
                (name, percent(right[np.array(cases.suites) == name].mean())) for name in sorted(suites)
            ]
            parts += ["", Table(["suite", "accuracy"], by_suite, f"{best} by suite")]
    _, kernels, counts = np.unique(cases.kernels, return_inverse=True, return_counts=True)
    several, alike = (counts[kernels] > 1).mean(), (np.abs(cases.gain) < np.log(1.1)).mean()
    majority = [percent(right_by_majority(cases, each), 1) for each in (cases.kernels, cases.applications)]
    return Report(
        [
            *parts,
            "",
            f"{percent(several, 1)} of the rows are of kernels with several sizes; the devices differ by "
            f"less than 10 % in {percent(alike, 1)}. If the majority of each kernel were known, "
            f"{majority[0]} would be right; of each program, {majority[1]}.",
            f"Speed-up: over {cases.devices[single(cases)]}, the best single device. Regret: time over that "
            "on the faster one. Both are geometric means; mean is the arithmetic one of speed-ups, as "
            "published; worst is the largest regret.",
            f"In brackets, 95 % of draws of programs; {MARK}: better than the best baseline in 95 % of them.",
        ]
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path, help="folder of the dataset")
    folder = parser.parse_args().dataset
    print(report_of(cases_of(read_dataset(folder)), folder.name).to_text(), end="")


if __name__ == "__main__":
    main()
