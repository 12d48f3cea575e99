"""All tables and figures of Johnston, Falzon and Milthorpe (2018), and the forest on held-out applications.

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
from crosscast.prediction.time.models import PublishedForest
from crosscast.prediction.trees import Rows
from crosscast.studies.johnston2018_forests import (
    NODE_SIZE,
    TRIED,
    KernelRuns,
    LeftOutKernel,
    Tuning,
    cell_predictions,
    grow,
    leave_kernel_out,
    runs_of,
    tune,
)
from crosscast.units import microseconds

# Numbers given in the paper
RELATIVE_LOG = 0.012  # 'Differing from the measured run-times by an average of only 1.2 %' (abstract)
MAE_LOG = 0.11  # 'The final mean absolute error is low, at ~0.11' (section IV)
R2 = 0.99  # 'Explained variance is very high at 0.99' (section III-C)
MISPREDICTION_S = (8e-6, 1.0)  # '8 µs to 1 secs according to problem size' (section V)
# The kernel predicted worst at tiny and small, and its mean misprediction (section V)
WORST_KERNEL, WORST_ERROR = "init_alpha_dev", 0.073
# Mean absolute errors of figure 3, from the authors' repository (`rmse_vs_kernel_count`)
FIGURE_3_MAE = {1: 1.49, 5: 0.96, 10: 0.78, 20: 0.60, 30: 0.47, 37: 0.39}
TRAINED_SHARE = 0.2  # Share of training rows in the published script
SCRIPT_NODE_SIZE = 34  # `min.node.size` of the published script of figure 3; the paper's text has 9


class PublishedKernel(NamedTuple):
    """A row of table III: the parameters tuned without a kernel."""

    trees: int
    tried: int
    error_percent: float  # 'Prediction error (%)'


@cache
def table_3() -> Mapping[str, PublishedKernel]:
    """Read table III by kernel."""
    text = files("crosscast.studies").joinpath("johnston2018_table_3.csv").read_text(encoding="utf-8")
    rows = csv.reader(text.splitlines()[1:])
    return {
        kernel: PublishedKernel(int(trees), int(tried), float(error)) for kernel, trees, tried, error in rows
    }


def published_kernel(kernel: str) -> PublishedKernel | None:
    """Find the row of table III for a kernel, also by its name in the data."""
    return table_3().get(kernel) or table_3().get(kernel.removesuffix("_dev"))


_UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3}
_SOURCES = ("prediction", "evaluation", "studies")


@dataclass(frozen=True)
class Preset:
    """Amount of work: numbers of trees, samples and steps."""

    forest_trees: int  # Trees of the final forest
    honest_trees: int  # Trees of each forest that leaves an application out
    surface_trees: int  # Trees grown for each number of tried features, in the search over all parameters
    steps: int  # Steps of that search
    omitted_trees: int  # Trees and steps of the search with one kernel left out
    omitted_steps: int
    samples: int  # Samples for each number of kernels in Algorithm 2
    sample_trees: int  # Trees of each of its forests
    sample_counts: int  # Number of training set sizes in Algorithm 2


PRESETS = {
    "quick": Preset(50, 10, 10, 20, 5, 5, 2, 5, 6),
    "default": Preset(505, 60, 60, 100, 16, 30, 12, 12, 13),
    "paper": Preset(505, 505, 505, 500, 200, 100, 500, 505, 10_000),
}
"""Presets; on the published data they take ten seconds, two minutes, and hours as in the paper."""


@dataclass(frozen=True)
class KnownCells:
    """Errors of a predictor on rows whose cells were in training, too; relative errors are fractions."""

    # Mean of abs(predicted / measured - 1) of logarithms of microseconds, over cells (the paper's 1.2 %) and
    # over rows
    relative_log_cells: float
    relative_log_rows: float
    mae_log: float  # Mean over rows of abs(predicted - measured) of the logarithm
    r2: float  # Explained share of the variance of the logarithm, over rows
    # Mean and median of abs(predicted / measured - 1), over cells (of geometric means) and over rows
    mape_cells: float
    median_ape_cells: float
    mape_rows: float
    median_ape_rows: float


def known_cells(by_cell: Reals, test: Rows) -> KnownCells:
    """Compute the errors of predictions by cell on test rows."""
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
    """Relative errors of times from errors of their logarithms."""
    return np.abs(np.expm1(log_error))


def _relative(predicted: Reals, measured: Reals) -> float:
    return float(np.nanmean(np.abs(predicted - measured) / np.abs(measured)))


def _split(count: int, seed: int) -> tuple[Integers, Integers]:
    """Draw a random fifth of the rows for training, as in the published script, and return the rest, too."""
    order = np.random.default_rng(seed).permutation(count)
    trained, tested = np.split(order, [max(1, round(TRAINED_SHARE * count))])
    return trained, tested


def _lookup(train: Rows, test: Rows) -> KnownCells:
    """Errors of predicting the mean of each cell's training rows, without features."""
    means = train.means()
    return known_cells(np.where(np.isnan(means), train.response.mean(), means), test)


@dataclass(frozen=True)
class Headline:
    """Errors and predictions of the forest and the lookup table on a random split of rows."""

    trees: int  # Trees of the forest
    rows: int  # Number of runs, and of training runs
    trained_rows: int
    forest: KnownCells
    lookup: KnownCells  # Mean of the cell's training runs
    relative_log_by_unit: dict[str, float]  # The forest's `relative_log_cells`, of times in "ns", "us", "ms"
    # Mean logarithms of microseconds of each cell's test rows, of shape `(n, d)`; NaN where there are none
    predicted: list[list[float]]
    measured: list[list[float]]
    misprediction_s: dict[str, float]  # By size, the mean over cells of abs(predicted - measured), seconds
    top1: float  # Share of kernels whose device with the least predicted time is the fastest
    pairs_in_order: float  # Share of pairs of devices predicted in the measured order, over all kernels
    worst_kernel: str  # With the greatest mean relative error of the logarithm over its cells
    worst_error: float  # That mean
    oob_error: float  # Mean square error and explained variance, out of bag, of the forest on all rows
    oob_r2: float


def headline(runs: KernelRuns, *, trees: int, seed: int) -> Headline:
    """Fit to a random fifth of the rows, as the published script does, and test on the others."""
    trained, tested = _split(len(runs), seed)
    train, test, rows = runs.take(trained).rows(), runs.take(tested).rows(), runs.rows()
    forest, cells = cell_predictions(train, trees, seed), test.means()
    oob_error = grow(rows, trees, TRIED, (NODE_SIZE,), seed).error(trees, 0)
    predicted, measured = (values.reshape(len(runs.features), -1) for values in (forest, cells))
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
    """Share of kernels whose fastest device is predicted, and of pairs of devices in the measured order."""
    complete = ~np.isnan(measured).any(axis=1)
    p, m = predicted[complete], measured[complete]
    if len(p) == 0 or p.shape[1] < 2:
        return float("nan"), float("nan")
    same = pair_order(p) == pair_order(m)
    return float(np.mean(p.argmin(axis=1) == m.argmin(axis=1))), float(np.mean(same))


@dataclass(frozen=True)
class HeldOutRows:
    """Errors with each application held out, one row for each cell; relative errors are fractions."""

    trees: int  # Trees of each forest
    # Median of abs(predicted / measured - 1) over cells, and the mean of the applications' medians
    median_ape: float | None
    median_ape_by_application: float | None
    mape: float | None  # Mean of abs(predicted / measured - 1)
    rmse_log: float | None  # Root of the mean square of ln(predicted / measured)
    slowdown_mean: float | None  # Measured time on the chosen device over that on the fastest, over kernels
    always_one_slowdown_mean: float | None  # The same for the device that is fastest on other applications
    top1: float | None  # Share of kernels whose chosen device is the fastest
    predicted: list[list[float]]  # Predicted logarithms of seconds of each cell, of shape `(n, d)` as lists


def leave_application_out(runs: KernelRuns, *, trees: int, seed: int) -> HeldOutRows | None:
    """Hold each application out, and predict it; ``None`` where there is only one."""
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
    all_cells, rows = np.ones(grid.log_time.shape, dtype=np.bool_), np.arange(len(application))

    def scored(centre: Reals) -> Scores:
        times = (grid.log_time, centre, centre, centre)
        outcome = TimeOutcome(grid.profiles.application, *times, all_cells, ~all_cells, rows)
        return scores([outcome], level=0.9)

    forest = scored(predicted)
    names_of_scores = ("median_ape", "median_ape_by_application", "mape", "rmse_log", "slowdown_mean", "top1")
    return HeldOutRows(
        trees=trees,
        always_one_slowdown_mean=scored(usual).slowdown_mean,
        predicted=predicted.tolist(),
        **{name: getattr(forest, name) for name in names_of_scores},
    )


@dataclass(frozen=True)
class LearningPoint:
    """Mean absolute errors of logarithms for one number of training kernels, over all samples."""

    kernels: int  # Number of training kernels
    samples: int  # Number of samples, and trees of each forest
    trees: int
    mae_published: float  # Error as in the published script: see `recycled`
    known_share: float  # Share of the script's test rows whose cell is in training, too
    # Error with all rows of the drawn kernels for training, and those of the others, if any, for testing
    mae_corrected: float | None


def counts_of(kernels: int, most: int) -> list[int]:
    """Numbers of training kernels: all from 1, or about `most` of them, denser at small numbers."""
    if most >= kernels:
        return list(range(1, kernels + 1))
    # One less than all is the last number for which the corrected test has test kernels.
    spread = 1 + (kernels - 1) * np.linspace(0, 1, max(2, most - 1)) ** 1.3
    return sorted({*np.round(spread).astype(int).tolist(), max(1, kernels - 1)})


def recycled(kernel: Integers, drawn: Integers) -> Flags:
    """Rows that ``kernel == drawn`` selects in R, where `drawn` is recycled along the rows.

    A row is selected if its kernel equals the recycled entry at its index, so that of each drawn kernel one
    row in ``len(drawn)`` is for training, and all its other rows are for testing.

    >>> recycled(np.array([0, 0, 0, 0, 1, 1, 2]), np.array([0, 1])).tolist()
    [True, False, True, False, False, True, False]
    """
    return np.asarray(np.resize(drawn, len(kernel)) == kernel)


def learn(runs: KernelRuns, *, kernels: int, samples: int, trees: int, seed: int) -> LearningPoint:
    """Draw training kernels, and test both as published and corrected (Algorithm 2)."""
    kernel = runs.name_number
    published, corrected, known = [], [], []
    for sample in range(samples):
        # Sets of one sample are nested, so that the curve depends on their sizes only.
        rng = np.random.default_rng([seed, sample])
        drawn = rng.permutation(len(runs.kernel_names))[:kernels]
        selected, of_drawn = recycled(kernel, drawn), np.isin(kernel, drawn)
        tree_seed = int(rng.integers(2**31))
        if selected.any():
            published.append(_test_errors(runs, selected, trees, tree_seed, SCRIPT_NODE_SIZE))
            known.append(np.isin(runs.cell[~selected], runs.cell[selected]).mean())
        if not of_drawn.all():
            corrected.append(_test_errors(runs, of_drawn, trees, tree_seed, NODE_SIZE))
    error = _mean_absolute(corrected) if corrected else None
    return LearningPoint(kernels, samples, trees, _mean_absolute(published), float(np.mean(known)), error)


def _test_errors(runs: KernelRuns, trained: Flags, trees: int, seed: int, node_size: int) -> Reals:
    """Errors of logarithms on the rows that are not for training."""
    predictions = cell_predictions(runs.take(trained).rows(), trees, seed, node_size)
    return predictions[runs.cell[~trained]] - runs.log_us[~trained]


def _mean_absolute(samples: Sequence[Reals]) -> float:
    """Mean absolute error over the rows of all samples."""
    return float(np.mean(np.abs(np.concatenate(samples))))


@dataclass(frozen=True)
class Johnston2018:
    """All tables and figures of the paper, on a dataset."""

    label: str  # Source of the dataset
    runs: KernelRuns  # Its runs; arrays of the parts follow their kernels and devices
    seed: int  # Random seed
    preset: Preset  # Amount of work
    headline: Headline  # The 1.2 %, and figures 4 to 6
    tuning: Tuning  # Figures 1 and 2
    omitted: tuple[LeftOutKernel, ...]  # Algorithm 1 and table III, in the order of the kernels' names
    learning: tuple[LearningPoint, ...]  # Algorithm 2 and figure 3, for each number of kernels
    honest: HeldOutRows | None  # The forest on unseen applications; `None` where there is one application

    def median_parameters(self) -> tuple[float, float]:
        """Medians over the omitted kernels of the tuned numbers of trees and of features tried."""
        trees, tried = ([getattr(row, name) for row in self.omitted] for name in ("trees", "tried"))
        return statistics.median(trees), statistics.median(tried)

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints: times in seconds, relative errors as fractions."""
        trees, tried = self.median_parameters()
        names = ("application", "kernel", "size")
        content = {
            "dataset": self.label,
            "seed": self.seed,
            "amount": self.preset,
            "kernels": [dict(zip(names, kernel, strict=True)) for kernel in self.runs.grid.profiles.names],
            "devices": [device.key for device in self.runs.grid.devices],
            **{name: getattr(self, name) for name in ("headline", "tuning")},
            "omitted": {"median_trees": trees, "median_tried": tried, "rows": self.omitted},
            **{name: getattr(self, name) for name in ("learning", "honest")},
        }
        # msgspec writes NaN as null.
        return dict(json.loads(msgspec.json.encode(content)))


ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class _Part(Generic[ResultT]):
    """A part of the study as a task; its result is stored as JSON."""

    label: str
    result: object  # Type of the result, which may be a union
    make: partial[ResultT]  # Makes it from the runs; its keywords are all its other inputs

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
    """Make the tasks of all parts, the longest first."""
    tuning = partial(tune, grown=preset.surface_trees, steps=preset.steps, seed=seed)
    honest = partial(leave_application_out, trees=preset.honest_trees, seed=seed)
    omitted = partial(leave_kernel_out, grown=preset.omitted_trees, steps=preset.omitted_steps, seed=seed)
    learning = partial(learn, samples=preset.samples, trees=preset.sample_trees, seed=seed)
    return [
        _Part("tuning", Tuning, tuning),
        _Part("headline", Headline, partial(headline, trees=preset.forest_trees, seed=seed)),
        _Part("honest", HeldOutRows | None, honest),
        *(
            _Part(f"without {kernel}", LeftOutKernel, partial(omitted, kernel=kernel))
            for kernel in runs.kernel_names
        ),
        *(
            _Part(f"trained on {count} kernels", LearningPoint, partial(learning, kernels=count))
            for count in counts_of(len(runs.kernel_names), preset.sample_counts)
        ),
    ]


def reproduce(
    dataset: Dataset, *, preset: Preset = PRESETS["default"], seed: int = 0, **run: Unpack[RunArguments]
) -> Johnston2018:
    """Make all tables and figures of the paper; `run` are arguments of `run_tasks`."""
    check_seed(seed)
    runs = runs_of(dataset)
    parts = _parts(runs, preset, seed)
    answers = run_tasks(parts, runs, sources=_SOURCES, **run)
    tuned, head, honest, *others = (part.read(arrays) for part, [arrays] in zip(parts, answers, strict=True))
    kernels = len(runs.kernel_names)
    left_out, learned = tuple(others[:kernels]), tuple(others[kernels:])
    return Johnston2018(dataset.label, runs, seed, preset, head, tuned, left_out, learned, honest)
