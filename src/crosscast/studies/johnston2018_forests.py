"""What the paper says (Johnston, Falzon and Milthorpe 2018; paper 000), as far as it gives numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.time.data import Grid
from crosscast.predict.time.johnston2018 import Drawn, Rows, device_codes, draw_trees
from crosscast.predict.time.observed import grid_of
from crosscast.profile import METRICS
from crosscast.tables.arrow import Table
from crosscast.tables.cells import KERNEL_AT_A_SIZE, run_means, sound
from crosscast.tables.dataset import Dataset
from crosscast.tables.keys import key_numbers
from crosscast.tables.library import pa
from crosscast.units import microseconds

RELATIVE_LOG = 0.012
"""'Highly accurate, differing from the measured run-times by an average of only 1.2 %' (abstract)."""

MAE_LOG = 0.11
"""'The final mean absolute error is low, at ~0.11' (section IV)."""

R2 = 0.99
"""'Explained variance is very high at 0.99' (section III-C)."""

MISPREDICTION_S = (8e-6, 1.0)
"""'8 µs to 1 secs according to problem size' (section V)."""

WORST_KERNEL, WORST_ERROR = "init_alpha_dev", 0.073
"""The kernel predicted worst at tiny and small, and its mean misprediction (section V)."""

FIGURE_3_MAE = MappingProxyType({1: 1.49, 5: 0.96, 10: 0.78, 20: 0.60, 30: 0.47, 37: 0.39})
"""Mean absolute errors behind figure 3, as the authors' repository has them (``rmse_vs_kernel_count``)."""


class PaperOmitted(NamedTuple):
    """A row of table III: tuned number of trees and of features tried, and 'prediction error (%)'."""

    trees: int
    tried: int
    error_percent: float


OMITTED = MappingProxyType(
    {
        "invert_mapping": PaperOmitted(521, 31, 4.3),
        "kmeansPoint": PaperOmitted(511, 30, 4.1),
        "lud_diagonal": PaperOmitted(527, 29, 4.4),
        "lud_internal": PaperOmitted(488, 31, 4.5),
        "lud_perimeter": PaperOmitted(480, 31, 4.4),
        "csr": PaperOmitted(507, 30, 4.4),
        "fftRadix16Kernel": PaperOmitted(484, 29, 4.4),
        "fftRadix8Kernel": PaperOmitted(529, 34, 4.3),
        "fftRadix4Kernel": PaperOmitted(463, 30, 4.2),
        "fftRadix2Kernel": PaperOmitted(443, 28, 4.4),
        "calc_potential_single_step": PaperOmitted(502, 24, 4.8),
        "c_CopySrcToComponents": PaperOmitted(529, 31, 4.1),
        "cl_fdwt53Kernel": PaperOmitted(499, 26, 4.7),
        "srad_cuda_1": PaperOmitted(504, 32, 4.7),
        "srad_cuda_2": PaperOmitted(500, 29, 4.6),
        "kernel1": PaperOmitted(536, 30, 4.5),
        "kernel2": PaperOmitted(469, 31, 4.6),
        "acc_b_dev": PaperOmitted(576, 28, 4.4),
        "calc_alpha_dev": PaperOmitted(469, 30, 4.3),
        "calc_beta_dev": PaperOmitted(498, 30, 4.3),
        "calc_gamma_dev": PaperOmitted(517, 28, 4.4),
        "calc_xi_dev": PaperOmitted(439, 33, 4.3),
        "est_a_dev": PaperOmitted(524, 30, 4.2),
        "est_b_dev": PaperOmitted(533, 28, 4.3),
        "est_pi_dev": PaperOmitted(450, 31, 4.3),
        "init_alpha_dev": PaperOmitted(558, 32, 2.6),
        "init_beta_dev": PaperOmitted(467, 30, 4.1),
        "init_ones_dev": PaperOmitted(566, 32, 4.1),
        "mvm_non_kernel_naive": PaperOmitted(514, 30, 4.3),
        "mvm_trans_kernel_naive": PaperOmitted(449, 32, 4.4),
        "scale_a_dev": PaperOmitted(508, 31, 4.3),
        "scale_alpha_dev": PaperOmitted(530, 30, 3.8),
        "scale_b_dev": PaperOmitted(565, 31, 4.2),
        "s_dot_kernel_naive": PaperOmitted(509, 30, 4.5),
        "needle_opencl_shared_1": PaperOmitted(499, 30, 4.4),
        "needle_opencl_shared_2": PaperOmitted(504, 29, 4.5),
        "crc32_slice8": PaperOmitted(511, 29, 4.3),
    }
)
"""Table III."""


def paper_omitted(kernel: str) -> PaperOmitted | None:
    """Row of table III for a kernel, which may be spelled as in the data."""
    return OMITTED.get(kernel) or OMITTED.get(kernel.removesuffix("_dev"))


@dataclass(frozen=True)
class Amount:
    """Numbers of trees, samples and steps."""

    forest_trees: int  # Trees of the final forest, and of the one for energy
    honest_trees: int  # Trees of each forest that leaves an application out
    # Trees grown for each number of tried features, in the search over all three parameters
    surface_trees: int
    steps: int  # Steps of that search
    omitted_trees: int  # Trees grown for each number of tried features, with one kernel left out
    omitted_steps: int  # Steps of the search with one kernel left out
    samples: int  # Samples for each number of kernels in Algorithm 2
    sample_trees: int  # Trees of each of its forests
    sample_counts: int  # How many numbers of kernels it takes, of all


QUICK = Amount(50, 10, 10, 20, 5, 5, 2, 5, 6)
"""To see that all of it works: some ten seconds on the published data."""

USUAL = Amount(505, 60, 60, 100, 16, 30, 12, 12, 13)
"""About two minutes on the published data."""

PAPER = Amount(505, 505, 505, 500, 200, 100, 500, 505, 10_000)
"""As many trees and samples as the paper's; hours."""


class OutOfBag:
    """Predictions out of the bag, which sharpen with every tree."""

    def __init__(self, rows: Rows, node_sizes: Sequence[int]) -> None:
        self._rows = rows
        self._node_sizes = tuple(node_sizes)
        self._sums = np.zeros((len(self._node_sizes), len(rows.response)))
        self._trees = np.zeros(len(rows.response), dtype=np.int64)
        self._means = np.zeros((len(self._node_sizes), len(rows.features)))
        self._count = 0

    def add(self, drawn: Drawn) -> None:
        """Take one more tree in."""
        predictions = drawn.predictions(self._node_sizes)
        out = np.flatnonzero(drawn.times == 0)
        self._sums[:, out] += predictions[:, self._rows.cell[out]]
        self._trees[out] += 1
        self._count += 1
        self._means += (predictions - self._means) / self._count

    def errors(self) -> Reals:
        """Mean square error for each node size, of shape ``(m,)``, over rows that some tree did not draw."""
        known = self._trees > 0
        predicted = self._sums[:, known] / self._trees[known]
        errors: Reals = np.mean((predicted - self._rows.response[known]) ** 2, axis=1)
        return errors

    def forest(self) -> Reals:
        """Prediction of the whole forest for each node size and cell, of shape ``(m, c)``."""
        return self._means


_STEADY = 10
"""Trees from which on nearly every row is out of some tree's bag, and errors fall as 1 / trees."""


@dataclass(frozen=True)
class Grown:
    """A forest that tries so many features, with its error on the way."""

    trees: Integers  # `k` numbers of trees at which the error was taken, of shape `(k,)`
    errors: Reals  # Mean square error out of the bag, of shape `(k, m)` for `m` node sizes
    forest: Reals  # Prediction of the whole forest for each node size and cell, of shape `(m, c)`

    def error(self, trees: int, place: int) -> float:
        """Error with so many trees: between two taken, or beyond the last, on a line in 1 / trees."""
        errors = self.errors[:, place]
        if trees <= self.trees[-1]:
            return float(np.interp(-1 / trees, -1 / self.trees, errors))
        steady = self.trees >= min(_STEADY, self.trees[-1])
        if np.count_nonzero(steady) < 2:
            return float(errors[-1])
        # The slope is of the mean over many rows and never below 0, as more trees do not add noise.
        slope = max(0.0, float(np.polyfit(1 / self.trees[steady], errors[steady], 1)[0]))
        return float(errors[-1] - slope * (1 / self.trees[-1] - 1 / trees))


@dataclass
class Surface:
    """The error over ``num.trees``, ``mtry`` and ``min.node.size``.

    One forest a number of tried features serves all numbers of trees, by its first trees, and all node
    sizes, by cutting its trees. Beyond its last tree the error goes on along 1 / trees.
    """

    rows: Rows  # What the forest is fitted to
    grown: int  # Trees that are grown for each number of tried features
    node_sizes: Sequence[int]  # Node sizes that may be asked for
    seed: int  # Start of all random numbers
    _forests: dict[int, Grown] = field(default_factory=dict)

    @property
    def features(self) -> int:
        """How many features there are to try."""
        return int(self.rows.features.shape[1])

    def error(self, trees: int, tried: int, node_size: int) -> float:
        """Mean square error out of the bag."""
        if node_size not in self.node_sizes:
            raise InputError(
                f"node_size: expected one of {list(self.node_sizes)} of this surface, found {node_size}"
            )
        return self.at(tried).error(trees, list(self.node_sizes).index(node_size))

    def at(self, tried: int) -> Grown:
        """The forest that tries so many features; it is grown at the first call."""
        tried = min(tried, self.features)
        if tried not in self._forests:
            self._forests[tried] = self._grow(tried)
        return self._forests[tried]

    def _grow(self, tried: int) -> Grown:
        taken = _taken(self.grown)
        bag = OutOfBag(self.rows, self.node_sizes)
        errors = []
        for number, drawn in enumerate(
            draw_trees(self.rows, self.grown, tried=tried, seed=self.seed), start=1
        ):
            bag.add(drawn)
            if number in taken:
                errors.append(bag.errors())
        return Grown(np.array(sorted(taken)), np.array(errors), bag.forest())


def _taken(grown: int) -> set[int]:
    """About ten numbers of trees a decade, and the last."""
    places = np.unique(np.round(np.logspace(0, np.log10(grown), 1 + round(10 * np.log10(max(grown, 2))))))
    return {*places.astype(int).tolist(), grown}


MOST_TREES = 10_000
_TREE_STEP = 500
_FEWEST_TREES = 10


@dataclass(frozen=True)
class Search:
    """A search, step by step."""

    trees: list[int]  # Parameters of each step, of equal length
    tried: list[int]
    node_size: list[int]
    error: list[float]  # Mean square error out of the bag at each step

    @property
    def best(self) -> int:
        """Number of the step with the least error, the first of equals."""
        return int(np.argmin(self.error))


def tree_counts() -> list[int]:
    """Numbers of trees that are searched: from 10 to 10,000 by 500."""
    return list(range(_FEWEST_TREES, MOST_TREES, _TREE_STEP))


def anneal(surface: Surface, start: tuple[int, int, int], steps: int, seed: int) -> Search:
    """Search the surface from a start.

    The published optimiser is that of R's package ``optimization``; here it is the generalised annealing of
    ``scipy.optimize.dual_annealing`` without its local search, which needs a surface without steps.
    """
    dual_annealing = _dual_annealing()
    counts, sizes = tree_counts(), sorted(surface.node_sizes)
    search = Search([], [], [], [])

    def cost(point: Reals) -> float:
        trees = counts[min(int(point[0]), len(counts) - 1)]
        tried = min(1 + int(point[1]), surface.features)
        node_size = sizes[min(int(point[2]), len(sizes) - 1)]
        error = surface.error(trees, tried, node_size)
        search.trees.append(trees)
        search.tried.append(tried)
        search.node_size.append(node_size)
        search.error.append(error)
        return error

    # A unit cell for each value, so that all are equally likely.
    widths = (len(counts), surface.features, len(sizes))
    first = np.array(
        [
            float(np.argmin(np.abs(np.array(counts) - start[0]))),
            float(min(start[1], surface.features) - 1),
            float(np.argmin(np.abs(np.array(sizes) - start[2]))),
        ]
    )
    dual_annealing(
        cost,
        bounds=[(0.0, float(width)) for width in widths],
        x0=first + 0.5,
        maxfun=steps,
        no_local_search=True,
        seed=np.random.default_rng(seed),
    )
    return search


def _dual_annealing() -> Callable[..., object]:
    try:
        from scipy.optimize import dual_annealing
    except ImportError as error:
        raise MissingExtraError("train", "tuning by annealing") from error
    found: Callable[..., object] = dual_annealing
    return found


@dataclass(frozen=True)
class Runs:
    """Runs of ``n`` kernels at a size on ``d`` devices.

    A *cell* is a kernel at a size on a device; its number is ``kernel * d + device``.
    """

    grid: Grid  # The kernels and the devices, with a median a cell
    columns: tuple[str, ...]  # Names of the `p` features of kernels
    # Features of each kernel, of shape `(n, p)`; 0 where not defined, as in the published scripts
    features: Reals
    kernel: Integers  # Number of each run's kernel and device, of shape `(rows,)`
    device: Integers
    log_us: Reals  # Natural logarithm of the run's time in microseconds, of shape `(rows,)`

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.log_us)

    @property
    def cell(self) -> Integers:
        """Number of each run's cell."""
        return self.kernel * len(self.grid.devices) + self.device

    @property
    def cells(self) -> int:
        """Number of cells, measured or not."""
        return len(self.features) * len(self.grid.devices)

    def take(self, runs: Integers | Flags) -> Runs:
        """Some of the runs; kernels and devices stay."""
        return replace(self, kernel=self.kernel[runs], device=self.device[runs], log_us=self.log_us[runs])

    def rows(self) -> Rows:
        """The runs for a forest: features of the kernel, then the device as one feature."""
        d = len(self.grid.devices)
        codes = device_codes(self.device, self.log_us, d)
        features = np.column_stack([np.repeat(self.features, d, axis=0), np.tile(codes, len(self.features))])
        return Rows(features, self.cell, self.log_us)

    def kernel_names(self) -> tuple[str, ...]:
        """Names of the kernels, whatever their size, sorted: those of the table of omitted kernels."""
        return tuple(sorted(set(self.grid.profiles.kernel)))

    def of_kernels(self, names: frozenset[str] | set[str]) -> Flags:
        """For each run, whether its kernel has one of the names."""
        named = np.array([name in names for name in self.grid.profiles.kernel])
        flags: Flags = named[self.kernel]
        return flags

    def sample(self, per_cell: int, seed: int) -> Runs:
        """At most so many runs of each cell, drawn without replacement."""
        order = np.random.default_rng(seed).permutation(len(self))
        cell = self.cell[order]
        by_cell = np.argsort(cell, kind="stable")
        counts = np.bincount(cell, minlength=self.cells)
        place = np.arange(len(self)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.take(np.sort(order[by_cell[place < per_cell]]))

    def digest(self) -> str:
        """A hash of all that is in it."""
        digest = hashlib.sha256()
        profiles = self.grid.profiles
        names = [profiles.application, profiles.kernel, profiles.size, self.columns]
        digest.update(json.dumps([names, [device.key for device in self.grid.devices]]).encode())
        for array in (self.features, self.kernel, self.device, self.log_us):
            digest.update(array.tobytes())
        return digest.hexdigest()


def runs_of(dataset: Dataset) -> Runs:
    """The runs of a dataset.

    Features are the metrics of invocation 0; where profiles hold metrics by the published tool's own
    definitions, those as well, and in place of ours of the same name.
    """
    grid = grid_of(dataset, invocations="first")
    if len(set(grid.profiles.kernel)) < 2:
        raise InputError(f"{dataset.label}: expected at least 2 kernels with profiles and records, found 1")
    columns, features = _features(dataset, grid)
    records = sound(dataset.records, dataset.sessions)
    kernel = _kernel_numbers(records, grid)
    devices = {device.key: place for place, device in enumerate(grid.devices)}
    device = np.array([devices.get(key, -1) for key in records.column("device").to_pylist()])
    there = kernel >= 0
    log_us = np.log(run_means(records) / microseconds(1.0))
    return Runs(grid, columns, features, kernel[there], device[there], log_us[there])


def _kernel_numbers(records: Table, grid: Grid) -> Integers:
    """For each record, the number of its kernel in the grid; -1 where it is not there."""
    names = [pa.array(getattr(grid.profiles, name)) for name in KERNEL_AT_A_SIZE]
    wanted, known = key_numbers([records, pa.table(names, names=list(KERNEL_AT_A_SIZE))], KERNEL_AT_A_SIZE)
    places = np.full(int(max(wanted.max(), known.max())) + 1, -1)
    places[known] = np.arange(len(known))
    numbers: Integers = places[wanted]
    return numbers


def _features(dataset: Dataset, grid: Grid) -> tuple[tuple[str, ...], Reals]:
    metrics = grid.profiles.metrics
    defined = np.flatnonzero(np.isfinite(metrics).any(axis=0)).tolist()
    table = {METRICS[place].name: metrics[:, place] for place in defined}
    table |= _published_metrics(dataset, grid)
    features = np.column_stack(list(table.values()))
    return tuple(table), np.where(np.isfinite(features), features, 0.0)


def _published_metrics(dataset: Dataset, grid: Grid) -> dict[str, Reals]:
    """Metrics by the published tool's definitions, where all kernels have them."""
    first: dict[tuple[str, str, str], dict[str, float]] = {}
    names = (*KERNEL_AT_A_SIZE, "invocation", "program")
    for application, kernel, size, invocation, program in zip(
        *(dataset.profiles.column(name).to_pylist() for name in names), strict=True
    ):
        if invocation == 0:
            first[application, kernel, size] = json.loads(program or "{}").get("published", {})
    rows = [first.get(key, {}) for key in grid.profiles.names]
    common = [name for name in rows[0] if all(name in row for row in rows)]
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in common}
