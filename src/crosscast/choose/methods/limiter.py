"""Limiting power without a model: from the highest configuration down, a notch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosscast.arrays import Flags
from crosscast.choose.limit import within_cap
from crosscast.choose.steps import highest, step_down
from crosscast.choose.walk import Chooser, Walk
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["Limiter"]


@dataclass(frozen=True)
class Limiter:
    """Starts with all knobs at their maximum, and steps down while the measured power is over the cap.

    The first knob, by name, is stepped down to its minimum, then the next one. This is the frequency
    limiting of Bailey et al. 2014, section V-A, for the knobs at hand.

    Parameters
    ----------
    name
        Its name.
    knobs
        The knobs that it steps; all by default.
    device
        The device that it uses; that of the first sample configuration by default.
    """

    name: str = "limiter"
    knobs: tuple[str, ...] | None = None
    device: str | None = None
    baseline: bool = True

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Nothing is learned; see `Method.fit`."""
        space = surfaces.space
        device = self.device if self.device is not None else space.configurations[samples[0]].device
        return _LimiterChooser(space, self.knobs or space.knobs, device)


@dataclass(frozen=True)
class _LimiterChooser:
    space: Space
    knobs: tuple[str, ...]
    device: str
    uses_budget: bool = False

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        number: int | None = highest(self.space, available, self.device)
        while number is not None:
            run = yield number
            if within_cap(float(run.power_w[0]), power_cap):
                return
            number = step_down(self.space, number, available, self.knobs)
