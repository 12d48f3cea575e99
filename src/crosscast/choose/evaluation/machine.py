"""How methods did on one machine."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.choose.evaluation.cases import Cases
from crosscast.choose.evaluation.metrics import Metrics
from crosscast.choose.evaluation.repeat_noise import RepeatNoise
from crosscast.choose.evaluation.result import ChoiceResult
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["MachineChoices"]


@dataclass(frozen=True, eq=False)
class MachineChoices:
    """How methods did on one machine.

    Parameters
    ----------
    surfaces
        What was measured.
    cases
        What was asked.
    samples
        Sample configurations of each fold, by the applications that were left out.
    groups
        Applications that are nearly the same.
    noise
        How much repeats differ; ``None`` where that cannot be estimated.
    split_half
        The split-half oracle on simulated repeats; ``None`` without `noise`.
    results
        A result for each method with each application left out; then the same with near-duplicates left out
        together, if there are any.
    """

    surfaces: Surfaces
    cases: Cases
    samples: dict[tuple[str, ...], tuple[int, ...]]
    groups: tuple[tuple[str, ...], ...]
    noise: RepeatNoise | None
    split_half: Metrics | None
    results: tuple[ChoiceResult, ...]

    @property
    def machine(self) -> str:
        """Its name: the keys of its devices."""
        return " + ".join(self.surfaces.space.devices)
