"""Methods of choosing compared on all machines of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.choose.evaluation.cases import Weighting
from crosscast.choose.evaluation.machine import MachineChoices
from crosscast.choose.evaluation.protocol import CURVE, evaluate_choices
from crosscast.choose.evaluation.repeats import REPEATS
from crosscast.choose.evaluation.sampler import Sampler
from crosscast.choose.samples import two_samples
from crosscast.choose.walk import Method
from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.evaluate.confidence import DRAWS, SHARE
from crosscast.evaluate.processes import Progress
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["ChoiceStudy", "study_choices"]


@dataclass(frozen=True, eq=False)
class ChoiceStudy:
    """How methods chose on all machines of a dataset.

    Parameters
    ----------
    label
        Which dataset.
    weighting
        How the kernels of a program are weighted.
    seed
        Start of all random numbers.
    machines
        How they did on each machine.
    """

    label: str
    weighting: str
    seed: int
    machines: tuple[MachineChoices, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything but cases, as ``--json`` prints it: what is not known is null."""
        return {
            "dataset": self.label,
            "weighting": self.weighting,
            "seed": self.seed,
            "bootstrap": {"over": "programs", "draws": DRAWS, "share": SHARE},
            "machines": [_listed(machine) for machine in self.machines],
            "results": [
                {"machine": machine.machine, **result.to_dict()}
                for machine in self.machines
                for result in machine.results
            ],
        }


def _listed(machine: MachineChoices) -> dict[str, Any]:
    surfaces, cases = machine.surfaces, machine.cases
    return {
        "machine": machine.machine,
        "devices": list(surfaces.space.devices),
        "configurations": len(surfaces.space),
        "kernels_at_a_size": len(set(cases.kernel.tolist())),
        "programs": list(cases.programs),
        "cases": len(cases),
        "left_out": [{"kernel": str(each.kernel), "reason": each.reason} for each in cases.left_out],
        "left_out_together": [list(group) for group in machine.groups],
        "samples": {
            "+".join(fold): [surfaces.space.configurations[number].to_dict() for number in numbers]
            for fold, numbers in machine.samples.items()
        },
        "repeats": _repeats(machine),
    }


def _repeats(machine: MachineChoices) -> dict[str, Any] | None:
    if machine.noise is None or machine.split_half is None:
        return None
    return {
        "simulated": True,
        "note": "the data has no repeats: these are simulated from noise that is estimated by how far "
        "neighbouring configurations are from a line",
        "repeats": REPEATS,
        "noise_log_time": float(np.median(machine.noise.time)),
        "noise_log_power": float(np.median(machine.noise.power)),
        "split_half_oracle": asdict(machine.split_half),
    }


def study_choices(
    label: str,
    machines: Sequence[Surfaces],
    methods: Callable[[Space], Sequence[Method]],
    *,
    samples: Sequence[Configuration] | Sampler = two_samples,
    weighting: Weighting = "time",
    together: Sequence[Sequence[str]] = (),
    budget: int | None = None,
    curve: Sequence[int] = CURVE,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> ChoiceStudy:
    """Compare methods on each machine.

    Parameters
    ----------
    label
        Which dataset.
    machines
        What was measured on each machine.
    methods
        The methods for the configurations of a machine, as some are made for its knobs.
    samples
        The sample configurations, which need a single machine; or what chooses them.
    weighting, together, budget, curve, seed, progress, cache, jobs
        As `crosscast.choose.evaluation.protocol.evaluate_choices` has them.

    Raises
    ------
    InputError
        As there; and if there is no machine, or no machine has a program of `together`.
    """
    if not machines:
        raise InputError(f"{label}: expected at least one machine, found none")
    known = sorted({name for surfaces in machines for name in surfaces.applications})
    for name in (name for group in together for name in group):
        if name not in known:
            raise InputError(f"together: expected one of {', '.join(known)}, found {name!r}")
    found = tuple(
        evaluate_choices(
            surfaces,
            methods(surfaces.space),
            samples=samples,
            weighting=weighting,
            together=together,
            budget=budget,
            curve=curve,
            seed=seed,
            progress=progress,
            cache=cache,
            jobs=jobs,
        )
        for surfaces in machines
    )
    return ChoiceStudy(label, weighting, seed, found)
