"""An evaluation of choices on made-up machines, small enough to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from made_surfaces import made_surfaces

from crosscast.arrays import Flags
from crosscast.configuration import Configuration
from crosscast.decide.evaluation import ChoiceStudy, study_choices
from crosscast.decide.policies import SelectedModel, methods_of
from crosscast.decide.power_cap import Chooser, Method, Walk
from crosscast.decide.training import OfflineStage, offline_stage
from crosscast.predict.configuration.baselines import NearestKernels
from crosscast.predict.configuration.data import Observed, Space, Surfaces

PROGRAMS = ("bfs", "cfd", "cfd_double", "km", "lud", "nw")


def named_surfaces(noise: float = 0.01) -> Surfaces:
    """Six programs, two of them nearly the same by their names."""
    surfaces = made_surfaces(noise=noise)
    kernels = tuple(
        each._replace(application=PROGRAMS[row // 2], kernel=PROGRAMS[row // 2])
        for row, each in enumerate(surfaces.kernels)
    )
    return replace(surfaces, kernels=kernels)


def other_machine() -> Surfaces:
    """One GPU with one clock, whose kernels have frontiers of the same order: nothing to cluster."""
    space = Space(tuple(Configuration("lonely", {"clock_hz": 1e8 * clock}) for clock in range(5, 12)))
    clock = space.matrix[:, 0] / 1e9
    surfaces = named_surfaces()
    slopes = np.linspace(0.5, 1, len(surfaces.kernels))[:, None]
    return Surfaces("made up", surfaces.kernels, space, 1 / (clock * slopes), 50 + 100 * slopes * clock**2)


@dataclass(frozen=True)
class Hopeful:
    """Promises to keep to caps, and always takes the highest configuration."""

    name: str = "hopeful"
    confidence: float = 0.9
    uses_budget: bool = False

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        return self

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        yield int(np.flatnonzero(available)[-1])


NAMES = ("fixed", "cpu+fl", "gpu+fl", "clock+fl", "limiter", "published", "published+fl", "oracle")


def methods(space: Space) -> list[Method]:
    return [SelectedModel(NearestKernels(), "own"), Hopeful(), *methods_of(space, NAMES)]


@cache
def chosen_study(*, both: bool = False) -> tuple[ChoiceStudy, tuple[OfflineStage, ...]]:
    """The evaluation of one machine, or of both."""
    if not both:
        return study_choices("made up", [named_surfaces()], methods), (offline_stage(named_surfaces()),)
    # Machines are evaluated each by itself, and the first one has been.
    study, stages = chosen_study()
    other = study_choices("made up", [other_machine()], methods)
    whole = replace(study, machines=(*study.machines, *other.machines))
    return whole, (*stages, offline_stage(other_machine()))
