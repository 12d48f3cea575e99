"""What a person must know about the data of GPU clocks; kept with the tables, by name."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration, Setting
from crosscast.data.dataset import Dataset
from crosscast.data.schema import Column, Schema
from crosscast.data.sources.runs import (
    DEFAULT_SIZE,
    ConfiguredRun,
    Power,
    dataset_of,
    device_row,
    file_at,
    read_runs,
)
from crosscast.errors import InputError
from crosscast.units import megahertz, milliseconds

GTX1080TI_ORIGIN = "github.com/HKBU-HPML/GPU-DVFS-Job-Schedule (no licence stated: not for passing on)."
TITANX_ORIGIN = "github.com/hpc-ulisboa/gpuPTXModel (BSD-3-Clause), datasets/gtxtitanx."

_ORIGINS = {"gtx1080ti": GTX1080TI_ORIGIN, "titanx": TITANX_ORIGIN}

_RECORDS = {
    "gtx1080ti": {
        "gtx1080ti: left out": (
            "The number of the row, argNo (input00 throughout) and blocks (grid and work-group as text)."
        ),
        "gtx1080ti: related programs": (
            "These share code: convolutionSeparable and convolutionTexture, matrixMulGlobal and "
            "matrixMulShared (each two with one kernel name), backpropForward and backpropBackward, "
            "scanScanExclusiveShared and scanUniformUpdate, quasirandomGenerator and SobolQRNG."
        ),
    },
    "titanx": {
        "titanx: left out": "suite (a kernel's name tells), and energy_mj, which is power times time.",
        "titanx: two series": (
            "The source has stencil2d twice at all 32 pairs of clocks, the second 1.2 to 1.8 times slower. "
            "That has the size 'second series' here. The origin's list of programs has stencil2d and "
            "stencil2d_double; which series is which, the source does not say."
        ),
        "titanx: micro-kernels": (
            "140 of the 164 kernels are micro-benchmarks that differ in one parameter (fadd_dram_10_90_64p, "
            "sp_add_16): near-duplicates of each other, not independent programs. So are s3d and s3d_double, "
            "2mm and 3mm, atax, bicg and mvt, covariance and correlation."
        ),
    },
}

_SESSIONS = {
    "gtx1080ti": {
        "gtx1080ti: counters": (
            "Columns of nvprof by the source's names and in its units, at each pair of clocks: totals of a "
            "run, rates, shares and means alike. l2_tex_write_throughput.1 is a second column of that name."
        )
    }
}


def notes_of_files(devices: Collection[str]) -> dict[str, dict[str, str]]:
    """Notes by table, and by their names, on the data of these devices."""
    origin = {f"{device}: origin": _ORIGINS[device] for device in devices}
    energy = "Mean power of the GPU times the time. The source does not say how power was measured."
    return {
        "devices": origin,
        "records": origin | {name: text for d in devices for name, text in _RECORDS[d].items()},
        "energy": {**origin, "energy": energy},
        "sessions": origin | {name: text for d in devices for name, text in _SESSIONS.get(d, {}).items()},
    }


_FILES = {"gtx1080ti.csv": "gtx1080ti", "titanx.csv": "titanx"}

_GTX1080TI = (
    *(Column(name, "text", required=True) for name in ("appName", "kernel")),
    *(Column(name, "real", required=True) for name in ("coreF", "memF", "time/ms", "power/W")),
)
_NO_COUNTERS = ("", "Unnamed: 0", "argNo", "blocks")

_TITANX = (
    Column("kernel", "text", required=True),
    *(Column(name, "real", required=True) for name in ("mem_mhz", "core_mhz", "time_ms", "power_w")),
)
_TWO_SERIES = "stencil2d"
_SECOND_SERIES = "second series"

_DEVICES = {
    "gtx1080ti": device_row("gtx1080ti", GTX1080TI_ORIGIN, name="GTX 1080 Ti", vendor="NVIDIA", type="gpu"),
    "titanx": device_row(
        "titanx", TITANX_ORIGIN, name="GTX Titan X", vendor="NVIDIA", type="gpu", series="Maxwell"
    ),
}


def import_gpu_dvfs(path: str | Path) -> Dataset:
    """Make a dataset of runs at a GPU's clocks."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    files = {
        device: folder / name
        for name, device in _FILES.items()
        if ((folder / name).exists() if path.is_dir() else path.name == name)
    }
    if not files:
        raise InputError(f"{path}: expected {' or '.join(_FILES)}, or a folder with one of them, found none")
    readers = {"gtx1080ti": _gtx1080ti, "titanx": _titanx}
    runs = [run for device, file in files.items() for run in readers[device](file)]
    return dataset_of(str(path), [_DEVICES[device] for device in files], runs, notes_of_files(files))


def _gtx1080ti(path: Path) -> list[ConfiguredRun]:
    others = {column.name for column in _GTX1080TI} | set(_NO_COUNTERS)
    counters = [name for name in _header(path) if name not in others]
    columns = (*_GTX1080TI, *(Column(name, "real") for name in counters))

    def run(row: Mapping[str, Any], _place: str) -> ConfiguredRun:
        return ConfiguredRun(
            application=row["appName"],
            kernel=row["kernel"],
            size=DEFAULT_SIZE,
            configuration=_configuration("gtx1080ti", row["coreF"], row["memF"]),
            time_s=milliseconds(row["time/ms"]),
            powers=(Power("published", "gpu", row["power/W"]),),
            counters={name: row[name] for name in counters if row[name] is not None},
        )

    return read_runs(
        path, Schema("gtx1080ti", 1, columns, key=()), ("coreF", "memF", "time/ms", "power/W"), run
    )


def _header(path: Path) -> list[str]:
    """Names of the columns; none if the file cannot be read, which whoever reads the rows will say."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return list(dict.fromkeys(next(csv.reader(stream), [])))
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _titanx(path: Path) -> list[ConfiguredRun]:
    return read_runs(
        path,
        Schema("titanx", 1, _TITANX, key=()),
        ("mem_mhz", "core_mhz", "time_ms", "power_w"),
        _titanx_run(),
    )


def _titanx_run() -> Callable[[Mapping[str, Any], str], ConfiguredRun]:
    seen: defaultdict[Configuration, int] = defaultdict(int)

    def run(row: Mapping[str, Any], _place: str) -> ConfiguredRun:
        configuration = _configuration("titanx", row["core_mhz"], row["mem_mhz"])
        size = DEFAULT_SIZE
        if row["kernel"] == _TWO_SERIES:
            seen[configuration] += 1
            size = DEFAULT_SIZE if seen[configuration] == 1 else _SECOND_SERIES
        return ConfiguredRun(
            application=row["kernel"],
            kernel=row["kernel"],
            size=size,
            configuration=configuration,
            time_s=milliseconds(row["time_ms"]),
            powers=(Power("published", "gpu", row["power_w"]),),
        )

    return run


def _configuration(device: str, core_mhz: float, memory_mhz: float) -> Configuration:
    clocks = {"core_clock_hz": megahertz(core_mhz), "memory_clock_hz": megahertz(memory_mhz)}
    return Configuration(device, clocks)


_FILE_NAME = re.compile(r"(?:zeus|summary_power)_(?P<device>[a-z0-9]+)\.csv")
_EXPECTED = "zeus_<gpu>.csv or summary_power_<gpu>.csv, such as zeus_v100.csv"

_FILE = Schema(
    "gpu_power_limit",
    1,
    (
        *(Column(name, "text", required=True) for name in ("dataset", "network", "optimizer")),
        Column("batch_size", "integer", required=True, least=1),
        *(Column(name, "real", required=True) for name in ("power_limit", "time_per_epoch", "average_power")),
    ),
    key=(),
)

_ORIGIN = (
    "Power traces of Zeus (github.com/ml-energy/zeus, Apache-2.0, "
    "examples/research_reproducibility/zeus_nsdi23/trace)."
)

_NOTES = {
    "devices": {"origin": _ORIGIN},
    "records": {
        "origin": _ORIGIN,
        "times": "Time of one epoch, measured once. The application is the network.",
        "sizes": (
            "A size is the data set, b and the batch size, and the optimizer. GPUs have unlike batch sizes; "
            "only v100 has shufflenetv2 with adam."
        ),
        "gaps": (
            "On a40, the six sizes of sentiment140 have no limits of 125, 175, 225 and 275 W. On rtx6000, "
            "ncf with batch size 4 has 250 and 260 W only."
        ),
        "noise": (
            "Times of ncf, and of shufflenetv2 with small batches, go up and down by 10 to 20 % from limit "
            "to limit: the limit does not bind them, so they are near-repeats of one run."
        ),
    },
    "energy": {
        "origin": _ORIGIN,
        "energy": (
            "Mean power of the GPU (NVML) times the time of an epoch. On a40, power is up to 21 % above the "
            "limit (39 of 453 rows), on v100 up to 2 % (8 of 476); on rtx6000 never."
        ),
    },
    "sessions": {"origin": _ORIGIN},
}


def import_gpu_power_limit(path: str | Path) -> Dataset:
    """Make a dataset of epochs under power limits."""
    path = Path(path)
    files = _files(path)
    runs = [
        run
        for device, file in files.items()
        for run in read_runs(
            file, _FILE, ("power_limit", "time_per_epoch", "average_power"), partial(_run, device)
        )
    ]
    devices = [
        device_row(device, _ORIGIN, name=device.upper(), vendor="NVIDIA", type="gpu") for device in files
    ]
    return dataset_of(str(path), devices, runs, _NOTES)


def _files(path: Path) -> dict[str, Path]:
    """Files by device, in the order of their names."""
    found: dict[str, Path] = {}
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
    except OSError as error:
        raise InputError(f"{path}: cannot list the folder ({error.strerror})") from error
    for file in files:
        name = _FILE_NAME.fullmatch(file.name)
        if name is None:
            continue
        if name["device"] in found:
            raise InputError(
                f"{path}: expected one file of a GPU, found {found[name['device']].name} and {file.name}"
            )
        found[name["device"]] = file
    if not found:
        raise InputError(f"{path}: expected a file {_EXPECTED}, or a folder with some, found none")
    return found


def _run(device: str, row: Mapping[str, Any], _place: str) -> ConfiguredRun:
    return ConfiguredRun(
        application=row["network"],
        kernel=row["network"],
        size=f"{row['dataset']} b{row['batch_size']} {row['optimizer']}",
        configuration=Configuration(device, {"power_cap_w": row["power_limit"]}),
        time_s=row["time_per_epoch"],
        powers=(Power("nvml", "gpu", row["average_power"]),),
    )


_NAME = "dual_cap_altis.csv"
_DEVICE = "node"
_NUMBERS = ("cpu_cap_w", "gpu_cap_w", "runtime_s", "cpu_w", "gpu_w", "node_w")

_POWERCAP_FILE = Schema(
    "powercap",
    1,
    (
        Column("benchmark", "text", required=True),
        Column("size", "text", required=True),
        *(Column(name, "real", required=True) for name in _NUMBERS),
        Column("n", "integer", required=True, least=1),
    ),
    key=(),
)

_POWERCAP_ORIGIN = (
    "github.com/zzheng33/power (no licence stated: not for passing on), GPGPU/data/altis_power_cap_res, "
    "dual_cap_big and dual_cap_small: programs of Altis under caps of the power of the CPUs and of the GPU."
)

_POWERCAP_NOTES = {
    "devices": {"origin": _POWERCAP_ORIGIN},
    "records": {
        "origin": _POWERCAP_ORIGIN,
        "times": (
            "Time of the whole program, start and data transfers included: the mean of the column n of the "
            "source (1 to 4 runs, in the column runs of the sessions). The column suite, altis throughout, "
            "was left out."
        ),
        "few runs": (
            "n is 1 in 19 of 2,430 rows. There, the origin has further runs with a negative energy of the "
            "CPUs, whose counter had started again at 0 (looked up for bfs, big); they are in no mean."
        ),
        "caps that bind nothing": (
            "The GPU's cap binds few programs: cfd_double, fdtd2d, kmeans, maxflops, raytracing and "
            "particlefilter_float. The others have 9 near-repeats for each cap of the CPU. No program draws "
            "over 96 W of the CPUs, so that the CPU's caps of 110 and 120 W differ little."
        ),
        "noise": (
            "Neighbours that no cap tells apart mostly differ by 1 %, but single cells are off by far: of "
            "270 pairs of CPU caps of 110 and 120 W, 10 of maxflops differ by 12 to 58 %; busspeeddownload "
            "jumps by up to 60 %, bfs by up to 24 % from one GPU cap to the next."
        ),
        "near-duplicates": (
            "cfd and cfd_double, particlefilter_float and particlefilter_naive, busspeeddownload and "
            "busspeedreadback are variants of one program each. big and small of the two busspeed programs "
            "are alike, and maxflops, cfd_double take longer with small than with big."
        ),
    },
    "energy": {
        "origin": _POWERCAP_ORIGIN,
        "energy": (
            "Mean power times mean time: cpu of the CPUs' packages (RAPL), gpu as nvidia-smi has it, node "
            "their sum, as the source has it. The memory and the rest of the node are not in it. The GPU's "
            "mean power is up to 1.3 % above its cap, the CPUs' never above theirs."
        ),
    },
    "sessions": {"origin": _POWERCAP_ORIGIN},
}


def import_powercap(path: str | Path) -> Dataset:
    """Make a dataset of runs under two power caps."""
    path = Path(path)
    runs = read_runs(file_at(path, _NAME), _POWERCAP_FILE, _NUMBERS, _powercap_run)
    devices = [device_row(_DEVICE, _POWERCAP_ORIGIN, name="node with CPUs and a GPU", type="node")]
    return dataset_of(str(path), devices, runs, _POWERCAP_NOTES)


def _powercap_run(row: Mapping[str, Any], _place: str) -> ConfiguredRun:
    caps = {name: row[name] for name in ("cpu_cap_w", "gpu_cap_w")}
    return ConfiguredRun(
        application=row["benchmark"],
        kernel=row["benchmark"],
        size=row["size"],
        configuration=Configuration(_DEVICE, caps),
        time_s=row["runtime_s"],
        powers=(
            Power("rapl", "cpu", row["cpu_w"]),
            Power("nvidia-smi", "gpu", row["gpu_w"]),
            Power("sum", "node", row["node_w"]),
        ),
        runs=row["n"],
    )


_MULTICORE_ENERGY_NAME = "loghin.csv"
_MODE = re.compile(r"(static|dynamic)/(all|big|little)_cores")

_MULTICORE_ENERGY_FILE = Schema(
    "multicore_energy",
    1,
    (
        Column("system", "text", required=True),
        Column("mode", "text"),
        Column("app", "text", required=True),
        Column("cores", "integer", required=True, least=1),
        Column("time_s", "real", required=True),
        Column("avg_power_w", "real", required=True),
    ),
    key=(),
)

_MULTICORE_ENERGY_ORIGIN = (
    "github.com/dloghin/multicores-time-energy (CC BY 4.0; cite D. Loghin, Y. M. Teo: The Time and Energy "
    "Efficiency of Modern Multicore Systems, https://doi.org/10.1016/j.parco.2019.04.009)."
)

_SYSTEMS: dict[str, dict[str, Any]] = {
    "amd": {"name": "system with 48-core AMD Opteron CPU", "vendor": "AMD", "cores": 48},
    "arm": {"name": "system with 48-core ARM Cavium ThunderX CPU", "vendor": "Cavium", "cores": 48},
    "i7": {"name": "system with Intel Core i7 CPU", "vendor": "Intel"},
    "pi3": {"name": "Raspberry Pi 3"},
    "tx2": {"name": "Jetson TX2"},
    "xeon": {"name": "server with Intel Xeon E5-2630 v4 CPU", "vendor": "Intel"},
    "xu3": {"name": "Odroid XU3"},
}
"""What the origin's files scripts/conf-*.sh say."""

_MULTICORE_ENERGY_NOTES = {
    "devices": {"origin": _MULTICORE_ENERGY_ORIGIN},
    "records": {
        "origin": _MULTICORE_ENERGY_ORIGIN,
        "left out": (
            "procs is 1 throughout. freq_ghz is one number for each system (on tx2 and xu3 not that of all "
            "their cores). energy_wh and energy_j: see the note on energy."
        ),
        "same configurations": (
            "On xu3, static scheduling on all cores starts with the big ones: with 1 to 4 cores it is the "
            "same as on the big cores, and times differ by at most 4 %. On tx2 the same holds for 1 and 2 "
            "cores, but pf has the times of the little cores, and lv lies between."
        ),
        "not monotone": (
            "On xu3 with static scheduling, 5 cores take 1.4 to 2.3 times as long as 4 (pf: 1.07): the fifth "
            "is a little one. With dynamic scheduling, that holds for bt (2.0) and sp (1.4)."
        ),
        "programs": "cl, fe and gh were run on i7, pi3 and xeon only; the other seven on all systems.",
    },
    "energy": {
        "origin": _MULTICORE_ENERGY_ORIGIN,
        "energy": (
            "Mean power (avg_power_w) times time, of the whole system, not the source's energy. That is "
            "coarse (steps of 0.1 Wh on amd and i7: 0 for pf on i7 with 5 and 7 cores), 100 times too small "
            "in all 168 rows of xu3 and in 36 of tx2 (on one kind of cores, but for pf), and up to 46 % off "
            "elsewhere."
        ),
        "meter": "The origin's page does not name what measured; its columns are those of a power meter.",
    },
    "sessions": {"origin": _MULTICORE_ENERGY_ORIGIN},
}


def import_multicore_energy(path: str | Path) -> Dataset:
    """Make a dataset of runs on numbers of cores."""
    path = Path(path)
    runs = read_runs(
        file_at(path, _MULTICORE_ENERGY_NAME),
        _MULTICORE_ENERGY_FILE,
        ("time_s", "avg_power_w"),
        _multicore_energy_run,
    )
    there = {run.configuration.device for run in runs}
    devices = [
        device_row(system, f"{_MULTICORE_ENERGY_ORIGIN} scripts/conf-{system}.sh", type="cpu", **facts)
        for system, facts in _SYSTEMS.items()
        if system in there
    ]
    return dataset_of(str(path), devices, runs, _MULTICORE_ENERGY_NOTES)


def _multicore_energy_run(row: Mapping[str, Any], place: str) -> ConfiguredRun:
    if row["system"] not in _SYSTEMS:
        raise InputError(
            f"{place}: column 'system': expected one of {', '.join(_SYSTEMS)}, found {row['system']!r}"
        )
    return ConfiguredRun(
        application=row["app"],
        kernel=row["app"],
        size=DEFAULT_SIZE,
        configuration=Configuration(row["system"], _settings(row, place)),
        time_s=row["time_s"],
        powers=(Power("meter", "node", row["avg_power_w"]),),
    )


def _settings(row: Mapping[str, Any], place: str) -> dict[str, Setting]:
    if row["mode"] is None:
        return {"cores": row["cores"]}
    mode = _MODE.fullmatch(row["mode"])
    if mode is None:
        expected = "static or dynamic, then /all_cores, /big_cores or /little_cores"
        raise InputError(f"{place}: column 'mode': expected {expected}, found {row['mode']!r}")
    return {"cores": row["cores"], "scheduling": mode[1], "cluster": mode[2]}
