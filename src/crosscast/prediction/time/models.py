"""Models of times without physical terms, and the registry of all models.

Their features are logarithms of amounts in a profile, and differences of these. Amounts enter as
``log(1 + amount)``, since many of them may be 0. All features are finite for every sound profile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError, expect_known, importing
from crosscast.prediction.serialization import Array, Nested, Stored
from crosscast.prediction.time.combined import Combined
from crosscast.prediction.time.data import Grid, ProfileBatch, application_weights, impute
from crosscast.prediction.time.gaussian import Gaussian
from crosscast.prediction.time.johnston2018 import PublishedForest
from crosscast.prediction.time.physical import Physical
from crosscast.prediction.trained import single_threaded
from crosscast.prediction.trees import Trees, constant, joined, trees_of_boosting, trees_of_forest

_LARGEST = 1e30


class Feature(NamedTuple):
    """A feature of a profile."""

    name: str  # In artefacts
    needs: tuple[str, ...]  # Metrics of the formula
    formula: Callable[..., Reals]  # Of these metrics, each of shape `(n,)`


def _log_ratio(amount: Reals, total: Reals) -> Reals:
    return np.log1p(amount) - np.log1p(total)


def _log_steps(lanes: int, instructions: Reals, items: Reals) -> Reals:
    """Logarithm of the steps that so many lanes take, each with one work-item at a time."""
    return np.log1p(instructions) - np.log(np.clip(items, 1.0, lanes))


_INSTRUCTIONS, _ITEMS, _MEMORY = "total_instruction_count", "work_items", "total_memory_footprint"
_ENTROPY, _LINES = "global_memory_address_entropy", "local_memory_address_entropy_6"
_KIBIBYTES = "local_memory_address_entropy_10"
_ACCESSES = ("total_reads", "total_writes")

FEATURES: tuple[Feature, ...] = (
    # Work on one lane, on several numbers of lanes that few work-items leave idle, and on endless lanes.
    Feature("instructions", (_INSTRUCTIONS,), np.log1p),
    *(
        Feature(f"steps_on_{lanes}", (_INSTRUCTIONS, _ITEMS), partial(_log_steps, lanes))
        for lanes in (16, 256, 4096, 65536)
    ),
    Feature("instructions_per_item", (_INSTRUCTIONS, _ITEMS), _log_ratio),
    # Parallelism, units of scheduling, and the additional work of the longest work-item.
    Feature("work_items", (_ITEMS,), np.log1p),
    Feature("work_groups", ("work_groups",), np.log1p),
    Feature("imbalance", ("load_imbalance",), np.log1p),
    # Frequency of waits, and work between waits.
    Feature(
        "barriers_per_item",
        ("total_barriers_hit", _ITEMS),
        lambda barriers, items: np.log1p(barriers / np.maximum(items, 1.0)),
    ),
    Feature("between_barriers", ("median_itb",), np.log1p),
    # Elements of an instruction.
    Feature("simd_width", ("mean_simd_width",), np.positive),
    # Data to load from memory once; by instruction; and by work-item: where that is large, neighbours
    # are far apart.
    Feature("footprint", (_MEMORY,), np.log1p),
    Feature("footprint_per_instruction", (_MEMORY, _INSTRUCTIONS), _log_ratio),
    Feature("footprint_per_item", (_MEMORY, _ITEMS), _log_ratio),
    # Evenness of accesses, their number, their share of the work, and accesses of local memory.
    Feature("hot_share", ("footprint_90", _MEMORY), _log_ratio),
    Feature("accesses", _ACCESSES, lambda reads, writes: np.log1p(reads + writes)),
    Feature(
        "accesses_per_instruction",
        (*_ACCESSES, _INSTRUCTIONS),
        lambda reads, writes, instructions: _log_ratio(reads + writes, instructions),
    ),
    Feature("local_accesses", ("local_accesses",), np.log1p),
    # Bits of addresses: all, those within 64 B, and between that and 1 KiB.
    Feature("address_entropy", (_ENTROPY,), np.positive),
    Feature("within_lines", (_ENTROPY, _LINES), np.subtract),
    Feature("within_kibibytes", (_LINES, _KIBIBYTES), np.subtract),
    # Branches where lanes may diverge, their entropy, and kinds of instructions.
    Feature("branches", ("unique_branches",), np.log1p),
    Feature("branch_entropy", ("yokota_branch_entropy",), np.positive),
    Feature("opcodes", ("opcode",), np.log1p),
)
"""All features, in the order of models' columns."""

_BY_NAME = {each.name: each for each in FEATURES}


def choose_features(profiles: ProfileBatch, among: Collection[str] = tuple(_BY_NAME)) -> tuple[str, ...]:
    """Names of the features, among some, whose metrics all kernels have, in the order of `FEATURES`.

    Published profiles have about half of the metrics, so the features depend on the training data.
    """
    sound = {name: bool(_sound(profiles.metric(name)).all()) for name in _needed(among)}
    names = tuple(
        each.name for each in FEATURES if each.name in among and all(sound[need] for need in each.needs)
    )
    if not names:
        lacking = f"some without {', '.join(name for name in sound if not sound[name])}"
        raise InputError.of(where="profiles", expected="metrics that all kernels have", found=lacking)
    return names


def feature_matrix(names: Sequence[str], profiles: ProfileBatch) -> Reals:
    """Features of ``n`` profiles, of shape ``(n, f)``; finite."""
    metrics = {name: profiles.metric(name) for name in _needed(names)}
    for name, values in metrics.items():
        sound = _sound(values)
        if not sound.all():
            row = int(np.argmin(sound))
            raise InputError.of(
                where=f"profile of {'/'.join(profiles.names[row])}",
                field=name,
                expected=f"a number from 0 to {_LARGEST:g}, which the model needs",
                found="none" if np.isnan(values[row]) else f"{values[row]:g}",
            )
    chosen = [_BY_NAME[name] for name in names]
    return np.column_stack([each.formula(*(metrics[need] for need in each.needs)) for each in chosen])


def _needed(names: Collection[str]) -> tuple[str, ...]:
    """Metrics of the formulas of these features, each once."""
    return tuple(dict.fromkeys(need for each in FEATURES if each.name in names for need in each.needs))


def _sound(values: Reals) -> Flags:
    # NaN compares false; larger values would overflow single precision in products.
    return (values >= 0) & (values <= _LARGEST)


_Features = Annotated[tuple[str, ...], Array("f", least=1, among=tuple(_BY_NAME))]


@dataclass(frozen=True)
class DeviceMean:
    """The geometric mean of a device's times for any kernel: always the same recommended device.

    Each kernel at a size counts the same. Weighting by application would be the worse baseline: applications
    with few kernels have long ones.
    """

    name: str = "device-mean"

    def fit(self, grid: Grid, seed: int) -> FittedMean:
        """Fit the means; cells without a time are imputed, so that long kernels make no device look slow."""
        return FittedMean(impute(grid).log_time.mean(axis=0))


@dataclass(frozen=True, eq=False)
class FittedMean(Stored, kind="mean"):
    """Means of ``d`` devices."""

    mean: Annotated[Reals, Array("d")]  # Mean logarithms of times in seconds

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        return np.tile(self.mean, (len(profiles), 1))


_AMOUNTS = ("instructions", "work_items", "footprint")
_AT_ONCE = 4096


@dataclass(frozen=True)
class Nearest:
    """The times of the training kernel that is most similar in work, in work-items and in data.

    Nearest in the logarithms of these three, each scaled to deviation 1. Kernels that agree in all three
    count as one, with the geometric mean of their times.
    """

    name: str = "nearest"

    def fit(self, grid: Grid, seed: int) -> FittedNearest:
        """Fit the points; cells without a time are imputed."""
        complete = impute(grid)
        features = choose_features(complete.profiles, _AMOUNTS)
        matrix = feature_matrix(features, complete.profiles)
        points, number = np.unique(matrix, axis=0, return_inverse=True)
        times = np.zeros((len(points), len(grid.devices)))
        np.add.at(times, number, complete.log_time)
        return FittedNearest(features, points, times / np.bincount(number)[:, None])


@dataclass(frozen=True, eq=False)
class FittedNearest(Stored, kind="nearest"):
    """``k`` points in the space of the features, and their times."""

    features: _Features
    points: Annotated[Reals, Array("k f", least=1)]
    times: Annotated[Reals, Array("k d")]  # Natural logarithms of seconds

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        scale = self.points.std(axis=0)
        # A feature that is equal for all points does not change distances.
        scale[scale == 0] = np.inf
        points, rows = self.points / scale, feature_matrix(self.features, profiles) / scale
        nearest = np.empty(len(rows), dtype=np.int64)
        for first in range(0, len(rows), _AT_ONCE):
            part = rows[first : first + _AT_ONCE]
            squares = ((part[:, None, :] - points) ** 2).sum(axis=2)
            nearest[first : first + _AT_ONCE] = squares.argmin(axis=1)
        return self.times[nearest]


# A log time is the sum of its mean over the devices (the level) and the differences of the devices from that
# (the preference). The level spans six orders of magnitude, the preference one. Trees that predict both at
# once split by the level alone, and learn hardly anything about which device suits a kernel. So each part has
# trees of its own. The features of each part were chosen once, by hand, in view of the errors on held-out
# applications of the published dataset and of the bundled one. That choice is not nested in their evaluation.

_GROWING = (
    *("instructions", "steps_on_16", "steps_on_256", "steps_on_4096", "steps_on_65536"),
    *("instructions_per_item", "footprint", "accesses"),
)
"""Features with which the level may grow but not fall: more work or more data never takes less time."""

LEVEL = (*_GROWING, "work_items", "work_groups", "barriers_per_item", "simd_width", "within_lines")
"""Features from which the level is predicted."""

PREFERENCE = ("instructions_per_item", "work_items", "footprint_per_item", "within_lines")
"""Features from which the preference is predicted: ratios and shapes, but for work-items."""


@dataclass(frozen=True, eq=False)
class TwoParts:
    """Targets and features of the trees, of ``n`` kernels on ``d`` devices."""

    features: tuple[str, ...]  # Of both parts
    rows: Reals  # `(n, f)` Rounded to single precision, in which trees compare
    level: Reals  # `(n,)` Mean over the devices of the logarithm of the time
    preference: Reals  # `(n, d)` Logarithms of times less the level
    weights: Reals  # `(n,)` Weight of each kernel
    level_columns: list[int]  # Features of each part
    preference_columns: list[int]


def two_parts(grid: Grid) -> TwoParts:
    """Split the times of a grid into level and preference; cells without a time are imputed."""
    complete = impute(grid)
    available = {name for part in (LEVEL, PREFERENCE) for name in choose_features(complete.profiles, part)}
    features = choose_features(complete.profiles, available)
    rows = feature_matrix(features, complete.profiles).astype(np.float32).astype(np.float64)
    level = complete.log_time.mean(axis=1)
    return TwoParts(
        features,
        rows,
        level,
        complete.log_time - level[:, None],
        application_weights(complete.profiles),
        [column for column, name in enumerate(features) if name in LEVEL],
        [column for column, name in enumerate(features) if name in PREFERENCE],
    )


@dataclass(frozen=True, eq=False)
class FittedTrees(Stored, kind="trees"):
    """Trees on features of profiles, with an output for each device."""

    features: _Features
    trees: Annotated[Trees, Nested(flat=True)]  # Their sum is the logarithm of the time

    def check(self) -> None:
        """Raise InputError unless the trees are on these features."""
        self.trees.check_width(len(self.features))

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        return self.trees.sum(feature_matrix(self.features, profiles))


@dataclass(frozen=True)
class ExtraTrees:
    """Two forests of extremely randomized trees: one for the level, one for the preference of devices.

    Their parameters are not tuned to a grid: half or twice each of them changes the error on held-out
    applications by a few per cent, less than tuning on so few applications would cost.
    """

    trees: int = 150  # Trees of each forest
    level_leaf: int = 2  # Kernels in a leaf, at least
    preference_leaf: int = 4
    name: str = "extra-trees"

    def fit(self, grid: Grid, seed: int) -> FittedTrees:
        """Fit the trees to a grid that may have cells without a time."""
        parts = two_parts(grid)
        seeds = np.random.default_rng(seed).integers(2**31, size=2).tolist()
        leaf = {"min_samples_leaf": self.level_leaf, "max_features": 0.5}
        level = self._forest(parts, parts.level_columns, parts.level, seeds[0], **leaf)
        target = parts.preference if parts.preference.shape[1] > 1 else parts.preference[:, 0]
        leaf = {"min_samples_leaf": self.preference_leaf}
        preference = self._forest(parts, parts.preference_columns, target, seeds[1], **leaf)
        return FittedTrees(
            parts.features, joined([level.project(np.ones((1, len(grid.devices)))), preference])
        )

    def _forest(self, parts: TwoParts, columns: list[int], target: Reals, seed: int, **leaf: float) -> Trees:
        with importing("train", "fitting a model"):
            from sklearn.ensemble import ExtraTreesRegressor

        forest = ExtraTreesRegressor(self.trees, random_state=seed, **leaf)
        forest.fit(parts.rows[:, columns], target, sample_weight=parts.weights)
        return trees_of_forest(forest).with_columns(columns)


@dataclass(frozen=True)
class Boosting:
    """Boosted trees for the level, and for each main direction in which preferences of devices vary.

    The directions are the first principal components of the preferences of the training kernels.
    """

    rounds: int = 100  # Trees of the level and of each direction
    rate: float = 0.05  # Share of the residual that each tree removes
    leaves: int = 4  # Most leaves of a tree
    least: int = 5  # Kernels in a leaf, at least
    directions: int = 3  # Most directions
    name: str = "boosting"

    def fit(self, grid: Grid, seed: int) -> FittedTrees:
        """Fit the trees to a grid that may have cells without a time."""
        parts = two_parts(grid)
        d = len(grid.devices)
        growing = [int(parts.features[column] in _GROWING) for column in parts.level_columns]
        level = self._boosted(parts, parts.level_columns, parts.level, seed, growing)
        mean = np.average(parts.preference, axis=0, weights=parts.weights)
        centred = parts.preference - mean
        axes = np.linalg.svd(centred, full_matrices=False)[2][: min(self.directions, d - 1)]
        preferences = [
            self._boosted(parts, parts.preference_columns, score, seed).project(axis[None, :])
            for score, axis in zip((centred @ axes.T).T, axes, strict=True)
        ]
        level_on_all = level.project(np.ones((1, d)))
        return FittedTrees(parts.features, joined([level_on_all, constant(mean), *preferences]))

    def _boosted(
        self, parts: TwoParts, columns: list[int], target: Reals, seed: int, growing: list[int] | None = None
    ) -> Trees:
        with importing("train", "fitting a model"):
            from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(
            max_iter=self.rounds,
            learning_rate=self.rate,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.least,
            l2_regularization=1.0,
            monotonic_cst=growing,
            early_stopping=False,
            random_state=seed,
        )
        # With some hundred rows, synchronizing threads takes longer than their work.
        with single_threaded():
            model.fit(parts.rows[:, columns], target, sample_weight=parts.weights)
        return trees_of_boosting(model).with_columns(columns)


DEFAULT_MODEL = "combined"

BASELINES = ("device-mean", "nearest")
"""Names of the models that all others must beat."""

_FEW_TREES = 60

MODELS: Mapping[str, Callable[[], Gaussian]] = {
    "device-mean": partial(Gaussian, DeviceMean()),
    "nearest": partial(Gaussian, Nearest()),
    "published-forest": partial(Gaussian, PublishedForest(), PublishedForest(trees=_FEW_TREES)),
    "extra-trees": partial(Gaussian, ExtraTrees()),
    "boosting": partial(Gaussian, Boosting()),
    "physical": partial(Gaussian, Physical()),
    "combined": partial(Gaussian, Combined(), trivial=DeviceMean(), adaptive=True),
}
"""Factories of the models by name, from the trivial to the strong."""


def model_named(name: str) -> Gaussian:
    """Return a new model by its name."""
    expect_known(name, MODELS, where="model")
    return MODELS[name]()
