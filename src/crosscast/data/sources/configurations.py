"""Published runs of programs over configurations: power caps, numbers of cores, power limits, clocks."""

from __future__ import annotations

from collections import Counter

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
    runs = [
        ConfiguredRun(
            application=row.text("benchmark"),
            kernel=row.text("benchmark"),
            size=row.text("size"),
            configuration=Configuration("node", {name: row.number(name) for name in _CAPS}),
            time_s=row.number("runtime_s"),
            powers=(
                RunPower("rapl", "cpu", row.number("cpu_w")),
                RunPower("nvidia-smi", "gpu", row.number("gpu_w")),
                RunPower("sum", "node", row.number("node_w")),
            ),
            runs=row.integer("n"),
        )
        for row in contents.only().rows
    ]
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
    runs = [
        ConfiguredRun(
            application=row.text("app"),
            kernel=row.text("app"),
            size=DEFAULT_SIZE,
            configuration=Configuration(row.text("system"), _cores(row)),
            time_s=row.number("time_s"),
            powers=(RunPower("meter", "node", row.number("avg_power_w")),),
        )
        for row in contents.only().rows
    ]
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
    runs = [
        ConfiguredRun(
            application=row.text("network"),
            kernel=row.text("network"),
            size=f"{row['dataset']} b{row['batch_size']} {row['optimizer']}",
            configuration=Configuration(file.word, {"power_cap_w": row.number("power_limit")}),
            time_s=row.number("time_per_epoch"),
            powers=(RunPower("nvml", "gpu", row.number("average_power")),),
        )
        for file in files
        for row in file.rows
    ]
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


def _gtx1080ti(file: SourceFile) -> list[ConfiguredRun]:
    return [
        ConfiguredRun(
            application=row.text("appName"),
            kernel=row.text("kernel"),
            size=DEFAULT_SIZE,
            configuration=_clocks("gtx1080ti", row.number("coreF"), row.number("memF")),
            time_s=milliseconds(row.number("time/ms")),
            powers=(RunPower("published", "gpu", row.number("power/W")),),
            counters=row.numbers(file.others),
        )
        for row in file.rows
    ]


def _titanx(file: SourceFile) -> list[ConfiguredRun]:
    seen: Counter[tuple[str, Configuration]] = Counter()
    runs = []
    for number, row in enumerate(file.rows, start=1):
        kernel, configuration = (
            row.text("kernel"),
            _clocks("titanx", row.number("core_mhz"), row.number("mem_mhz")),
        )
        sizes = _SERIES.get(kernel, (DEFAULT_SIZE,))
        seen[kernel, configuration] += 1
        if seen[kernel, configuration] > len(sizes):
            expected = "other clocks than in the rows before"
            raise file.refused(number, expected, f"{kernel} on {configuration} again")
        runs.append(
            ConfiguredRun(
                application=kernel,
                kernel=kernel,
                size=sizes[seen[kernel, configuration] - 1],
                configuration=configuration,
                time_s=milliseconds(row.number("time_ms")),
                powers=(RunPower("published", "gpu", row.number("power_w")),),
            )
        )
    return runs


def _clocks(device: str, core_mhz: float, memory_mhz: float) -> Configuration:
    clocks = {"core_clock_hz": megahertz(core_mhz), "memory_clock_hz": megahertz(memory_mhz)}
    return Configuration(device, clocks)


GPU_DVFS = Source("gpu_dvfs", (_GTX1080TI, _TITANX), _gpu_dvfs)
