"""All tables and figures of Johnston, Falzon and Milthorpe (2018), and the same forest held out honestly.

The headline of the paper is a forest on some runs of each cell, tested on other runs of the same cells.
"""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Any, Generic, NamedTuple, TypeVar, Unpack

import msgspec
import numpy as np

from crosscast.arrays import Arrays, Flags, Integers, Reals
from crosscast.data.dataset import Dataset
from crosscast.data.schema import size_order
from crosscast.evaluation.loop import RunArguments, check_seed, run_tasks
from crosscast.evaluation.time.scores import Scores, TimeOutcome, pair_order, scores
from crosscast.prediction.time.johnston2018 import PublishedForest, Rows
from crosscast.studies.johnston2018_forests import (
    MOST_TREES,
    NODE_SIZE,
    TRIED,
    ForestSearch,
    KernelRuns,
    Surface,
    anneal,
    cell_predictions,
    grow,
    runs_of,
)
from crosscast.units import microseconds

# What the paper says, as far as it gives numbers
RELATIVE_LOG = 0.012  # 'Differing from the measured run-times by an average of only 1.2 %' (abstract)
MAE_LOG = 0.11  # 'The final mean absolute error is low, at ~0.11' (section IV)
R2 = 0.99  # 'Explained variance is very high at 0.99' (section III-C)
MISPREDICTION_S = (8e-6, 1.0)  # '8 µs to 1 secs according to problem size' (section V)
# The kernel predicted worst at tiny and small, and its mean misprediction (section V)
WORST_KERNEL, WORST_ERROR = "init_alpha_dev", 0.073
# Mean absolute errors behind figure 3, as the authors' repository has them (`rmse_vs_kernel_count`)
FIGURE_3_MAE = {1: 1.49, 5: 0.96, 10: 0.78, 20: 0.60, 30: 0.47, 37: 0.39}
TRAINED_SHARE = 0.2  # Share of the rows that the published script trains on
SCRIPT_NODE_SIZE = 34  # `min.node.size` of the published script of figure 3; the paper's text has 9


class PublishedKernel(NamedTuple):
    """A row of table III: what was tuned without a kernel."""

    trees: int
    tried: int
    error_percent: float  # 'Prediction error (%)'


@cache
def table_3() -> Mapping[str, PublishedKernel]:
    """Table III by kernel."""
    text = files("crosscast.studies").joinpath("johnston2018_table_3.csv").read_text(encoding="utf-8")
    rows = csv.reader(text.splitlines()[1:])
    return {
        kernel: PublishedKernel(int(trees), int(tried), float(error)) for kernel, trees, tried, error in rows
    }


def published_kernel(kernel: str) -> PublishedKernel | None:
    """Row of table III for a kernel, which may be spelled as in the data."""
    return table_3().get(kernel) or table_3().get(kernel.removesuffix("_dev"))


NODE_SIZES = tuple(range(1, 51))  # Those of figure 1

_UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3}
_RUNS_PER_CELL = 10
_FIGURE_1_TREES = 300
_FIGURE_2_TREES = (10, 30, 100, 300, 500, 1000, 3000, MOST_TREES)
_SOURCES = ("prediction", "evaluation", "studies")


@dataclass(frozen=True)
class Preset:
    """How much work is done: numbers of trees, samples and steps."""

    forest_trees: int  # Trees of the final forest, and of the one for energy
    honest_trees: int  # Trees of each forest that leaves an application out
    surface_trees: int  # Trees grown for each number of tried features, in the search over all parameters
    steps: int  # Steps of that search
    omitted_trees: int  # The same of the search with one kernel left out
    omitted_steps: int
    samples: int  # Samples for each number of kernels in Algorithm 2
    sample_trees: int  # Trees of each of its forests
    sample_counts: int  # How many numbers of kernels it takes, of all


PRESETS = {
    "quick": Preset(50, 10, 10, 20, 5, 5, 2, 5, 6),
    "default": Preset(505, 60, 60, 100, 16, 30, 12, 12, 13),
    "paper": Preset(505, 505, 505, 500, 200, 100, 500, 505, 10_000),
}
"""On the published data: ten seconds, to see that all of it works; two minutes; hours, as in the paper."""


@dataclass(frozen=True)
class KnownCells:
    """Errors of one predictor on rows whose cells were in training too; relative errors are fractions."""

    # Mean of abs(predicted / measured - 1) of logarithms of microseconds: the paper's 1.2 %; and row by row
    relative_log_cells: float
    relative_log_rows: float
    mae_log: float  # Mean over rows of abs(predicted - measured) of the logarithm
    r2: float  # Explained share of the variance of the logarithm, over rows
    # Mean and median of abs(predicted / measured - 1), over cells (of geometric means) and row by row
    mape_cells: float
    median_ape_cells: float
    mape_rows: float
    median_ape_rows: float


def known_cells(by_cell: Reals, test: Rows) -> KnownCells:
    """Errors of a prediction for each cell on rows."""
    measured = test.means()
    cells, rows = (by_cell - measured)[np.isfinite(measured)], by_cell[test.cell] - test.response
    return KnownCells(
        relative_log_cells=_relative(by_cell, measured),
        relative_log_rows=_relative(by_cell[test.cell], test.response),
        mae_log=float(np.mean(np.abs(rows))),
        r2=1 - float(np.mean(rows**2) / np.var(test.response)),
        mape_cells=float(np.mean(_ape(cells))),
        median_ape_cells=float(np.median(_ape(cells))),
        mape_rows=float(np.mean(_ape(rows))),
        median_ape_rows=float(np.median(_ape(rows))),
    )


def _ape(log_error: Reals) -> Reals:
    """Relative error of a time whose logarithm is off by so much."""
    return np.abs(np.expm1(log_error))


def _rmse(error: Reals) -> float:
    return float(np.sqrt(np.mean(error**2)))


def _relative(predicted: Reals, measured: Reals) -> float:
    return float(np.nanmean(np.abs(predicted - measured) / np.abs(measured)))


def _split(count: int, seed: int) -> tuple[Integers, Integers]:
    """A random fifth of the rows, and the others, as in the published script."""
    order = np.random.default_rng(seed).permutation(count)
    trained, tested = np.split(order, [max(1, round(TRAINED_SHARE * count))])
    return trained, tested


def _lookup(train: Rows, test: Rows) -> KnownCells:
    """Errors of the mean of each cell's own rows, which knows no feature."""
    means = train.means()
    return known_cells(np.where(np.isnan(means), train.response.mean(), means), test)


@dataclass(frozen=True)
class Headline:
    """The forest and the lookup table on a random split of rows, and what they predict."""

    trees: int  # Trees of the forest
    rows: int  # Runs in all, and those trained on
    trained_rows: int
    forest: KnownCells
    lookup: KnownCells  # Of the mean of the cell's own runs
    relative_log_by_unit: dict[str, float]  # The forest's `relative_log_cells`, of times in "ns", "us", "ms"
    # Mean logarithms of microseconds of each cell's test rows, of shape `(n, d)`; NaN where there are none
    predicted: list[list[float]]
    measured: list[list[float]]
    misprediction_s: dict[str, float]  # By size, the mean over cells of abs(predicted - measured), seconds
    top1: float  # Share of kernels whose device with the least predicted time is the fastest
    pairs_in_order: float  # Share of pairs of devices that are predicted in the measured order, all kernels
    worst_kernel: str  # With the greatest mean relative error of the logarithm over its cells
    worst_error: float  # That mean
    oob_error: float  # Mean square error and explained variance out of the bag, of the forest on all rows
    oob_r2: float


def headline(runs: KernelRuns, *, trees: int, seed: int) -> Headline:
    """Fit to a random fifth of the rows, as the published script does, and test on the others."""
    trained, tested = _split(len(runs), seed)
    train, test, rows = runs.take(trained).rows(), runs.take(tested).rows(), runs.rows()
    forest, cells = cell_predictions(train, trees, seed), test.means()
    oob_error = grow(rows, trees, TRIED, (NODE_SIZE,), seed).error(trees, 0)
    predicted, measured = (each.reshape(len(runs.features), -1) for each in (forest, cells))
    seconds = np.abs(np.exp(predicted) - np.exp(measured)) * microseconds(1.0)
    sizes, kernels = np.array(runs.grid.profiles.size), np.array(runs.grid.profiles.kernel)
    relative = np.abs(predicted - measured) / np.abs(measured)
    by_kernel = {name: float(np.nanmean(relative[kernels == name])) for name in runs.kernel_names}
    worst = max(by_kernel, key=by_kernel.__getitem__)
    top1, pairs_in_order = _order(predicted, measured)
    return Headline(
        trees=trees,
        rows=len(runs),
        trained_rows=len(trained),
        forest=known_cells(forest, test),
        lookup=_lookup(train, test),
        relative_log_by_unit={
            unit: _relative(forest - np.log(scale), cells - np.log(scale)) for unit, scale in _UNITS.items()
        },
        predicted=np.where(np.isnan(measured), np.nan, predicted).tolist(),
        measured=measured.tolist(),
        misprediction_s={
            size: float(np.nanmean(seconds[sizes == size]))
            for size in sorted(set(sizes.tolist()), key=size_order)
        },
        top1=top1,
        pairs_in_order=pairs_in_order,
        worst_kernel=worst,
        worst_error=by_kernel[worst],
        oob_error=oob_error,
        oob_r2=1 - oob_error / float(np.var(runs.log_us)),
    )


def _order(predicted: Reals, measured: Reals) -> tuple[float, float]:
    """Share of kernels whose fastest device is found, and of pairs of devices in the measured order."""
    whole = ~np.isnan(measured).any(axis=1)
    p, m = predicted[whole], measured[whole]
    if len(p) == 0 or p.shape[1] < 2:
        return float("nan"), float("nan")
    same = pair_order(p) == pair_order(m)
    return float(np.mean(p.argmin(axis=1) == m.argmin(axis=1))), float(np.mean(same))


@dataclass(frozen=True)
class HeldOutRows:
    """Leave-application-out, one row a cell; relative errors are fractions."""

    trees: int  # Trees of each forest
    # Median of abs(predicted / measured - 1) over cells, and the mean over applications of theirs
    median_ape: float | None
    median_ape_by_application: float | None
    mape: float | None  # Mean of the same
    rmse_log: float | None  # Root of the mean square of ln(predicted / measured)
    slowdown_mean: float | None  # Measured time on the chosen device over that on the fastest, over kernels
    always_one_slowdown_mean: float | None  # Of the device that is fastest on the other applications
    top1: float | None  # Share of kernels whose chosen device is the fastest
    predicted: list[list[float]]  # Predicted logarithms of seconds of each cell, of shape `(n, d)` as lists


def leave_application_out(runs: KernelRuns, *, trees: int, seed: int) -> HeldOutRows | None:
    """Hold each application out, and predict it; ``None`` where there is one alone."""
    grid = runs.grid
    application = np.array(grid.profiles.application)
    names = np.unique(application)
    if len(names) < 2:
        return None
    predicted, usual = np.full((2, *grid.log_time.shape), np.nan)
    for name in names:
        test: Flags = application == name
        train = grid.take(~test)
        fitted = PublishedForest(trees=trees).fit(train, seed)
        predicted[test] = fitted.log_time(grid.profiles.take(test))
        usual[test] = np.nanmean(train.log_time, axis=0)
    everything, rows = np.ones(grid.log_time.shape, dtype=np.bool_), np.arange(len(application))

    def scored(centre: Reals) -> Scores:
        times = (grid.log_time, centre, centre, centre)
        outcome = TimeOutcome(grid.profiles.application, *times, everything, ~everything, rows)
        return scores([outcome], level=0.9)

    found = scored(predicted)
    of_scores = ("median_ape", "median_ape_by_application", "mape", "rmse_log", "slowdown_mean", "top1")
    return HeldOutRows(
        trees=trees,
        always_one_slowdown_mean=scored(usual).slowdown_mean,
        predicted=predicted.tolist(),
        **{name: getattr(found, name) for name in of_scores},
    )


@dataclass(frozen=True)
class LearningPoint:
    """Errors of logarithms for one number of kernels to learn from, over all samples."""

    kernels: int  # Kernels that were drawn to train on
    samples: int  # Samples that were drawn, and trees of each forest
    trees: int
    mae_published: float  # As the published script does it: see `recycled`
    rmse_published: float
    known_share: float  # Share of its test rows whose cell is in training as well
    # Trained on all rows of the kernels drawn, tested on all rows of the others, if there are any
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
    return np.asarray(np.resize(drawn, len(kernel)) == kernel)


def learn(runs: KernelRuns, *, kernels: int, samples: int, trees: int, seed: int) -> LearningPoint:
    """Draw so many kernels, train on them, and test in both ways (Algorithm 2)."""
    kernel = runs.name_number
    published, corrected, known = [], [], []
    for sample in range(samples):
        # Larger sets hold the smaller ones of the same sample, so that the curve is of their sizes alone.
        rng = np.random.default_rng([seed, sample])
        drawn = rng.permutation(len(runs.kernel_names))[:kernels]
        picked, whole = recycled(kernel, drawn), np.isin(kernel, drawn)
        tree_seed = int(rng.integers(2**31))
        if picked.any():
            published.append(_test_errors(runs, picked, trees, tree_seed, SCRIPT_NODE_SIZE))
            known.append(np.isin(runs.cell[~picked], runs.cell[picked]).mean())
        if not whole.all():
            corrected.append(_test_errors(runs, whole, trees, tree_seed, NODE_SIZE))
    of_new = _over(corrected) if corrected else (None, None)
    return LearningPoint(kernels, samples, trees, *_over(published), float(np.mean(known)), *of_new)


def _test_errors(runs: KernelRuns, trained: Flags, trees: int, seed: int, node_size: int) -> Reals:
    """Errors of the rows that were not trained on."""
    predictions = cell_predictions(runs.take(trained).rows(), trees, seed, node_size)
    return predictions[runs.cell[~trained]] - runs.log_us[~trained]


def _over(samples: Sequence[Reals]) -> tuple[float, float]:
    """Mean absolute and root mean square over the rows of all samples."""
    errors = np.concatenate(samples)
    return float(np.mean(np.abs(errors))), _rmse(errors)


@dataclass(frozen=True)
class Tuning:
    """Figures 1 and 2; errors are mean squares of the logarithm, out of the bag."""

    rows: int  # Runs that were fitted to: ten a cell, as in the published scripts of these two figures
    grown: int  # Trees for each number of tried features; what lies beyond goes on along 1 / trees
    node_size_errors: list[float]  # Figure 1: of each node size from 1 on, with 300 trees, 30 features tried
    tried: list[int]  # Figure 2: its axes
    trees: list[int]
    heat: list[list[float]]  # Figure 2: error by trees (row) and tried features (column), node size 9
    search: ForestSearch  # Steps of the search over all three parameters


def tune(runs: KernelRuns, *, grown: int, steps: int, seed: int) -> Tuning:
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
        search=anneal(surface, steps, seed),
    )


@dataclass(frozen=True)
class LeftOutKernel:
    """One row of table III."""

    kernel: str  # The kernel that was left out, at all sizes
    trees: int  # Tuned parameters
    tried: int
    oob_error: float  # Of all other kernels; times 100 it is the paper's 'prediction error (%)'
    r2: float  # Explained share of the variance, out of the bag as well
    median_ape: float  # Of the cells of the kernel itself: abs(predicted / measured - 1), a fraction
    rmse_log: float  # Root of the mean square of their ln(predicted / measured)


def leave_kernel_out(runs: KernelRuns, *, kernel: str, grown: int, steps: int, seed: int) -> LeftOutKernel:
    """Tune without a kernel, then predict it (Algorithm 1)."""
    left_out: Flags = runs.name_number == runs.kernel_names.index(kernel)
    rest, own = runs.take(~left_out), runs.take(left_out)
    surface = Surface(rest.rows(), grown, (NODE_SIZE,), seed)
    search = anneal(surface, steps, seed)
    best = search.best
    cells = np.unique(own.cell)
    error = surface.at(search.tried[best]).forest[0][cells] - own.rows().means()[cells]
    oob_error, r2 = search.error[best], 1 - search.error[best] / float(np.var(rest.log_us))
    own_errors = float(np.median(_ape(error))), _rmse(error)
    return LeftOutKernel(kernel, search.trees[best], search.tried[best], oob_error, r2, *own_errors)


@dataclass(frozen=True)
class EnergyErrors:
    """The forest on energy; errors of logarithms, and relative ones as fractions."""

    applications: int
    devices: int
    rows: int  # Watched runs
    trees: int  # Trees of the forest
    r2: float  # On a random split of rows, trained on a fifth: the paper's way
    mae_log: float
    mape: float
    lookup_mape: float  # The same of the mean of the cell's own rows, which knows no feature
    held_out_median_ape: float  # Leave-application-out, over cells
    held_out_rmse_log: float
    baseline_median_ape: float  # The same of each device's mean over the other applications
    baseline_rmse_log: float


def energy(runs: KernelRuns, *, trees: int, seed: int) -> EnergyErrors | None:
    """Fit the forest to the energy of applications at a size; ``None`` where too few were watched."""
    watched = runs.energy
    if watched is None:
        return None
    rows, application, device = watched.rows, watched.application, watched.device
    trained, tested = _split(len(rows.response), seed)
    train, test = rows.take(trained), rows.take(tested)
    forest = known_cells(cell_predictions(train, trees, seed), test)
    means = rows.means()
    predicted, baseline = np.empty((2, len(means)))
    for name in np.unique(application):
        own: Flags = application == name
        predicted[own] = cell_predictions(rows.take(~own[rows.cell]), trees, seed)[own]
        for cell in np.flatnonzero(own):
            others = means[~own & (device == device[cell])]
            baseline[cell] = others.mean() if len(others) else means[~own].mean()
    return EnergyErrors(
        applications=len(np.unique(application)),
        devices=len(np.unique(device)),
        rows=len(rows.response),
        trees=trees,
        r2=forest.r2,
        mae_log=forest.mae_log,
        mape=forest.mape_rows,
        lookup_mape=_lookup(train, test).mape_rows,
        held_out_median_ape=float(np.median(_ape(predicted - means))),
        held_out_rmse_log=_rmse(predicted - means),
        baseline_median_ape=float(np.median(_ape(baseline - means))),
        baseline_rmse_log=_rmse(baseline - means),
    )


@dataclass(frozen=True)
class Johnston2018:
    """All tables and figures of the paper, on a dataset."""

    label: str  # Where the dataset is from
    runs: KernelRuns  # Its runs, whose kernels and devices the arrays of the parts are about
    seed: int  # Start of all random numbers
    preset: Preset  # How much work was done
    headline: Headline  # The 1.2 %, and figures 4 to 6
    tuning: Tuning  # Figures 1 and 2
    omitted: tuple[LeftOutKernel, ...]  # Algorithm 1 and table III, in the order of the kernels' names
    learning: tuple[LearningPoint, ...]  # Algorithm 2 and figure 3, for each number of kernels
    honest: (
        HeldOutRows | None
    )  # The same forest on unseen applications; `None` where there is one application
    energy: EnergyErrors | None  # Energy in place of time; `None` where too few applications were watched

    def median_parameters(self) -> tuple[float, float]:
        """Medians over the omitted kernels of the tuned numbers of trees and of features tried."""
        trees, tried = ([getattr(row, name) for row in self.omitted] for name in ("trees", "tried"))
        return statistics.median(trees), statistics.median(tried)

    def to_dict(self) -> dict[str, object]:
        """The object that ``--json`` prints: times in seconds, relative errors as fractions."""
        trees, tried = self.median_parameters()
        names = ("application", "kernel", "size")
        whole = {
            "dataset": self.label,
            "seed": self.seed,
            "amount": self.preset,
            "kernels": [dict(zip(names, each, strict=True)) for each in self.runs.grid.profiles.names],
            "devices": [device.key for device in self.runs.grid.devices],
            **{name: getattr(self, name) for name in ("headline", "tuning")},
            "omitted": {"median_trees": trees, "median_tried": tried, "rows": self.omitted},
            **{name: getattr(self, name) for name in ("learning", "honest", "energy")},
        }
        # What is not a number becomes null here, as JSON has none.
        return dict(json.loads(msgspec.json.encode(whole)))


ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class _Part(Generic[ResultT]):
    """A part of the study as a task; its result is kept as JSON."""

    label: str
    result: object  # Type of the result, which may be a union
    make: partial[ResultT]  # Makes it of the runs; its keywords are all that it depends on besides

    @property
    def kind(self) -> str:
        return self.make.func.__name__

    @property
    def cache_keys(self) -> Sequence[object]:
        return [[self.make.func.__name__, self.make.keywords]]

    def run(self, data: KernelRuns, queries: Sequence[int]) -> list[Arrays]:
        return [{"json": np.array(json.dumps(msgspec.to_builtins(self.make(data))))}]

    def is_valid(self, data: KernelRuns, query: int, arrays: Arrays) -> bool:
        try:
            self.read(arrays)
        except (KeyError, ValueError, msgspec.ValidationError):
            return False
        return True

    def read(self, arrays: Arrays) -> ResultT:
        result: ResultT = msgspec.convert(json.loads(str(arrays["json"])), self.result)
        return result


def _parts(runs: KernelRuns, preset: Preset, seed: int) -> list[_Part[Any]]:
    """All parts, the longest first."""
    tuning = partial(tune, grown=preset.surface_trees, steps=preset.steps, seed=seed)
    honest = partial(leave_application_out, trees=preset.honest_trees, seed=seed)
    return [
        _Part("tuning", Tuning, tuning),
        _Part("headline", Headline, partial(headline, trees=preset.forest_trees, seed=seed)),
        _Part("honest", HeldOutRows | None, honest),
        _Part("energy", EnergyErrors | None, partial(energy, trees=preset.forest_trees, seed=seed)),
        *(
            _Part(
                f"without {kernel}",
                LeftOutKernel,
                partial(
                    leave_kernel_out,
                    kernel=kernel,
                    grown=preset.omitted_trees,
                    steps=preset.omitted_steps,
                    seed=seed,
                ),
            )
            for kernel in runs.kernel_names
        ),
        *(
            _Part(
                f"trained on {count} kernels",
                LearningPoint,
                partial(learn, kernels=count, samples=preset.samples, trees=preset.sample_trees, seed=seed),
            )
            for count in counts_of(len(runs.kernel_names), preset.sample_counts)
        ),
    ]


def reproduce(
    dataset: Dataset, *, preset: Preset = PRESETS["default"], seed: int = 0, **run: Unpack[RunArguments]
) -> Johnston2018:
    """Make all tables and figures of the paper; `run` is as `run_tasks` takes it."""
    check_seed(seed)
    runs = runs_of(dataset)
    parts = _parts(runs, preset, seed)
    answers = run_tasks(parts, runs, sources=_SOURCES, **run)
    tuning, head, honest, joules, *others = (
        part.read(arrays) for part, [arrays] in zip(parts, answers, strict=True)
    )
    kernels = len(runs.kernel_names)
    left_out, learned = tuple(others[:kernels]), tuple(others[kernels:])
    return Johnston2018(dataset.label, runs, seed, preset, head, tuning, left_out, learned, honest, joules)
