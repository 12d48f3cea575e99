"""What a person must know about the data of the RAJA Performance Suite; kept with the tables, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration, Setting
from crosscast.data.dataset import Dataset
from crosscast.data.library import pa, pq
from crosscast.data.schema import Column, Schema
from crosscast.data.sources.runs import (
    ConfiguredRun,
    dataset_of,
    device_row,
    file_at,
    read_runs,
    with_own_sessions,
)
from crosscast.errors import InputError

_ORIGIN = "github.com/LLNL/thicket-tutorial (MIT), data/quartz and data/lassen."
SYSTEMS = (
    "D. Nichols et al.: Predicting Cross-Architecture Performance of Parallel Programs (2024), table I: what "
    "the clusters quartz and lassen are"
)
V100 = (
    "NVIDIA Volta Tesla V100 cards detailed "
    "(https://www.techrival.com/nvidia-volta-tesla-v100-cards-detailed-150w-single-slot-300w-dual-slot-gv100-powered-pcie-accelerators/)"
)

_TIMES = (
    "Time of one repetition: the source's time_s over Reps, which is the same on both clusters for each "
    "kernel. That time_s is of all repetitions follows from the data: with it so, MEMCPY moves 6.6 GB/s on "
    "a core and MEMSET 854 GB/s on the V100 (peak 900); were it of one, it would be 0.07 and 8.5 GB/s."
)
_COUNTERS = (
    "On quartz, shares of pipeline slots of the top-down method (topdown.*; l1_bound and l2_bound can be "
    "slightly negative, as they are differences), and what the suite computes of a kernel (Bytes/Rep, "
    "Flops/Rep, Iterations/Rep, Kernels/Rep, ProblemSize, Reps). None on lassen: no hardware counters, and "
    "what the suite computes is the same number as on quartz."
)


def notes_of(cores: int | None, block_size: int) -> dict[str, dict[str, str]]:
    """Notes by table, and by their names."""
    origin = {"origin": _ORIGIN}
    return {
        "devices": origin,
        "records": {
            **origin,
            "times": _TIMES,
            "quartz": _of_cpu(cores),
            "lassen": (
                f"Base_CUDA with blocks of {block_size:g} threads, clang++-10.0.1 and nvcc 10.2.89, one GPU. "
                "Runs with other block sizes are left out. Size 1048576 was run twice, the others once."
            ),
            "repeats": (
                "A file of the source is a process that ran all kernels: ten of each compiler and level of "
                "optimisation on quartz. Counters are those of one kernel, so that each kernel of a process "
                "is a session of its own here, and the number of the repeat tells them apart."
            ),
            "gaps": (
                "quartz has 67 kernels at size 8388608 only, lassen 60 of them at four sizes. Missing on "
                "lassen: SCAN, SORT, SORTPAIRS, CONVECTION3DPA, DIFFUSION3DPA, MASS3DEA, MASS3DPA."
            ),
            "left out": "variant and tuning, which the cluster and the block size say.",
        },
        "sessions": {**origin, "counters": _COUNTERS},
    }


def _of_cpu(cores: int | None) -> str:
    measured = "Base_Seq, measured on one core of a Xeon E5-2695 v4."
    if cores is None:
        return f"{measured} A whole node would be faster: --cores 36 states one."
    return (
        f"{measured} Times are divided by {cores}: a stated {cores}-core node with ideal scaling, not a "
        "measured one. Kernels that are bound by memory do not scale so. Counters are those of one core."
    )


DEFAULT_BLOCK_SIZE = 256
"""Threads of a block in the runs on the GPU that are imported."""

_NAME = "rajaperf.csv.gz"
_CPU, _GPU = "quartz", "lassen"
_LEVEL = re.compile(r"[/_](O[0-3s]|Ofast)[/_]")
_ANALYTIC = ("Bytes/Rep", "Flops/Rep", "Iterations/Rep", "Kernels/Rep", "ProblemSize", "Reps")
_TOPDOWN = tuple(
    f"topdown.{name}"
    for name in (
        *("retiring", "frontend_bound", "backend_bound", "bad_speculation", "branch_mispredict"),
        *("machine_clears", "frontend_latency", "frontend_bandwidth", "memory_bound", "core_bound"),
        *("ext_mem_bound", "l1_bound", "l2_bound", "l3_bound"),
    )
)

_FILE = Schema(
    "rajaperf",
    1,
    (
        *(Column(name, "text", required=True) for name in ("file", "cluster", "compiler", "group", "kernel")),
        Column("size", "integer", required=True, least=1),
        Column("BlockSize", "real"),
        *(Column(name, "real", required=True, least=0) for name in _ANALYTIC),
        *(Column(name, "real") for name in _TOPDOWN),
        Column("time_s", "real", required=True),
    ),
    key=(),
)


def import_rajaperf(
    path: str | Path, *, cores: int | None = None, block_size: int = DEFAULT_BLOCK_SIZE
) -> Dataset:
    """Make a dataset of runs on a CPU, with counters, and on a GPU, without."""
    path = Path(path)
    if cores is not None and cores < 1:
        raise InputError(f"cores: expected at least 1, found {cores}")
    blocks: set[float] = set()
    runs = read_runs(file_at(path, _NAME), _FILE, ("time_s", "Reps"), _run_of(cores or 1, block_size, blocks))
    if blocks and block_size not in blocks:
        sizes = ", ".join(f"{size:g}" for size in sorted(blocks))
        raise InputError(f"{path}: column 'BlockSize': expected runs with {block_size}, found {sizes}")
    there = {run.configuration.device for run in runs}
    devices = [row for row in _devices(cores) if row["device"] in there]
    return dataset_of(str(path), devices, with_own_sessions(runs), notes_of(cores, block_size))


def _devices(cores: int | None) -> list[dict[str, Any]]:
    core = "a core of a Xeon E5-2695 v4"
    cpu = device_row(
        _CPU,
        SYSTEMS,
        name=core if cores is None else f"{cores} cores, as {core} / {cores}",
        vendor="Intel",
        type="cpu",
        series="Broadwell",
        cores=cores or 1,
        clock_hz=2.1e9,
    )
    gpu = device_row(_GPU, SYSTEMS, name="Tesla V100", vendor="NVIDIA", type="gpu")
    facts = {"series": "Volta", "compute_units": 80, "cores": 5120, "l2_bytes": 6144 * 1024}
    gpu |= facts
    gpu["sources"] |= dict.fromkeys(facts, V100)
    return [cpu, gpu]


def _run_of(
    cores: int, block_size: int, blocks: set[float]
) -> Callable[[Mapping[str, Any], str], ConfiguredRun | None]:
    """Makes a run of a row; the block sizes that it meets are put into `blocks`."""
    files: dict[tuple[str, Configuration], list[str]] = {}

    def run(row: Mapping[str, Any], place: str) -> ConfiguredRun | None:
        if row["cluster"] not in (_CPU, _GPU):
            raise InputError(
                f"{place}: column 'cluster': expected one of {_CPU}, {_GPU}, found {row['cluster']!r}"
            )
        is_cpu = row["cluster"] == _CPU
        if not is_cpu:
            if row["BlockSize"] is None:
                raise InputError(f"{place}: column 'BlockSize': expected a number on {_GPU}, found none")
            blocks.add(row["BlockSize"])
            if row["BlockSize"] != block_size:
                return None
        settings = _cpu_settings(row, place) if is_cpu else {"block_size": row["BlockSize"]}
        configuration = Configuration(row["cluster"], settings)
        size = str(row["size"])
        # A file is a process: those of one size and configuration are repeats.
        repeats = files.setdefault((size, configuration), [])
        if row["file"] not in repeats:
            repeats.append(row["file"])
        time_s = row["time_s"] / row["Reps"]
        counted = (*_ANALYTIC, *_TOPDOWN) if is_cpu else ()
        return ConfiguredRun(
            application=row["group"],
            kernel=row["kernel"],
            size=size,
            configuration=configuration,
            time_s=time_s / cores if is_cpu else time_s,
            powers=(),
            counters={name: row[name] for name in counted if row[name] is not None},
            repeat=repeats.index(row["file"]),
        )

    return run


def _cpu_settings(row: Mapping[str, Any], place: str) -> dict[str, Setting]:
    level = _LEVEL.search(row["file"])
    if level is None:
        raise InputError(
            f"{place}: column 'file': expected a path with the level of optimisation, such as _O3_, "
            f"found {row['file']!r}"
        )
    return {"compiler": row["compiler"], "optimisation": level[1]}


_RODINIA9_DEVICES_ORIGIN = "github.com/marcosamaris/gpuperfpredict, R-code/deviceInfo.csv"
_GTX970 = "GeForce GTX 970 (https://en.gamegpu.com/geforce-gtx-9xx-series/geforce-gtx-970)"
_P100 = "NVIDIA Tesla V100: Worlds Advanced Data Center GPU, table 1 (http://www.xenon.com.au/nvidia-tesla-volta-worlds-advanced-data-center-gpu/)"

_COLUMNS = ("name", "series", "cores", "clock_turbo_hz", "l2_bytes", "bandwidth_bytes_per_s")
_OF_ORIGIN: dict[str, tuple[Any, ...]] = {
    "gtx-680": ("GeForce GTX 680", "Kepler", 1536, 1.058e9, 512 * 1024, 192.256e9),
    "gtx-980": ("GeForce GTX 980", "Maxwell", 2048, 1.216e9, 2048 * 1024, 224.32e9),
    "quadro": ("Quadro with 2304 cores", "Kepler", 2304, 0.771e9, 1024 * 1024, 192.256e9),
    "tesla-k20": ("Tesla K20", "Kepler", 2496, 0.706e9, 1024 * 1024, 208e9),
    "tesla-k40": ("Tesla K40", "Kepler", 2880, 0.745e9, 1536 * 1024, 288.384e9),
    "titan": ("GTX Titan", "Kepler", 2688, 0.876e9, 1536 * 1024, 288.384e9),
    "titanx": ("GTX Titan X", "Maxwell", 3072, 1.076e9, 3072 * 1024, 336.48e9),
}


def rodinia9_devices() -> list[dict[str, Any]]:
    """Rows of the table of devices, by their keys in lower case.

    The origin's row of the GTX 970 has the cores and the clock of the Titan X, so that another source stands
    in, and it has no row of the P100.
    """
    kind = {"vendor": "NVIDIA", "type": "gpu"}
    rows = [
        device_row(key, _RODINIA9_DEVICES_ORIGIN, **kind, **dict(zip(_COLUMNS, cells, strict=True)))
        for key, cells in _OF_ORIGIN.items()
    ]
    gtx970 = device_row(
        "gtx-970",
        _GTX970,
        **kind,
        name="GeForce GTX 970",
        series="Maxwell",
        cores=1664,
        clock_hz=1.05e9,
        clock_turbo_hz=1.178e9,
    )
    gtx970 |= {"bandwidth_bytes_per_s": 224.32e9}
    gtx970["sources"]["bandwidth_bytes_per_s"] = _RODINIA9_DEVICES_ORIGIN
    p100 = device_row(
        "tesla-p100",
        _P100,
        **kind,
        name="Tesla P100",
        series="Pascal",
        compute_units=56,
        cores=3584,
        l2_bytes=4096 * 1024,
    )
    return sorted([*rows, gtx970, p100], key=lambda row: str(row["device"]))


_RODINIA9_NOTES_ORIGIN = {
    "origin": (
        "github.com/marcosamaris/gpuperfpredict (CC BY 4.0), traces and counters of nvprof, of lud_perimeter "
        "a tenth of the launches."
    )
}

NOTES = {
    "devices": {
        **_RODINIA9_NOTES_ORIGIN,
        "gtx-970": "The origin's row of it has the cores and the clock of the Titan X; they are not used.",
    },
    "records": {
        **_RODINIA9_NOTES_ORIGIN,
        "times": "Time of one launch on the GPU, in the source's seconds; the shortest is 3 microseconds.",
        "programs": (
            "The origin's R-code/include/common.R says which program a kernel is of: `kernel` is heartwall's."
        ),
        "sizes": "The input's sizes, the grid and the work-group, as one text.",
        "gaps": (
            "gtx-970 and titanx lack lud_perimeter: 251 launches of 1,094. The other seven GPUs have all."
        ),
        "unequal kernels": (
            "lud_perimeter is 843 of the 1,094 launches, as one decomposition launches it with ever smaller "
            "grids; backprop's kernels are 57 each, heartwall 85, lud_diagonal 32, hotspot 20. Weigh kernels "
            "equally, not rows."
        ),
        "near-repeats": (
            "The launches of heartwall on a GPU take the same time at all 85 sizes (within 14 %), those of "
            "lud_diagonal at all 32 (within 30 %): a split by rows or sizes tests what was learned."
        ),
        "repeats": (
            "The kernels of backprop have launches of one size. Each has its own counters, so that each is a "
            "session, and the number of the repeat tells them apart."
        ),
    },
    "sessions": {
        **_RODINIA9_NOTES_ORIGIN,
        "counters": (
            "Columns of nvprof by the source's names and in its units, the launch's sizes (grid.x, grid.y, "
            "block.x, block.y), registers.per.thread and static.smem. That is in bytes here; the source has "
            "KiB on gtx-980 and tesla-p100. Totals, rates, shares and means alike."
        ),
        "left out": "device and kernel, which number the GPUs and kernels; the input's sizes are in `size`.",
        "unlike": (
            "Counters of one name do not count alike everywhere: dram reads of hotspot are 0 on the Maxwell "
            "GPUs, 2 on tesla-p100 and 15,788 on gtx-680 (medians); executed_ipc of lud_diagonal, one block, "
            "is 0.004 on tesla-p100 and 0.07 to 0.12 elsewhere."
        ),
    },
}


_RODINIA9_NAME = "rodinia_9gpu.parquet"

_PROGRAMS = {
    "bpnn_adjust_weights_cuda": "backprop",
    "bpnn_layerforward_CUDA": "backprop",
    "calculate_temp": "hotspot",
    "kernel": "heartwall",
    "lud_diagonal": "lud",
    "lud_internal": "lud",
    "lud_perimeter": "lud",
}
"""The program of each kernel, as R-code/include/common.R of the origin has it."""

_INPUTS = ("input.size.1", "input.size.2")
_LAUNCH = ("grid.x", "grid.y", "block.x", "block.y")
_NO_COUNTERS = ("device", "kernel")
"""Columns that number the GPUs and kernels."""
_SHARED = "static.smem"
_IN_KIBIBYTES = ("gtx-980", "tesla-p100")

_RODINIA9_COLUMNS = (
    *(Column(name, "text", required=True) for name in ("kernel_file", "gpu")),
    *(Column(name, "integer", required=True, least=0) for name in _INPUTS),
    *(Column(name, "integer", required=True, least=1) for name in _LAUNCH),
    Column("duration", "real", required=True),
)


def import_rodinia9(path: str | Path) -> Dataset:
    """Make a dataset of launches on nine GPUs, each with its counters."""
    path = file_at(Path(path), _RODINIA9_NAME)
    known = {column.name for column in _RODINIA9_COLUMNS} | set(_NO_COUNTERS)
    counters = [name for name in _numbers(path) if name not in known]
    columns = (*_RODINIA9_COLUMNS, *(Column(name, "real") for name in counters))
    devices = {row["device"]: row for row in rodinia9_devices()}
    runs = read_runs(
        path, Schema("rodinia9", 1, columns, key=()), ("duration",), _rodinia9_run_of(devices, counters)
    )
    there = {run.configuration.device for run in runs}
    rows = [row for key, row in devices.items() if key in there]
    return dataset_of(str(path), rows, with_own_sessions(runs), NOTES)


def _numbers(path: Path) -> list[str]:
    """Columns of numbers; none if the file cannot be read, which whoever reads the rows will say."""
    try:
        fields = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return []
    # The index of pandas is a column, and none of the source.
    return [
        field.name
        for field in fields
        if (pa.types.is_floating(field.type) or pa.types.is_integer(field.type))
        and not field.name.startswith("__")
    ]


def _rodinia9_run_of(
    devices: Mapping[str, Mapping[str, Any]], counters: list[str]
) -> Callable[[Mapping[str, Any], str], ConfiguredRun]:
    def run(row: Mapping[str, Any], place: str) -> ConfiguredRun:
        device, kernel = row["gpu"].lower(), row["kernel_file"]
        if device not in devices:
            raise InputError(
                f"{place}: column 'gpu': expected one of {', '.join(devices)}, found {row['gpu']!r}"
            )
        if kernel not in _PROGRAMS:
            raise InputError(
                f"{place}: column 'kernel_file': expected one of {', '.join(_PROGRAMS)}, found {kernel!r}"
            )
        counted = {name: float(row[name]) for name in (*_LAUNCH, *counters) if row[name] is not None}
        if device in _IN_KIBIBYTES and _SHARED in counted:
            counted[_SHARED] *= 1024
        return ConfiguredRun(
            application=_PROGRAMS[kernel],
            kernel=kernel,
            size=_size(row),
            configuration=Configuration(device, {}),
            time_s=row["duration"],
            powers=(),
            counters=counted,
        )

    return run


def _size(row: Mapping[str, Any]) -> str:
    """Input, grid and work-group, such as ``512,256 grid 43x43 block 16x16``."""
    inputs = ",".join(str(row[name]) for name in _INPUTS if row[name])
    grid_x, grid_y, block_x, block_y = (row[name] for name in _LAUNCH)
    return f"{inputs or 0} grid {grid_x}x{grid_y} block {block_x}x{block_y}"
