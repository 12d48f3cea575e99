"""Datasets of the made-up kernels over configurations, as an importer would write them."""

import json

from made_surfaces import made_surfaces

from crosscast.predict.configuration.surfaces import Surfaces
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset
from crosscast.tables.devices import DEVICES
from crosscast.tables.energy import ENERGY
from crosscast.tables.profiles import PROFILES
from crosscast.tables.records import RECORDS


def configured_dataset(applications: int = 4, surfaces: Surfaces | None = None) -> Dataset:
    """A dataset without profiles: a run of each kernel at each configuration, with energy of its domains."""
    made = made_surfaces(applications, noise=0.01) if surfaces is None else surfaces
    records, energy = [], []
    for row, kernel in enumerate(made.kernels):
        for number, configuration in enumerate(made.space.configurations):
            time_s = float(made.time_s[row, number])
            at = {
                "device": configuration.device,
                "configuration": json.dumps(dict(configuration.settings)),
                "repeat": 0,
                "run": 0,
            }
            cell = {**kernel._asdict(), **at}
            records.append({**cell, "time_s": [time_s], "invocations": 1})
            for domain, values in made.domains.items():
                watts = float(values[row, number])
                energy.append(
                    {
                        **cell,
                        "sensor": "made",
                        "domain": domain,
                        "energy_j": watts * time_s,
                        "duration_s": time_s,
                        "runs": 1,
                    }
                )
    devices = [{"device": key, "name": key, "type": "node", "sources": {}} for key in made.space.devices]
    return Dataset(
        "made up",
        devices=table_of(DEVICES, devices),
        profiles=table_of(PROFILES, []),
        records=table_of(RECORDS, records),
        energy=table_of(ENERGY, energy),
    )
