"""What a launch has to do, in the quantities whose prices a device sets.

The published study gave the metrics to a forest, which knows no physics: twice the instructions may as well
take half the time. Here each metric enters where it costs time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_integers, kept_reals
from crosscast.predict.time.data import Grid, Profiles, application_weights, kinds_of, metric

_ENTROPIES = (
    "global_memory_address_entropy",
    *(f"local_memory_address_entropy_{bits}" for bits in range(1, 11)),
)
METRICS_NEEDED = (
    "opcode",
    "total_instruction_count",
    "work_items",
    "total_barriers_hit",
    "max_itb",
    "total_memory_footprint",
    "footprint_90",
    *_ENTROPIES,
)
"""Metrics without which the model cannot say anything."""

_LEAST = {"work_items": 1.0, "total_instruction_count": 1.0}
_MOST_INVOCATIONS = float(np.exp(3))
_ELEMENT_BITS = 4


@dataclass(frozen=True)
class Quantities:
    """Quantities of ``n`` kernels, each of shape ``(n,)`` and of one launch."""

    instructions: Reals  # Instructions, of all work-items together
    per_item: Reals  # Instructions of a work-item, mean
    # Instructions of the longest work-item, as far as barriers let it be seen, at least the mean
    critical_path: Reals
    barriers: Reals  # Barriers that a work-item meets
    addresses_per_item: Reals  # Distinct addresses that make up 90 % of the accesses, for each work-item
    # Bytes at these addresses, up to a constant factor; how wide an element is shows in how many of the
    # lowest address bits never vary
    bytes: Reals
    opcode_mix: Reals  # Opcodes that make up 90 % of the instructions
    locality: Reals  # Share of the addresses' entropy that lies in their 10 lowest bits
    # Logarithm of the number of launches in the run, up to 3: what is done once, such as the first touch of a
    # buffer or waking a device, weighs on a single launch alone
    repetition: Reals
    work_items: Reals  # Work-items


def quantities_of(profiles: Profiles) -> Quantities:
    """Work out the quantities from the metrics."""
    check_metrics(profiles, METRICS_NEEDED)
    instructions, items = metric(profiles, "total_instruction_count"), metric(profiles, "work_items")
    entropies = [metric(profiles, name) for name in _ENTROPIES]
    still = sum(
        np.clip(1 - (entropies[bits - 1] - entropies[bits]), 0, 1) for bits in range(1, _ELEMENT_BITS + 1)
    )
    addresses = metric(profiles, "footprint_90")
    per_item = instructions / items
    return Quantities(
        instructions=instructions,
        per_item=per_item,
        critical_path=np.maximum(per_item, metric(profiles, "max_itb")),
        barriers=metric(profiles, "total_barriers_hit") / items,
        addresses_per_item=addresses / items,
        bytes=addresses * 2.0**still,
        opcode_mix=metric(profiles, "opcode"),
        locality=(entropies[0] - entropies[10]) / np.maximum(entropies[0], 1),
        repetition=np.log(np.minimum(profiles.invocations, _MOST_INVOCATIONS)),
        work_items=items,
    )


def check_metrics(profiles: Profiles, names: Sequence[str]) -> None:
    """Check that all profiles have some metrics."""
    values = np.stack([metric(profiles, name) for name in names])
    least = np.array([_LEAST.get(name, 0.0) for name in names])
    wrong = ~(np.isfinite(values) & (values >= least[:, None]))
    if wrong.any():
        place, row = (int(each) for each in np.argwhere(wrong)[0])
        found = "nothing" if np.isnan(values[place, row]) else f"{values[place, row]:g}"
        raise InputError(
            f"profile of {profiles.kernel[row]}: metric {names[place]}: expected a number of at least "
            f"{least[place]:g}, found {found}"
        )


TERMS = ("launch", "throughput", "critical path", "barriers", "memory")
"""What a launch's time is the sum of.

- launch: a constant of the device.
- throughput: instructions, at the device's rate when it is full.
- critical path: instructions of one work-item one after another, at the device's latency. With throughput it
  makes ``instructions / min(work-items, what the device holds)`` without a corner.
- barriers: what each costs.
- memory: bytes moved. On a GPU neighbouring work-items share a transaction unless each walks a stretch of
  its own, so bytes count once for each address of a work-item there, up to a limit.
"""

_TINY = 1e-30


@dataclass(frozen=True)
class Variant:
    """One of several forms of the model, whose mean is the forecast: no form is right."""

    barriers: bool  # Whether barriers have a term
    most_transactions: float  # Up to how many transactions the bytes of one may cost on a GPU
    robustness: float  # Error of the logarithm from which on the loss grows linearly


VARIANTS = tuple(
    Variant(barriers, most, robustness)
    for barriers in (False, True)
    for most in (4.0, 6.0)
    for robustness in (0.3, 0.6)
)


def loads(quantities: Quantities, gpu: Flags, variant: Variant) -> Reals:
    """Logarithms of the terms' quantities, of shape ``(n, len(TERMS), d)``."""
    both = np.log(np.stack([amounts(quantities, on_gpu, variant) for on_gpu in (False, True)]))
    return np.ascontiguousarray(np.moveaxis(both[gpu.astype(np.int64)], 0, 2))


def amounts(quantities: Quantities, on_gpu: bool, variant: Variant) -> Reals:
    """The terms' quantities on a GPU or on another device, above 0, of shape ``(n, len(TERMS))``."""
    n = len(quantities.instructions)
    columns = [
        np.ones(n),
        quantities.instructions,
        quantities.critical_path if on_gpu else quantities.per_item,
        quantities.barriers if variant.barriers else np.zeros(n),
        quantities.bytes,
    ]
    if on_gpu:
        columns[-1] = quantities.bytes * np.clip(quantities.addresses_per_item, 1, variant.most_transactions)
    return np.stack(columns, 1) + _TINY


_Bend = tuple[Callable[[Quantities], Reals], Sequence[int], str]
_BENDS: tuple[_Bend, ...] = (
    # A richer mix of opcodes finds fewer of a CPU's pipelines free, and vectorizes worse.
    (lambda q: q.opcode_mix, (1, 2, 3, 4), "not gpu"),
    # Accesses that stay in a few lines, or not.
    (lambda q: q.locality, (1, 2), "not gpu"),
    # What is done once weighs on GPUs, which have memory and clocks of their own.
    (lambda q: q.repetition, (0,), "gpu"),
    # Larger programs and larger ranges take longer to launch.
    (lambda q: np.log(q.per_item), (0,), "all"),
    (lambda q: np.log(q.work_items), (0,), "gpu"),
)


def bends(quantities: Quantities) -> Reals:
    """What makes a term dearer or cheaper than its quantity says, of shape ``(n, number of bends)``."""
    return np.stack([bend(quantities) for bend, _, _ in _BENDS], 1)


def masks(devices: Sequence[Device]) -> Reals:
    """Where each bend acts: ones and zeros of shape ``(number of bends, len(TERMS), d)``."""
    gpu = np.array([device.type == "gpu" for device in devices])
    where = {"gpu": gpu, "not gpu": ~gpu, "all": np.ones(len(devices), dtype=bool)}
    acts = np.zeros((len(_BENDS), len(TERMS), len(devices)))
    for place, (_, terms, kind) in enumerate(_BENDS):
        for term in terms:
            acts[place, term] = where[kind]
    return acts


_DEVICE_RIDGE = 0.3
_GROUP_RIDGE = 0.09
_ALL_RIDGE = 1e-3
_BEND_RIDGE = 3.0
_LIMIT = 2.5
_STEPS = 500
_ABSENT = -60.0


@dataclass(frozen=True)
class Data:
    """What the prices are fitted to."""

    loads: Reals  # Logarithms of the terms' quantities, of shape `(n, t, d)`
    bends: Reals  # Standardized bends, of shape `(n, b)`
    masks: Reals  # Where the bends act, of shape `(b, t, d)`
    log_time: Reals  # Logarithms of times, of shape `(n, d)`; not a number where not known
    weights: Reals  # Weight of each kernel, of shape `(n,)`
    groups: Integers  # Number of each device's group, of shape `(d,)`


@dataclass(frozen=True)
class Prices:
    """Fitted prices."""

    terms: Reals  # Logarithm of each term's price on each device, of shape `(t, d)`
    bends: Reals  # Strength of each bend, of shape `(b,)`

    def log_time(self, loads: Reals, bends: Reals, masks: Reals) -> Reals:
        """Logarithms of times, of shape ``(n, d)``."""
        total, _ = log_sum(loads + self.terms + np.tensordot(bends * self.bends, masks, 1))
        return total


def log_sum(parts: Reals) -> tuple[Reals, Reals]:
    """Logarithm of the sum of terms whose logarithms are given, and the terms' shares."""
    most = parts.max(axis=1, keepdims=True)
    shares = np.exp(parts - most)
    total = shares.sum(axis=1, keepdims=True)
    shares /= total
    return (most + np.log(total))[:, 0], shares


def fit_prices(data: Data, robustness: float) -> Prices:
    """Fit prices by penalized pseudo-Huber loss of the logarithms."""
    # Imported here: predicting with fitted prices needs no SciPy.
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    start = _start(data)
    t, d = len(start), len(data.groups)
    known = np.isfinite(data.log_time)
    target = np.where(known, data.log_time, 0.0)
    weights = np.where(known, data.weights[:, None], 0.0)
    bent = data.bends[:, :, None, None] * data.masks
    members: list[Flags] = [data.groups == number for number in np.unique(data.groups)]

    def loss(values: Reals) -> tuple[float, Reals]:
        overall, terms, strengths = _split(values, t, d)
        total, shares = log_sum(data.loads + terms + np.einsum("b,nbtd->ntd", strengths, bent))
        error = total - target
        root = np.sqrt(1 + (error / robustness) ** 2)
        value = float((weights * robustness**2 * (root - 1)).sum())
        slope = shares * (weights * error / root)[:, None, :]
        by_terms = slope.sum(axis=0)
        by_strengths = np.einsum("nbtd,ntd->b", bent, slope)
        by_overall = np.zeros(t)
        for group in members:
            mean = terms[:, group].mean(axis=1)
            apart, away = terms[:, group] - mean[:, None], mean - overall
            value += _DEVICE_RIDGE * float((apart**2).sum()) + _GROUP_RIDGE * float((away**2).sum())
            by_terms[:, group] += 2 * _DEVICE_RIDGE * apart + (2 * _GROUP_RIDGE * away / group.sum())[:, None]
            by_overall -= 2 * _GROUP_RIDGE * away
        value += _ALL_RIDGE * float(((overall - start) ** 2).sum())
        value += _BEND_RIDGE * float((strengths**2).sum())
        by_overall += 2 * _ALL_RIDGE * (overall - start)
        by_strengths = by_strengths + 2 * _BEND_RIDGE * strengths
        return value, np.concatenate([by_overall, by_terms.ravel(), by_strengths])

    first = np.concatenate([start, np.repeat(start, d), np.zeros(data.bends.shape[1])])
    # Threads of BLAS take longer to agree than these small vectors take.
    with threadpool_limits(1):
        best = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    _, terms, strengths = _split(best.x, t, d)
    return Prices(terms, strengths)


def _split(values: Reals, t: int, d: int) -> tuple[Reals, Reals, Reals]:
    return values[:t], values[t : t + t * d].reshape(t, d), values[t + t * d :]


def _start(data: Data) -> Reals:
    """Prices at which each term alone would explain the large kernels, and launches the small ones."""
    times = data.log_time[np.isfinite(data.log_time)]
    prices = np.empty(data.loads.shape[1])
    for term in range(len(prices)):
        load = data.loads[:, term].max(axis=1)
        there = load[load > _ABSENT]
        prices[term] = np.median(times) - (np.quantile(there, 0.9) if there.size else 0.0) - 0.5
    least = np.where(np.isfinite(data.log_time), data.log_time, np.inf).min(axis=1)
    # A kernel that was measured on none of the devices says nothing.
    prices[0] = float(least[np.isfinite(least)].mean())
    return prices


def standardized(values: Reals, centre: Reals, scale: Reals) -> Reals:
    """Bends by how many standard deviations of the training kernels they lie from their mean, limited."""
    return np.clip((values - centre) / scale, -_LIMIT, _LIMIT)


def _form(variant: Variant) -> tuple[bool, float]:
    """What of a variant decides its terms' quantities."""
    return variant.barriers, variant.most_transactions


_LAUNCH = TERMS.index("launch")
_FORMS = {_form(variant): variant for variant in VARIANTS}


@dataclass(frozen=True)
class _Kind:
    """Devices that differ in nothing but their prices."""

    columns: Integers  # Their numbers
    gpu: bool  # Whether they are GPUs
    # For each variant, by how much each bend changes the logarithm of each term, of shape `(b, t)`
    bends: tuple[Reals, ...]
    prices: tuple[Reals, ...]  # For each variant, the prices, of shape `(t, number of these devices)`


@dataclass(frozen=True)
class PhysicalPredictor:
    """A fitted physical model."""

    gpu: Any  # Which of its `d` devices are GPUs
    acts: Reals  # Where the bends act, as `masks` gives them
    centre: Reals  # Mean and standard deviation of the bends over the training kernels
    scale: Reals
    prices: tuple[Prices, ...]  # Prices of each of `VARIANTS`

    def log_time(self, profiles: Profiles) -> Reals:
        """Natural logarithms of times in seconds, of shape ``(n, d)``."""
        total = np.zeros((len(profiles), len(self.gpu)))
        for columns, work, prices in self._products(quantities_of(profiles)):
            total[:, columns] += np.log(work @ prices)
        return total / len(VARIANTS)

    def log_time_and_launch_share(self, quantities: Quantities) -> tuple[Reals, Reals]:
        """Logarithms of times, and the share of them that the launch takes, of shape ``(n, d)`` each."""
        total, share = (np.zeros((len(quantities.instructions), len(self.gpu))) for _ in range(2))
        for columns, work, prices in self._products(quantities):
            time = work @ prices
            total[:, columns] += np.log(time)
            share[:, columns] += work[:, [_LAUNCH]] * prices[_LAUNCH] / time
        return total / len(VARIANTS), share / len(VARIANTS)

    def _products(self, quantities: Quantities) -> Iterator[tuple[Integers, Reals, Reals]]:
        """Columns of devices, quantities and prices there, whose product is the time, for each variant."""
        bent = standardized(bends(quantities), self.centre, self.scale)
        # Devices of a kind share everything but their prices, which leaves them a product of matrices.
        for kind in self._kinds:
            works = {form: amounts(quantities, kind.gpu, variant) for form, variant in _FORMS.items()}
            for variant, strengths, prices in zip(VARIANTS, kind.bends, kind.prices, strict=True):
                yield kind.columns, works[_form(variant)] * np.exp(bent @ strengths), prices

    @cached_property
    def _kinds(self) -> tuple[_Kind, ...]:
        """The devices by whether they are GPUs and by how the bends act on them."""
        marks = np.vstack([self.gpu[None, :], self.acts.reshape(-1, len(self.gpu))])
        _, number = np.unique(marks, axis=1, return_inverse=True)
        kinds = []
        for columns in (np.flatnonzero(number == kind) for kind in range(int(number.max()) + 1)):
            acts = self.acts[:, :, columns[0]]
            kinds.append(
                _Kind(
                    columns,
                    bool(self.gpu[columns[0]]),
                    tuple(prices.bends[:, None] * acts for prices in self.prices),
                    tuple(np.exp(prices.terms[:, columns]) for prices in self.prices),
                )
            )
        return tuple(kinds)

    def state(self) -> dict[str, Any]:
        """Arrays from which `from_state` makes it again."""
        return {
            "gpu": self.gpu.astype(np.int64),
            "acts": self.acts,
            "centre": self.centre,
            "scale": self.scale,
            "terms": np.stack([prices.terms for prices in self.prices]),
            "bends": np.stack([prices.bends for prices in self.prices]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> PhysicalPredictor:
        """Make it from its arrays."""
        gpu = kept_integers(state, "gpu", 1, (0, 2)).astype(bool)
        centre, acts = kept_reals(state, "centre", 1), kept_reals(state, "acts", 3)
        scale, terms, strengths = (
            kept_reals(state, name, axes) for name, axes in (("scale", 1), ("terms", 3), ("bends", 2))
        )
        v, t, d, b = len(VARIANTS), len(TERMS), len(gpu), len(centre)
        if not (
            acts.shape == (b, t, d)
            and scale.shape == (b,)
            and (scale > 0).all()
            and terms.shape == (v, t, d)
            and strengths.shape == (v, b)
        ):
            raise InputError(
                f"model: expected prices of {v} variants of {t} terms on {d} devices with {b} bends, found "
                f"shapes {terms.shape}, {strengths.shape} and {acts.shape}"
            )
        return cls(gpu, acts, centre, scale, tuple(map(Prices, terms, strengths)))


@dataclass(frozen=True)
class Physical:
    """A sum of terms with a price each on each device."""

    name: str = "physical"

    def fit(self, grid: Grid, seed: int) -> PhysicalPredictor:
        """Fit prices; nothing is random, so the seed is not used."""
        quantities = quantities_of(grid.profiles)
        raw = bends(quantities)
        centre, scale = raw.mean(axis=0), raw.std(axis=0) + 1e-9
        gpu = np.array([device.type == "gpu" for device in grid.devices])
        acts, bent = masks(grid.devices), standardized(raw, centre, scale)
        weights, groups = application_weights(grid.profiles), kinds_of(grid.devices)
        data = {
            form: Data(
                loads=loads(quantities, gpu, variant),
                bends=bent,
                masks=acts,
                log_time=grid.log_time,
                weights=weights,
                groups=groups,
            )
            for form, variant in _FORMS.items()
        }
        prices = tuple(fit_prices(data[_form(variant)], variant.robustness) for variant in VARIANTS)
        return PhysicalPredictor(gpu, acts, centre, scale, prices)
