"""Made-up mixes whose jobs do on parts what their demand, which shows in the mix, says."""

from typing import Any

import numpy as np

from crosscast.tables.arrow import table_of
from crosscast.tables.bags import BAGS
from crosscast.tables.corun.mixes import DUMMY, Mixes
from crosscast.tables.dataset import Dataset
from crosscast.tables.devices import DEVICES

LEVELS = (100.0, 50.0, 14.0)
SLICES = (7.0, 4.0, 3.0)


def made_mixes(*, jobs: int = 9, mixes: int = 110, members: int = 4, seed: int = 0) -> Mixes:
    """Mixes of one to all members that are jobs; the others are dummies of little demand."""
    random = np.random.default_rng(seed)
    demand = np.concatenate([[0.02], np.linspace(0.1, 0.9, jobs)])
    job = random.integers(1, jobs + 1, (mixes, members))
    job[np.arange(members) > random.integers(0, members, mixes)[:, None]] = 0
    own = demand[job]
    others = own.sum(axis=1, keepdims=True) - own
    share = np.array(LEVELS) / 100
    limited = 1 + own[..., None] * (1 / share - 1)
    crowded = 1 + others[..., None] * share
    shared = limited * crowded
    alone = 1 + own[..., None] * (7 / np.array(SLICES) - 1)
    return Mixes(
        "made up",
        "gpu",
        LEVELS,
        SLICES,
        (DUMMY, *(f"job {number}" for number in range(1, jobs + 1))),
        job,
        shared / shared.max(axis=2, keepdims=True),
        alone / alone.max(axis=2, keepdims=True),
    )


def rows_of(mixes: Mixes) -> list[dict[str, Any]]:
    """The rows of the table of bags that they are read from."""
    values = np.concatenate([mixes.shared, mixes.alone], axis=2)
    settings = [f'{{"mps_percent": {level:g}}}' for level in mixes.levels]
    settings += [f'{{"mig_gpcs": {slices:g}}}' for slices in mixes.slices]
    return [
        {
            "bag": f"mix {mix:04}",
            "device": mixes.device,
            "configuration": configuration,
            "repeat": 0,
            "position": position,
            "application": mixes.jobs[job],
            "size": "-",
            "slowdown": float(values[mix, position, column]),
        }
        for mix in range(len(mixes))
        for column, configuration in enumerate(settings)
        for position, job in enumerate(mixes.job[mix].tolist())
    ]


def dataset_with(rows: list[dict[str, Any]]) -> Dataset:
    """A dataset of such rows."""
    keys = sorted({row["device"] for row in rows})
    devices = [{"device": key, "name": key, "type": "gpu", "sources": {}} for key in keys]
    return Dataset("made up", devices=table_of(DEVICES, devices), bags=table_of(BAGS, rows))
