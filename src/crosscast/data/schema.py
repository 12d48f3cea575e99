"""Schemas: the columns of a table, with types, units and a version."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from crosscast.data.fields import is_finite
from crosscast.errors import InputError

ColumnType = Literal["text", "json", "integer", "real", "reals"]
"""``json`` is text that holds a JSON value, ``reals`` a list of one or more real numbers."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str  # Its name
    type: ColumnType  # Type of its cells
    unit: str = ""  # Unit of its numbers, SI; empty for texts
    title: str = ""  # Its meaning in a few words, for people
    required: bool = False  # Whether no cell may be empty
    # Bounds of numbers: more than `gt`, at least `ge`, less than `lt`, at most `le`
    gt: float | None = field(default=None, kw_only=True)
    ge: float | None = field(default=None, kw_only=True)
    lt: float | None = field(default=None, kw_only=True)
    le: float | None = field(default=None, kw_only=True)
    choices: tuple[str, ...] = ()  # Allowed texts; any if empty


@dataclass(frozen=True)
class Schema:
    """Name, version, columns and key of a table."""

    table: str  # Name of the table
    version: int  # Rises when a column changes its name, type or meaning
    columns: tuple[Column, ...]  # The columns, in order
    # Columns that identify a row: no two rows agree in all of them. If empty, rows may repeat
    key: tuple[str, ...]


def json_text(value: object) -> str:
    """Write a JSON value in canonical form: equal values give equal texts.

    >>> json_text({"cores": 2, "clock_hz": 1e9})
    '{"clock_hz": 1000000000.0, "cores": 2}'
    """
    return json.dumps(value, sort_keys=True, allow_nan=False)


APPLICATION = Column("application", "text", title="application", required=True)
SIZE = Column("size", "text", title="problem size", required=True)
DEVICE = Column("device", "text", title="key of the device in the table of devices", required=True)
CONFIGURATION = Column(
    "configuration", "json", title="settings of the device; {} for its defaults", required=True
)
REPEAT = Column("repeat", "integer", "count", "number of the process, from 0", required=True, ge=0)


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
        Column("started_s", "real", "s", "when it started, since 1970-01-01 UTC", ge=0),
        Column("warmups", "integer", "count", "runs before those that were recorded", ge=0),
        Column("runs", "integer", "count", "runs that were recorded", ge=0),
        Column("loop_s", "real", "s", "time on the host of all recorded runs", ge=0),
        Column("working_set_bytes", "integer", "B", "size of the application's buffers", ge=0),
        Column("parameters", "json", title="extents of the problem"),
        Column("seed", "integer", "", "start of the problem's random numbers"),
        Column(
            "source_sha256",
            "text",
            title="hash of the kernels' source, and outside the suite of the driver's",
        ),
        Column("timer_resolution_s", "real", "s", "resolution of the device's timer", ge=0),
        Column("clock_before_hz", "real", "Hz", "clock of the device before the runs", ge=0),
        Column("clock_after_hz", "real", "Hz", "clock of the device after the runs", ge=0),
        Column("load_before", "real", "1", "other processes that wanted to run, before", ge=0),
        Column("load_after", "real", "1", "other processes that wanted to run, after", ge=0),
        Column("counters", "json", title="what was counted over all recorded runs, by name"),
        Column("environment", "json", title="host, driver and package facts"),
    ),
    key=("application", "size", "device", "configuration", "repeat"),
)
"""Version 1."""


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
        Column("run", "integer", "count", "number of the run in its process, from 0", required=True, ge=0),
        Column("invocations", "integer", "count", "invocations of the kernel in the run", ge=1),
        Column(
            "time_s",
            "reals",
            "s",
            "time on the device of each invocation, in order; their mean alone where no more was recorded",
            required=True,
            ge=0,
        ),
        Column("transfer_s", "real", "s", "time on the device of all copies of the run", ge=0),
        Column("host_s", "real", "s", "time of the whole run on the host, copies included", ge=0),
        Column("started_s", "real", "s", "when the run started, since 1970-01-01 UTC", ge=0),
    ),
    # The kernels of a run are neighbours, as they share its times.
    key=("application", "size", "device", "configuration", "repeat", "run", "kernel"),
)
"""Version 1."""


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
        Column("run", "integer", "count", "number of the run; empty for all runs of the process", ge=0),
        Column("sensor", "text", title="name of the sensor, such as rapl", required=True),
        Column("domain", "text", title="what it measures, such as package-0", required=True),
        Column("energy_j", "real", "J", "energy of all runs that it watched", required=True, ge=0),
        Column("duration_s", "real", "s", "how long it watched", ge=0),
        Column("runs", "integer", "count", "runs that it watched", required=True, ge=1),
        Column("samples", "integer", "count", "readings of the sensor that brought news", ge=0),
        Column("times_s", "reals", "s", "when each reading was taken, since the first", ge=0),
        Column("energies_j", "reals", "J", "energy since the first reading, at each", ge=0),
    ),
    key=("application", "kernel", "size", "device", "configuration", "repeat", "run", "sensor", "domain"),
)
"""Version 1."""


DEVICES = Schema(
    "devices",
    2,
    (
        Column("device", "text", title="key of the device in all tables", required=True),
        Column("name", "text", title="name for people", required=True),
        Column("vendor", "text", title="who makes it"),
        Column("type", "text", title="cpu, gpu or accelerator", required=True),
        Column("series", "text", title="architecture, such as Skylake"),
        Column("compute_units", "integer", "count", "compute units, as OpenCL counts them", ge=1),
        Column("cores", "integer", "count", "processing elements, as its maker counts them", ge=1),
        Column("clock_hz", "real", "Hz", "highest clock without turbo", ge=0),
        Column("clock_min_hz", "real", "Hz", "lowest clock", ge=0),
        Column("clock_turbo_hz", "real", "Hz", "highest clock", ge=0),
        Column("memory_bytes", "integer", "B", "main memory of the device", ge=0),
        Column("local_memory_bytes", "integer", "B", "local memory of a work-group", ge=0),
        Column("l1_bytes", "integer", "B", "first-level data cache of a compute unit", ge=0),
        Column("l2_bytes", "integer", "B", "second-level cache", ge=0),
        Column("l3_bytes", "integer", "B", "last-level cache", ge=0),
        Column("bandwidth_bytes_per_s", "real", "B/s", "bandwidth of main memory", ge=0),
        Column("peak_flop_per_s", "real", "flop/s", "peak rate in single precision", ge=0),
        Column("peak_fp64_flop_per_s", "real", "flop/s", "peak rate in double precision", ge=0),
        Column("peak_fp16_flop_per_s", "real", "flop/s", "peak rate in half precision", ge=0),
        Column("launch_overhead_s", "real", "s", "time of an empty kernel, launch to end", ge=0),
        Column("timer_resolution_s", "real", "s", "resolution of its timer", ge=0),
        Column("max_work_group_size", "integer", "count", "most work-items of a work-group", ge=1),
        Column("tdp_w", "real", "W", "thermal design power", ge=0),
        Column("launched", "text", title="when it came to market, such as 2015-Q3"),
        Column("platform", "text", title="OpenCL platform and its version"),
        Column("driver", "text", title="version of the driver"),
        Column("sources", "json", title="where each number is from, by column", required=True),
    ),
    key=("device",),
)
"""Version 2 adds peak rates in double and half precision."""


ISOLATED_RUNS = Schema(
    "isolated_runs",
    1,
    (
        APPLICATION,
        SIZE,
        DEVICE,
        CONFIGURATION,
        Column("runs", "integer", "count", "runs of the application of which a job consists", ge=1),
        Column("time_s", "real", "s", "time of a job", gt=0),
        Column("power_w", "real", "W", "mean power of the device meanwhile", ge=0),
        Column("memory_bytes", "integer", "B", "memory of the device that it takes", ge=0),
        Column("features", "json", title="what else is known of it, numbers by name", required=True),
        Column("failure", "text", title="why it failed; empty if it did not"),
        Column("environment", "json", title="host, driver and package facts"),
    ),
    key=("application", "size", "device", "configuration"),
)
"""Version 1."""


MIXES = Schema(
    "mixes",
    1,
    (
        Column("mix", "text", title="name of the mix", required=True),
        DEVICE,
        CONFIGURATION,
        REPEAT,
        Column("position", "integer", "count", "position in the mix, from 0", required=True, ge=0),
        APPLICATION,
        SIZE,
        Column(
            "fits", "integer", "", "1 if the mix fits on the device, 0 if not; empty: unknown", ge=0, le=1
        ),
        Column("time_s", "real", "s", "mean time of a job while the whole mix runs", gt=0),
        Column("slowdown", "real", "1", "that time over the time of the job alone", gt=0),
        Column("jobs", "integer", "count", "jobs that were timed while the whole mix ran", ge=0),
        Column("mix_time_s", "real", "s", "time of a job of each, started together", gt=0),
        Column("overlap", "real", "1", "share of that time in which the whole mix ran", ge=0, le=1),
        Column("power_w", "real", "W", "mean power of the device while the whole mix runs", ge=0),
        Column("failure", "text", title="why it failed; empty if it did not"),
    ),
    key=("mix", "device", "configuration", "repeat", "position"),
)
"""Version 1. The rows of a mix agree in `fits`, `mix_time_s`, `overlap` and `power_w`."""


def counters_of(session: Mapping[str, object], label: str) -> dict[str, float]:
    """Counters over all recorded runs of a session, without those that have no value."""
    text = str(session["counters"])
    counters = json.loads(text)
    known = {} if not isinstance(counters, dict) else {n: v for n, v in counters.items() if v is not None}
    if not isinstance(counters, dict) or not all(map(is_finite, known.values())):
        key = ", ".join(str(session[name]) for name in SESSIONS.key)
        raise InputError.of(
            where=label,
            problem=f"sessions: column 'counters' of {key}: expected an object of numbers, found {text}",
        )
    return {name: float(value) for name, value in known.items()}


KERNEL = ("application", "kernel", "size")
"""Columns that identify a kernel at a size."""

DEVICE_COLUMN = "device"
"""Column with the device's key."""

TIME = "time_s"
TIMES = (TIME, "runtime_s")
"""Columns with the run time in seconds; the first that a row has counts."""

POWER = "power_w"
"""Column with the mean power of the whole device during the run, in watts."""


def domain_column(domain: str) -> str:
    """Column of the power of a domain.

    >>> domain_column("package-0")
    'package-0_w'
    """
    return f"{domain}_w"


NODE = "node"
"""Domain of the power of a whole machine."""

_PLATFORM = "psys"  # RAPL's name of a platform, which includes the domains ``package-0`` and so on


def device_domains(domains: Collection[str]) -> list[str]:
    """Find the domains whose powers sum to that of the device.

    >>> device_domains(["package-0", "package-0/dram", "gpu"]), device_domains(["gpu", "node"])
    (['package-0', 'gpu'], ['node'])
    """
    if NODE in domains:
        return [NODE]
    return [name for name in domains if not any(outer in domains for outer in _outer(name))]


def _outer(domain: str) -> list[str]:
    """Domains that may include a domain: ``a`` and ``a/b`` for ``a/b/c``."""
    parts = domain.split("/")
    platform = [_PLATFORM] if domain.startswith("package-") else []
    return [*platform, *("/".join(parts[:count]) for count in range(1, len(parts)))]


SIZES = ("tiny", "small", "medium", "large")
"""Problem sizes of the suite and of the published study, in increasing order."""


def size_order(size: str) -> tuple[int, str]:
    """Sort key: the known sizes in their order, then others by name."""
    return (SIZES.index(size) if size in SIZES else len(SIZES), size)
