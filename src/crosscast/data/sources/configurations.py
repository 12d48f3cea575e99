"""Published runs over configurations (caps, cores, limits, clocks), and with hardware counters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

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
    with_separate_sessions,
)
from crosscast.data.sources.source import File, Source, SourceContents, SourceFile, required
from crosscast.errors import InputError
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

DEFAULT_BLOCK_SIZE = 256  # Threads per block of the GPU runs that are imported

_CPU, _GPU = "quartz", "lassen"
_LEVEL = re.compile(r"[/_](O[0-3s]|Ofast)[/_]")
_ANALYTIC = ("Bytes/Rep", "Flops/Rep", "Iterations/Rep", "Kernels/Rep", "ProblemSize")
_TOPDOWN = tuple(
    f"topdown.{name}"
    for name in (
        *("retiring", "frontend_bound", "backend_bound", "bad_speculation", "branch_mispredict"),
        *("machine_clears", "frontend_latency", "frontend_bandwidth", "memory_bound", "core_bound"),
        *("ext_mem_bound", "l1_bound", "l2_bound", "l3_bound"),
    )
)


def _rajaperf(
    contents: SourceContents, *, cores: int | None = None, block_size: int = DEFAULT_BLOCK_SIZE
) -> Dataset:
    """Make runs on a CPU, with counters, and on a GPU, without."""
    if cores is not None and cores < 1:
        raise InputError.of(field="cores", expected="at least 1", found=f"{cores}")
    file = contents.only()
    blocks: set[float] = set()
    runs = []
    for number, row in enumerate(file.rows, start=1):
        if row.text("cluster") == _CPU:
            settings = _cpu_settings(file, number, row)
        elif (size := row.number_or_none("BlockSize")) is None:
            raise file.refused(number, f"a number on {_GPU}", "none", "BlockSize")
        else:
            settings = {"block_size": size}
            blocks.add(size)
            if size != block_size:
                continue
        runs.append(_suite_run(row, settings, cores or 1))
    if blocks and block_size not in blocks:
        sizes = ", ".join(f"{size:g}" for size in sorted(blocks))
        raise InputError.of(
            where=contents.label,
            field="column 'BlockSize'",
            expected=f"runs with {block_size}",
            found=f"{sizes}",
        )
    devices = [TableRow(row) for row in contents.devices_in(run.configuration.device for run in runs)]
    for device in devices:
        if cores is not None and device["device"] == _CPU:
            device |= {"name": f"{cores} cores, as {device['name']} / {cores}", "cores": cores}
    return dataset_of(
        contents.label, devices, with_separate_sessions(runs), _notes(contents, cores, block_size)
    )


def _cpu_settings(file: SourceFile, number: int, row: TableRow) -> dict[str, Setting]:
    level = _LEVEL.search(row.text("file"))
    if level is None:
        expected = "a path with the level of optimisation, such as _O3_"
        raise file.refused(number, expected, repr(row.text("file")), "file")
    return {"compiler": row.text("compiler"), "optimisation": level[1]}


def _suite_run(row: TableRow, settings: Mapping[str, Setting], cores: int) -> ConfiguredRun:
    time_s = row.number("time_s") / row.number("Reps")
    is_cpu = row.text("cluster") == _CPU
    counted = (*_ANALYTIC, "Reps", *_TOPDOWN) if is_cpu else ()
    cell = row.text("group"), row.text("kernel"), str(row.integer("size"))
    configuration = Configuration(row.text("cluster"), settings)
    time_s = time_s / cores if is_cpu else time_s
    return ConfiguredRun(*cell, configuration, time_s, counters=row.numbers(counted))


def _notes(contents: SourceContents, cores: int | None, block_size: int) -> dict[str, Mapping[str, str]]:
    scaling = "A whole node would be faster: --cores 36 states one."
    if cores is not None:
        scaling = (
            f"Times are divided by {cores}: a stated {cores}-core node with ideal scaling, not a measured "
            "one. Kernels that are bound by memory do not scale so. Counters are those of one core."
        )
    records = dict(contents.notes["records"])
    for device in (_CPU, _GPU):
        records[device] = records[device].format(cores=scaling, block_size=format(block_size, "g"))
    return {**contents.notes, "records": records}


RAJAPERF = Source(
    "rajaperf",
    (
        File(
            ("rajaperf.csv.gz",),
            (
                *required("text", "file", "compiler", "group", "kernel"),
                *required("text", "cluster", choices=(_CPU, _GPU)),
                *required("integer", "size", ge=1),
                Column("BlockSize", "real"),
                *required("real", *_ANALYTIC, ge=0),
                *(Column(name, "real") for name in _TOPDOWN),
                *required("real", "Reps", gt=0),
                *required("real", "time_s", unit="s", gt=0),
            ),
            key=("file", "cluster", "compiler", "group", "kernel", "size", "BlockSize"),
        ),
    ),
    _rajaperf,
)

_GPUS = (
    *("GTX-680", "GTX-970", "GTX-980", "Quadro", "Tesla-K20", "Tesla-K40", "Tesla-P100", "Titan", "TitanX"),
)
_PROGRAMS = {
    "bpnn_adjust_weights_cuda": "backprop",
    "bpnn_layerforward_CUDA": "backprop",
    "calculate_temp": "hotspot",
    "kernel": "heartwall",
    "lud_diagonal": "lud",
    "lud_internal": "lud",
    "lud_perimeter": "lud",
}
"""The program of each kernel, from R-code/include/common.R of the origin."""

_INPUTS = ("input.size.1", "input.size.2")
_LAUNCH = ("grid.x", "grid.y", "block.x", "block.y")
_SHARED = "static.smem"
_IN_KIBIBYTES = ("gtx-980", "tesla-p100")


def _rodinia9(contents: SourceContents) -> Dataset:
    """Make runs of launches on nine GPUs, each with its counters."""
    file = contents.only()
    runs = [_launch(row, (*_LAUNCH, *file.others)) for row in file.rows]
    return dataset_of_source(contents, with_separate_sessions(runs))


def _launch(row: TableRow, names: tuple[str, ...]) -> ConfiguredRun:
    device = row.text("gpu").lower()
    counters = {name: float(value) for name, value in row.numbers(names).items()}
    if device in _IN_KIBIBYTES and _SHARED in counters:
        counters[_SHARED] *= 1024
    inputs = ",".join(str(row[name]) for name in _INPUTS if row[name])
    grid_x, grid_y, block_x, block_y = (row[name] for name in _LAUNCH)
    kernel, size = row.text("kernel_file"), f"{inputs or 0} grid {grid_x}x{grid_y} block {block_x}x{block_y}"
    cell = _PROGRAMS[kernel], kernel, size, Configuration(device, {})
    return ConfiguredRun(*cell, row.number("duration"), counters=counters)


RODINIA9 = Source(
    "rodinia9",
    (
        File(
            ("rodinia_9gpu.parquet",),
            (
                *required("text", "kernel_file", choices=tuple(_PROGRAMS)),
                *required("text", "gpu", choices=_GPUS),
                *required("integer", *_INPUTS, ge=0),
                *required("integer", *_LAUNCH, ge=1),
                *required("real", "duration", unit="s", gt=0),
            ),
            key=("kernel_file", "gpu", *_INPUTS, *_LAUNCH),
            # These columns are numbers of the GPUs and kernels.
            ignored=("device", "kernel"),
        ),
    ),
    _rodinia9,
)
