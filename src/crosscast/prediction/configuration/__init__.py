"""Measured times and powers of kernels over a machine's configurations, and forecasts of a kernel."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.configuration import Configuration
from crosscast.errors import InputError
from crosscast.prediction.intervals import most_level

if TYPE_CHECKING:
    from crosscast.data.table import Table
    from crosscast.prediction.serialization import Stored

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class ConfigurationSpace:
    """The configurations of a machine."""

    # The configurations, by device and then by their settings, each rising
    configurations: tuple[Configuration, ...]

    def __post_init__(self) -> None:
        if not self.configurations:
            raise InputError.of(field="configurations", expected="at least one", found="none")
        most, count = Counter(self.configurations).most_common(1)[0]
        if count > 1:
            raise InputError.of(field="configurations", expected="each once", found=f"{most} twice")
        kinds: dict[str, type] = {}
        for each in self.configurations:
            for name, value in each.settings.items():
                if kinds.setdefault(name, type(value)) is not type(value):
                    where = f"configurations: {name}"
                    raise InputError.of(where=where, expected="numbers or words", found="both")
        # A configuration without a knob comes before those with it.
        settings = {
            each: [(name, isinstance(value, str), value) for name, value in each.settings.items()]
            for each in self.configurations
        }
        ordered = sorted(self.configurations, key=lambda each: (each.device, settings[each]))
        object.__setattr__(self, "configurations", tuple(ordered))

    def __len__(self) -> int:
        return len(self.configurations)

    @cached_property
    def _numbers(self) -> dict[Configuration, int]:
        return {each: number for number, each in enumerate(self.configurations)}

    def number_of(self, configuration: Configuration) -> int:
        """Index of a configuration among all."""
        if configuration not in self._numbers:
            expected = f"one of the {len(self)} that are known, such as {self.configurations[0]}"
            raise InputError.of(field="configuration", expected=f"{expected}; found {configuration}")
        return self._numbers[configuration]

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Keys of the devices, sorted."""
        return tuple(sorted({each.device for each in self.configurations}))

    @cached_property
    def device_numbers(self) -> Integers:
        """Index in `devices` of each configuration's device, ``(c,)``."""
        return np.array([self.devices.index(each.device) for each in self.configurations], np.int64)

    @cached_property
    def knobs(self) -> tuple[str, ...]:
        """Names of the numeric settings that have more than one value on some device, sorted."""
        return self._varying(float)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Names of the textual settings that vary, sorted."""
        return self._varying(str)

    def _varying(self, kind: type) -> tuple[str, ...]:
        configurations = self.configurations
        settings = [setting for each in configurations for setting in each.settings.items()]
        names = {name for name, value in settings if isinstance(value, kind)}
        values = {(each.device, name, each.settings.get(name)) for each in configurations for name in names}
        counts = Counter((device, name) for device, name, _ in values)
        return tuple(sorted({name for (_, name), count in counts.items() if count > 1}))

    @cached_property
    def matrix(self) -> Reals:
        """Settings of the knobs, ``(c, knobs)``; NaN where a device does not have one."""
        rows = [[each.settings.get(name, np.nan) for name in self.knobs] for each in self.configurations]
        return np.array(rows, np.float64).reshape(len(self), len(self.knobs))

    def values_of(self, word: str) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
        """Values of a textual setting, ``(c,)``; empty where a configuration does not have it."""
        return np.array([str(each.settings.get(word, "")) for each in self.configurations])


class KernelAt(NamedTuple):
    """A kernel at a problem size."""

    application: str
    kernel: str
    size: str

    def __str__(self) -> str:
        name = self.application if self.kernel == self.application else f"{self.application}/{self.kernel}"
        return f"{name} {self.size}"


Index = Integers | tuple[slice | int | Integers, Integers]
"""Index of entries of arrays."""


class Values(NamedTuple):
    """Measurements of some runs, in arrays of one shape; domains and counters by name."""

    time_s: Reals
    power_w: Reals
    domains: dict[str, Reals]
    counters: dict[str, Reals]


def values_at(runs: Observed | Surfaces, index: Index) -> Values:
    """Measurements at an index of the arrays."""
    domains = {name: values[index] for name, values in runs.domains.items()}
    counters = {name: values[index] for name, values in runs.counters.items()}
    return Values(runs.time_s[index], runs.power_w[index], domains, counters)


@dataclass(frozen=True)
class Observed:
    """Runs of one kernel."""

    # `(r,)` Index of each run's configuration in the space; each at most once
    numbers: Integers
    time_s: Reals  # `(r,)` Time in seconds and mean power in watts
    power_w: Reals
    # `(r,)` Power of each domain with a sensor, in watts; NaN where it failed
    domains: Mapping[str, Reals] = field(default_factory=dict)
    # `(r,)` Counters of each run by name; NaN where there is none
    counters: Mapping[str, Reals] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def with_runs(self, run: Observed) -> Observed:
        """These runs and others, which replace those of the same configuration; missing values are NaN."""
        unchanged = ~np.isin(self.numbers, run.numbers)
        before, after = np.full(len(self), np.nan), np.full(len(run), np.nan)

        def joined(ones: Mapping[str, Reals], others: Mapping[str, Reals]) -> dict[str, Reals]:
            return {
                name: np.concatenate([ones.get(name, before)[unchanged], others.get(name, after)])
                for name in {**ones, **others}
            }

        return Observed(
            np.concatenate([self.numbers[unchanged], run.numbers]),
            np.concatenate([self.time_s[unchanged], run.time_s]),
            np.concatenate([self.power_w[unchanged], run.power_w]),
            joined(self.domains, run.domains),
            joined(self.counters, run.counters),
        )


@dataclass(frozen=True)
class Surfaces:
    """Times and powers of kernels over one space of configurations."""

    label: str  # Of the source, for messages
    kernels: tuple[KernelAt, ...]  # `n` kernels at their sizes
    space: ConfigurationSpace  # `c` configurations
    time_s: Reals  # `(n, c)` Time in seconds and mean power in watts; both NaN where a kernel did not run
    power_w: Reals
    # `(n, c)` Power of each domain in watts, by name; NaN where it is not known
    domains: Mapping[str, Reals] = field(default_factory=dict)
    # `(n, c)` Counters by name; NaN where they are not known
    counters: Mapping[str, Reals] = field(default_factory=dict)

    @property
    def known(self) -> Flags:
        """Mask ``(n, c)`` of the configurations at which each kernel ran."""
        return np.isfinite(self.time_s)

    @property
    def applications(self) -> tuple[str, ...]:
        """Names of the applications, sorted."""
        return tuple(sorted({each.application for each in self.kernels}))

    def rows_of(self, applications: Sequence[str]) -> Flags:
        """Mask ``(n,)`` of the kernels of some applications."""
        return np.array([each.application in applications for each in self.kernels], np.bool_)

    def take(self, rows: Flags | Integers) -> Surfaces:
        """Surfaces of some kernels, with all configurations."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else np.asarray(rows, np.int64)
        kernels = tuple(self.kernels[row] for row in chosen)
        return Surfaces(self.label, kernels, self.space, *values_at(self, chosen))

    def observed(self, row: int, numbers: Sequence[int]) -> Observed:
        """The runs of one kernel at some configurations; those where it did not run are left out."""
        ran = np.array([each for each in numbers if self.known[row, each]], np.int64)
        return Observed(ran, *values_at(self, (row, ran)))


def machines_of(runs: Table, label: str, devices: Sequence[str] | None = None) -> tuple[Surfaces, ...]:
    """Surfaces of each machine: the devices that share kernels, directly or through others."""
    rows = [row for row in runs.to_pylist() if row["time_s"] > 0 and (row["power_w"] or 0) > 0]
    if not rows:
        raise InputError.of(where=label, expected="runs with time and power", found="none")
    if devices is not None:
        known = sorted({row["device"] for row in rows})
        for device in devices:
            if device not in known:
                raise InputError.of(
                    where=label, field="device", expected=f"one of {', '.join(known)}", found=repr(device)
                )
        rows = [row for row in rows if row["device"] in devices]
    kernels: dict[str, set[KernelAt]] = {}
    for row in rows:
        kernels.setdefault(row["device"], set()).add(_kernel(row))
    machines = [{key for key in kernels if kernels[key] & each} for each in connected(kernels.values())]
    machines.sort(key=min)
    return tuple(_surfaces([row for row in rows if row["device"] in each], label) for each in machines)


def connected(sets: Iterable[AbstractSet[Thing]]) -> list[set[Thing]]:
    """Unions of the sets that overlap, directly or through others."""
    unions: list[set[Thing]] = []
    for each in sets:
        union = set(each).union(*(other for other in unions if other & each))
        unions = [*(other for other in unions if not other & each), union]
    return unions


def _kernel(row: Mapping[str, str]) -> KernelAt:
    return KernelAt(row["application"], row["kernel"], row["size"])


def _surfaces(rows: Sequence[Mapping[str, str]], label: str) -> Surfaces:
    configurations = [Configuration.of(row["device"], row["configuration"]) for row in rows]
    space = ConfigurationSpace(tuple(dict.fromkeys(configurations)))
    kernels = tuple(sorted({_kernel(row) for row in rows}))
    rows_of_kernels = {kernel: row for row, kernel in enumerate(kernels)}
    points = [
        (rows_of_kernels[_kernel(row)], space.number_of(each))
        for row, each in zip(rows, configurations, strict=True)
    ]
    (kernel, number), count = Counter(points).most_common(1)[0]
    if count > 1:
        # Numbers of two forms, such as 1 and 1.0, are two keys of a table.
        expected = f"each kernel once at {space.configurations[number]}"
        raise InputError.of(where=label, expected=expected, found=f"{kernels[kernel]} again")

    def to_surface(values: Sequence[object]) -> Reals:
        surface = np.full((len(kernels), len(space)), np.nan)
        surface[tuple(np.array(points).T)] = np.array(values, np.float64)
        return surface

    def by_name(column: str) -> dict[str, Reals]:
        cells = [json.loads(row[column] or "{}") for row in rows]
        names = sorted({name for each in cells for name in each})
        return {name: to_surface([each.get(name, np.nan) for each in cells]) for name in names}

    time_s, power_w = (to_surface([row[name] for row in rows]) for name in ("time_s", "power_w"))
    return Surfaces(label, kernels, space, time_s, power_w, by_name("powers"), by_name("counters"))


Totals = Mapping[str, tuple[tuple[str, ...], ...]]
"""For each device the sets of domains whose powers sum to the total."""

_MOST_TOGETHER = 4
_MOST_DOMAINS = 12
_TOLERANCE = 1e-3
"""Relative tolerance of sums, as sources round."""


def power_totals(surfaces: Surfaces) -> Totals:
    """Find the sets of domains whose powers sum to the power, wherever it is known."""
    totals: dict[str, tuple[tuple[str, ...], ...]] = {}
    for number, device in enumerate(surfaces.space.devices):
        known = surfaces.known & (surfaces.space.device_numbers == number)
        power_w = surfaces.power_w[known]
        domains = {name: values[known] for name, values in sorted(surfaces.domains.items())}
        names_known = [name for name, values in domains.items() if np.isfinite(values).all()][:_MOST_DOMAINS]
        sets: list[tuple[str, ...]] = []
        for count in range(1, _MOST_TOGETHER + 1) if power_w.size else ():
            for names in combinations(names_known, count):
                total = sum(domains[name] for name in names)
                is_new = not any(set(smaller) <= set(names) for smaller in sets)
                if is_new and np.allclose(total, power_w, rtol=_TOLERANCE, atol=0):
                    sets.append(names)
        totals[device] = tuple(sets)
    return totals


def total_power(sets: tuple[tuple[str, ...], ...], powers_w: Mapping[str, float]) -> float | None:
    """Total power from those of its domains, in watts; ``None`` if too few of them are known."""
    known = (names for names in sets if all(name in powers_w for name in names))
    return next((sum(powers_w[name] for name in names) for names in known), None)


def sampled(surfaces: Surfaces, samples: Sequence[int]) -> Surfaces:
    """The kernels that ran at all sample configurations, which are required for training."""
    if not samples:
        raise InputError.of(field="samples", expected="at least one sample configuration", found="none")
    complete: Flags = np.all(surfaces.known[:, list(samples)], axis=1)
    if not complete.any():
        names = "; ".join(str(surfaces.space.configurations[each]) for each in samples)
        raise InputError.of(
            where=surfaces.label, expected=f"a kernel that ran at all samples ({names})", found="none"
        )
    return surfaces.take(complete)


def sample_numbers(space: ConfigurationSpace, samples: Sequence[Configuration]) -> tuple[int, ...]:
    """Indices of sample configurations."""
    try:
        numbers = tuple(space.number_of(each) for each in samples)
    except InputError as error:
        raise InputError.of(field="samples", problem=str(error)) from error
    if not numbers or len(set(numbers)) < len(numbers):
        expected, found = "at least one configuration, and each once", "; ".join(map(str, samples)) or "none"
        raise InputError.of(field="samples", expected=expected, found=found)
    return numbers


def sample_indices(space: ConfigurationSpace, samples: Sequence[int], observed: Observed) -> list[int]:
    """Indices of the runs of a kernel at the sample configurations."""
    indices = []
    for number in samples:
        (matches,) = np.nonzero(observed.numbers == number)
        configuration = space.configurations[number]
        if not matches.size:
            expected, among = f"a run at {configuration}", f"none there among {len(observed)}"
            raise InputError.of(field="samples", expected=expected, found=among)
        for quantity, values in (("time", observed.time_s), ("power", observed.power_w)):
            value = values[matches[0]]
            if not 0 < value < np.inf:
                expected = f"a {quantity} above 0 at {configuration}"
                raise InputError.of(field="samples", expected=expected, found=f"{value:g}")
        indices.append(int(matches[0]))
    return indices


def reference_samples(space: ConfigurationSpace, samples: Sequence[int]) -> Integers:
    """Index among the samples of the one from which each configuration is scaled, ``(c,)``.

    The first on the same device (Bailey et al. 2014, section III-B), or of all, where a device has none.
    """
    numbers = [space.device_numbers[each] for each in samples]
    first = [numbers.index(device) if device in numbers else 0 for device in range(len(space.devices))]
    return np.array(first, np.int64)[space.device_numbers]


SLACK = 1e-9
"""Relative tolerance of a cap, as caps are equal to measured powers up to rounding."""


def pareto_frontier(time_s: Reals, power_w: Reals) -> Integers:
    """Indices of the Pareto-optimal configurations in time and power.

    By rising power, and thus by falling time (Bailey et al. 2014, section III-B); of configurations whose
    powers are equal up to rounding the fastest, and the first of these.

    >>> pareto_frontier(np.array([4.0, 2.0, 3.0]), np.array([10.0, 30.0, 40.0])).tolist()
    [0, 1]
    """
    known = np.flatnonzero(np.isfinite(time_s) & np.isfinite(power_w))
    rising = known[np.lexsort((time_s[known], power_w[known]))]
    if not rising.size:
        return rising
    least = np.minimum.accumulate(time_s[rising])
    frontier = rising[np.concatenate(([True], time_s[rising[1:]] < least[:-1]))]
    apart = power_w[frontier[1:]] > power_w[frontier[:-1]] * (1 + SLACK)
    return frontier[np.concatenate((apart, [True]))]


@dataclass(frozen=True)
class Quantity:
    """Time or power: the logarithm of the true value is that of `centre` plus `spread` times an error."""

    centre: Reals  # `(c,)` Median
    spread: Reals  # `(c,)` Scale of the logarithm's error; 0 where measured
    # `(m,)` Standardised errors on held-out kernels, rising; empty for a model without intervals
    errors: Reals
    # `(q,)` Quantiles of these with equal weights of programs, for intervals; empty where not known
    of_programs: Reals = field(default_factory=lambda: np.empty(0))
    programs: int = 0  # Number of these programs; 0 where not known
    # `(c,)` Standard deviation of the logarithm of a further run from `centre`, where measured; else 0
    noise: Reals = field(default_factory=lambda: np.zeros(1))
    # `(c,)` Physical limits
    least: Reals = field(default_factory=lambda: np.zeros(1))
    most: Reals = field(default_factory=lambda: np.full(1, np.inf))

    def quantile(self, probability: float) -> Reals:
        """Quantile ``(c,)`` of the true value; the centre without errors."""
        if not self.errors.size:
            return self.centre
        return self.centre * np.exp(self.spread * np.quantile(self.errors, probability))

    def limits(self, level: float) -> tuple[Reals, Reals]:
        """Limits ``(c,)`` of intervals, conformal where errors of programs are known.

        A further program has a share of ``1 / (programs + 1)``, at errors beyond those of all programs.
        """
        if not self.of_programs.size:
            return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)
        within = min(level / most_level(self.programs), 1.0)
        errors = np.quantile(self.of_programs, [(1 - within) / 2, (1 + within) / 2])
        low, high = (self.centre * np.exp(self.spread * error) for error in errors.tolist())
        return np.clip(low, self.least, self.most), np.clip(high, self.least, self.most)

    def probability_within(self, limit: float) -> Reals:
        """Probability ``(c,)`` that the true value is at most `limit`; 0 or 1 without errors."""
        distance: Reals = np.log(limit) - np.log(self.centre)
        step: Reals = (distance >= 0).astype(np.float64)
        if not self.errors.size:
            return step
        exact = ~(self.spread > 0)
        # Linear between two errors, so that `quantile` is its inverse.
        shares = np.linspace(0, 1, self.errors.size)
        shares[-1] = 1.0
        up_to = np.interp(distance / np.where(exact, 1, self.spread), self.errors, shares, left=0.0)
        return np.where(exact | np.isnan(distance), step, up_to)

    def supported_probability(self, limit: float) -> Reals:
        """Probability ``(c,)`` that a further run is at most `limit`, as far as is known.

        That of a prediction is not above what the number of programs supports, and that of a configuration
        that was measured is by the noise of runs.
        """
        probability = self.probability_within(limit)
        if limit == np.inf:
            return probability
        if self.programs:
            probability = np.minimum(probability, most_level(self.programs))
        noise = np.broadcast_to(self.noise, self.centre.shape)
        for number in np.flatnonzero(noise > 0).tolist():
            logarithm = NormalDist(math.log(self.centre[number]), float(noise[number]))
            probability[number] = logarithm.cdf(math.log(limit))
        return probability


@dataclass(frozen=True)
class SurfaceForecast:
    """Time and power of one kernel at every configuration."""

    time: Quantity  # Time in seconds and power in watts
    power: Quantity
    measured: Flags  # `(c,)` Configurations at which the kernel was run


_NONE = np.empty(0)


def plain_forecast(time_s: Reals, power_w: Reals, observed: Observed) -> SurfaceForecast:
    """A forecast without intervals, with measured values where there are runs."""
    measured = np.zeros(len(time_s), np.bool_)
    measured[observed.numbers] = True
    spread = np.where(measured, 0.0, np.nan)
    time, power = time_s.copy(), power_w.copy()
    time[observed.numbers] = observed.time_s
    power[observed.numbers] = observed.power_w
    return SurfaceForecast(Quantity(time, spread, _NONE), Quantity(power, spread, _NONE), measured)


class ConfigurationPredictor(Protocol):
    """A fitted model."""

    @property
    def space(self) -> ConfigurationSpace:
        """The configurations that it predicts."""

    @property
    def samples(self) -> tuple[int, ...]:
        """Indices of the configurations at which a new kernel is run first."""

    @property
    def kind(self) -> str:
        """Kind of its stored form, on a card; empty if it cannot be stored."""
        return ""

    @property
    def fitted(self) -> Stored | None:
        """The stored part; ``None`` if it cannot be stored."""
        return None

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Titles and texts that show people how it decides; empty if it has none."""

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict time and power of one kernel at every configuration, from its runs."""

    def far_features(self, observed: Observed) -> list[tuple[str, float, float, float]]:
        """Features of a kernel that are far from those of the training; see `SampleFeatures.far`."""


class ConfigurationModel(Protocol):
    """A model with its settings; a fit returns a `ConfigurationPredictor`."""

    @property
    def name(self) -> str:
        """Name of the model in tables."""

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> ConfigurationPredictor:
        """Fit to the kernels that ran at all samples."""

    def tested_on(self, programs: Sequence[str]) -> ConfigurationModel:
        """Make the model whose intervals follow from errors on these programs; itself if it has none."""
