"""The table of devices: a row for each device, with what describes it to a predictor."""

from __future__ import annotations

from crosscast.tables.schema import Column, Schema

__all__ = ["DEVICES"]

DEVICES = Schema(
    "devices",
    1,
    (
        Column("device", "text", title="key of the device in all tables", required=True),
        Column("name", "text", title="name for people", required=True),
        Column("vendor", "text", title="who makes it"),
        Column("type", "text", title="cpu, gpu or accelerator", required=True),
        Column("series", "text", title="architecture, such as Skylake"),
        Column("compute_units", "integer", "count", "compute units, as OpenCL counts them", least=1),
        Column("cores", "integer", "count", "processing elements, as its maker counts them", least=1),
        Column("clock_hz", "real", "Hz", "highest clock without turbo", least=0),
        Column("clock_min_hz", "real", "Hz", "lowest clock", least=0),
        Column("clock_turbo_hz", "real", "Hz", "highest clock", least=0),
        Column("memory_bytes", "integer", "B", "main memory of the device", least=0),
        Column("local_memory_bytes", "integer", "B", "local memory of a work-group", least=0),
        Column("l1_bytes", "integer", "B", "first-level data cache of a compute unit", least=0),
        Column("l2_bytes", "integer", "B", "second-level cache", least=0),
        Column("l3_bytes", "integer", "B", "last-level cache", least=0),
        Column("bandwidth_bytes_per_s", "real", "B/s", "bandwidth of main memory", least=0),
        Column("peak_flop_per_s", "real", "flop/s", "peak rate in single precision", least=0),
        Column("launch_overhead_s", "real", "s", "time of an empty kernel, launch to end", least=0),
        Column("timer_resolution_s", "real", "s", "resolution of its timer", least=0),
        Column("max_work_group_size", "integer", "count", "most work-items of a work-group", least=1),
        Column("tdp_w", "real", "W", "thermal design power", least=0),
        Column("launched", "text", title="when it came to market, such as 2015-Q3"),
        Column("platform", "text", title="OpenCL platform and its version"),
        Column("driver", "text", title="version of the driver"),
        Column("sources", "json", title="where each number is from, by column", required=True),
    ),
    key=("device",),
)
"""Version 1."""
