"""Features for co-running (Moolchandani et al. 2022, sections 6 and 7): combinations and decision paths."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from types import MappingProxyType
from typing import Unpack

import numpy as np

from crosscast.arrays import Arrays, Integers, Reals
from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix
from crosscast.errors import InputError
from crosscast.evaluation.corun.evaluation import CoRunResult, evaluate_corun, folds_of, measured, with_mixes
from crosscast.evaluation.keep import digest, fingerprint
from crosscast.evaluation.loop import Fold, FoldTask, RunArguments, run_tasks
from crosscast.prediction.corun.features import (
    CONCURRENT,
    FAIRNESS,
    INDIVIDUAL,
    INSTRUCTION_MIX,
    PERFORMANCE,
    POWER,
    Combination,
    other_features,
    unknown_features,
)
from crosscast.prediction.corun.moolchandani2022 import KINDS, Grown, Published, SizePredictor
from crosscast.prediction.trees import Trees

SPLITS = ("leave-benchmark-out", "random-80-20")
"""Splits of sections 7.2 and 7.4."""

ALL_FEATURES = "all that is known"
"""Name of the combination of all features of a dataset, which is not published."""

_SOURCES = ("prediction", "evaluation", "studies/moolchandani2022_features.py")

_LEAST_APPLICATIONS, _LEAST_MIXES = 3, 5


def _fewest(co_runs: CoRuns) -> int:
    """Size of the smallest mixes: two, as in the paper, where there are pairs."""
    return min((len(mix.members) for mix in co_runs.mixes if len(mix.members) > 1), default=2)


def _performance(co_runs: CoRuns) -> str:
    """Quantity that measures the performance of the smallest mixes: time, as published, or slowdown."""
    mixes = [mix for mix in co_runs.mixes if len(mix.members) == _fewest(co_runs)]
    return "time" if _known(mixes, "time") >= max(_LEAST_MIXES, len(mixes) // 2) else "slowdown"


def _known(mixes: Sequence[MeasuredMix], quantity: str) -> int:
    return int(np.isfinite(measured(mixes, quantity)).sum())


def _with_quantity(co_runs: CoRuns, quantity: str) -> CoRuns:
    """Select the smallest mixes with a known quantity, and remove their other measurements."""
    size, mixes = _fewest(co_runs), []
    for mix in co_runs.mixes:
        if len(mix.members) == size and _known([mix], quantity):
            members = mix.members
            if quantity != "slowdown":
                members = tuple(replace(member, slowdown=None) for member in members)
            time_s = mix.time_s if quantity == "time" else None
            power_w = mix.power_w if quantity == "power" else None
            mixes.append(replace(mix, members=members, time_s=time_s, power_w=power_w))
    return replace(co_runs, mixes=tuple(mixes))


@dataclass(frozen=True, eq=False)
class CombinationStudy:
    """Errors of six regressors with each combination of features."""

    quantity: str  # Predicted quantity: `time`, `slowdown` or `power`
    members: int  # Size of the mixes, and their number
    mixes: int
    kinds: tuple[str, ...]  # Kinds of regressors; see `crosscast.prediction.corun.moolchandani2022.KINDS`
    combinations: tuple[Combination, ...]  # Published combinations with known features, then up to two others
    missing: Mapping[str, tuple[str, ...]]  # Unknown features of the other published combinations
    results: Mapping[tuple[str, str, str], CoRunResult]  # By split, combination and kind of regressor

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the combinations."""
        return tuple(combination.name for combination in self.combinations)

    def mape(self, split: str) -> Reals:
        """Mean absolute relative errors, of shape ``(combinations, kinds)``."""
        return np.array(
            [[self.results[split, name, kind].mape for kind in self.kinds] for name in self.names], np.float64
        )

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        features = {combination.name: list(combination.features) for combination in self.combinations}
        return {
            "quantity": self.quantity,
            "mix_size": self.members,
            "mixes": self.mixes,
            "results": [
                {
                    "folds": split,
                    "combination": name,
                    "features": features[name],
                    "model": kind,
                    "mape": result.mape,
                    "by_group": result.by_group,
                }
                for (split, name, kind), result in self.results.items()
            ],
            "not_made": {name: why_missing(features) for name, features in self.missing.items()},
        }


def why_missing(features: Sequence[str]) -> str:
    """Reason why a combination lacks some features, as part of a sentence."""
    of_mixes = [name for name in features if name in CONCURRENT]
    others = [name for name in features if name not in CONCURRENT]
    parts = [f"{', '.join(of_mixes)} only told by running the mix itself"] if of_mixes else []
    parts += [f"{', '.join(others)} known of no application here"] if others else []
    return "; ".join(parts)


def combination_study(
    co_runs: CoRuns,
    target: str,
    seed: int,
    *,
    kinds: Sequence[str] = tuple(KINDS),
    **run: Unpack[RunArguments],
) -> CombinationStudy | str:
    """Compare combinations of features for ``performance`` or ``power``, or return why that is impossible.

    For performance they are those of figure 8, which includes figure 7, and predict times of mixes, or
    slowdowns where no times are known; for power those of table 7. Only the smallest mixes are used. Other
    arguments are those of `evaluate_corun`.
    """
    quantity = "power" if target == "power" else _performance(co_runs)
    published = TABLE_7 if target == "power" else [combination for row in FIGURE_8 for combination in row]
    chosen = _with_quantity(co_runs, quantity)
    if not chosen.mixes:
        return f"the {quantity} of no mix is known"
    if len(chosen.applications) < _LEAST_APPLICATIONS or len(chosen.mixes) < _LEAST_MIXES:
        return (
            f"combinations take at least {_LEAST_APPLICATIONS} applications and {_LEAST_MIXES} mixes of "
            f"known {quantity}"
        )
    isolated_runs = [mix.isolated_runs for mix in chosen.mixes]
    missing = {
        combination.name: unknown
        for combination in published
        if (unknown := unknown_features(combination.features, isolated_runs))
    }
    combinations = [combination for combination in published if combination.name not in missing]
    combinations += _of_dataset("GPU_power" if target == "power" else "GPU_time", isolated_runs)
    if not combinations:
        return "nothing is known of applications alone"
    pairs = [(combination, kind) for combination in combinations for kind in kinds]
    models = [
        Published(kind, combination, combination, title=f"{kind} {combination.name}")
        for combination, kind in pairs
    ]
    results: dict[tuple[str, str, str], CoRunResult] = {}
    for split in SPLITS:
        all_results = evaluate_corun(chosen, models, split, level=None, seed=seed, **run).results
        of_quantity = [row for row in all_results if row.quantity == quantity and row.mix_size is None]
        for (combination, kind), result in zip(pairs, of_quantity, strict=True):
            results[split, combination.name, kind] = result
    return CombinationStudy(
        quantity, _fewest(co_runs), len(isolated_runs), tuple(kinds), tuple(combinations), missing, results
    )


def _of_dataset(alone: str, mixes: Sequence[tuple[IsolatedRun, ...]]) -> list[Combination]:
    """Combinations of the device's own measurement of an application alone, and of all known features."""
    known = [
        *(name for name in (*INDIVIDUAL, FAIRNESS) if not unknown_features([name], mixes)),
        *other_features(mixes),
    ]
    single = [Combination(alone, (alone,))] if alone in known else []
    return [*single, *([Combination(ALL_FEATURES, tuple(known))] if set(known) - {alone} else [])]


@dataclass(frozen=True, eq=False)
class DecisionPaths:
    """Numbers of splits at each feature on the decision paths of ``n`` mixes."""

    features: tuple[str, ...]  # Names of the `k` features, summed over co-runners
    times: Integers  # Splits at each feature on the path of each mix, of shape `(n, k)`: figure 10

    @property
    def share(self) -> Reals:
        """Share of the mixes with each feature on their path, of shape ``(k,)``: figure 9."""
        return np.asarray((self.times > 0).mean(axis=0))


@dataclass(frozen=True, eq=False)
class PathStudy(DecisionPaths):
    """Decision paths of mixes, each through a tree that was fitted without a benchmark of the mix.

    Features are sorted by descending number of splits.
    """

    quantity: str  # Predicted quantity
    as_published: bool  # Whether the trees use the paper's features only; else all known features

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        rows = zip(self.features, self.share.tolist(), self.times.mean(axis=0).tolist(), strict=True)
        features = {name: {"share": share, "times": times} for name, share, times in rows}
        about = {"quantity": self.quantity, "as_published": self.as_published}
        return {**about, "mixes": len(self.times), "features": features}


_TARGETS = {"time": "time_s", "slowdown": "slowdown", "power": "power_w"}


def decision_paths(
    predictor: SizePredictor, mixes: Sequence[tuple[IsolatedRun, ...]], target: str = "time_s"
) -> DecisionPaths:
    """Count the splits on the paths of mixes through the decision tree of a target."""
    fitted = predictor.targets.get(target)
    if fitted is None or not isinstance(fitted.regressor, Grown):
        raise InputError.of(where=target, expected="a target that a decision tree predicts", found="none")
    trees = fitted.regressor.trees
    if (trees.root >= 0).sum() > 1:
        raise InputError.of(
            where=target, expected="one decision tree", found=f"{int((trees.root >= 0).sum())}"
        )
    values, _ = predictor.columns.of(mixes)
    features = values.reshape(len(mixes), -1)[:, predictor.views[target][0]]
    passed = splits_passed(trees, features).reshape(len(mixes), predictor.members, -1).sum(axis=1)
    titles = predictor.columns.titles
    return DecisionPaths(tuple(titles[column] for column in fitted.columns), passed)


def splits_passed(trees: Trees, rows: Reals) -> Integers:
    """Count the splits at each feature that each row passes, over all trees. Of shape ``(n, f)``."""
    singles = rows.astype(np.float32)
    passed = np.zeros(rows.shape, dtype=np.int64)
    row = np.tile(np.arange(len(rows)), len(trees.root))
    node = np.repeat(trees.root, len(rows))
    while True:
        row, node = row[node >= 0], node[node >= 0]
        if not len(node):
            return passed
        feature = trees.split_feature[node]
        np.add.at(passed, (row, feature), 1)
        goes_left = singles[row, feature] <= trees.split_threshold[node]
        node = np.where(goes_left, trees.split_left[node], trees.split_right[node])


@dataclass(frozen=True, eq=False)
class _PathTask(FoldTask[Published, Fold, CoRuns]):
    """Fit a tree to the training mixes of a fold, and count splits on the paths of its test mixes."""

    quantity: str

    @property
    def label(self) -> str:
        return f"decision paths, {self.fold.held_out} held out"

    @property
    def cache_keys(self) -> list[object]:
        indices = digest([self.fold.train, self.fold.test])
        return [["paths", fingerprint(self.model), indices, self.quantity, self.seed]]

    def run(self, data: CoRuns, queries: Sequence[int]) -> list[Arrays]:
        size = len(data.mixes[0].members)
        predictor = self.model.fit(with_mixes(data, self.fold.train), self.seed).of_size(size)
        mixes = [data.mixes[index].isolated_runs for index in self.fold.test.tolist()]
        paths = decision_paths(predictor, mixes, _TARGETS[self.quantity])
        return [{"features": np.array(paths.features), "times": paths.times} for _ in queries]

    def is_valid(self, data: CoRuns, query: int, arrays: Arrays) -> bool:
        return set(arrays) == {"features", "times"} and len(arrays["times"]) == len(self.fold.test)


def path_study(co_runs: CoRuns, target: str, seed: int, **run: Unpack[RunArguments]) -> PathStudy | str:
    """Find the paths of the smallest mixes through trees for ``performance`` or ``power``, or say why not.

    The paper shows paths for performance only (figures 9 and 10).
    """
    quantity = "power" if target == "power" else _performance(co_runs)
    chosen = _with_quantity(co_runs, quantity)
    if len(chosen.applications) < _LEAST_APPLICATIONS:
        return f"paths take at least {_LEAST_APPLICATIONS} applications with mixes of known {quantity}"
    published = (POWER if quantity == "power" else PERFORMANCE).features
    as_published = not unknown_features(published, [mix.isolated_runs for mix in chosen.mixes])
    model = Published("decision-tree", others=not as_published)
    tasks = [_PathTask(model, fold, seed, quantity) for fold in folds_of(chosen.mixes, SPLITS[0], seed)]
    parts = [arrays for (arrays,) in run_tasks(tasks, chosen, sources=_SOURCES, **run)]
    names = list(dict.fromkeys(name for part in parts for name in part["features"].tolist()))
    rows = []
    for part in parts:
        # A feature that no training mix of the fold has is not among the fold's features: no splits.
        times = np.zeros((len(part["times"]), len(names)), dtype=np.int64)
        times[:, [names.index(name) for name in part["features"].tolist()]] = part["times"]
        rows.append(times)
    times = np.concatenate(rows)
    order = sorted(range(len(names)), key=lambda column: (-times[:, column].mean(), column))
    return PathStudy(tuple(names[column] for column in order), times[:, order], quantity, as_published)


PUBLISHED_COUNT = 3  # Clusters of mixes, which three microbenchmarks stand for (silhouette score 0.75)
TIGHT = 0.7  # Silhouette score above which the paper calls clusters tightly bound
TRANSLATION_ERRORS = (7.0, 9.0)  # Tesla T4 to P100, two to five applications, per cent: accuracy 93 to 91 %

FIGURE_8 = tuple(
    tuple(
        Combination("+".join((row, *times)), (*features, *times))
        for times in ((), ("CPU_time",), ("GPU_time",), ("CPU_time", "GPU_time"))
    )
    for row, features in (
        ("insmix", INSTRUCTION_MIX),
        ("insmix+fairness", (*INSTRUCTION_MIX, FAIRNESS)),
        ("ALU+SSE", ("ALU", "SSE")),
        ("ALU+SSE+fairness", ("ALU", "SSE", FAIRNESS)),
        ("MEM", ("MEM",)),
        ("MEM+fairness", ("MEM", FAIRNESS)),
        ("fairness", (FAIRNESS,)),
    )
)
"""The grid of figure 8: parts of table 4 (rows) with neither time, either, or both (columns).

The rows are those of section 6.3, with and without fairness.
"""

_TEXT = files("crosscast.studies").joinpath("moolchandani2022_table_7.csv").read_text(encoding="utf-8")
_ROWS = tuple(csv.DictReader(_TEXT.splitlines()))

TABLE_7 = tuple(Combination(row["combination"], tuple(row["features"].split())) for row in _ROWS)
"""The combinations of table 7, in its order."""

REPORTED_MAPE: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {row["combination"]: {kind: float(error) for kind, error in list(row.items())[2:]} for row in _ROWS}
)
"""Mean absolute percentage error of power by combination and kind of model (table 7), in per cent.

Two applications on a Tesla T4, leaving one benchmark out.
"""
