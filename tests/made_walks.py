"""Methods whose choices are known, and made-up machines, for tests of evaluations of choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags
from crosscast.configuration import Configuration
from crosscast.decide.power_cap import Chooser, Walk
from crosscast.predict.configuration.data import KernelAt, Observed, Space, Surfaces


def random_surfaces(
    seed: int, *, programs: int = 3, knobs: tuple[int, int] = (3, 3), missing: float = 0.1
) -> Surfaces:
    """Random times and powers; the first and the last configuration, of each kernel, are always there."""
    rng = np.random.default_rng(seed)
    space = Space(
        tuple(Configuration("node", {"a_w": a, "b_hz": b}) for a in range(knobs[0]) for b in range(knobs[1]))
    )
    kernels = tuple(
        KernelAt(f"{letter}{letter}", f"k{place}", size)
        for letter in "abcdefgh"[:programs]
        for size in ("big", "small")
        for place in range(int(rng.integers(1, 3)))
    )
    shape = (len(kernels), len(space))
    lacking = rng.random(shape) < missing
    lacking[:, [0, -1]] = False
    time_s = np.where(lacking, np.nan, np.exp(rng.normal(0, 1, shape)))
    power_w = np.where(lacking, np.nan, np.exp(rng.normal(4, 0.5, shape)))
    return Surfaces("random", kernels, space, time_s, power_w)


@dataclass(frozen=True)
class Wanderer:
    """Goes through the available configurations from a start, a stride at a time, whatever the cap."""

    start: int = 0
    stride: int = 1
    name: str = "wanderer"
    uses_budget: bool = False
    baseline: bool = False
    confidence: float | None = None

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        return _Wandering(self.start, self.stride, self.uses_budget)


@dataclass(frozen=True)
class _Wandering:
    start: int
    stride: int
    uses_budget: bool

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        there = np.flatnonzero(available).tolist()
        for place in range(6):
            yield there[(self.start + place * self.stride) % len(there)]
