"""The paper's headline: a forest on some runs of each cell, tested on the other runs of the same cells."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.evaluation.cache_folder import cached_file, sources_digest
from crosscast.evaluation.processes import Progress, check_jobs, check_seed, done_pieces, told
from crosscast.evaluation.time import DEFAULT, grid_digest, split_named
from crosscast.evaluation.time_scores import Outcome, scores
from crosscast.predict.time.data import Grid
from crosscast.predict.time.johnston2018 import PublishedForest, Rows, device_codes, draw_trees
from crosscast.studies.johnston2018_forests import (
    MOST_TREES,
    USUAL,
    Amount,
    OutOfBag,
    Runs,
    Search,
    Surface,
    anneal,
    runs_of,
)
from crosscast.tables.dataset import Dataset
from crosscast.tables.size_order import size_order
from crosscast.tables.whole_file import make_folder
from crosscast.units import microseconds

TREES, TRIED, NODE_SIZE = 505, 30, 9
"""Parameters of the paper's final model (section III-C)."""

TRAINED_SHARE = 0.2
"""Share of the rows that the published script trains on."""

_UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3}


@dataclass(frozen=True)
class KnownCells:
    """Errors of one predictor on rows whose cells were in training too; relative errors are fractions."""

    # Mean over cells of abs(mean predicted / mean measured - 1), of logarithms of microseconds: the paper's
    # 1.2 %
    relative_log_cells: float
    relative_log_rows: float  # The same, row by row
    mae_log: float  # Mean over rows of abs(predicted - measured) of the logarithm
    r2: float  # Explained share of the variance of the logarithm, over rows
    # Mean and median over cells of abs(predicted / measured - 1), of geometric means of real times
    mape_cells: float
    median_ape_cells: float
    mape_rows: float  # The same of real times, row by row
    median_ape_rows: float


@dataclass(frozen=True)
class Headline:
    """The forest and the lookup table on a random split of rows, and what they predict."""

    trees: int  # Trees of the forest
    rows: int  # Runs in all, and those trained on
    trained_rows: int
    forest: KnownCells  # Errors of the forest, and of the mean of the cell's own runs, which knows no feature
    lookup: KnownCells
    # The forest's `relative_log_cells`, if times were in nanoseconds, microseconds or milliseconds before
    # their logarithm: the same forest, other percentages
    relative_log_by_unit: dict[str, float]
    # Mean logarithms of microseconds of each cell's test rows, of shape `(n, d)` as lists; not a number where
    # there are none
    predicted: list[list[float]]
    measured: list[list[float]]
    # By size of the problem, the mean over cells of abs(predicted - measured) in seconds, of geometric means
    misprediction_s: dict[str, float]
    top1: float  # Share of kernels whose device with the least predicted time is the fastest
    # Share of all pairs of devices that are predicted in the measured order, over all kernels
    pairs_in_order: float
    # The kernel whose relative errors of the logarithm, as in `KnownCells.relative_log_cells`, are the
    # greatest on average over its cells, and that average
    worst_kernel: str
    worst_error: float
    oob_error: float  # Mean square error and explained variance out of the bag, of the forest on all rows
    oob_r2: float


def headline(runs: Runs, trees: int, seed: int) -> Headline:
    """Fit to a random fifth of the rows, as the published script does, and test on the others."""
    order = np.random.default_rng(seed).permutation(len(runs))
    trained, tested = np.split(order, [max(1, round(TRAINED_SHARE * len(runs)))])
    train, test = runs.take(trained), runs.take(tested)
    forest = _grown(train.rows(), trees, seed).forest()[0]
    means = train.rows().means()
    lookup = np.where(np.isnan(means), train.log_us.mean(), means)
    cells = test.rows().means()
    shape = (len(runs.features), len(runs.grid.devices))
    predicted, measured = forest.reshape(shape), cells.reshape(shape)
    error = float(_grown(runs.rows(), trees, seed).errors()[0])
    top1, pairs_in_order = _order(predicted, measured)
    worst_kernel, worst_error = _worst(runs, predicted, measured)
    return Headline(
        trees=trees,
        rows=len(runs),
        trained_rows=len(train),
        forest=_errors(forest, test.cell, test.log_us),
        lookup=_errors(lookup, test.cell, test.log_us),
        relative_log_by_unit={
            unit: _relative(forest - np.log(scale), cells - np.log(scale)) for unit, scale in _UNITS.items()
        },
        predicted=np.where(np.isnan(measured), np.nan, predicted).tolist(),
        measured=measured.tolist(),
        misprediction_s=_mispredictions(runs, predicted, measured),
        top1=top1,
        pairs_in_order=pairs_in_order,
        worst_kernel=worst_kernel,
        worst_error=worst_error,
        oob_error=error,
        oob_r2=1 - error / float(np.var(runs.log_us)),
    )


def _grown(rows: Rows, trees: int, seed: int) -> OutOfBag:
    bag = OutOfBag(rows, (NODE_SIZE,))
    for drawn in draw_trees(rows, trees, tried=TRIED, seed=seed):
        bag.add(drawn)
    return bag


def _mispredictions(runs: Runs, predicted: Reals, measured: Reals) -> dict[str, float]:
    seconds = np.abs(np.exp(predicted) - np.exp(measured)) * microseconds(1.0)
    sizes = np.array(runs.grid.profiles.size)
    return {
        size: float(np.nanmean(seconds[sizes == size]))
        for size in sorted(set(sizes.tolist()), key=size_order)
    }


def _worst(runs: Runs, predicted: Reals, measured: Reals) -> tuple[str, float]:
    """The kernel with the greatest mean relative error of the logarithm, and that error."""
    errors = np.abs(predicted - measured) / np.abs(measured)
    kernels = np.array(runs.grid.profiles.kernel)
    means = {name: float(np.nanmean(errors[kernels == name])) for name in runs.kernel_names()}
    worst = max(means, key=lambda name: means[name])
    return worst, means[worst]


def _order(predicted: Reals, measured: Reals) -> tuple[float, float]:
    """Share of kernels whose fastest device is found, and of pairs of devices in the measured order."""
    whole = ~np.isnan(measured).any(axis=1)
    p, m = predicted[whole], measured[whole]
    if len(p) == 0 or p.shape[1] < 2:
        return float("nan"), float("nan")
    first, second = np.triu_indices(p.shape[1], 1)
    same = np.sign(p[:, first] - p[:, second]) == np.sign(m[:, first] - m[:, second])
    return float(np.mean(p.argmin(axis=1) == m.argmin(axis=1))), float(np.mean(same))


def _relative(predicted: Reals, measured: Reals) -> float:
    return float(np.nanmean(np.abs(predicted - measured) / np.abs(measured)))


def _errors(by_cell: Reals, cell: Integers, log_us: Reals) -> KnownCells:
    predicted = by_cell[cell]
    counts = np.bincount(cell, minlength=len(by_cell))
    known = counts > 0
    measured = np.bincount(cell, log_us, minlength=len(by_cell))[known] / counts[known]
    cells, rows = np.abs(np.expm1(by_cell[known] - measured)), np.abs(np.expm1(predicted - log_us))
    square = float(np.mean((predicted - log_us) ** 2))
    return KnownCells(
        relative_log_cells=_relative(by_cell[known], measured),
        relative_log_rows=_relative(predicted, log_us),
        mae_log=float(np.mean(np.abs(predicted - log_us))),
        r2=1 - square / float(np.var(log_us)),
        mape_cells=float(np.mean(cells)),
        median_ape_cells=float(np.median(cells)),
        mape_rows=float(np.mean(rows)),
        median_ape_rows=float(np.median(rows)),
    )


@dataclass(frozen=True)
class Honest:
    """Leave-application-out, one row a cell; relative errors are fractions."""

    trees: int  # Trees of each forest
    # Median of abs(predicted / measured - 1) over cells, and the mean over applications of theirs
    median_ape: float | None
    median_ape_by_application: float | None
    mape: float | None  # Mean of the same
    rmse_log: float | None  # Root of the mean square of ln(predicted / measured)
    # Measured time on the chosen device over that on the fastest, mean over kernels
    slowdown_mean: float | None
    # The same, if always the device is taken that is fastest on geometric mean over the other applications
    always_one_slowdown_mean: float | None
    top1: float | None  # Share of kernels whose chosen device is the fastest
    predicted: list[list[float]]  # Predicted logarithms of seconds of each cell, of shape `(n, d)` as lists


def honest(grid: Grid, trees: int, seed: int) -> Honest:
    """Hold each application out, and predict it."""
    predicted = np.full(grid.log_time.shape, np.nan)
    usual = np.full(grid.log_time.shape, np.nan)
    model = PublishedForest(trees=trees)
    for fold in split_named(DEFAULT).folds(grid):
        train = grid.take(fold.train_rows)
        fitted = model.fit(train, seed)
        predicted[fold.test_rows] = fitted.log_time(grid.profiles.take(fold.test_rows))
        usual[fold.test_rows] = np.nanmean(train.log_time, axis=0)
    found, one = (scores([_outcome(grid, centre)], level=0.9) for centre in (predicted, usual))
    return Honest(
        trees=trees,
        median_ape=found.median_ape,
        median_ape_by_application=found.median_ape_by_application,
        mape=found.mape,
        rmse_log=found.rmse_log,
        slowdown_mean=found.slowdown_mean,
        always_one_slowdown_mean=one.slowdown_mean,
        top1=found.top1,
        predicted=predicted.tolist(),
    )


def _outcome(grid: Grid, centre: Reals) -> Outcome:
    shape = grid.log_time.shape
    return Outcome(
        application=grid.profiles.application,
        measured=grid.log_time,
        centre=centre,
        low=centre,
        high=centre,
        scored=np.ones(shape, dtype=np.bool_),
        known=np.zeros(shape, dtype=np.bool_),
        rows=np.arange(len(grid.profiles)),
    )


SCRIPT_NODE_SIZE = 34
"""``min.node.size`` of the published script; the paper's text has 9."""


@dataclass(frozen=True)
class Learning:
    """Errors for one number of kernels, over all samples; of logarithms."""

    kernels: int  # Kernels that were drawn to train on
    samples: int  # Samples that were drawn, and trees of each forest
    trees: int
    mae_published: float  # As the published script does it: see `recycled`
    rmse_published: float
    known_share: float  # Share of its test rows whose cell is in training as well
    # Trained on all rows of the kernels drawn, tested on all rows of the others; `None` where there are no
    # others
    mae_corrected: float | None
    rmse_corrected: float | None


def counts_of(kernels: int, most: int) -> list[int]:
    """Numbers of kernels to take: all, or about so many from 1 to all, closer together where few."""
    if most >= kernels:
        return list(range(1, kernels + 1))
    # One less than all is the last that the corrected test can be done with.
    spread = 1 + (kernels - 1) * np.linspace(0, 1, max(2, most - 1)) ** 1.3
    return sorted({*np.round(spread).astype(int).tolist(), max(1, kernels - 1)})


def recycled(kernel: Integers, drawn: Integers) -> Flags:
    """Rows that ``kernel == drawn`` picks in R, where `drawn` is repeated along the rows.

    A row is picked if its kernel is the one that stands at its place, so of each kernel drawn one row in
    ``len(drawn)`` is trained on, and all its other rows are tested on.

    >>> recycled(np.array([0, 0, 0, 0, 1, 1, 2]), np.array([0, 1])).tolist()
    [True, False, True, False, False, True, False]
    """
    picked: Flags = np.resize(drawn, len(kernel)) == kernel
    return picked


def learn(runs: Runs, kernels: int, samples: int, trees: int, seed: int) -> Learning:
    """Draw so many kernels, train on them, and test in both ways."""
    names = runs.kernel_names()
    number = {name: place for place, name in enumerate(names)}
    kernel = np.array([number[name] for name in runs.grid.profiles.kernel])[runs.kernel]
    published, corrected, known = [], [], []
    for sample in range(samples):
        # Larger sets hold the smaller ones of the same sample, so that the curve is of their sizes alone.
        rng = np.random.default_rng([seed, sample])
        drawn = rng.permutation(len(names))[:kernels]
        picked = recycled(kernel, drawn)
        tree_seed = int(rng.integers(2**31))
        if picked.any():
            published.append(_learning_errors(runs, picked, SCRIPT_NODE_SIZE, trees, tree_seed))
            known.append(np.isin(runs.cell[~picked], runs.cell[picked]).mean())
        whole = np.isin(kernel, drawn)
        if not whole.all():
            corrected.append(_learning_errors(runs, whole, NODE_SIZE, trees, tree_seed))
    mae_published, rmse_published = _over(published)
    mae_corrected, rmse_corrected = _over(corrected) if corrected else (None, None)
    return Learning(
        kernels=kernels,
        samples=samples,
        trees=trees,
        mae_published=mae_published,
        rmse_published=rmse_published,
        known_share=float(np.mean(known)),
        mae_corrected=mae_corrected,
        rmse_corrected=rmse_corrected,
    )


def _learning_errors(runs: Runs, trained: Flags, node_size: int, trees: int, seed: int) -> Reals:
    """Errors of the rows that were not trained on."""
    rows = runs.take(trained).rows()
    predictions = np.zeros(len(rows.features))
    for drawn in draw_trees(rows, trees, tried=TRIED, seed=seed):
        predictions += drawn.predictions([node_size])[0] / trees
    test = runs.take(~trained)
    errors: Reals = predictions[test.cell] - test.log_us
    return errors


def _over(samples: list[Reals]) -> tuple[float, float]:
    """Mean absolute and root mean square over the rows of all samples."""
    errors = np.concatenate(samples)
    return float(np.mean(np.abs(errors))), float(np.sqrt(np.mean(errors**2)))


NODE_SIZES = tuple(range(1, 51))
START = (500, 32, 9)
"""Where the paper starts (section III-C), and its fixed node size."""

_RUNS_PER_CELL = 10
_FIGURE_1_TREES = 300
_FIGURE_2_TREES = (10, 30, 100, 300, 500, 1000, 3000, MOST_TREES)


@dataclass(frozen=True)
class Tuning:
    """Errors are mean squares of the logarithm, out of the bag."""

    rows: int  # Runs that were fitted to: ten a cell, as in the published scripts of these two figures
    # Trees that were grown for each number of tried features; what lies beyond goes on along 1 / trees
    grown: int
    # Figure 1: error for each node size from 1 on, with 300 trees and 30 features tried
    node_size_errors: list[float]
    tried: list[int]  # Figure 2: its axes
    trees: list[int]
    # Figure 2: error for each number of trees (row) and tried features (column), with node size 9
    heat: list[list[float]]
    search: Search  # Steps of the search over all three parameters


def tune(runs: Runs, grown: int, steps: int, seed: int) -> Tuning:
    """Take the errors, and search for the least."""
    sample = runs.sample(_RUNS_PER_CELL, seed)
    surface = Surface(sample.rows(), grown, NODE_SIZES, seed)
    tried = list(range(1, surface.features + 1))
    return Tuning(
        rows=len(sample),
        grown=grown,
        node_size_errors=[surface.error(_FIGURE_1_TREES, TRIED, size) for size in NODE_SIZES],
        tried=tried,
        trees=list(_FIGURE_2_TREES),
        heat=[[surface.error(trees, each, NODE_SIZE) for each in tried] for trees in _FIGURE_2_TREES],
        search=anneal(surface, START, steps, seed),
    )


@dataclass(frozen=True)
class Omitted:
    """One row of Table III."""

    kernel: str  # The kernel that was left out, at all sizes
    trees: int  # Tuned parameters
    tried: int
    # Mean square error of the logarithm out of the bag, of all other kernels; times 100 it is the paper's
    # 'prediction error (%)'
    oob_error: float
    r2: float  # Explained share of the variance, out of the bag as well
    # Of the kernel that was left out: median over its cells of abs(predicted / measured - 1), a fraction
    median_ape: float
    rmse_log: float  # The root of the mean square of ln(predicted / measured) over the same cells


def omit(runs: Runs, kernel: str, grown: int, steps: int, seed: int) -> Omitted:
    """Tune without a kernel, then predict it."""
    left_out = runs.of_kernels({kernel})
    rest, own = runs.take(~left_out), runs.take(left_out)
    surface = Surface(rest.rows(), grown, (NODE_SIZE,), seed)
    search = anneal(surface, START, steps, seed)
    best = search.best
    cells = np.unique(own.cell)
    error = surface.at(search.tried[best]).forest[0][cells] - own.rows().means()[cells]
    return Omitted(
        kernel=kernel,
        trees=search.trees[best],
        tried=search.tried[best],
        oob_error=search.error[best],
        r2=1 - search.error[best] / float(np.var(rest.log_us)),
        median_ape=float(np.median(np.abs(np.expm1(error)))),
        rmse_log=float(np.sqrt(np.mean(error**2))),
    )


_FEWEST_APPLICATIONS = 3


@dataclass(frozen=True)
class Energy:
    """The forest on energy; errors of logarithms, and relative ones as fractions."""

    applications: int  # How many there are; a row is a watched run
    devices: int
    rows: int
    trees: int  # Trees of the forest
    r2: float  # On a random split of rows, trained on a fifth: the paper's way
    mae_log: float
    mape: float
    lookup_mape: float  # The same of the mean of the cell's own rows, which knows no feature
    held_out_median_ape: float  # Leave-application-out, over cells
    held_out_rmse_log: float
    baseline_median_ape: float  # The same of each device's mean over the other applications
    baseline_rmse_log: float


@dataclass(frozen=True)
class _Watched:
    """Watched runs: their rows for a forest, application of each cell, and device of each cell."""

    rows: Rows
    application: np.ndarray
    device: np.ndarray


def energy(dataset: Dataset, runs: Runs, trees: int, seed: int) -> Energy | None:
    """Fit the forest to the energy of applications at a size; ``None`` where too few were watched.

    The features of an application are the means over its kernels at that size; where one kernel alone was
    watched, that kernel's.
    """
    watched = _watched(dataset, runs)
    if watched is None:
        return None
    rows = watched.rows
    order = np.random.default_rng(seed).permutation(len(rows.response))
    trained, tested = np.split(order, [max(1, round(TRAINED_SHARE * len(order)))])
    train, test = rows.take(trained), rows.take(tested)
    error = _predictions(train, trees, seed)[test.cell] - test.response
    known = train.means()
    lookup = np.where(np.isnan(known), train.response.mean(), known)[test.cell] - test.response
    held_out, baseline = _held_out(watched, trees, seed)
    return Energy(
        applications=len(np.unique(watched.application)),
        devices=len(np.unique(watched.device)),
        rows=len(rows.response),
        trees=trees,
        r2=1 - float(np.mean(error**2) / np.var(test.response)),
        mae_log=float(np.mean(np.abs(error))),
        mape=float(np.mean(np.abs(np.expm1(error)))),
        lookup_mape=float(np.mean(np.abs(np.expm1(lookup)))),
        held_out_median_ape=float(np.median(np.abs(np.expm1(held_out)))),
        held_out_rmse_log=float(np.sqrt(np.mean(held_out**2))),
        baseline_median_ape=float(np.median(np.abs(np.expm1(baseline)))),
        baseline_rmse_log=float(np.sqrt(np.mean(baseline**2))),
    )


def _watched(dataset: Dataset, runs: Runs) -> _Watched | None:
    profiles = runs.grid.profiles
    cells: dict[tuple[str, str, str], int] = {}
    features: list[Reals] = []
    numbers: list[int] = []
    joules: list[float] = []
    columns = ("application", "kernel", "size", "device", "energy_j", "runs")
    for application, kernel, size, device, energy_j, count in zip(
        *(dataset.energy.column(name).to_pylist() for name in columns), strict=True
    ):
        of_it = [
            place
            for place in range(len(profiles))
            if (profiles.application[place], profiles.size[place]) == (application, size)
            and kernel in (None, profiles.kernel[place])
        ]
        if not of_it or energy_j <= 0:
            continue
        cell = cells.setdefault((application, size, device), len(cells))
        if cell == len(features):
            features.append(runs.features[of_it].mean(axis=0))
        numbers.append(cell)
        joules.append(energy_j / count)
    names = [application for application, _, _ in cells]
    if len(set(names)) < _FEWEST_APPLICATIONS:
        return None
    keys = sorted({device for _, _, device in cells})
    places = np.array([keys.index(device) for _, _, device in cells])
    cells_of, response = np.array(numbers), np.log(joules)
    codes = device_codes(places[cells_of], response, len(keys))
    rows = Rows(np.column_stack([np.array(features), codes[places]]), cells_of, response)
    return _Watched(rows, np.array(names), places)


def _predictions(rows: Rows, trees: int, seed: int) -> Reals:
    """Mean prediction of the trees for each cell."""
    total = np.zeros(len(rows.features))
    for drawn in draw_trees(rows, trees, tried=TRIED, seed=seed):
        total += drawn.predictions([NODE_SIZE])[0]
    return total / trees


def _held_out(watched: _Watched, trees: int, seed: int) -> tuple[Reals, Reals]:
    """Errors of all cells, each predicted without its application: by the forest, by the device's mean."""
    means = watched.rows.means()
    forest, baseline = np.empty(len(means)), np.empty(len(means))
    for name in np.unique(watched.application):
        test: Flags = watched.application == name
        rows = watched.rows.take(~test[watched.rows.cell])
        forest[test] = _predictions(rows, trees, seed)[test]
        for cell in np.flatnonzero(test):
            others = means[~test & (watched.device == watched.device[cell])]
            baseline[cell] = others.mean() if len(others) else means[~test].mean()
    return forest - means, baseline - means


P = TypeVar("P")

_DAMAGE = (OSError, ValueError, KeyError, TypeError)
"""What a file that is no part, or half of one, leads to."""


@dataclass(frozen=True)
class Part(Generic[P]):
    """A part of the study."""

    name: str  # What it is, for people
    facts: tuple[object, ...]  # All that it depends on apart from the data; as JSON
    make: Callable[[], P]  # Makes it: a dataclass
    load: Callable[[dict[str, Any]], P]  # Makes it again of `dataclasses.asdict` of it


@dataclass(frozen=True)
class Keeper:
    """A folder with a JSON file for each part, named by a hash of all that the part depends on."""

    folder: Path | None  # Where; nothing is kept if `None`
    digest: str  # Hash of the data

    def __post_init__(self) -> None:
        """Make the folder."""
        if self.folder is None:
            return
        make_folder("cache", self.folder)

    def load(self, part: Part[P]) -> P | None:
        """The part as it was kept, or ``None``; a damaged one is as good as none."""
        if self.folder is None:
            return None
        try:
            return part.load(json.loads(self._path(part).read_text(encoding="utf-8")))
        except _DAMAGE:
            return None

    def save(self, part: Part[P], made: P) -> None:
        """Keep a part."""
        if self.folder is None:
            return
        path = self._path(part)
        with cached_file(path) as temporary:
            # asdict takes dataclasses only, which the type of a part cannot say.
            temporary.write_text(json.dumps(asdict(made)), encoding="utf-8")  # type: ignore[call-overload]

    def _path(self, part: Part[Any]) -> Path:
        assert self.folder is not None
        return self.folder / f"published-{self._key(part)}.json"

    def _key(self, part: Part[Any]) -> str:
        facts = json.dumps(
            [sources_digest(("predict", "evaluation", "studies")), self.digest, part.name, *part.facts]
        )
        return hashlib.sha256(facts.encode()).hexdigest()


@dataclass(frozen=True)
class PublishedStudy:
    """All tables and figures of the paper, on a dataset."""

    label: str  # Where the dataset is from
    runs: Runs  # Its runs, whose kernels and devices the arrays of the parts are about
    seed: int  # Start of all random numbers
    amount: Amount  # How much work was done
    headline: Headline  # The 1.2 %, and figures 4 to 6
    tuning: Tuning  # Figures 1 and 2
    omitted: tuple[Omitted, ...]  # Algorithm 1 and table III, a row a kernel, in the order of their names
    learning: tuple[Learning, ...]  # Algorithm 2 and figure 3, a row for each number of kernels
    # The same forest on applications that it has not seen; `None` where there is one application
    honest: Honest | None
    energy: Energy | None  # Energy in place of time; `None` where too few applications were watched

    def median_parameters(self) -> tuple[float, float]:
        """Medians over the omitted kernels of the tuned numbers of trees and of features tried."""
        return (
            statistics.median(row.trees for row in self.omitted),
            statistics.median(row.tried for row in self.omitted),
        )

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints: times in seconds, relative errors as fractions."""
        trees, tried = self.median_parameters()
        profiles = self.runs.grid.profiles
        found = {
            "dataset": self.label,
            "seed": self.seed,
            "amount": asdict(self.amount),
            "kernels": [
                {"application": application, "kernel": kernel, "size": size}
                for application, kernel, size in zip(
                    profiles.application, profiles.kernel, profiles.size, strict=True
                )
            ],
            "devices": [device.key for device in self.runs.grid.devices],
            "headline": asdict(self.headline),
            "tuning": asdict(self.tuning),
            "omitted": {"median_trees": trees, "median_tried": tried, "rows": [*map(asdict, self.omitted)]},
            "learning": [*map(asdict, self.learning)],
            "honest": None if self.honest is None else asdict(self.honest),
            "energy": None if self.energy is None else asdict(self.energy),
        }
        cleaned: dict[str, Any] = _without_nan(found)
        return cleaned


def _without_nan(value: Any) -> Any:
    """The same with null for what is not a number, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def run(
    dataset: Dataset,
    *,
    seed: int = 0,
    amount: Amount = USUAL,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> PublishedStudy:
    """Do the published study on a dataset."""
    check_seed(seed)
    check_jobs(jobs)
    runs = runs_of(dataset)
    parts = _parts(dataset, runs, amount, seed)
    keeper = Keeper(cache, runs.digest() + grid_digest(runs.grid))
    made = {name: found for name, part in parts.items() if (found := keeper.load(part)) is not None}
    left = [name for name in parts if name not in made]
    done = done_pieces({name: name for name in left}, _maker, (dataset, amount, seed), jobs, _WHAT)
    for name, found in told(done, len(left), str, progress):
        made[name] = found
        keeper.save(parts[name], found)
    return PublishedStudy(
        label=dataset.label,
        runs=runs,
        seed=seed,
        amount=amount,
        headline=made["headline"],
        tuning=made["tuning"],
        omitted=tuple(made[name] for name in parts if name.startswith("without ")),
        learning=tuple(made[name] for name in parts if name.startswith("trained on ")),
        honest=made["honest"].found,
        energy=made["energy"].found,
    )


@dataclass(frozen=True)
class _Perhaps:
    """A part that a dataset may be too small for."""

    found: Any


def _parts(dataset: Dataset, runs: Runs, amount: Amount, seed: int) -> dict[str, Part[Any]]:
    """All parts, the longest first, by name."""
    watched = json.dumps(dataset.energy.to_pylist(), sort_keys=True, default=str)
    energy_digest = hashlib.sha256(watched.encode()).hexdigest()
    parts: list[Part[Any]] = [
        Part(
            "tuning",
            (amount.surface_trees, amount.steps, seed),
            lambda: tune(runs, amount.surface_trees, amount.steps, seed),
            lambda found: Tuning(**{**found, "search": Search(**found["search"])}),
        ),
        Part(
            "headline",
            (amount.forest_trees, seed),
            lambda: headline(runs, amount.forest_trees, seed),
            lambda found: Headline(
                **{**found, "forest": KnownCells(**found["forest"]), "lookup": KnownCells(**found["lookup"])}
            ),
        ),
        Part(
            "honest",
            (amount.honest_trees, seed),
            lambda: _Perhaps(_honest(runs, amount, seed)),
            lambda found: _Perhaps(found["found"] and Honest(**found["found"])),
        ),
        Part(
            "energy",
            (energy_digest, amount.forest_trees, seed),
            lambda: _Perhaps(energy(dataset, runs, amount.forest_trees, seed)),
            lambda found: _Perhaps(found["found"] and Energy(**found["found"])),
        ),
    ]
    names = runs.kernel_names()
    parts += [_omitted(runs, name, amount, seed) for name in names]
    parts += [_learning(runs, count, amount, seed) for count in counts_of(len(names), amount.sample_counts)]
    return {part.name: part for part in parts}


def _honest(runs: Runs, amount: Amount, seed: int) -> Honest | None:
    if len(set(runs.grid.profiles.application)) < 2:
        return None
    return honest(runs.grid, amount.honest_trees, seed)


def _omitted(runs: Runs, kernel: str, amount: Amount, seed: int) -> Part[Omitted]:
    trees, steps = amount.omitted_trees, amount.omitted_steps
    return Part(
        f"without {kernel}",
        (trees, steps, seed),
        lambda: omit(runs, kernel, trees, steps, seed),
        lambda found: Omitted(**found),
    )


def _learning(runs: Runs, count: int, amount: Amount, seed: int) -> Part[Learning]:
    samples, trees = amount.samples, amount.sample_trees
    return Part(
        f"trained on {count} kernels",
        (samples, trees, seed),
        lambda: learn(runs, count, samples, trees, seed),
        lambda found: Learning(**found),
    )


_WHAT = "made a part of the study"


def _maker(dataset: Dataset, amount: Amount, seed: int) -> Callable[[str], Any]:
    """What makes a part by its name."""
    parts = _parts(dataset, runs_of(dataset), amount, seed)
    return lambda name: parts[name].make()
