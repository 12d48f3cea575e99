"""Thin a dataset's records so that it is small enough to come with Crosscast.

``python -m benchmarks.bundled_records FOLDER`` keeps, of each application at a size on a device, 50 of its
runs, evenly spaced from the first to the last: forecasts are of medians, which hardly move.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa

from crosscast.data.dataset import read_dataset, write_dataset

_RUNS = 50
_MEASURED = ["application", "size", "device", "configuration"]


def kept(records: pa.Table) -> pa.Table:
    """The records of the runs that stay."""
    rows = records.select([*_MEASURED, "repeat", "run"]).to_pandas()
    order = rows.repeat * (rows.run.max() + 1) + rows.run
    place = order.groupby([rows[name] for name in _MEASURED], observed=True).rank("dense").astype(int) - 1
    count = place.groupby([rows[name] for name in _MEASURED], observed=True).transform("max") + 1
    # Run p of n stays if it is the first in its fiftieth.
    first = (place * _RUNS) // count != ((place - 1) * _RUNS) // count
    return records.filter(pa.array(np.asarray(first)))


if __name__ == "__main__":
    folder = sys.argv[1]
    dataset = read_dataset(folder)
    thinned = replace(dataset, records=kept(dataset.records))
    write_dataset(thinned, folder)
    print(f"{dataset.records.num_rows} records before, {thinned.records.num_rows} now")
