"""What a launch has to do, in the quantities whose prices a device sets.

The published study gave the metrics to a forest, which knows no physics: twice the instructions may as well
take half the time. Here each metric enters where it costs time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.grid import Profiles, metric

__all__ = ["METRICS_NEEDED", "Quantities", "check_metrics", "quantities_of"]

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
    """Quantities of ``n`` kernels, each of shape ``(n,)`` and of one launch.

    Parameters
    ----------
    instructions
        Instructions, of all work-items together.
    per_item
        Instructions of a work-item, mean.
    critical_path
        Instructions of the longest work-item, as far as barriers let it be seen, at least the mean.
    barriers
        Barriers that a work-item meets.
    addresses_per_item
        Distinct addresses that make up 90 % of the accesses, for each work-item.
    bytes
        Bytes at these addresses, up to a constant factor; how wide an element is shows in how many of the
        lowest address bits never vary.
    opcode_mix
        Opcodes that make up 90 % of the instructions.
    locality
        Share of the addresses' entropy that lies in their 10 lowest bits.
    repetition
        Logarithm of the number of launches in the run, up to 3: what is done once, such as the first
        touch of a buffer or waking a device, weighs on a single launch alone.
    work_items
        Work-items.
    """

    instructions: Reals
    per_item: Reals
    critical_path: Reals
    barriers: Reals
    addresses_per_item: Reals
    bytes: Reals
    opcode_mix: Reals
    locality: Reals
    repetition: Reals
    work_items: Reals


def quantities_of(profiles: Profiles) -> Quantities:
    """Work out the quantities from the metrics.

    Raises
    ------
    InputError
        If a metric that is needed is not there or no finite number; the message names kernel and metric.
    """
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
    """Check that all profiles have some metrics.

    Raises
    ------
    InputError
        If one is not there, no finite number or below what it can be; the message names kernel and metric.
    """
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
