"""What models that know no physics see of a profile: logarithms of amounts, and what they stand for.

Amounts enter as ``log(1 + amount)``, since many of them may be 0. All features are finite for every sound
profile, so none of them needs a special case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_names, kept_reals
from crosscast.predict.time.data import Profiles, metric

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
_NAMES = tuple(each.name for each in FEATURES)


@dataclass(frozen=True)
class Features:
    """The features that can be had of all kernels of a training grid, in the order of `FEATURES`.

    Published profiles know about half of the metrics, so what models see depends on what they are fitted to.
    """

    names: tuple[str, ...]  # Names of the `f` features

    @classmethod
    def fit(cls, profiles: Profiles, among: Collection[str] = _NAMES) -> Features:
        """Choose those whose metrics all kernels have, among some."""
        sound = {name: bool(_sound(metric(profiles, name)).all()) for name in _needed(among)}
        names = tuple(
            each.name for each in FEATURES if each.name in among and all(sound[need] for need in each.needs)
        )
        if not names:
            lacking = ", ".join(name for name in sound if not sound[name])
            raise InputError(
                f"profiles: expected metrics that all kernels have, found some without {lacking}"
            )
        return cls(names)

    def matrix(self, profiles: Profiles) -> Reals:
        """Features of ``n`` profiles, of shape ``(n, f)``; finite."""
        metrics = {name: metric(profiles, name) for name in _needed(self.names)}
        for name, values in metrics.items():
            _check(profiles, name, values)
        chosen = [_BY_NAME[name] for name in self.names]
        return np.column_stack([each.formula(*(metrics[need] for need in each.needs)) for each in chosen])

    def places(self, names: Collection[str]) -> list[int]:
        """Columns of the features with these names, as far as they are there."""
        return [place for place, name in enumerate(self.names) if name in names]

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes them again."""
        return {"features": np.array(self.names)}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Features:
        """Make them from their arrays."""
        names = kept_names(state, "features")
        unknown = sorted(set(names) - set(_NAMES))
        if unknown or not names or len(set(names)) != len(names):
            found = ", ".join(unknown or names) or "none"
            raise InputError(
                f"model: features: expected some of {', '.join(_NAMES)}, each once, found {found}"
            )
        return cls(names)


def _needed(names: Collection[str]) -> tuple[str, ...]:
    """Metrics of which features of these names are made, each once."""
    return tuple(dict.fromkeys(need for each in FEATURES if each.name in names for need in each.needs))


def _sound(values: Reals) -> Flags:
    # Not a number is neither; larger ones would not fit into single precision once they are multiplied.
    return (values >= 0) & (values <= _LARGEST)


def _check(profiles: Profiles, name: str, values: Reals) -> None:
    sound = _sound(values)
    if sound.all():
        return
    row = int(np.argmin(sound))
    kernel = "/".join((profiles.application[row], profiles.kernel[row], profiles.size[row]))
    found = "none" if np.isnan(values[row]) else f"{values[row]:g}"
    raise InputError(
        f"profile of {kernel}: {name}: expected a number from 0 to {_LARGEST:g}, which the model needs, "
        f"found {found}"
    )


_LIMIT = 3.0
_LEAST_SCALE = 1e-9


@dataclass(frozen=True)
class Neighbours:
    """Known kernels in a space of features."""

    centre: Reals  # Mean and standard deviation of each feature over the known kernels, of shape `(f,)`
    scale: Reals
    points: Reals  # The features of the `n` known kernels, standardized, of shape `(n, f)`

    @classmethod
    def of(cls, features: Reals) -> Neighbours:
        """Know kernels by their features, of shape ``(n, f)``."""
        centre, scale = features.mean(axis=0), features.std(axis=0) + _LEAST_SCALE
        return cls(centre, scale, _standardized(features, centre, scale))

    def alike(self, features: Reals) -> Reals:
        """Likeness of ``m`` kernels to the known ones: 1 where all features are equal, near 0 far away.

        Matern's covariance with a smoothness of 3/2, of the root mean square of the differences between
        standardized features; these are limited, so that nothing is stranger than three standard deviations.
        Of shape ``(m, n)``.
        """
        asked = _standardized(features, self.centre, self.scale)
        squares = (asked**2).sum(axis=1)[:, None] + (self.points**2).sum(axis=1) - 2 * asked @ self.points.T
        far = np.sqrt(np.maximum(squares, 0.0) * (3 / len(self.centre)))
        likeness: Reals = (1 + far) * np.exp(-far)
        return likeness


def _standardized(features: Reals, centre: Reals, scale: Reals) -> Reals:
    return np.clip((features - centre) / scale, -_LIMIT, _LIMIT)


NUMBERS = (
    "peak_flop_per_s",
    "clock_hz",
    "bandwidth_bytes_per_s",
    "compute_units",
    "cores",
    "l1_bytes",
    "l2_bytes",
    "tdp_w",
)
"""Columns of the table of devices that may set how fast a device is.

All count alike: a choice or weights would have to be learned from the few devices that there are. Sizes of
memory set what fits, not how fast it is; lowest clocks, turbo clocks and third caches are of CPUs alone.
"""

_TREND = NUMBERS[:2]
_LEAST_RANGE = 0.1


@dataclass(frozen=True)
class Pairs:
    """How alike devices are, two by two."""

    # Ones where both are of the same type, vendor or series, of shape `(d, d)`; of a series are those of one
    # name, type and vendor
    types: Reals
    vendors: Reals
    series: Reals
    gpus: Reals  # Ones where both are GPUs, or neither is
    squares: Reals  # Mean square of how many standard deviations their numbers lie apart
    products: Reals  # Mean product of how many standard deviations their numbers lie from the mean
    # Logarithm of the time of an instruction, as clock and peak rate let expect it, of shape `(d,)`
    trend: Reals

    def __len__(self) -> int:
        """Number of devices."""
        return len(self.trend)

    def take(self, devices: Sequence[int]) -> Pairs:
        """Those of some of the devices, by their numbers."""
        places = np.array(devices, dtype=np.int64)
        both = np.ix_(places, places)
        return Pairs(
            self.types[both],
            self.vendors[both],
            self.series[both],
            self.gpus[both],
            self.squares[both],
            self.products[both],
            self.trend[places],
        )


@dataclass(frozen=True)
class Descriptors:
    """Descriptors of ``d`` devices."""

    types: tuple[str, ...]  # Texts, of length `d`; empty where not known
    vendors: tuple[str, ...]
    series: tuple[str, ...]
    names: tuple[str, ...]  # Those of `NUMBERS` that at least one of the devices has
    # Their logarithms, of shape `(d, len(names))`. Where a device lacks a number, the mean over the devices
    # of its type and vendor that have it, or else of its type, or else of all
    logs: Reals

    @classmethod
    def of(cls, devices: Sequence[Device]) -> Descriptors:
        """Collect those of some devices."""
        names = tuple(name for name in NUMBERS if any(_number(device, name) for device in devices))
        found = np.array([[_log_number(device, name) for name in names] for device in devices])
        types, vendors, series = _texts(devices)
        logs = found.reshape(len(devices), len(names))
        return cls(types, vendors, series, names, _filled(logs, types, vendors))

    def joined(self, device: Device) -> Descriptors:
        """The same with a further device, the last."""
        numbers = np.array([_log_number(device, name) for name in self.names])
        if not (device.type or device.vendor or device.series or np.isfinite(numbers).any()):
            raise InputError(f"device {device.key}: expected a type, vendor, series or number, found none")
        (kind,), (vendor,), (series,) = _texts([device])
        types, vendors = (*self.types, kind), (*self.vendors, vendor)
        logs = _filled(np.vstack([self.logs, numbers]), types, vendors)
        return Descriptors(types, vendors, (*self.series, series), self.names, logs)

    def pairs(self, known: int) -> Pairs:
        """How alike they are, in standard deviations of the first `known` of them."""
        scale = np.maximum(self.logs[:known].std(axis=0), _LEAST_RANGE)
        scaled = (self.logs - self.logs[:known].mean(axis=0)) / scale
        count = max(len(self.names), 1)
        types, vendors, series = _equal(self.types), _equal(self.vendors), _equal(self.series)
        return Pairs(
            types,
            vendors,
            types * vendors * series,
            _equal(["gpu" if kind == "gpu" else "other" for kind in self.types]),
            ((scaled[:, None] - scaled) ** 2).sum(axis=2) / count,
            scaled @ scaled.T / count,
            self._trend(),
        )

    def _trend(self) -> Reals:
        columns = [place for place, name in enumerate(self.names) if name in _TREND]
        trend: Reals = -self.logs[:, columns].sum(axis=1) / max(len(columns), 1)
        return trend

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes them again."""
        return {
            "device_types": np.array(self.types, dtype=np.str_),
            "device_vendors": np.array(self.vendors, dtype=np.str_),
            "device_series": np.array(self.series, dtype=np.str_),
            "device_numbers": np.array(self.names, dtype=np.str_),
            "device_logs": self.logs,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Descriptors:
        """Make them from their arrays."""
        texts = [kept_names(state, f"device_{name}") for name in ("types", "vendors", "series", "numbers")]
        types, vendors, series, names = texts
        logs = kept_reals(state, "device_logs", 2)
        unknown = sorted(set(names) - set(NUMBERS))
        if unknown:
            raise InputError(
                f"model: device_numbers: expected some of {', '.join(NUMBERS)}, found {', '.join(unknown)}"
            )
        if not (len(types) == len(vendors) == len(series) and logs.shape == (len(types), len(names))):
            raise InputError(
                f"model: device_logs: expected shape ({len(types)}, {len(names)}), found {logs.shape}"
            )
        return cls(types, vendors, series, names, logs)


def _texts(devices: Sequence[Device]) -> tuple[tuple[str, ...], ...]:
    return (
        tuple(device.type for device in devices),
        tuple(device.vendor for device in devices),
        tuple(device.series for device in devices),
    )


def _number(device: Device, name: str) -> float | None:
    value = device.numbers.get(name)
    return value if value is not None and 0 < value < np.inf else None


def _log_number(device: Device, name: str) -> float:
    value = _number(device, name)
    return float("nan") if value is None else float(np.log(value))


def _filled(logs: Reals, types: Sequence[str], vendors: Sequence[str]) -> Reals:
    """Numbers that are not known, by the means over the devices that are most alike and have them."""
    filled = logs.copy()
    alike = _equal(types)
    for row, column in np.argwhere(np.isnan(logs)):
        there = ~np.isnan(logs[:, column])
        nearer = [alike[row] * _equal(vendors)[row], alike[row], np.ones(len(logs))]
        chosen = next(flags for each in nearer if (flags := there & (each > 0)).any())
        filled[row, column] = logs[chosen, column].mean()
    return filled


def _equal(texts: Sequence[str]) -> Reals:
    """Ones where texts are the same; one that is not known is like itself alone."""
    array = np.array(texts, dtype=np.str_)
    equal: Flags = (array[:, None] == array) & (array != "") | np.eye(len(array), dtype=np.bool_)
    return equal.astype(np.float64)


_MEANS = np.array([2.0, 1.0, 1.0, 2.0, 0.5, 0.4])
_SPREADS = np.array([2.0, 1.0, 1.0, 1.5, 1.0, 0.4])
_DRAWS = 300
_KEPT = 10


@dataclass(frozen=True)
class Likeness:
    """Several ways to weight, whose mean is used: so few devices do not tell which is best."""

    WIDTH: ClassVar[int] = len(_MEANS)

    # For each way, how much lighter (in logarithms) a device weighs that is of another type, vendor or
    # series, for each standard deviation between the numbers, and for each square of it; and the power of
    # clock and peak rate with which times are brought from one device to another. Of shape `(m, 6)`
    ways: Reals

    def weights(self, pairs: Pairs) -> tuple[Reals, float]:
        """Weights of all devices but the last for the last, of shape ``(d - 1,)``, and what is added."""
        weights = _weights(self.ways, pairs)[:, -1, :-1]
        added = self.ways[:, 5] * (pairs.trend[-1] - weights @ pairs.trend[:-1])
        return weights.mean(axis=0), float(added.mean())


def fit_likeness(pairs: Pairs, log_time: Reals, kernels: Reals, seed: int) -> Likeness:
    """Choose ways to weight among many that are drawn, by the mean absolute error on devices left out."""
    ways = np.abs(np.random.default_rng(seed).normal(_MEANS, _SPREADS, (_DRAWS, len(_MEANS))))
    losses = []
    # One after the other, as the errors of all would need much memory where kernels are many.
    for weights, power in zip(_weights(ways, pairs), ways[:, 5], strict=True):
        scaled = log_time - power * pairs.trend
        losses.append(kernels @ np.abs(scaled @ weights.T - scaled).sum(axis=1))
    return Likeness(ways[np.argsort(losses, kind="stable")[:_KEPT]])


def _weights(ways: Reals, pairs: Pairs) -> Reals:
    """Weights for each device (second axis) of the others (third axis), of shape ``(m, d, d)``."""
    apart = [1 - pairs.types, 1 - pairs.vendors, 1 - pairs.series, np.sqrt(pairs.squares), pairs.squares]
    logs = -np.tensordot(ways[:, :5], np.stack(apart), 1)
    logs[:, np.arange(len(pairs)), np.arange(len(pairs))] = -np.inf
    weights = np.exp(logs - logs.max(axis=2, keepdims=True))
    shares: Reals = weights / weights.sum(axis=2, keepdims=True)
    return shares
