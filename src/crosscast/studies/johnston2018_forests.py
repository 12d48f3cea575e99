"""Forests on single runs, and the search for their parameters, of Johnston, Falzon and Milthorpe (2018)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.dataset import Dataset
from crosscast.data.views import KERNEL_AT_A_SIZE, of_successful_sessions, run_means
from crosscast.errors import InputError
from crosscast.prediction.time import Grid
from crosscast.prediction.time.datasets import grid_of
from crosscast.prediction.trees import Rows, device_codes, draw_trees
from crosscast.profile import METRICS
from crosscast.units import microseconds

TREES, TRIED, NODE_SIZE = 505, 30, 9  # Parameters of the final model (section III-C)
START = (500, 32, 9)  # Start of the search: trees, tried features and node size (section III-C)
MOST_TREES = 10_000
TREE_COUNTS = tuple(range(10, MOST_TREES, 500))  # Numbers of trees that are searched

STEADY = 10  # Trees from which on nearly every row is out of bag in some tree, and errors fall as 1 / trees


@dataclass(frozen=True)
class KernelRuns:
    """Runs of ``n`` kernels at a size on ``d`` devices.

    A *cell* is a kernel at a size on a device; its number is ``kernel * d + device``.
    """

    grid: Grid  # The kernels and the devices, with the median of each cell
    columns: tuple[str, ...]  # Names of the `p` features of kernels
    features: Reals  # Of each kernel, of shape `(n, p)`; 0 where not defined, as in the published scripts
    kernel: Integers  # Number of each run's kernel and device, of shape `(rows,)`
    device: Integers
    log_us: Reals  # Natural logarithm of the run's time in microseconds, of shape `(rows,)`

    def __len__(self) -> int:
        return len(self.log_us)

    @property
    def cell(self) -> Integers:
        """Number of each run's cell."""
        return self.kernel * len(self.grid.devices) + self.device

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """Sorted names of the kernels, without sizes, as in table III."""
        return tuple(sorted(set(self.grid.profiles.kernel)))

    @property
    def name_number(self) -> Integers:
        """Index of each run's kernel in `kernel_names`."""
        numbers = {name: number for number, name in enumerate(self.kernel_names)}
        return np.array([numbers[name] for name in self.grid.profiles.kernel])[self.kernel]

    def take(self, runs: Integers | Flags) -> KernelRuns:
        """Select runs; kernels and devices stay."""
        return replace(self, kernel=self.kernel[runs], device=self.device[runs], log_us=self.log_us[runs])

    def rows(self) -> Rows:
        """Make the rows for a forest: features of the kernel, then the device as one feature."""
        d = len(self.grid.devices)
        codes = device_codes(self.device, self.log_us, d)
        features = np.column_stack([np.repeat(self.features, d, axis=0), np.tile(codes, len(self.features))])
        return Rows(features, self.cell, self.log_us)

    def sample(self, per_cell: int, seed: int) -> KernelRuns:
        """Draw at most `per_cell` runs of each cell without replacement."""
        order = np.random.default_rng(seed).permutation(len(self))
        cell = self.cell[order]
        by_cell = np.argsort(cell, kind="stable")
        counts = np.bincount(cell)
        rank = np.arange(len(self)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.take(np.sort(order[by_cell[rank < per_cell]]))


def runs_of(dataset: Dataset) -> KernelRuns:
    """Collect the runs of a dataset.

    Features are the metrics of invocation 0. Metrics by the published tool's definitions are added where
    profiles have them, and replace ours of the same name.
    """
    grid = grid_of(dataset, invocations="first")
    kernel_count = len(set(grid.profiles.kernel))
    if kernel_count < 2:
        expected = "at least 2 kernels with profiles and records"
        raise InputError.of(where=dataset.label, expected=expected, found=kernel_count)
    columns = zip(METRICS, grid.profiles.metrics.T, strict=True)
    metrics = {metric.name: values for metric, values in columns if np.isfinite(values).any()}
    metrics |= _published_metrics(dataset, grid)
    features = np.column_stack(list(metrics.values()))
    features = np.where(np.isfinite(features), features, 0.0)
    records = of_successful_sessions(dataset.records, dataset.sessions)
    kernels = {names: number for number, names in enumerate(grid.profiles.names)}
    devices = {device.key: number for number, device in enumerate(grid.devices)}
    *problem, keys = (records.column(name).to_pylist() for name in (*KERNEL_AT_A_SIZE, "device"))
    kernel = np.array([kernels.get(names, -1) for names in zip(*problem, strict=True)])
    device, in_grid = np.array([devices.get(key, -1) for key in keys]), kernel >= 0
    log_us = np.log(run_means(records)[in_grid] / microseconds(1.0))
    return KernelRuns(grid, tuple(metrics), features, kernel[in_grid], device[in_grid], log_us)


def _published_metrics(dataset: Dataset, grid: Grid) -> dict[str, Reals]:
    """Metrics by the published tool's definitions, where all kernels have them."""
    columns = (*KERNEL_AT_A_SIZE, "invocation", "program")
    cells = zip(*(dataset.profiles.column(name).to_pylist() for name in columns), strict=True)
    first: dict[tuple[str, ...], dict[str, float]] = {
        tuple(key): json.loads(program or "{}").get("published", {})
        for *key, invocation, program in cells
        if invocation == 0
    }
    rows = [first.get(key, {}) for key in grid.profiles.names]
    common = [name for name in rows[0] if all(name in row for row in rows)]
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in common}


def cell_predictions(rows: Rows, trees: int, seed: int, node_size: int = NODE_SIZE) -> Reals:
    """Average the predictions of a forest's trees for each cell."""
    total = np.zeros(len(rows.features))
    for drawn in draw_trees(rows, trees, tried=TRIED, seed=seed):
        total += drawn.predictions([node_size])[0]
    return total / trees


@dataclass(frozen=True)
class GrownForest:
    """A forest for one number of tried features, with its error by number of trees."""

    trees: Integers  # Numbers of trees at which the error was computed, of shape `(k,)`
    errors: Reals  # Mean square error out of the bag, of shape `(k, m)` for `m` node sizes
    forest: Reals  # Prediction of the complete forest for each node size and cell, of shape `(m, c)`

    def error(self, trees: int, node_size_index: int) -> float:
        """Error with a number of trees, interpolated or extrapolated linearly in 1 / trees."""
        errors = self.errors[:, node_size_index]
        if trees <= self.trees[-1]:
            return float(np.interp(-1 / trees, -1 / self.trees, errors))
        steady = self.trees >= min(STEADY, self.trees[-1])
        if np.count_nonzero(steady) < 2:
            return float(errors[-1])
        # The slope is at least 0, as further trees do not add noise.
        slope = max(0.0, float(np.polyfit(1 / self.trees[steady], errors[steady], 1)[0]))
        return float(errors[-1] - slope * (1 / self.trees[-1] - 1 / trees))


def grow(rows: Rows, trees: int, tried: int, node_sizes: Sequence[int], seed: int) -> GrownForest:
    """Grow a forest; errors are over the rows that are out of bag in some tree."""
    # About ten numbers of trees per decade, and the last.
    count = 1 + round(10 * np.log10(max(trees, 2)))
    checkpoints = {*np.round(np.logspace(0, np.log10(trees), count)).astype(int).tolist(), trees}
    sums = np.zeros((len(node_sizes), len(rows.response)))
    means = np.zeros((len(node_sizes), len(rows.features)))
    out_of_bag = np.zeros(len(rows.response), dtype=np.int64)
    errors = []
    for number, drawn in enumerate(draw_trees(rows, trees, tried=tried, seed=seed), start=1):
        predictions = drawn.predictions(node_sizes)
        out = np.flatnonzero(drawn.times == 0)
        sums[:, out] += predictions[:, rows.cell[out]]
        out_of_bag[out] += 1
        means += (predictions - means) / number
        if number in checkpoints:
            known = out_of_bag > 0
            predicted = sums[:, known] / out_of_bag[known]
            errors.append(np.mean((predicted - rows.response[known]) ** 2, axis=1))
    return GrownForest(np.array(sorted(checkpoints)), np.array(errors), means)


@dataclass
class Surface:
    """The error as a function of ``num.trees``, ``mtry`` and ``min.node.size``.

    One forest for each number of tried features gives the errors for all numbers of trees, by its first
    trees, and for all node sizes, by pruning. Beyond its last tree the error is extrapolated in 1 / trees.
    """

    rows: Rows  # Training rows
    grown: int  # Trees grown for each number of tried features
    node_sizes: Sequence[int]  # Allowed node sizes, ascending
    seed: int
    _forests: dict[int, GrownForest] = field(default_factory=dict)

    @property
    def features(self) -> int:
        """Number of features."""
        return int(self.rows.features.shape[1])

    def error(self, trees: int, tried: int, node_size: int) -> float:
        """Mean square error out of the bag."""
        if node_size not in self.node_sizes:
            expected = f"one of {', '.join(map(str, self.node_sizes))} of this surface"
            raise InputError.of(where="node_size", expected=expected, found=node_size)
        return self.at(tried).error(trees, self.node_sizes.index(node_size))

    def at(self, tried: int) -> GrownForest:
        """Return the forest for a number of tried features, which is grown at the first call."""
        tried = min(tried, self.features)
        if tried not in self._forests:
            self._forests[tried] = grow(self.rows, self.grown, tried, self.node_sizes, self.seed)
        return self._forests[tried]


@dataclass(frozen=True)
class ForestSearch:
    """Steps of a search; lists are of equal length."""

    trees: list[int]
    tried: list[int]
    node_size: list[int]
    error: list[float]  # Mean square error out of the bag

    @property
    def best(self) -> int:
        """Index of the first step with the least error."""
        return int(np.argmin(self.error))


def anneal(surface: Surface, steps: int, seed: int) -> ForestSearch:
    """Search the surface for the least error from `START`: trees, tried features, node size.

    The paper used R's package ``optimization``; here it is the generalised annealing of
    ``scipy.optimize.dual_annealing`` without its local search, which needs a smooth surface.
    """
    from scipy.optimize import dual_annealing  # An extra, which the loop of the evaluation has checked

    axes = (TREE_COUNTS, tuple(range(1, surface.features + 1)), tuple(surface.node_sizes))
    search = ForestSearch([], [], [], [])

    def cost(point: Reals) -> float:
        values = [
            axis[min(int(coordinate), len(axis) - 1)] for axis, coordinate in zip(axes, point, strict=True)
        ]
        error = surface.error(*values)
        for steps_of, value in zip(vars(search).values(), [*values, error], strict=True):
            steps_of.append(value)
        return error

    nearest = [np.argmin(np.abs(np.array(axis) - value)) for axis, value in zip(axes, START, strict=True)]
    dual_annealing(
        cost,
        # An interval of length 1 for each value, so that all are equally likely.
        bounds=[(0.0, float(len(axis))) for axis in axes],
        x0=np.array(nearest) + 0.5,
        maxfun=steps,
        no_local_search=True,
        seed=np.random.default_rng(seed),
    )
    return search


NODE_SIZES = tuple(range(1, 51))  # Node sizes of figure 1
_RUNS_PER_CELL = 10
_FIGURE_1_TREES = 300
_FIGURE_2_TREES = (10, 30, 100, 300, 500, 1000, 3000, MOST_TREES)


@dataclass(frozen=True)
class Tuning:
    """Figures 1 and 2; errors are mean squares of the logarithm, out of bag."""

    rows: int  # Training runs: ten for each cell, as in the published scripts of these two figures
    grown: int  # Trees for each number of tried features; errors of more trees are extrapolated in 1 / trees
    node_size_errors: list[float]  # Figure 1: for node sizes from 1 on, with 300 trees, 30 features tried
    tried: list[int]  # Axes of figure 2
    trees: list[int]
    heat: list[list[float]]  # Figure 2: error by trees (row) and tried features (column), node size 9
    search: ForestSearch  # Steps of the search over all three parameters


def tune(runs: KernelRuns, *, grown: int, steps: int, seed: int) -> Tuning:
    """Compute the errors, and search for the least."""
    sample = runs.sample(_RUNS_PER_CELL, seed)
    surface = Surface(sample.rows(), grown, NODE_SIZES, seed)
    tried = list(range(1, surface.features + 1))
    return Tuning(
        rows=len(sample),
        grown=grown,
        node_size_errors=[surface.error(_FIGURE_1_TREES, TRIED, size) for size in NODE_SIZES],
        tried=tried,
        trees=list(_FIGURE_2_TREES),
        heat=[[surface.error(trees, features, NODE_SIZE) for features in tried] for trees in _FIGURE_2_TREES],
        search=anneal(surface, steps, seed),
    )


@dataclass(frozen=True)
class LeftOutKernel:
    """One row of table III."""

    kernel: str  # The kernel that is left out, at all sizes
    trees: int  # Tuned parameters
    tried: int
    oob_error: float  # Error on all other kernels; times 100 it is the paper's 'prediction error (%)'
    r2: float  # Explained share of the variance, out of bag as well
    median_ape: float  # Median of abs(predicted / measured - 1) over the kernel's cells, a fraction
    rmse_log: float  # Root of the mean square of their ln(predicted / measured)


def leave_kernel_out(runs: KernelRuns, *, kernel: str, grown: int, steps: int, seed: int) -> LeftOutKernel:
    """Tune without a kernel, then predict it (Algorithm 1)."""
    is_left_out: Flags = runs.name_number == runs.kernel_names.index(kernel)
    training, left_out = runs.take(~is_left_out), runs.take(is_left_out)
    surface = Surface(training.rows(), grown, (NODE_SIZE,), seed)
    search = anneal(surface, steps, seed)
    best = search.best
    cells = np.unique(left_out.cell)
    error = surface.at(search.tried[best]).forest[0][cells] - left_out.rows().means()[cells]
    return LeftOutKernel(
        kernel,
        search.trees[best],
        search.tried[best],
        oob_error=search.error[best],
        r2=1 - search.error[best] / float(np.var(training.log_us)),
        median_ape=float(np.median(np.abs(np.expm1(error)))),
        rmse_log=float(np.sqrt(np.mean(error**2))),
    )
