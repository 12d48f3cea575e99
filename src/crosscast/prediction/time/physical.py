"""A model of times as a sum of physical terms, with coefficients for each device.

The published study trained a forest on the metrics, which has no physics: twice the instructions may take
half the time. Here each metric enters a term of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.prediction.serialization import Array, Stored
from crosscast.prediction.time import Grid, ProfileBatch, application_weights, device_groups
from crosscast.prediction.trained import single_threaded

_ENTROPIES = (
    "global_memory_address_entropy",
    *(f"local_memory_address_entropy_{bits}" for bits in range(1, 11)),
)
METRICS_NEEDED = (
    *("opcode", "total_instruction_count", "work_items", "total_barriers_hit", "max_itb"),
    *("total_memory_footprint", "footprint_90", *_ENTROPIES),
)
"""Metrics that the model requires."""

_LEAST = {"work_items": 1.0, "total_instruction_count": 1.0}
_MOST_INVOCATIONS = float(np.exp(3))
_ELEMENT_BITS = 4


@dataclass(frozen=True, eq=False)
class Quantities:
    """Amounts of work of ``n`` kernels, each of shape ``(n,)`` and of one launch."""

    instructions: Reals  # Of all work-items together
    per_item: Reals  # Instructions of a work-item, mean
    # Of the longest work-item, as far as barriers show it; at least the mean
    critical_path: Reals
    barriers: Reals  # Barriers that a work-item meets
    addresses_per_item: Reals  # Distinct addresses that make up 90 % of the accesses, for each work-item
    # Bytes at these addresses, up to a constant factor; the width of an element follows from the number of
    # lowest address bits that never vary
    bytes: Reals
    opcode_mix: Reals  # Opcodes that make up 90 % of the instructions
    locality: Reals  # Share of the addresses' entropy that lies in their 10 lowest bits
    # Logarithm of the number of launches in the run, up to 3: costs that occur once, such as the first touch
    # of a buffer or waking a device, weigh most on a single launch
    repetition: Reals
    work_items: Reals


def quantities_of(profiles: ProfileBatch) -> Quantities:
    """Compute the quantities from the metrics."""
    check_metrics(profiles, METRICS_NEEDED)
    instructions, items = profiles.metric("total_instruction_count"), profiles.metric("work_items")
    entropies = [profiles.metric(name) for name in _ENTROPIES]
    constant_bits = sum(
        np.clip(1 - (entropies[bits - 1] - entropies[bits]), 0, 1) for bits in range(1, _ELEMENT_BITS + 1)
    )
    addresses = profiles.metric("footprint_90")
    per_item = instructions / items
    return Quantities(
        instructions=instructions,
        per_item=per_item,
        critical_path=np.maximum(per_item, profiles.metric("max_itb")),
        barriers=profiles.metric("total_barriers_hit") / items,
        addresses_per_item=addresses / items,
        bytes=addresses * 2.0**constant_bits,
        opcode_mix=profiles.metric("opcode"),
        locality=(entropies[0] - entropies[10]) / np.maximum(entropies[0], 1),
        repetition=np.log(np.minimum(profiles.invocations, _MOST_INVOCATIONS)),
        work_items=items,
    )


def invalid_metrics(profiles: ProfileBatch, names: Sequence[str]) -> Flags:
    """Mask ``(len(names), n)`` of the metrics that are missing, or less than they can be."""
    values = np.stack([profiles.metric(name) for name in names])
    least = np.array([_LEAST.get(name, 0.0) for name in names])
    return ~(np.isfinite(values) & (values >= least[:, None]))


def check_metrics(profiles: ProfileBatch, names: Sequence[str]) -> None:
    """Raise InputError unless all profiles have these metrics."""
    invalid = invalid_metrics(profiles, names)
    if invalid.any():
        index, row = np.argwhere(invalid)[0].tolist()
        name, value = names[index], profiles.metric(names[index])[row]
        raise InputError.of(
            where=f"profile of {profiles.kernel[row]}",
            field=f"metric {name}",
            expected=f"a number of at least {_LEAST.get(name, 0.0):g}",
            found="nothing" if np.isnan(value) else f"{value:g}",
        )


TERMS = ("launch", "throughput", "critical path", "barriers", "memory")
"""Terms of a launch's time.

- launch: a constant of the device.
- throughput: instructions, at the rate of the fully occupied device.
- critical path: instructions of one work-item one after another, at the device's latency. With throughput it
  is a smooth ``instructions / min(work-items, most resident work-items)``.
- barriers: a constant each.
- memory: bytes moved. On a GPU neighbouring work-items share a transaction unless each accesses a range of
  its own, so bytes count once for each address of a work-item there, up to a limit.
"""

_LAUNCH = TERMS.index("launch")
_TINY = 1e-30


class Variant(NamedTuple):
    """One of several variants of the model, whose mean is the forecast."""

    barriers: bool  # Whether barriers have a term
    most_transactions: float  # Most transactions that the bytes of one may cost on a GPU
    robustness: float  # Error of the logarithm from which on the loss grows linearly

    @property
    def form(self) -> tuple[bool, float]:
        """The fields on which the quantities of the terms depend."""
        return self.barriers, self.most_transactions


VARIANTS = tuple(map(Variant._make, product((False, True), (4.0, 6.0), (0.3, 0.6))))
_ORDER = (0, 1, 3, 2, 6, 7, 5, 4)
"""An order of the variants in which each differs from the previous one in one field."""

_FORMS = tuple(dict.fromkeys(variant.form for variant in VARIANTS))


def loads(quantities: Quantities, gpu: Flags, form: tuple[bool, float]) -> Reals:
    """Logarithms of the terms' quantities, of shape ``(n, len(TERMS), d)``."""
    both = np.log(np.stack([amounts(quantities, on_gpu, form) for on_gpu in (False, True)]))
    return np.ascontiguousarray(np.moveaxis(both[gpu.astype(np.int64)], 0, 2))


def amounts(quantities: Quantities, on_gpu: bool, form: tuple[bool, float]) -> Reals:
    """The terms' quantities on a GPU or on another device, above 0, of shape ``(n, len(TERMS))``."""
    barriers, most_transactions = form
    n, moved = len(quantities.instructions), quantities.bytes
    if on_gpu:
        moved = moved * np.clip(quantities.addresses_per_item, 1, most_transactions)
    columns = [
        np.ones(n),
        quantities.instructions,
        quantities.critical_path if on_gpu else quantities.per_item,
        quantities.barriers if barriers else np.zeros(n),
        moved,
    ]
    return np.stack(columns, 1) + _TINY


# Factors of terms beside their quantities: of which quantity, on which terms, and on which devices.
_MODIFIERS: tuple[tuple[Callable[[Quantities], Reals], Sequence[int], str], ...] = (
    # A richer mix of opcodes uses a CPU's pipelines less well, and vectorizes worse.
    (lambda q: q.opcode_mix, (1, 2, 3, 4), "not gpu"),
    # Accesses within a few lines need less bandwidth.
    (lambda q: q.locality, (1, 2), "not gpu"),
    # Costs that occur once are those of GPUs, with their own memory and clocks.
    (lambda q: q.repetition, (0,), "gpu"),
    # Larger programs and larger ranges take longer to launch.
    (lambda q: np.log(q.per_item), (0,), "all"),
    (lambda q: np.log(q.work_items), (0,), "gpu"),
)
_MOST_DEVIATIONS = 2.5


def modifiers_of(quantities: Quantities) -> Reals:
    """Modifiers of ``n`` kernels, of shape ``(n, b)``."""
    return np.stack([modifier(quantities) for modifier, _, _ in _MODIFIERS], 1)


def standardized(values: Reals, centre: Reals, scale: Reals, most: float = _MOST_DEVIATIONS) -> Reals:
    """Distance from the mean of the training kernels in standard deviations, limited."""
    return np.clip((values - centre) / scale, -most, most)


def masks_of(devices: Sequence[Device]) -> Reals:
    """Ones where each modifier acts, of shape ``(b, len(TERMS), d)``."""
    gpu = np.array([device.type == "gpu" for device in devices])
    where = {"gpu": gpu, "not gpu": ~gpu, "all": np.ones(len(devices), dtype=bool)}
    masks = np.zeros((len(_MODIFIERS), len(TERMS), len(devices)))
    for row, (_, terms, kind) in enumerate(_MODIFIERS):
        masks[row, list(terms)] = where[kind]
    return masks


_DEVICE_RIDGE = 0.3
_GROUP_RIDGE = 0.09
_ALL_RIDGE = 1e-3
_MODIFIER_RIDGE = 3.0
_STEPS = 500
_ABSENT = -60.0


@dataclass(frozen=True, eq=False)
class Data:
    """Training data of the coefficients."""

    loads: Reals  # `(n, t, d)` Logarithms of the terms' quantities
    modifiers: Reals  # `(n, b)` Standardized
    masks: Reals  # `(b, t, d)` Where the modifiers act
    log_time: Reals  # `(n, d)` Logarithms of times; NaN where not known
    weights: Reals  # `(n,)` Weight of each kernel
    groups: Integers  # `(d,)` Number of each device's group


def log_sum(parts: Reals) -> tuple[Reals, Reals]:
    """Logarithm of the sum of terms whose logarithms are given, and the terms' shares."""
    most = parts.max(axis=1, keepdims=True)
    shares = np.exp(parts - most)
    total = shares.sum(axis=1, keepdims=True)
    shares /= total
    return (most + np.log(total))[:, 0], shares


def fit_coefficients(
    data: Data, robustness: float, near: tuple[Reals, Reals] | None = None
) -> tuple[Reals, Reals]:
    """Fit coefficients by a penalized pseudo-Huber loss of log times.

    Returns logarithms of the cost of a unit of each term on each device ``(t, d)``, and the strength of each
    modifier ``(b,)``. The search starts at the coefficients `near`, or at those of `_start`.
    """
    # Imported here: predicting needs no SciPy.
    from scipy.optimize import minimize

    start = _start(data)
    t, d = len(start), len(data.groups)
    known = np.isfinite(data.log_time)
    target = np.where(known, data.log_time, 0.0)
    weights = np.where(known, data.weights[:, None], 0.0)
    modified = data.modifiers[:, :, None, None] * data.masks
    groups: list[Flags] = [data.groups == number for number in np.unique(data.groups)]

    def split(values: Reals) -> tuple[Reals, Reals, Reals]:
        return values[:t], values[t : t + t * d].reshape(t, d), values[t + t * d :]

    def loss(values: Reals) -> tuple[float, Reals]:
        overall, terms, strengths = split(values)
        total, shares = log_sum(data.loads + terms + np.einsum("b,nbtd->ntd", strengths, modified))
        error = total - target
        root = np.sqrt(1 + (error / robustness) ** 2)
        value = float((weights * robustness**2 * (root - 1)).sum())
        slope = shares * (weights * error / root)[:, None, :]
        by_terms = slope.sum(axis=0)
        by_strengths = np.einsum("nbtd,ntd->b", modified, slope)
        by_overall = np.zeros(t)
        for group in groups:
            mean = terms[:, group].mean(axis=1)
            from_group, from_all = terms[:, group] - mean[:, None], mean - overall
            value += _DEVICE_RIDGE * float((from_group**2).sum()) + _GROUP_RIDGE * float((from_all**2).sum())
            by_terms[:, group] += (
                2 * _DEVICE_RIDGE * from_group + (2 * _GROUP_RIDGE * from_all / group.sum())[:, None]
            )
            by_overall -= 2 * _GROUP_RIDGE * from_all
        value += _ALL_RIDGE * float(((overall - start) ** 2).sum())
        value += _MODIFIER_RIDGE * float((strengths**2).sum())
        by_overall += 2 * _ALL_RIDGE * (overall - start)
        by_strengths = by_strengths + 2 * _MODIFIER_RIDGE * strengths
        return value, np.concatenate([by_overall, by_terms.ravel(), by_strengths])

    terms, strengths = np.repeat(start, d).reshape(t, d), np.zeros(data.modifiers.shape[1])
    overall = start
    if near is not None:
        terms, strengths = near
        overall = np.mean([terms[:, group].mean(axis=1) for group in groups], axis=0)
    first = np.concatenate([overall, terms.ravel(), strengths])
    # Synchronizing BLAS threads takes longer than these small vectors do.
    with single_threaded():
        best = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    _, terms, strengths = split(best.x)
    return terms, strengths


def _start(data: Data) -> Reals:
    """Coefficients with which each term alone explains the large kernels, and launches the small ones."""
    times = data.log_time[np.isfinite(data.log_time)]
    start = np.empty(data.loads.shape[1])
    for term in range(len(start)):
        load = data.loads[:, term].max(axis=1)
        present = load[load > _ABSENT]
        start[term] = np.median(times) - (np.quantile(present, 0.9) if present.size else 0.0) - 0.5
    least = np.where(np.isfinite(data.log_time), data.log_time, np.inf).min(axis=1)
    # A kernel that was measured on none of the devices has no least time.
    start[0] = float(least[np.isfinite(least)].mean())
    return start


@dataclass(frozen=True, eq=False)
class PhysicalPredictor(Stored, kind="physical"):
    """A fitted physical model: ``v`` variants of ``t`` terms with ``b`` modifiers on ``d`` devices."""

    gpu: Annotated[Flags, Array("d")]  # Which devices are GPUs
    masks: Annotated[Reals, Array(f"b {len(TERMS)} d")]  # Where the modifiers act
    centre: Annotated[Reals, Array("b")]  # Mean and standard deviation of the modifiers in the training
    scale: Annotated[Reals, Array("b", above=0)]
    terms: Annotated[Reals, Array(f"{len(VARIANTS)} {len(TERMS)} d")]  # See `fit_coefficients`
    strengths: Annotated[Reals, Array(f"{len(VARIANTS)} b")]

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds, of shape ``(n, d)``."""
        return self.log_time_and_launch_share(quantities_of(profiles))[0]

    def log_time_and_launch_share(self, quantities: Quantities) -> tuple[Reals, Reals]:
        """Logarithms of times, and the share of them that the launch takes, of shape ``(n, d)`` each."""
        total, share = np.zeros((2, len(quantities.instructions), len(self.gpu)))
        modifiers = standardized(modifiers_of(quantities), self.centre, self.scale)
        for columns, on_gpu, fitted in self._groups:
            works = {form: amounts(quantities, on_gpu, form) for form in _FORMS}
            for variant, (strengths, costs) in zip(VARIANTS, fitted, strict=True):
                work = works[variant.form] * np.exp(modifiers @ strengths)
                time = work @ costs
                total[:, columns] += np.log(time)
                share[:, columns] += work[:, [_LAUNCH]] * costs[_LAUNCH] / time
        return total / len(VARIANTS), share / len(VARIANTS)

    @cached_property
    def _groups(self) -> list[tuple[Integers, bool, list[tuple[Reals, Reals]]]]:
        """Devices grouped by type and by masks of the modifiers, so that a group is one matrix product.

        Of each group the columns, whether they are GPUs, and for each variant the strengths of the modifiers
        by term, ``(b, t)``, and the costs of a unit of each term, ``(t, number of devices)``.
        """
        marks = np.vstack([self.gpu[None, :], self.masks.reshape(-1, len(self.gpu))])
        _, number = np.unique(marks, axis=1, return_inverse=True)
        groups = []
        for columns in (np.flatnonzero(number == each) for each in range(int(number.max()) + 1)):
            mask, coefficients = self.masks[:, :, columns[0]], zip(self.strengths, self.terms, strict=True)
            fitted = [
                (strengths[:, None] * mask, np.exp(terms[:, columns])) for strengths, terms in coefficients
            ]
            groups.append((columns, bool(self.gpu[columns[0]]), fitted))
        return groups


@dataclass(frozen=True)
class Physical:
    """A sum of terms, each with a coefficient on each device."""

    name: str = "physical"

    def fit(self, grid: Grid, seed: int) -> PhysicalPredictor:
        """Fit the coefficients; nothing is random, so the seed is not used."""
        quantities = quantities_of(grid.profiles)
        raw = modifiers_of(quantities)
        centre, scale = raw.mean(axis=0), raw.std(axis=0) + 1e-9
        gpu = np.array([device.type == "gpu" for device in grid.devices])
        masks, modifiers = masks_of(grid.devices), standardized(raw, centre, scale)
        weights, groups = application_weights(grid.profiles), device_groups(grid.devices)
        data = {
            form: Data(loads(quantities, gpu, form), modifiers, masks, grid.log_time, weights, groups)
            for form in _FORMS
        }
        fitted: dict[int, tuple[Reals, Reals]] = {}
        near = None
        for index in _ORDER:
            variant = VARIANTS[index]
            fitted[index] = near = fit_coefficients(data[variant.form], variant.robustness, near)
        terms, strengths = map(np.stack, zip(*(fitted[index] for index in sorted(fitted)), strict=True))
        return PhysicalPredictor(gpu, masks, centre, scale, terms, strengths)
