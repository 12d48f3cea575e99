"""An evaluation of choices on made-up machines, small enough to read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from crosscast.arrays import Flags
from crosscast.data.configuration import Configuration
from crosscast.decide import Decisions, FittedMethod, Method, Outcome, Predictor, rollout
from crosscast.decide.policies import SelectedModel, WithFeedback, methods_of
from crosscast.evaluation.configuration.evaluation import ConfigurationEvaluation, evaluate_configuration
from crosscast.prediction.configuration import ConfigurationSpace, KernelAt, Observed, Surfaces
from crosscast.prediction.configuration.artefact import NearestKernels
from support.surfaces import made_surfaces

PROGRAMS = ("bfs", "cfd", "cfd_double", "km", "lud", "nw")


def named_surfaces() -> Surfaces:
    """Six programs, two of them nearly the same by their names."""
    surfaces = made_surfaces(noise=0.01)
    kernels = tuple(
        each._replace(application=PROGRAMS[row // 2], kernel=PROGRAMS[row // 2])
        for row, each in enumerate(surfaces.kernels)
    )
    return replace(surfaces, kernels=kernels)


def other_machine() -> Surfaces:
    """One GPU with one clock, whose kernels have frontiers of the same order: nothing to cluster."""
    space = ConfigurationSpace(
        tuple(Configuration("lonely", {"clock_hz": 1e8 * clock}) for clock in range(5, 12))
    )
    clock = space.matrix[:, 0] / 1e9
    surfaces = named_surfaces()
    slopes = np.linspace(0.5, 1, len(surfaces.kernels))[:, None]
    return Surfaces("made up", surfaces.kernels, space, 1 / (clock * slopes), 50 + 100 * slopes * clock**2)


@dataclass(frozen=True)
class Hopeful(Method):
    """Promises to keep to caps, and always takes the highest configuration."""

    name: str = "hopeful"
    confidence: float = 0.9

    def _policy(self, surfaces: Surfaces, samples: Sequence[int], predictor: Predictor) -> FittedMethod:
        return FittedMethod(self.decide, uses_budget=False)

    def decide(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Decisions:
        yield int(np.flatnonzero(available)[-1])


NAMES = ("fixed", "cpu+fl", "gpu+fl", "clock+fl", "limiter", "published", "published+fl", "oracle")


def methods(space: ConfigurationSpace) -> list[Method]:
    return [SelectedModel(NearestKernels(), "own"), Hopeful(), *methods_of(space, NAMES)]


@cache
def chosen_study(*, both: bool = False) -> ConfigurationEvaluation:
    """The evaluation of one machine, or of both."""
    if not both:
        return evaluate_configuration([named_surfaces()], methods, label="made up")
    # Machines are evaluated each by itself, and the first one has been.
    other = evaluate_configuration([other_machine()], methods)
    study = chosen_study()
    return replace(study, machines=(*study.machines, *other.machines))


def limited(method: Method, ups: bool = False) -> WithFeedback:
    """The method with feedback, which may step up too."""
    return WithFeedback(method, f"{method.name}+{'steps' if ups else 'fl'}", ups)


def outcome(decisions: Decisions, run: Callable[[int], Observed], budget: int) -> Outcome:
    """Where a rollout ends."""
    path = rollout(decisions, run, budget)
    return Outcome(path[-1], len(path) - 1)


def random_surfaces(
    seed: int, *, programs: int = 3, knobs: tuple[int, int] = (3, 3), missing: float = 0.1
) -> Surfaces:
    """Random times and powers; the first and the last configuration, of each kernel, are always there."""
    rng = np.random.default_rng(seed)
    space = ConfigurationSpace(
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
class Wanderer(Method):
    """Goes through the available configurations from a start, a stride at a time, whatever the cap."""

    start: int = 0
    stride: int = 1
    name: str = "wanderer"
    confidence: float | None = None

    def _policy(self, surfaces: Surfaces, samples: Sequence[int], predictor: Predictor) -> FittedMethod:
        return FittedMethod(self.decide, uses_budget=False)

    def decide(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Decisions:
        there = np.flatnonzero(available).tolist()
        for place in range(6):
            yield there[(self.start + place * self.stride) % len(there)]
