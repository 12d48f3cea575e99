"""The table of energy: a row for each time that a sensor watched an application, or one kernel of it."""

from __future__ import annotations

from crosscast.tables.cell_columns import APPLICATION, CONFIGURATION, DEVICE, REPEAT, SIZE
from crosscast.tables.schema import Column, Schema

__all__ = ["ENERGY"]

ENERGY = Schema(
    "energy",
    1,
    (
        APPLICATION,
        Column("kernel", "text", title="kernel; empty for the whole application"),
        SIZE,
        DEVICE,
        CONFIGURATION,
        REPEAT,
        Column("run", "integer", "count", "number of the run; empty for all runs of the process", least=0),
        Column("sensor", "text", title="name of the sensor, such as rapl", required=True),
        Column("domain", "text", title="what it measures, such as package-0", required=True),
        Column("energy_j", "real", "J", "energy of all runs that it watched", required=True, least=0),
        Column("duration_s", "real", "s", "how long it watched", least=0),
        Column("runs", "integer", "count", "runs that it watched", required=True, least=1),
        Column("samples", "integer", "count", "readings of the sensor that brought news", least=0),
        Column("times_s", "reals", "s", "when each reading was taken, since the first", least=0),
        Column("energies_j", "reals", "J", "energy since the first reading, at each", least=0),
    ),
    key=(
        "application",
        "kernel",
        "size",
        "device",
        "configuration",
        "repeat",
        "run",
        "sensor",
        "domain",
    ),
)
"""Version 1."""
