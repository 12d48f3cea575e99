"""What was measured on a machine over its configurations, and what is forecast of a kernel there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.configuration import Configuration
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.data.table import Table


@dataclass(frozen=True)
class Space:
    """What one may choose from."""

    # The configurations, by device and then by their settings, each rising
    configurations: tuple[Configuration, ...]

    def __post_init__(self) -> None:
        if not self.configurations:
            raise InputError("configurations: expected at least one, found none")
        most, count = Counter(self.configurations).most_common(1)[0]
        if count > 1:
            raise InputError(f"configurations: expected each once, found {most} twice")
        kinds: dict[str, type] = {}
        for each in self.configurations:
            for name, value in each.settings.items():
                if kinds.setdefault(name, type(value)) is not type(value):
                    raise InputError(f"configurations: {name}: expected numbers or words, found both")
        object.__setattr__(self, "configurations", tuple(sorted(self.configurations, key=_order)))

    def __len__(self) -> int:
        """Number of configurations."""
        return len(self.configurations)

    @cached_property
    def _numbers(self) -> dict[Configuration, int]:
        return {each: number for number, each in enumerate(self.configurations)}

    def number_of(self, configuration: Configuration) -> int:
        """Number of a configuration: its place among all, from 0."""
        if configuration not in self._numbers:
            raise InputError(
                f"configuration: expected one of the {len(self)} that are known, such as "
                f"{self.configurations[0]}; found {configuration}"
            )
        return self._numbers[configuration]

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Keys of the devices, sorted."""
        return tuple(sorted({each.device for each in self.configurations}))

    @cached_property
    def device_numbers(self) -> Integers:
        """``(c,)`` For each configuration the place of its device in `devices`."""
        return np.array([self.devices.index(each.device) for each in self.configurations], np.int64)

    @cached_property
    def knobs(self) -> tuple[str, ...]:
        """Names of the numeric settings that have more than one value on some device, sorted."""
        return self._varying(float)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Names of the settings that hold words and are not the same throughout, sorted."""
        return self._varying(str)

    def _varying(self, kind: type) -> tuple[str, ...]:
        all_settings = [each.settings for each in self.configurations]
        names = {name for each in all_settings for name, value in each.items() if isinstance(value, kind)}
        found = {
            (each.device, name, each.settings.get(name)) for each in self.configurations for name in names
        }
        counts = Counter((device, name) for device, name, _ in found)
        return tuple(sorted({name for (_, name), count in counts.items() if count > 1}))

    @cached_property
    def matrix(self) -> Reals:
        """``(c, knobs)`` What each knob is set to; NaN where a device does not have it."""
        rows = [[each.settings.get(name, np.nan) for name in self.knobs] for each in self.configurations]
        return np.array(rows, np.float64).reshape(len(self), len(self.knobs))

    def values_of(self, word: str) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
        """``(c,)`` What a setting of words is set to; empty where a configuration does not have it."""
        return np.array([str(each.settings.get(word, "")) for each in self.configurations])


def _order(configuration: Configuration) -> tuple[object, ...]:
    # A knob that a configuration lacks comes before any setting of it.
    return (
        configuration.device,
        tuple((name, isinstance(value, str), value) for name, value in configuration.settings.items()),
    )


class KernelAt(NamedTuple):
    """A kernel at a problem size."""

    application: str
    kernel: str
    size: str

    def __str__(self) -> str:
        """Application, kernel where it has another name, and size."""
        names = (self.application, self.kernel) if self.kernel != self.application else (self.application,)
        return " ".join(("/".join(names), self.size))


@dataclass(frozen=True)
class Observed:
    """Runs of one kernel."""

    # `(r,)` Configuration of each run, by its place in the space; each at most once
    numbers: Integers
    time_s: Reals  # `(r,)` Time in seconds and mean power in watts
    power_w: Reals
    # `(r,)` Power of each domain that a sensor tells apart, in watts; NaN where it does not
    domains: Mapping[str, Reals] = field(default_factory=dict)
    # `(r,)` Counters of each run by name; NaN where there is none
    counters: Mapping[str, Reals] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.numbers)

    def and_run(self, run: Observed) -> Observed:
        """These runs and others, which replace those at the same configurations.

        A domain or counter that one side does not know is NaN there.
        """
        kept = ~np.isin(self.numbers, run.numbers)
        return Observed(
            np.concatenate([self.numbers[kept], run.numbers]),
            np.concatenate([self.time_s[kept], run.time_s]),
            np.concatenate([self.power_w[kept], run.power_w]),
            _joined(self.domains, run.domains, kept, len(run)),
            _joined(self.counters, run.counters, kept, len(run)),
        )

    def place(self, number: int) -> int | None:
        """Which run is that of a configuration, if there is one."""
        found = np.flatnonzero(self.numbers == number)
        return int(found[0]) if found.size else None


def _joined(
    ones: Mapping[str, Reals], others: Mapping[str, Reals], kept: Flags, count: int
) -> dict[str, Reals]:
    before, after = np.full(len(kept), np.nan), np.full(count, np.nan)
    return {
        name: np.concatenate([ones.get(name, before)[kept], others.get(name, after)])
        for name in dict.fromkeys([*ones, *others])
    }


@dataclass(frozen=True)
class Surfaces:
    """Times and powers of kernels over one space of configurations."""

    label: str  # What it is from, for messages
    kernels: tuple[KernelAt, ...]  # `n` kernels at their sizes
    space: Space  # `c` configurations
    time_s: Reals  # `(n, c)` Time in seconds and mean power in watts; both NaN where a kernel did not run
    power_w: Reals
    # `(n, c)` Power of each domain in watts, by name; NaN where it is not known
    domains: Mapping[str, Reals] = field(default_factory=dict)
    # `(n, c)` Counters by name; NaN where they are not known
    counters: Mapping[str, Reals] = field(default_factory=dict)

    @property
    def known(self) -> Flags:
        """``(n, c)`` Where a kernel ran."""
        return np.isfinite(self.time_s)

    @property
    def applications(self) -> tuple[str, ...]:
        """Names of the applications, sorted."""
        return tuple(sorted({each.application for each in self.kernels}))

    def rows_of(self, applications: Sequence[str]) -> Flags:
        """``(n,)`` Which kernels are of some applications."""
        return np.array([each.application in applications for each in self.kernels], np.bool_)

    def take(self, rows: Flags | Integers) -> Surfaces:
        """Some of the kernels alone, with all configurations."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Surfaces(
            self.label,
            tuple(self.kernels[row] for row in chosen),
            self.space,
            self.time_s[chosen],
            self.power_w[chosen],
            {name: values[chosen] for name, values in self.domains.items()},
            {name: values[chosen] for name, values in self.counters.items()},
        )

    def observed(self, row: int, numbers: Sequence[int]) -> Observed:
        """The runs of one kernel at some configurations; those where it did not run are left out."""
        there = np.array([each for each in numbers if self.known[row, each]], np.int64)
        return Observed(
            there,
            self.time_s[row, there],
            self.power_w[row, there],
            {name: values[row, there] for name, values in self.domains.items()},
            {name: values[row, there] for name, values in self.counters.items()},
        )


def machines_of(runs: Table, label: str, devices: Sequence[str] | None = None) -> tuple[Surfaces, ...]:
    """Surfaces of each machine: of the devices that have a kernel in common, directly or through others."""
    rows = [row for row in runs.to_pylist() if row["time_s"] > 0 and (row["power_w"] or 0) > 0]
    if not rows:
        raise InputError(f"{label}: expected runs with time and power, found none")
    if devices is not None:
        known = sorted({row["device"] for row in rows})
        for device in devices:
            if device not in known:
                raise InputError(f"{label}: device: expected one of {', '.join(known)}, found {device!r}")
        rows = [row for row in rows if row["device"] in devices]
    kernels: dict[str, set[KernelAt]] = {}
    for row in rows:
        kernels.setdefault(row["device"], set()).add(_kernel(row))
    return tuple(
        _surfaces([row for row in rows if row["device"] in machine], label) for machine in _connected(kernels)
    )


def _kernel(row: Mapping[str, str]) -> KernelAt:
    return KernelAt(row["application"], row["kernel"], row["size"])


def _connected(kernels: Mapping[str, set[KernelAt]]) -> list[set[str]]:
    """Devices, put together where they share a kernel."""
    groups: list[set[str]] = []
    for device in sorted(kernels):
        near = [group for group in groups if any(kernels[each] & kernels[device] for each in group)]
        groups = [group for group in groups if group not in near] + [{device}.union(*near)]
    return sorted(groups, key=min)


def _surfaces(rows: Sequence[Mapping[str, str]], label: str) -> Surfaces:
    at = [Configuration.of(row["device"], row["configuration"]) for row in rows]
    space = Space(tuple(dict.fromkeys(at)))
    kernels = tuple(sorted({_kernel(row) for row in rows}))
    places = {kernel: place for place, kernel in enumerate(kernels)}
    points = np.array([places[_kernel(row)] for row in rows]), np.array([space.number_of(c) for c in at])
    shape = (len(kernels), len(space))
    (kernel, number), count = Counter(zip(*(each.tolist() for each in points), strict=True)).most_common(1)[0]
    if count > 1:
        # Numbers of two forms, such as 1 and 1.0, are two keys of a table.
        at_it = space.configurations[number]
        raise InputError(f"{label}: expected each kernel once at {at_it}, found {kernels[kernel]} again")

    def spread(values: Sequence[object]) -> Reals:
        surface = np.full(shape, np.nan)
        surface[points] = np.array(values, np.float64)
        return surface

    def by_name(column: str) -> dict[str, Reals]:
        cells = [json.loads(row[column] or "{}") for row in rows]
        names = sorted({name for each in cells for name in each})
        return {name: spread([each.get(name, np.nan) for each in cells]) for name in names}

    time_s, power_w = (spread([row[name] for row in rows]) for name in ("time_s", "power_w"))
    return Surfaces(label, kernels, space, time_s, power_w, by_name("powers"), by_name("counters"))


Totals = Mapping[str, tuple[tuple[str, ...], ...]]
"""For each device the sets of domains of which the powers sum to the whole."""

_MOST_TOGETHER = 4
_MOST_DOMAINS = 12
_TOLERANCE = 1e-3
"""Share by which sums may be off, as sources round."""


def power_totals(surfaces: Surfaces) -> Totals:
    """Find the sets of domains whose powers sum to the power, wherever it is known."""
    found = {}
    for number, device in enumerate(surfaces.space.devices):
        own = np.broadcast_to(surfaces.space.device_numbers == number, surfaces.known.shape)
        known = own & surfaces.known
        domains = {name: values[known] for name, values in surfaces.domains.items()}
        there = {name: values for name, values in domains.items() if np.isfinite(values).all()}
        found[device] = _sets(dict(list(there.items())[:_MOST_DOMAINS]), surfaces.power_w[known])
    return MappingProxyType(found)


def _sets(domains: Mapping[str, Reals], power_w: Reals) -> tuple[tuple[str, ...], ...]:
    if not power_w.size:
        return ()
    found: list[tuple[str, ...]] = []
    for count in range(1, _MOST_TOGETHER + 1):
        for names in combinations(sorted(domains), count):
            if any(set(smaller) <= set(names) for smaller in found):
                continue
            if np.allclose(sum(domains[name] for name in names), power_w, rtol=_TOLERANCE, atol=0):
                found.append(names)
    return tuple(found)


def total_power(sets: tuple[tuple[str, ...], ...], powers_w: Mapping[str, float]) -> float | None:
    """Power of the whole by those of its domains, in watts; ``None`` if too few of them are known."""
    known = (names for names in sets if all(name in powers_w for name in names))
    return next((sum(powers_w[name] for name in names) for names in known), None)


def sampled(surfaces: Surfaces, samples: Sequence[int]) -> Surfaces:
    """The kernels that ran at all sample configurations: only of these can be learned."""
    if not samples:
        raise InputError("samples: expected at least one sample configuration, found none")
    there: Flags = np.all(surfaces.known[:, list(samples)], axis=1)
    if not there.any():
        names = "; ".join(str(surfaces.space.configurations[each]) for each in samples)
        raise InputError(f"{surfaces.label}: expected a kernel that ran at all samples ({names}), found none")
    return surfaces.take(there)


def sample_numbers(space: Space, samples: Sequence[Configuration]) -> tuple[int, ...]:
    """Numbers of sample configurations."""
    try:
        numbers = tuple(space.number_of(each) for each in samples)
    except InputError as error:
        raise error.within("samples") from error
    if not numbers or len(set(numbers)) < len(numbers):
        found = "; ".join(map(str, samples)) or "none"
        raise InputError(f"samples: expected at least one configuration, and each once, found {found}")
    return numbers


def sample_places(space: Space, samples: Sequence[int], observed: Observed) -> list[int]:
    """Which of a kernel's runs are those at the sample configurations."""
    places = []
    for number in samples:
        place = observed.place(number)
        if place is None:
            raise InputError(
                f"samples: expected a run at {space.configurations[number]}, found none there"
                f" among {len(observed)}"
            )
        for what, value in (("time", observed.time_s[place]), ("power", observed.power_w[place])):
            if not 0 < value < np.inf:
                raise InputError(
                    f"samples: expected a {what} above 0 at {space.configurations[number]}, found {value:g}"
                )
        places.append(place)
    return places


def reference_samples(space: Space, samples: Sequence[int]) -> Integers:
    """``(c,)`` The sample from which each configuration is scaled, by its place among the samples.

    The first sample on the same device; the first of all, where a device has none. In the paper each device
    has one (Bailey et al. 2014, section III-B).
    """
    numbers = [space.device_numbers[each] for each in samples]
    first = [numbers.index(device) if device in numbers else 0 for device in range(len(space.devices))]
    return np.array(first, np.int64)[space.device_numbers]


def pareto_frontier(time_s: Reals, power_w: Reals) -> Integers:
    """Configurations than which no other is as fast at as little power.

    Of configurations that agree in both, the first is taken.
    Numbers of the configurations on the frontier, by rising power, and thus by falling time (Bailey et
    al. 2014, section III-B).

    >>> pareto_frontier(np.array([4.0, 2.0, 3.0]), np.array([10.0, 30.0, 40.0])).tolist()
    [0, 1]
    """
    known = np.flatnonzero(np.isfinite(time_s) & np.isfinite(power_w))
    rising = known[np.lexsort((time_s[known], power_w[known]))]
    if not rising.size:
        return rising
    least = np.minimum.accumulate(time_s[rising])
    better = np.concatenate(([True], time_s[rising[1:]] < least[:-1]))
    return rising[better]


@dataclass(frozen=True)
class Quantity:
    """Time or power at every configuration.

    The logarithm of the true value, less that of the centre, over `spread`, is distributed as `errors`.
    """

    centre: Reals  # `(c,)` Median
    spread: Reals  # `(c,)` How far the logarithm may be off; 0 where it was measured
    # `(m,)` Standardised errors that the model made on kernels that it had not seen, rising; none for a model
    # that does not know how sure it is
    errors: Reals

    def quantile(self, probability: float) -> Reals:
        """``(c,)`` What the true value is below with this probability; the centre if nothing is known."""
        if not self.errors.size:
            return self.centre
        values: Reals = self.centre * np.exp(self.spread * np.quantile(self.errors, probability))
        return values

    def probability_within(self, limit: float) -> Reals:
        """``(c,)`` Probability that the true value is at most `limit`; 0 or 1 if nothing is known.

        It is 0 where there is no forecast.
        """
        distance: Reals = np.log(limit) - np.log(self.centre)
        certain: Reals = (distance >= 0).astype(np.float64)
        if not self.errors.size:
            return certain
        sure = ~(self.spread > 0)
        # Straight between two errors, so that `quantile` is its inverse.
        shares = np.linspace(0, 1, self.errors.size)
        shares[-1] = 1.0
        up_to = np.interp(distance / np.where(sure, 1, self.spread), self.errors, shares, left=0.0)
        probabilities: Reals = np.where(sure | np.isnan(distance), certain, up_to)
        return probabilities


@dataclass(frozen=True)
class SurfaceForecast:
    """Time and power of one kernel at every configuration."""

    time: Quantity  # Time in seconds and power in watts
    power: Quantity
    measured: Flags  # `(c,)` Which configurations the kernel was run at


_NONE = np.empty(0)


def plain_forecast(time_s: Reals, power_w: Reals, observed: Observed) -> SurfaceForecast:
    """What was predicted, and what was measured where it was."""
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
    def space(self) -> Space:
        """The configurations that it predicts."""

    @property
    def samples(self) -> tuple[int, ...]:
        """The configurations at which it wants a new kernel to be run first, by their numbers."""

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict time and power of one kernel at every configuration, from its runs."""


class ConfigurationModel(Protocol):
    """A way to learn a `ConfigurationPredictor`."""

    @property
    def name(self) -> str:
        """Its name in tables."""

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> ConfigurationPredictor:
        """Learn from the kernels that ran at all samples."""
