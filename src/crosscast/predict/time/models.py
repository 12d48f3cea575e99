"""The models that know no physics, and all models by name.

Features are what these models see of a profile: logarithms of amounts, and what they stand for. Amounts enter
as ``log(1 + amount)``, since many of them may be 0. All features are finite for every sound profile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.serialization import Array, Nested, Stored
from crosscast.predict.time.combined import Combined
from crosscast.predict.time.data import Grid, ProfileBatch, application_weights, impute
from crosscast.predict.time.forecast import Gaussian
from crosscast.predict.time.johnston2018 import PublishedForest
from crosscast.predict.time.physical import Physical
from crosscast.predict.trees import Trees, constant, joined, trees_of_boosting, trees_of_forest

_LARGEST = 1e30


@dataclass(frozen=True)
class Feature:
    """One feature."""

    name: str  # Its name in artefacts
    meaning: str  # Why it should tell something about time
    needs: tuple[str, ...]  # Metrics that it is made of
    formula: Callable[..., Reals]  # Makes it from these metrics, each of shape `(n,)`


def _log(amount: Reals) -> Reals:
    return np.log1p(amount)


def _log_ratio(amount: Reals, other: Reals) -> Reals:
    return np.log1p(amount) - np.log1p(other)


def _log_each(amount: Reals, items: Reals) -> Reals:
    return np.log1p(amount / np.maximum(items, 1.0))


def _steps_on(lanes: int) -> Callable[[Reals, Reals], Reals]:
    """Logarithm of the steps that `lanes` lanes take if each works on a work-item at a time."""

    def steps(instructions: Reals, items: Reals) -> Reals:
        return np.log1p(instructions) - np.log(np.clip(items, 1.0, lanes))

    return steps


def _same(amount: Reals) -> Reals:
    return amount


def _difference(more: Reals, less: Reals) -> Reals:
    return more - less


def _log_sum(one: Reals, other: Reals) -> Reals:
    return np.log1p(one + other)


def _sum_ratio(one: Reals, other: Reals, whole: Reals) -> Reals:
    return np.log1p(one + other) - np.log1p(whole)


_WORK = ("total_instruction_count", "work_items")
_ALL_BITS = "global_memory_address_entropy"
_LINES = "local_memory_address_entropy_6"
_KIBIBYTES = "local_memory_address_entropy_10"

FEATURES: tuple[Feature, ...] = (
    Feature("instructions", "work, as one lane sees it", ("total_instruction_count",), _log),
    *(
        Feature(
            f"steps_on_{lanes}", f"work, as {lanes} lanes see it that few work-items leave idle", _WORK, f
        )
        for lanes, f in ((lanes, _steps_on(lanes)) for lanes in (16, 256, 4096, 65536))
    ),
    Feature("instructions_per_item", "work, as endless lanes see it", _WORK, _log_ratio),
    Feature("work_items", "how much can be done at once", ("work_items",), _log),
    Feature("work_groups", "what is handed out to compute units", ("work_groups",), _log),
    Feature("imbalance", "work that the longest work-item has more", ("load_imbalance",), _log),
    Feature("barriers_per_item", "how often lanes wait", ("total_barriers_hit", "work_items"), _log_each),
    Feature("between_barriers", "work between waits", ("median_itb",), _log),
    Feature("simd_width", "elements that an instruction makes", ("mean_simd_width",), _same),
    Feature("footprint", "data that has to come from memory once", ("total_memory_footprint",), _log),
    Feature(
        "footprint_per_instruction",
        "data for the work that is done on it",
        ("total_memory_footprint", "total_instruction_count"),
        _log_ratio,
    ),
    Feature(
        "footprint_per_item",
        "data of a work-item; where it is much, neighbours are far apart",
        ("total_memory_footprint", "work_items"),
        _log_ratio,
    ),
    Feature("hot_share", "how even accesses are", ("footprint_90", "total_memory_footprint"), _log_ratio),
    Feature("accesses", "loads and stores", ("total_reads", "total_writes"), _log_sum),
    Feature(
        "accesses_per_instruction",
        "loads and stores among the work",
        ("total_reads", "total_writes", "total_instruction_count"),
        _sum_ratio,
    ),
    Feature("local_accesses", "what local memory serves", ("local_accesses",), _log),
    Feature(
        "address_entropy", "bits of addresses: how much is accessed, and how evenly", (_ALL_BITS,), _same
    ),
    Feature("within_lines", "bits of it within 64 B", (_ALL_BITS, _LINES), _difference),
    Feature("within_kibibytes", "bits of it between 64 B and 1 KiB", (_LINES, _KIBIBYTES), _difference),
    Feature("branches", "places where lanes may part", ("unique_branches",), _log),
    Feature("branch_entropy", "how unlike branches go", ("yokota_branch_entropy",), _same),
    Feature("opcodes", "kinds of instructions", ("opcode",), _log),
)
"""All features, in the order in which they are shown to models."""

_BY_NAME = {each.name: each for each in FEATURES}


def choose_features(profiles: ProfileBatch, among: Collection[str] = tuple(_BY_NAME)) -> tuple[str, ...]:
    """Names of the features, among some, whose metrics all kernels have, in the order of `FEATURES`.

    Published profiles know about half of the metrics, so what models see depends on what they are fitted to.
    """
    sound = {name: bool(_sound(profiles.metric(name)).all()) for name in _needed(among)}
    names = tuple(
        each.name for each in FEATURES if each.name in among and all(sound[need] for need in each.needs)
    )
    if not names:
        lacking = ", ".join(name for name in sound if not sound[name])
        raise InputError(f"profiles: expected metrics that all kernels have, found some without {lacking}")
    return names


def feature_matrix(names: Sequence[str], profiles: ProfileBatch) -> Reals:
    """Features of ``n`` profiles, of shape ``(n, f)``; finite."""
    metrics = {name: profiles.metric(name) for name in _needed(names)}
    for name, values in metrics.items():
        sound = _sound(values)
        if not sound.all():
            row = int(np.argmin(sound))
            found = "none" if np.isnan(values[row]) else f"{values[row]:g}"
            raise InputError(
                f"profile of {'/'.join(profiles.names[row])}: {name}: expected a number from 0 to "
                f"{_LARGEST:g}, which the model needs, found {found}"
            )
    chosen = [_BY_NAME[name] for name in names]
    return np.column_stack([each.formula(*(metrics[need] for need in each.needs)) for each in chosen])


def _needed(names: Collection[str]) -> tuple[str, ...]:
    """Metrics of which features of these names are made, each once."""
    return tuple(dict.fromkeys(need for each in FEATURES if each.name in names for need in each.needs))


def _sound(values: Reals) -> Flags:
    # Not a number is neither; larger ones would not fit into single precision once they are multiplied.
    return (values >= 0) & (values <= _LARGEST)


def _check_features(names: Sequence[str]) -> None:
    unknown = sorted(set(names) - set(_BY_NAME))
    if unknown or not names or len(set(names)) != len(names):
        found = ", ".join(unknown or names) or "none"
        raise InputError.of(
            field="features", expected=f"some of {', '.join(_BY_NAME)}, each once", found=found
        )


@dataclass(frozen=True)
class DeviceMean:
    """The geometric mean of a device's times, whatever the kernel: it always chooses the same device.

    Each kernel at a size counts the same. Weighting by application would be the worse baseline: applications
    with few kernels have long ones.
    """

    name: str = "device-mean"

    def fit(self, grid: Grid, seed: int) -> FittedMean:
        """Fit it; cells without a time are imputed, so that no device looks slow for having long kernels."""
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
        """Fit it; cells without a time are imputed."""
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

    features: Annotated[tuple[str, ...], Array("f")]
    points: Annotated[Reals, Array("k f", least=1)]
    times: Annotated[Reals, Array("k d")]  # Natural logarithms of seconds

    def check(self) -> None:
        """Refuse features that there are not."""
        _check_features(self.features)

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        scale = self.points.std(axis=0)
        # A feature that all points share tells nothing of which is nearer.
        scale[scale == 0] = np.inf
        points, rows = self.points / scale, feature_matrix(self.features, profiles) / scale
        nearest = np.empty(len(rows), dtype=np.int64)
        for first in range(0, len(rows), _AT_ONCE):
            part = rows[first : first + _AT_ONCE]
            squares = ((part[:, None, :] - points) ** 2).sum(axis=2)
            nearest[first : first + _AT_ONCE] = squares.argmin(axis=1)
        return self.times[nearest]


# Time in two parts: how long a kernel takes anywhere (the level), and how the devices differ on it (the
# preference). The first spans six orders of magnitude, the second one. Trees that are to predict both at once
# split by the first alone, and learn hardly anything about which device suits a kernel. So each part gets
# trees of its own. What each part sees was chosen once, by hand, in view of the errors on held-out
# applications of the published dataset and of the bundled one. That choice is not nested in their evaluation.

LEVEL = (
    "instructions",
    "steps_on_16",
    "steps_on_256",
    "steps_on_4096",
    "steps_on_65536",
    "instructions_per_item",
    "work_items",
    "work_groups",
    "barriers_per_item",
    "simd_width",
    "footprint",
    "accesses",
    "within_lines",
)
"""Features from which the level is predicted."""

PREFERENCE = ("instructions_per_item", "work_items", "footprint_per_item", "within_lines")
"""Features from which the preference is predicted: ratios and shapes, but for work-items."""


@dataclass(frozen=True, eq=False)
class TwoParts:
    """What trees are fitted to, of ``n`` kernels on ``d`` devices."""

    features: tuple[str, ...]  # The features of both parts
    rows: Reals  # `(n, f)` Their values, rounded to single precision, in which trees compare
    level: Reals  # `(n,)` Mean over the devices of the logarithm of the time
    preference: Reals  # `(n, d)` What is left
    weights: Reals  # `(n,)` Weight of each kernel
    level_places: list[int]  # Columns from which each part is predicted
    preference_places: list[int]


def two_parts(grid: Grid) -> TwoParts:
    """Take the times of a grid apart; cells without one are imputed."""
    complete = impute(grid)
    seen = {name for part in (LEVEL, PREFERENCE) for name in choose_features(complete.profiles, part)}
    features = choose_features(complete.profiles, seen)
    rows = feature_matrix(features, complete.profiles).astype(np.float32).astype(np.float64)
    level = complete.log_time.mean(axis=1)
    return TwoParts(
        features,
        rows,
        level,
        complete.log_time - level[:, None],
        application_weights(complete.profiles),
        [place for place, name in enumerate(features) if name in LEVEL],
        [place for place, name in enumerate(features) if name in PREFERENCE],
    )


@dataclass(frozen=True, eq=False)
class FittedTrees(Stored, kind="trees"):
    """Trees on features of profiles, with an output for each device."""

    features: tuple[str, ...]
    trees: Annotated[Trees, Nested(flat=True)]  # Their sum is the logarithm of the time

    def check(self) -> None:
        """Refuse features that there are not, and trees on others."""
        _check_features(self.features)
        self.trees.check_width(len(self.features))

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        return self.trees.sum(feature_matrix(self.features, profiles))


@dataclass(frozen=True)
class ExtraTrees:
    """Two forests of extremely randomized trees: one for the level, one for the preference of devices.

    How they are grown is not tuned to a grid: half or twice each number changes the error on held-out
    applications by a few per cent, and less than the choice among so few applications would cost.
    """

    trees: int = 150  # Trees of each forest
    level_leaf: int = 2  # Kernels in a leaf, at least
    preference_leaf: int = 4
    name: str = "extra-trees"

    def fit(self, grid: Grid, seed: int) -> FittedTrees:
        """Fit it to a grid that may have cells without a time."""
        parts = two_parts(grid)
        seeds = np.random.default_rng(seed).integers(2**31, size=2).tolist()
        level = self._level(parts, seeds[0]).onto(np.ones((1, len(grid.devices))))
        return FittedTrees(parts.features, joined([level, self._preference(parts, seeds[1])]))

    def _level(self, parts: TwoParts, seed: int) -> Trees:
        from crosscast.predict.scikit import ExtraTreesRegressor

        places = parts.level_places
        forest = ExtraTreesRegressor(
            self.trees, min_samples_leaf=self.level_leaf, max_features=0.5, random_state=seed
        )
        forest.fit(parts.rows[:, places], parts.level, sample_weight=parts.weights)
        return trees_of_forest(forest).reading(places)

    def _preference(self, parts: TwoParts, seed: int) -> Trees:
        from crosscast.predict.scikit import ExtraTreesRegressor

        places = parts.preference_places
        forest = ExtraTreesRegressor(self.trees, min_samples_leaf=self.preference_leaf, random_state=seed)
        wanted = parts.preference if parts.preference.shape[1] > 1 else parts.preference[:, 0]
        forest.fit(parts.rows[:, places], wanted, sample_weight=parts.weights)
        return trees_of_forest(forest).reading(places)


_GROWING = frozenset(
    (
        "instructions",
        "steps_on_16",
        "steps_on_256",
        "steps_on_4096",
        "steps_on_65536",
        "instructions_per_item",
        "footprint",
        "accesses",
    )
)
"""Features with which the level may grow but not fall: more work or more data never takes less time."""


@dataclass(frozen=True)
class Boosting:
    """Boosted trees for the level, and for each main direction in which preferences of devices vary.

    The directions are the first principal components of the preferences of the training kernels.
    """

    rounds: int = 100  # Trees for each of these
    rate: float = 0.05  # How much of what is left each tree takes away
    leaves: int = 4  # Leaves of a tree, at most
    least: int = 5  # Kernels in a leaf, at least
    directions: int = 3  # How many directions, at most
    name: str = "boosting"

    def fit(self, grid: Grid, seed: int) -> FittedTrees:
        """Fit it to a grid that may have cells without a time."""
        parts = two_parts(grid)
        d = len(grid.devices)
        growing = [int(parts.features[place] in _GROWING) for place in parts.level_places]
        level = self._boosted(parts, parts.level_places, parts.level, seed, growing)
        mean = np.average(parts.preference, axis=0, weights=parts.weights)
        scores, axes = _principal(parts.preference - mean, min(self.directions, d - 1))
        preferences = [
            self._boosted(parts, parts.preference_places, score, seed).onto(axis[None, :])
            for score, axis in zip(scores.T, axes, strict=True)
        ]
        everywhere = level.onto(np.ones((1, d)))
        return FittedTrees(parts.features, joined([everywhere, constant(mean), *preferences]))

    def _boosted(
        self,
        parts: TwoParts,
        places: list[int],
        wanted: Reals,
        seed: int,
        growing: list[int] | None = None,
    ) -> Trees:
        from crosscast.predict.scikit import HistGradientBoostingRegressor, threadpool_limits

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
        # A grid has some hundred rows: threads would wait for each other longer than they work.
        with threadpool_limits(1):
            model.fit(parts.rows[:, places], wanted, sample_weight=parts.weights)
        return trees_of_boosting(model).reading(places)


def _principal(rows: Reals, count: int) -> tuple[Reals, Reals]:
    """First principal directions ``(count, d)`` of rows, behind the rows' scores on them, ``(n, count)``."""
    _, _, axes = np.linalg.svd(rows, full_matrices=False)
    first: Reals = axes[:count]
    return rows @ first.T, first


DEFAULT_MODEL = "combined"

BASELINES = ("device-mean", "nearest")
"""Names of the models that anything else must beat."""

_FEW_TREES = 60

MODELS: Mapping[str, Callable[[], Gaussian]] = {
    "device-mean": partial(Gaussian, DeviceMean()),
    "nearest": partial(Gaussian, Nearest()),
    "published-forest": partial(Gaussian, PublishedForest(), PublishedForest(trees=_FEW_TREES)),
    "extra-trees": partial(Gaussian, ExtraTrees()),
    "boosting": partial(Gaussian, Boosting()),
    "physical": partial(Gaussian, Physical()),
    "combined": partial(Gaussian, Combined()),
}
"""What makes each model, from the trivial to the strong."""


def model_named(name: str) -> Gaussian:
    """Make a model."""
    if name not in MODELS:
        raise InputError(f"model: expected one of {', '.join(MODELS)}, found {name!r}")
    return MODELS[name]()
