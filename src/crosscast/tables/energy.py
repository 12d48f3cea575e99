"""The table of energy: a row for each time that a sensor watched an application, or one kernel of it."""

from __future__ import annotations

from crosscast.tables.schema import Column, Schema

__all__ = ["ENERGY"]

ENERGY = Schema(
    "energy",
    1,
    (
        Column("application", "text", title="application", required=True),
        Column("kernel", "text", title="kernel; empty for the whole application"),
        Column("size", "text", title="problem size", required=True),
        Column("device", "text", title="key of the device in the table of devices", required=True),
        Column("configuration", "json", title="settings of the device; {} for its defaults", required=True),
        Column("repeat", "integer", "count", "number of the process, from 0", required=True, least=0),
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
