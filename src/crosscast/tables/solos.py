"""The table of solo runs: a row for each application alone on a device, with what is known of it there."""

from __future__ import annotations

from crosscast.tables.cell_columns import APPLICATION, CONFIGURATION, DEVICE, SIZE
from crosscast.tables.schema import Column, Schema

__all__ = ["SOLOS"]

SOLOS = Schema(
    "solos",
    1,
    (
        APPLICATION,
        SIZE,
        DEVICE,
        CONFIGURATION,
        Column("runs", "integer", "count", "runs of the application of which a job consists", least=1),
        Column("time_s", "real", "s", "time of a job", least=0),
        Column("power_w", "real", "W", "mean power of the device meanwhile", least=0),
        Column("memory_bytes", "integer", "B", "memory of the device that it takes", least=0),
        Column("features", "json", title="what else is known of it, numbers by name", required=True),
        Column("failure", "text", title="why it failed; empty if it did not"),
        Column("environment", "json", title="host, driver and package facts"),
    ),
    key=("application", "size", "device", "configuration"),
)
"""Version 1."""
