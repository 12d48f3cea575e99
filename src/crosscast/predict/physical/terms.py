"""The terms of the sum, and what bends them, as arrays over kernels, terms and devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.device import Device
from crosscast.predict.physical.quantities import Quantities

__all__ = ["TERMS", "VARIANTS", "Variant", "amounts", "bends", "loads", "masks"]

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
    """One of several forms of the model, whose mean is the forecast: no form is right.

    Parameters
    ----------
    barriers
        Whether barriers have a term.
    most_transactions
        Up to how many transactions the bytes of one may cost on a GPU.
    robustness
        Error of the logarithm from which on the loss grows linearly.
    """

    barriers: bool
    most_transactions: float
    robustness: float


VARIANTS = tuple(
    Variant(barriers, most, robustness)
    for barriers in (False, True)
    for most in (4.0, 6.0)
    for robustness in (0.3, 0.6)
)


def loads(quantities: Quantities, gpu: Flags, variant: Variant) -> Reals:
    """Logarithms of the terms' quantities, of shape ``(n, len(TERMS), d)``.

    Parameters
    ----------
    quantities
        Quantities of ``n`` kernels.
    gpu
        Which of the ``d`` devices are GPUs.
    variant
        Form of the model.
    """
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
