"""Decisions; cases under power caps, and the policies that choose in them: interface, rollout, knobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.configuration import (
    ConfigurationModel,
    ConfigurationPredictor,
    ConfigurationSpace,
    KernelAt,
    Observed,
    Surfaces,
    pareto_frontier,
)


class LeftOut(NamedTuple):
    """A kernel without cases, and the reason."""

    kernel: KernelAt
    reason: str


@dataclass(frozen=True, eq=False)
class Cases:
    """Kernels at a size under a cap: `m` cases (Bailey et al. 2014, section V-B).

    The caps are the powers on the kernel's true Pareto frontier, where the oracle's choices lie.
    """

    kernel: Integers  # `(m,)` Kernel, by its row in the surfaces
    power_cap: Reals  # `(m,)` Cap in watts: the oracle's power
    oracle_time_s: Reals  # `(m,)` Time in seconds of the configuration that the oracle chooses
    share: Reals  # `(m,)` Weight within the program; those of a program sum to 1
    programs: tuple[str, ...]  # Names of the `p` applications that have cases, sorted
    program: Integers  # `(m,)` Application, an index into `programs`
    left_out: tuple[LeftOut, ...]  # Kernels without cases

    def __len__(self) -> int:
        return len(self.kernel)

    @property
    def within_programs(self) -> Reals:
        """``(p, m)`` Weight of each case within each program; 0 in others."""
        weights = np.zeros((len(self.programs), len(self)))
        weights[self.program, np.arange(len(self))] = self.share
        return weights


def cases_of(surfaces: Surfaces, samples: Sequence[int], rows: Flags | None = None) -> Cases:
    """Return the cases of kernels with runs at all samples and two or more configurations on their frontier.

    Sizes of a program weigh equally, in a size kernels by the time at the first sample, as published (section
    V-D), and in a kernel caps equally.
    """
    kernels, frontiers, left_out = [], [], []
    for row in np.flatnonzero(np.ones(len(surfaces.kernels)) if rows is None else rows).tolist():
        frontier = pareto_frontier(surfaces.time_s[row], surfaces.power_w[row])
        lacking = [number for number in samples if not surfaces.known[row, number]]
        if lacking:
            reason = f"no run at the sample configuration {surfaces.space.configurations[lacking[0]]}"
        elif len(frontier) < 2:
            reason = f"{len(frontier)} configuration on its frontier"
        else:
            kernels.append(row)
            frontiers.append(frontier)
            continue
        left_out.append(LeftOut(surfaces.kernels[row], reason))
    at = [surfaces.kernels[row] for row in kernels]
    times = surfaces.time_s[np.array(kernels, np.int64), samples[0]]
    weights = _scaled(times, [f"{each.application}\0{each.size}" for each in at])
    weights = _scaled(weights, [each.application for each in at])
    counts = np.array([len(each) for each in frontiers], np.int64)
    kernel = np.repeat(np.array(kernels, np.int64), counts)
    oracle = np.concatenate([np.zeros(0, np.int64), *frontiers])
    return Cases(
        kernel,
        surfaces.power_w[kernel, oracle],
        surfaces.time_s[kernel, oracle],
        np.repeat(weights / np.maximum(counts, 1), counts),
        *_numbered([surfaces.kernels[row].application for row in kernel]),
        tuple(left_out),
    )


def _numbered(names: Sequence[str]) -> tuple[tuple[str, ...], Integers]:
    """The distinct names, sorted, and the number of each name among them."""
    programs, program = np.unique(names, return_inverse=True)
    return tuple(programs.tolist()), program.astype(np.int64)


def _scaled(weights: Reals, groups: Sequence[str]) -> Reals:
    """Scale weights to a sum of 1 in each group."""
    scaled = np.zeros(len(weights))
    for group in set(groups):
        inside = np.array(groups) == group
        scaled[inside] = weights[inside] / weights[inside].sum()
    return scaled


def joined(parts: Sequence[Cases]) -> Cases:
    """Concatenate the cases of parts that have no program in common."""
    names = [part.programs[index] for part in parts for index in part.program.tolist()]
    left_out = tuple(sorted(each for part in parts for each in part.left_out))
    columns = ("kernel", "power_cap", "oracle_time_s", "share")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    programs, program = _numbered(names)
    return Cases(**arrays, programs=programs, program=program, left_out=left_out)


def by_input(cases: Cases, surfaces: Surfaces) -> Cases:
    """Return the cases with each size of a program as a program of its own, named by both."""
    at = [surfaces.kernels[row] for row in cases.kernel]
    names = [f"{each.application} {each.size}" for each in at]
    programs, program = _numbered(names)
    return replace(cases, share=_scaled(cases.share, names), programs=programs, program=program)


GUARD = 0.01
"""Share of a cap: the margin below it for a method, and the tolerance of some scores."""


def step(
    space: ConfigurationSpace, number: int, available: Flags, knobs: Sequence[str], sign: int
) -> int | None:
    """Return the next configuration, higher or lower by the sign, in the first of the knobs that has one."""
    settings = space.matrix[number]
    # Knobs that neither sets are equal, too.
    alike = (space.matrix == settings) | (np.isnan(space.matrix) & np.isnan(settings))
    fixed = available & (space.device_numbers == space.device_numbers[number])
    for word in space.words:
        values = space.values_of(word)
        fixed &= values == values[number]
    for knob in knobs:
        if knob not in space.knobs:
            continue
        index = space.knobs.index(knob)
        same = fixed & alike[:, :index].all(axis=1) & alike[:, index + 1 :].all(axis=1)
        distance = sign * (space.matrix[:, index] - settings[index])
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


Predictor = ConfigurationPredictor | None
"""The fitted learner of a method; ``None`` of one without."""


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

    def fit(
        self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0, predictor: Predictor = None
    ) -> FittedMethod:
        """Fit to training kernels; `predictor` is the learner's where it is fitted already."""
        if predictor is None and self.learner is not None:
            predictor = self.learner.fit(surfaces, samples, seed)
        return self._policy(surfaces, samples, predictor)

    def tested_on(self, programs: Sequence[str]) -> Self:
        """Make the method whose model has intervals by errors on these programs; itself without a model."""
        return self

    @abstractmethod
    def _policy(self, surfaces: Surfaces, samples: Sequence[int], predictor: Predictor) -> FittedMethod:
        """The policy of a method whose learner, if it has one, is fitted."""


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
