"""How long the same work took on each device: the times that relative vectors are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.configuration import Configuration
from crosscast.predict.relative.observations import Work
from crosscast.predict.relative.scale import scale_of
from crosscast.tables.cells import KERNEL_AT_A_SIZE, cells_of, run_means, sound
from crosscast.tables.dataset import Dataset
from crosscast.tables.samples import samples_of

__all__ = ["WorkTimes", "work_times"]


@dataclass(frozen=True)
class WorkTimes:
    """Times of ``w`` pieces of work on ``d`` devices.

    Parameters
    ----------
    rows
        The row of each piece of work.
    devices
        Keys of the devices, sorted.
    times_s
        Median times in seconds over all runs, of shape ``(w, d)``; not a number where there is none.
    """

    rows: dict[Work, int]
    devices: tuple[str, ...]
    times_s: Reals


def work_times(dataset: Dataset) -> WorkTimes:
    """Collect the times of a dataset, without those of sessions that failed.

    Runs of the same work on one device are taken together, whatever else they were set to.

    Raises
    ------
    InputError
        If a configuration is not one of numbers and words.
    """
    records = sound(dataset.records, dataset.sessions)
    cells = cells_of(records)
    keys = cells.keys.to_pylist()
    rows: dict[Work, int] = {}
    devices = tuple(sorted({key["device"] for key in keys}))
    columns = {device: place for place, device in enumerate(devices)}
    places = np.empty(len(keys), dtype=np.int64)
    for number, key in enumerate(keys):
        settings = Configuration.of(key["device"], key["configuration"]).settings
        application, kernel, size = (key[name] for name in KERNEL_AT_A_SIZE)
        row = rows.setdefault((application, kernel, size, scale_of(settings, size)), len(rows))
        places[number] = row * len(devices) + columns[key["device"]]
    filled, numbers = np.unique(places[cells.numbers], return_inverse=True)
    times = np.full(len(rows) * len(devices), np.nan)
    times[filled] = samples_of(numbers, run_means(records)).quantile(0.5)
    return WorkTimes(rows, devices, times.reshape(len(rows), len(devices)))
