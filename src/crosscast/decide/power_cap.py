"""Policies that choose under power caps: their interface, their rollout, and steps of knobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.configuration.data import (
    ConfigurationModel,
    ConfigurationPredictor,
    ConfigurationSpace,
    Observed,
    Surfaces,
)

GUARD = 0.01
"""Share of a cap: the margin below it for a method, and the tolerance of some scores."""


def step_down(space: ConfigurationSpace, number: int, available: Flags, knobs: Sequence[str]) -> int | None:
    """Return the next lower configuration in the first of the knobs that has one."""
    return step_up(space, number, available, knobs, -1)


def step_up(
    space: ConfigurationSpace, number: int, available: Flags, knobs: Sequence[str], sign: int = 1
) -> int | None:
    """Return the next higher configuration in the first of the knobs that has one."""
    # Knobs that neither sets are equal, too.
    alike = [np.isclose(values, values[number], 0, 0, equal_nan=True) for values in space.matrix.T]
    fixed = available & (space.device_numbers == space.device_numbers[number])
    for word in space.words:
        values = space.values_of(word)
        fixed &= values == values[number]
    for knob in knobs:
        if knob not in space.knobs:
            continue
        index = space.knobs.index(knob)
        same = np.logical_and.reduce([fixed, *alike[:index], *alike[index + 1 :]])
        distance = sign * (space.matrix[:, index] - space.matrix[number, index])
        beyond = np.flatnonzero(same & (distance > 0))
        if beyond.size:
            return int(beyond[np.argmin(distance[beyond])])
    return None


def highest(space: ConfigurationSpace, available: Flags, device: str | None = None) -> int:
    """Return the configuration with the highest sum of the ranks of its settings; of several, the last."""
    numbers, ranks = _ranked(space, available, device)
    return int(numbers[len(numbers) - 1 - np.argmax(ranks[::-1])])


def lowest(space: ConfigurationSpace, available: Flags, device: str | None = None) -> int:
    """Return the configuration with the lowest sum of the ranks of its settings; of several, the first."""
    numbers, ranks = _ranked(space, available, device)
    return int(numbers[np.argmin(ranks)])


def _ranked(space: ConfigurationSpace, available: Flags, device: str | None) -> tuple[Integers, Reals]:
    if not available.any():
        raise InputError.of(field="configurations", expected="one that may be taken", found="none")
    on_device = available & np.array([each.device == device for each in space.configurations])
    numbers = np.flatnonzero(on_device if on_device.any() else available)
    ranks = np.zeros(len(numbers))
    for column in space.matrix[numbers].T:
        values, rank = np.unique(column, return_inverse=True)
        ranks += rank / max(len(values) - 1, 1)
    return numbers, ranks


Decisions = Generator[int, Observed, None]
"""Yields the number of the next configuration, and is sent the run there; it ends when it keeps the last.

A run that is sent is an `Observed` of length 1."""


class FittedMethod(NamedTuple):
    """A method that is fitted to training kernels."""

    # Chooses by a kernel's runs, under a cap, among the available configurations, with at most so many
    # changes after the first one
    decide: Callable[[Observed, float, Flags, int], Decisions]
    uses_budget: bool = True  # Whether its path depends on the budget, beyond being cut off


class Method(ABC):
    """A method of choosing configurations, for comparison with others."""

    name: str  # In tables

    @property
    def baseline(self) -> bool:
        """Whether it is a baseline of comparisons."""
        return False

    @property
    def confidence(self) -> float | None:
        """Probability with which it keeps to a cap; ``None`` for one without forecast errors."""
        return None

    @property
    def sees_all(self) -> bool:
        """Whether it is given the runs at all configurations, as a reference."""
        return False

    @property
    def learner(self) -> ConfigurationModel | None:
        """Its model, or ``None``. Methods of one learner share its fit."""
        return None

    @abstractmethod
    def fit(
        self,
        surfaces: Surfaces,
        samples: Sequence[int],
        seed: int = 0,
        predictor: ConfigurationPredictor | None = None,
    ) -> FittedMethod:
        """Fit to training kernels; `predictor` is the learner's where it is fitted already."""


class Outcome(NamedTuple):
    """The final configuration of a policy."""

    number: int  # The configuration
    changes: int  # Changes of the configuration after the first, each an extra run


def rollout(decisions: Decisions, run: Callable[[int], Observed], budget: int) -> list[int]:
    """Follow decisions; return the first configuration and at most `budget` further ones."""
    numbers = [next(decisions)]
    while len(numbers) <= budget:
        try:
            numbers.append(decisions.send(run(numbers[-1])))
        except StopIteration:
            return numbers
    decisions.close()
    return numbers


def outcomes(
    policy: FittedMethod,
    observed: Observed,
    power_cap: float,
    available: Flags,
    budgets: Sequence[int],
    run: Callable[[int], Observed],
) -> list[Outcome]:
    """Return the outcome for each budget; a policy that ignores it is followed once, with the largest."""
    paths = {
        budget: rollout(policy.decide(observed, power_cap, available, budget), run, budget)
        for budget in (budgets if policy.uses_budget else (max(budgets),))
    }
    taken = [paths.get(each, paths[max(budgets)]) for each in budgets]
    ends = [min(each, len(path) - 1) for path, each in zip(taken, budgets, strict=True)]
    return [Outcome(path[end], end) for path, end in zip(taken, ends, strict=True)]
