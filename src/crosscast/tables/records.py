"""The table of records: a row for each run of a kernel's application on a device.

The published summary, the mean time of an invocation in a run, is derived from `time_s`.
"""

from __future__ import annotations

from crosscast.tables.cell_columns import APPLICATION, CONFIGURATION, DEVICE, REPEAT, SIZE
from crosscast.tables.schema import Column, Schema

__all__ = ["RECORDS"]

RECORDS = Schema(
    "records",
    1,
    (
        APPLICATION,
        Column("kernel", "text", title="kernel", required=True),
        SIZE,
        DEVICE,
        CONFIGURATION,
        REPEAT,
        Column("run", "integer", "count", "number of the run in its process, from 0", required=True, least=0),
        Column("invocations", "integer", "count", "invocations of the kernel in the run", least=1),
        Column(
            "time_s",
            "reals",
            "s",
            "time on the device of each invocation, in order; their mean alone where no more was recorded",
            required=True,
            least=0,
        ),
        Column("transfer_s", "real", "s", "time on the device of all copies of the run", least=0),
        Column("host_s", "real", "s", "time of the whole run on the host, copies included", least=0),
        Column("started_s", "real", "s", "when the run started, since 1970-01-01 UTC", least=0),
    ),
    # The kernels of a run are neighbours, as they share its times.
    key=("application", "size", "device", "configuration", "repeat", "run", "kernel"),
)
"""Version 1."""
