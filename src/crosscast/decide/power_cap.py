"""Policies that choose under power caps: what one is, how it is followed, and how knobs are stepped."""

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
"""Share of a cap: what a method may be told less of it, and the tolerance of some scores."""


def step_down(space: ConfigurationSpace, number: int, available: Flags, knobs: Sequence[str]) -> int | None:
    """The configuration a notch lower: in the first of the knobs that has one."""
    return step_up(space, number, available, knobs, -1)


def step_up(
    space: ConfigurationSpace, number: int, available: Flags, knobs: Sequence[str], sign: int = 1
) -> int | None:
    """The configuration a notch higher; parameters and result are those of `step_down`."""
    # What is not set is alike, too.
    alike = [np.isclose(column, column[number], 0, 0, equal_nan=True) for column in space.matrix.T]
    fixed = available & (space.device_numbers == space.device_numbers[number])
    for word in space.words:
        values = space.values_of(word)
        fixed &= values == values[number]
    for knob in knobs:
        if knob not in space.knobs:
            continue
        place = space.knobs.index(knob)
        same = np.logical_and.reduce([fixed, *alike[:place], *alike[place + 1 :]])
        distance = sign * (space.matrix[:, place] - space.matrix[number, place])
        beyond = np.flatnonzero(same & (distance > 0))
        if beyond.size:
            return int(beyond[np.argmin(distance[beyond])])
    return None


def highest(space: ConfigurationSpace, available: Flags, device: str | None = None) -> int:
    """The configuration with the highest sum of the ranks of its settings, and the last of several."""
    numbers, ranks = _ranked(space, available, device)
    return int(numbers[len(numbers) - 1 - np.argmax(ranks[::-1])])


def lowest(space: ConfigurationSpace, available: Flags, device: str | None = None) -> int:
    """The configuration with the lowest sum of the ranks of its settings, and the first of several."""
    numbers, ranks = _ranked(space, available, device)
    return int(numbers[np.argmin(ranks)])


def _ranked(space: ConfigurationSpace, available: Flags, device: str | None) -> tuple[Integers, Reals]:
    if not available.any():
        raise InputError.of(field="configurations", expected="one that may be taken", found="none")
    own = available & np.array([each.device == device for each in space.configurations])
    numbers = np.flatnonzero(own if own.any() else available)
    ranks = np.zeros(len(numbers))
    for column in space.matrix[numbers].T:
        values, rank = np.unique(column, return_inverse=True)
        ranks += rank / max(len(values) - 1, 1)
    return numbers, ranks


Decisions = Generator[int, Observed, None]
"""Yields the number of the configuration to take next, and is sent the run there; it ends when it stays.

A run that is sent is an `Observed` of length 1."""


class FittedMethod(NamedTuple):
    """A method that has learned, ready for kernels that it has not seen."""

    # Chooses by a kernel's runs, under a cap, among the configurations that may be taken, with at most so
    # many changes after the first one
    decide: Callable[[Observed, float, Flags, int], Decisions]
    uses_budget: bool = True  # Whether a smaller budget changes more than where it ends


class Method(ABC):
    """A way to choose configurations, to be compared with others."""

    name: str  # In tables

    @property
    def baseline(self) -> bool:
        """Whether other methods are compared with it."""
        return False

    @property
    def confidence(self) -> float | None:
        """Probability with which it keeps to a cap; ``None`` for one that does not know how sure it is."""
        return None

    @property
    def sees_all(self) -> bool:
        """Whether it is given the runs at all configurations: a reference, and no method."""
        return False

    @property
    def learner(self) -> ConfigurationModel | None:
        """The model that it chooses by; ``None`` for one without. Methods of one learner share its fit."""
        return None

    @abstractmethod
    def fit(
        self,
        surfaces: Surfaces,
        samples: Sequence[int],
        seed: int = 0,
        predictor: ConfigurationPredictor | None = None,
    ) -> FittedMethod:
        """Learn from training kernels; `predictor` is the learner's where it is fitted already."""


class Outcome(NamedTuple):
    """Where a policy ended."""

    number: int  # The configuration
    changes: int  # How often the configuration was changed after the first: the extra runs


def rollout(decisions: Decisions, run: Callable[[int], Observed], budget: int) -> list[int]:
    """Follow decisions; the first configuration and all that follow, `budget` at most."""
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
    """Where a policy ends with each budget; one that does not use it is followed once, with the largest."""
    found = {
        budget: rollout(policy.decide(observed, power_cap, available, budget), run, budget)
        for budget in (budgets if policy.uses_budget else (max(budgets),))
    }
    paths = [found.get(each, found[max(budgets)]) for each in budgets]
    ends = [min(each, len(path) - 1) for path, each in zip(paths, budgets, strict=True)]
    return [Outcome(path[end], end) for path, end in zip(paths, ends, strict=True)]
