"""Datasets of made-up kernels over configurations, as an importer would write them."""

import numpy as np

from crosscast.predict.configuration.data import Surfaces
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset
from crosscast.tables.devices import DEVICES
from crosscast.tables.energy import ENERGY
from crosscast.tables.records import RECORDS
from crosscast.tables.schema import json_text


def configured_dataset(*machines: Surfaces) -> Dataset:
    """A dataset with one run of each kernel at each configuration, and the energy of each domain."""
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
            DEVICES, [{"device": key, "name": key, "type": "node", "sources": {}} for key in devices]
        ),
        records=table_of(RECORDS, records),
        energy=table_of(ENERGY, energies),
    )
