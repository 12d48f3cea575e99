"""An evaluation of choices on made-up machines, small enough to read, and the same as a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from made_surfaces import made_surfaces

from crosscast.choose.evaluation.offline import OfflineStage, offline_stage
from crosscast.choose.evaluation.study import ChoiceStudy, study_choices
from crosscast.choose.methods.registry import methods_of
from crosscast.choose.methods.selected import SelectedModel
from crosscast.choose.walk import Chooser, Method, Walk
from crosscast.configuration import Configuration
from crosscast.predict.configuration.baselines.nearest import NearestKernels
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Observed, Surfaces
from crosscast.predict.grid import Flags
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset
from crosscast.tables.devices import DEVICES
from crosscast.tables.energy import ENERGY
from crosscast.tables.records import RECORDS
from crosscast.tables.schema import json_text

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
    machines = [named_surfaces(), other_machine()] if both else [named_surfaces()]
    stages = tuple(offline_stage(machine) for machine in machines)
    return study_choices("made up", machines, methods), stages


def dataset_of(*machines: Surfaces) -> Dataset:
    """A dataset with one run of each kernel at each configuration, and the power of each domain."""
    records, energies = [], []
    for surfaces in machines:
        for row, kernel in enumerate(surfaces.kernels):
            for number in np.flatnonzero(surfaces.known[row]).tolist():
                configuration = surfaces.space.configurations[number]
                at = {
                    "application": kernel.application,
                    "size": kernel.size,
                    "device": configuration.device,
                    "configuration": json_text(dict(configuration.settings)),
                    "repeat": 0,
                    "run": 0,
                }
                time_s = float(surfaces.time_s[row, number])
                records.append({**at, "kernel": kernel.kernel, "time_s": [time_s], "invocations": 1})
                domains = surfaces.domains or {"gpu": surfaces.power_w}
                energies += [
                    {
                        **at,
                        "sensor": "made",
                        "domain": domain,
                        "energy_j": float(power[row, number]) * time_s,
                        "duration_s": time_s,
                        "runs": 1,
                    }
                    for domain, power in domains.items()
                ]
    devices = sorted({str(record["device"]) for record in records})
    return Dataset(
        "made up",
        devices=table_of(
            DEVICES, [{"device": key, "name": key, "type": "gpu", "sources": {}} for key in devices]
        ),
        records=table_of(RECORDS, records),
        energy=table_of(ENERGY, energies),
    )
