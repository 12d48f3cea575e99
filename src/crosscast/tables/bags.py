"""The table of bags: a row for each application of a bag, which run at the same time on one device."""

from __future__ import annotations

from crosscast.tables.cell_columns import APPLICATION, CONFIGURATION, DEVICE, REPEAT, SIZE
from crosscast.tables.schema import Column, Schema

__all__ = ["BAGS"]

BAGS = Schema(
    "bags",
    1,
    (
        Column("bag", "text", title="name of the bag", required=True),
        DEVICE,
        CONFIGURATION,
        REPEAT,
        Column("position", "integer", "count", "place in the bag, from 0", required=True, least=0),
        APPLICATION,
        SIZE,
        Column("fits", "integer", "", "1 if the bag fits on the device, 0 if not; empty: unknown", least=0),
        Column("time_s", "real", "s", "mean time of a job while the whole bag runs", least=0),
        Column("slowdown", "real", "1", "that time over the time of the job alone", least=0),
        Column("jobs", "integer", "count", "jobs that were timed while the whole bag ran", least=0),
        Column("bag_time_s", "real", "s", "time of a job of each, started together", least=0),
        Column("overlap", "real", "1", "share of that time in which the whole bag ran", least=0),
        Column("power_w", "real", "W", "mean power of the device while the whole bag runs", least=0),
        Column("failure", "text", title="why it failed; empty if it did not"),
    ),
    key=("bag", "device", "configuration", "repeat", "position"),
)
"""Version 1. The rows of a bag agree in what is of the whole bag: fits, bag time, overlap and power."""
