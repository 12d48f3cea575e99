"""The table of sessions: a row for each process that measured an application, with what its records share."""

from __future__ import annotations

from crosscast.tables.cell_columns import APPLICATION, CONFIGURATION, DEVICE, REPEAT, SIZE
from crosscast.tables.schema import Column, Schema

__all__ = ["SESSIONS"]

SESSIONS = Schema(
    "sessions",
    1,
    (
        APPLICATION,
        SIZE,
        DEVICE,
        CONFIGURATION,
        REPEAT,
        Column("kernels", "json", title="names of the application's kernels", required=True),
        Column("failure", "text", title="why it failed; empty if it did not"),
        Column("started_s", "real", "s", "when it started, since 1970-01-01 UTC", least=0),
        Column("warmups", "integer", "count", "runs before those that were recorded", least=0),
        Column("runs", "integer", "count", "runs that were recorded", least=0),
        Column("loop_s", "real", "s", "time on the host of all recorded runs", least=0),
        Column("working_set_bytes", "integer", "B", "size of the application's buffers", least=0),
        Column("parameters", "json", title="extents of the problem"),
        Column("seed", "integer", "", "start of the problem's random numbers"),
        Column(
            "source_sha256",
            "text",
            title="hash of the kernels' source, and outside the suite of the driver's",
        ),
        Column("timer_resolution_s", "real", "s", "resolution of the device's timer", least=0),
        Column("clock_before_hz", "real", "Hz", "clock of the device before the runs", least=0),
        Column("clock_after_hz", "real", "Hz", "clock of the device after the runs", least=0),
        Column("load_before", "real", "1", "other processes that wanted to run, before", least=0),
        Column("load_after", "real", "1", "other processes that wanted to run, after", least=0),
        Column("counters", "json", title="what was counted over all recorded runs, by name"),
        Column("environment", "json", title="host, driver and package facts"),
    ),
    key=("application", "size", "device", "configuration", "repeat"),
)
"""Version 1."""
