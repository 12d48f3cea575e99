"""Published runs of programs over configurations: power caps, numbers of cores, power limits, clocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from crosscast.data.configuration import Configuration, Setting
from crosscast.data.dataset import Dataset
from crosscast.data.fields import TableRow
from crosscast.data.schema import Column
from crosscast.data.sources.runs import (
    DEFAULT_SIZE,
    ConfiguredRun,
    RunPower,
    dataset_of,
    dataset_of_source,
    device_row,
)
from crosscast.data.sources.source import File, Source, SourceContents, SourceFile, required
from crosscast.units import megahertz, milliseconds

_CAPS = ("cpu_cap_w", "gpu_cap_w")


def _powercap(contents: SourceContents) -> Dataset:
    sensors = {"cpu": "rapl", "gpu": "nvidia-smi", "node": "sum"}
    runs = []
    for row in contents.only().rows:
        caps = Configuration("node", {name: row.number(name) for name in _CAPS})
        powers = [RunPower(sensor, name, row.number(f"{name}_w")) for name, sensor in sensors.items()]
        cell = row.text("benchmark"), row.text("benchmark"), row.text("size"), caps
        runs.append(ConfiguredRun(*cell, row.number("runtime_s"), powers, row.integer("n")))
    return dataset_of_source(contents, runs)


POWERCAP = Source(
    "powercap",
    (
        File(
            ("dual_cap_altis.csv",),
            (
                *required("text", "benchmark", "size"),
                *required("real", *_CAPS, "cpu_w", "gpu_w", "node_w", unit="W", gt=0),
                *required("real", "runtime_s", unit="s", gt=0),
                *required("integer", "n", ge=1),
            ),
            key=("benchmark", "size", *_CAPS),
        ),
    ),
    _powercap,
)


def _multicore_energy(contents: SourceContents) -> Dataset:
    runs = []
    for row in contents.only().rows:
        powers = [RunPower("meter", "node", row.number("avg_power_w"))]
        cell = row.text("app"), row.text("app"), DEFAULT_SIZE, Configuration(row.text("system"), _cores(row))
        runs.append(ConfiguredRun(*cell, row.number("time_s"), powers))
    return dataset_of_source(contents, runs)


def _cores(row: TableRow) -> dict[str, Setting]:
    cores, mode = row.integer("cores"), row.text_or_none("mode")
    if mode is None:
        return {"cores": cores}
    scheduling, cluster = mode.removesuffix("_cores").split("/")
    return {"cores": cores, "scheduling": scheduling, "cluster": cluster}


MULTICORE_ENERGY = Source(
    "multicore_energy",
    (
        File(
            ("loghin.csv",),
            (
                *required("text", "system", choices=("amd", "arm", "i7", "pi3", "tx2", "xeon", "xu3")),
                Column(
                    "mode",
                    "text",
                    choices=tuple(
                        f"{scheduling}/{cluster}_cores"
                        for scheduling in ("static", "dynamic")
                        for cluster in ("all", "big", "little")
                    ),
                ),
                *required("text", "app"),
                *required("integer", "cores", ge=1),
                *required("real", "time_s", unit="s", gt=0),
                *required("real", "avg_power_w", unit="W", gt=0),
            ),
            key=("system", "mode", "app", "cores"),
        ),
    ),
    _multicore_energy,
)


def _gpu_power_limit(contents: SourceContents) -> Dataset:
    (files,) = contents.files.values()
    runs = []
    for file in files:
        for row in file.rows:
            network, size = row.text("network"), f"{row['dataset']} b{row['batch_size']} {row['optimizer']}"
            cap = Configuration(file.word, {"power_cap_w": row.number("power_limit")})
            powers = [RunPower("nvml", "gpu", row.number("average_power"))]
            runs.append(ConfiguredRun(network, network, size, cap, row.number("time_per_epoch"), powers))
    origin = contents.notes["devices"]["origin"]
    devices = [
        device_row(file.word, origin, name=file.word.upper(), vendor="NVIDIA", type="gpu") for file in files
    ]
    return dataset_of(contents.label, devices, runs, contents.notes)


GPU_POWER_LIMIT = Source(
    "gpu_power_limit",
    (
        File(
            ("zeus_<gpu>.csv", "summary_power_<gpu>.csv"),
            (
                *required("text", "dataset", "network", "optimizer"),
                *required("integer", "batch_size", ge=1),
                *required("real", "power_limit", "average_power", unit="W", gt=0),
                *required("real", "time_per_epoch", unit="s", gt=0),
            ),
            key=("dataset", "network", "optimizer", "batch_size", "power_limit"),
        ),
    ),
    _gpu_power_limit,
)

_GTX1080TI = File(
    ("gtx1080ti.csv",),
    (
        *required("text", "appName", "kernel"),
        *required("real", "coreF", "memF", unit="MHz", gt=0),
        *required("real", "time/ms", unit="ms", gt=0),
        *required("real", "power/W", unit="W", gt=0),
    ),
    key=("appName", "kernel", "coreF", "memF"),
    is_required=False,
    ignored=("", "Unnamed: 0", "argNo", "blocks"),
)
_TITANX = File(
    ("titanx.csv",),
    (
        *required("text", "kernel"),
        *required("real", "mem_mhz", "core_mhz", unit="MHz", gt=0),
        *required("real", "time_ms", unit="ms", gt=0),
        *required("real", "power_w", unit="W", gt=0),
    ),
    is_required=False,
)
_SERIES = {"stencil2d": (DEFAULT_SIZE, "second series")}
"""Kernels that the source has twice, and the sizes by which they are distinguished."""


def _gpu_dvfs(contents: SourceContents) -> Dataset:
    runs = [run for file in contents.files[_GTX1080TI] for run in _gtx1080ti(file)]
    runs += [run for file in contents.files[_TITANX] for run in _titanx(file)]
    devices = contents.devices_in(run.configuration.device for run in runs)
    keys = [row.text("device") for row in devices]
    # A note whose name begins with a device is about that device only.
    notes = {
        table: {
            **{f"{row['device']}: origin": str(row.entries("sources")["name"]) for row in devices},
            **{name: text for name, text in contents.notes.get(table, {}).items() if _is_about(name, keys)},
        }
        for table in ("devices", "records", "energy", "sessions")
    }
    return dataset_of(contents.label, devices, runs, notes)


def _is_about(note: str, devices: list[str]) -> bool:
    device, colon, _ = note.partition(": ")
    return not colon or device in devices


def _gtx1080ti(file: SourceFile) -> Iterator[ConfiguredRun]:
    for row in file.rows:
        clocks = _clocks("gtx1080ti", row.number("coreF"), row.number("memF"))
        powers = [RunPower("published", "gpu", row.number("power/W"))]
        cell = row.text("appName"), row.text("kernel"), DEFAULT_SIZE, clocks
        time_s = milliseconds(row.number("time/ms"))
        yield ConfiguredRun(*cell, time_s, powers, counters=row.numbers(file.others))


def _titanx(file: SourceFile) -> Iterator[ConfiguredRun]:
    seen: Counter[tuple[str, Configuration]] = Counter()
    for number, row in enumerate(file.rows, start=1):
        kernel, clocks = row.text("kernel"), _clocks("titanx", row.number("core_mhz"), row.number("mem_mhz"))
        sizes = _SERIES.get(kernel, (DEFAULT_SIZE,))
        seen[kernel, clocks] += 1
        if seen[kernel, clocks] > len(sizes):
            expected = "other clocks than in the rows before"
            raise file.refused(number, expected, f"{kernel} on {clocks} again")
        cell = kernel, kernel, sizes[seen[kernel, clocks] - 1], clocks
        powers = [RunPower("published", "gpu", row.number("power_w"))]
        yield ConfiguredRun(*cell, milliseconds(row.number("time_ms")), powers)


def _clocks(device: str, core_mhz: float, memory_mhz: float) -> Configuration:
    clocks = {"core_clock_hz": megahertz(core_mhz), "memory_clock_hz": megahertz(memory_mhz)}
    return Configuration(device, clocks)


GPU_DVFS = Source("gpu_dvfs", (_GTX1080TI, _TITANX), _gpu_dvfs)
