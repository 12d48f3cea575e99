"""The 15 devices of the published study, with the source of every number."""

from __future__ import annotations

import csv
import json
import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from crosscast.data.dataset import Dataset
from crosscast.data.profiles import COLUMNS, PROFILES, PUBLISHED_METRICS
from crosscast.data.schema import DEVICES, ENERGY, RECORDS, SESSIONS, Column, Schema
from crosscast.data.sources import aiwc as notes
from crosscast.data.sources.source import read_source
from crosscast.data.table import table_of
from crosscast.errors import InputError
from crosscast.profile import METRICS
from crosscast.units import microseconds

_FILE = "published_devices.toml"
_DEFAULT = "{paper}"


def published_devices() -> list[dict[str, Any]]:
    """Rows of the table of devices, by their keys in the published data."""
    text = resources.files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    content = tomllib.loads(text)
    return [_row(device, cells, content["sources"]) for device, cells in content["devices"].items()]


def _row(device: str, cells: dict[str, Any], sources: dict[str, str]) -> dict[str, Any]:
    told = cells.pop("from", {})
    origin = {column: told.get(column, _DEFAULT).format_map(sources) for column in cells}
    return {"device": device, **cells, "sources": json.dumps(origin)}


_ORIGIN = (
    "The published data of 2018 (github.com/BeauJoh/opencl-predictions-with-aiwc, MIT licence): AIWC "
    "features and kernel times on 15 devices."
)

PROFILE_NOTES = {
    "origin": _ORIGIN,
    "definitions": (
        "Counted by the published tool of its day. granularity and barriers_per_instruction are computed "
        "here by our definitions, from work_items, total_barriers_hit and total_instruction_count: the "
        "tool had 1 / instructions and (barriers + 1) / instructions. Its two branch entropies follow "
        "other formulas than ours (that named after Yokota is a sum, and far above 1), so our columns are "
        "empty. What the tool had is in the column program, under published, with its operand_sum."
    ),
    "precision": (
        "Six significant digits, in large counts too, except for total_instruction_count, work_items, "
        "total_memory_footprint and footprint_90, which are exact."
    ),
    "counting": (
        "Local memory addresses count as global ones of the same value, and branches are told apart by "
        "their source line, as the tool does it."
    ),
    "absent": (
        "work_groups, instructions per work-item, load_imbalance, and all counts and ratios of reads, "
        "writes and accesses by memory were not recorded."
    ),
    "stray row": (
        "The features have a row kmeans, calc_potential_single_step_dev, medium: that kernel is gem's, and "
        "the row is its row of size small once more. It was left out."
    ),
    "same profiles": "Kernels and sizes have 104 pairs, but only 93 profiles that differ.",
    "crc": (
        "crc32_slice8 is launched with a single work-item. A GPU is about 22 times slower there, which "
        "rules any mean of slowdowns."
    ),
}

RECORD_NOTES = {
    "origin": _ORIGIN,
    "times": (
        "Each time is the mean of the kernel's invocations in one run. The times of the source are in "
        "microseconds. invocations is the number of the characterized run, which need not be that of the "
        "timed one."
    ),
    "total time": (
        "The source's total_time_us is the sum of kernel_time_us over the kernels of a run, not a time of "
        "the host. It was left out, and host_s is empty."
    ),
    "runs": (
        "40 of the 50 runs of nearly each cell, drawn by the source. A run's number is that of the "
        "source less 1. Where the source has a run twice, the second record's number has 100 added."
    ),
    "merged regions": (
        "hmm scale_alpha_dev has 90 records a cell: those of two regions of the program with one name. Of "
        "the two records of a run, the one with 100 added is of the second region."
    ),
    "mixed populations": (
        "The 81 records a kernel of kmeans, large, on k20c are of two populations, one 11 times (of "
        "invert_mapping) or 77 times (of kmeansPoint) slower than the other. bfs, large, on fiji-furyx has "
        "74 records a kernel and crc, large, on firepro-s9150 has 50, each of one population."
    ),
    "fft": (
        "The kernels of all radices share one measured time a size: fftRadix16Kernel has the times of "
        "fftRadix8Kernel at tiny and medium, of fftRadix4Kernel at small, of fftRadix2Kernel at large. A "
        "split that leaves out a kernel leaks there; leave out applications."
    ),
    "sizes": (
        "hmm (17 kernels) and gem exist at tiny and small only; fftRadix8Kernel at tiny and medium, "
        "fftRadix4Kernel at small, fftRadix2Kernel at large only."
    ),
    "weight of hmm": "hmm makes 34 of the 104 pairs of kernel and size: report means by application as well.",
}

SESSION_NOTES = {
    "origin": _ORIGIN,
    "sessions": (
        "One for each application, size and device; how many processes there were was not recorded. Each "
        "ran for at least 50 iterations and 2 s (table II's paper, section III-A). The column runs is "
        "empty: the source does not have all of them."
    ),
}

ENERGY_NOTES = {
    "origin": _ORIGIN,
    "energy": (
        "Size large only. Energy of the measured kernels of a run: of the processor cores (RAPL, PP0 of "
        "package 0) on i7-6700k, and of the board (NVML: power times kernel time) on gtx1080, as "
        "codes/load_runtime_data.R of the origin has it. kmeans is kmeansPoint alone, and dwt "
        "cl_fdwt53Kernel alone."
    ),
}

DEVICE_NOTES = {
    "keys": (
        "The data's keys differ from the paper's names: xeon_es-2697v2 is its Xeon E5-2697 v2, i5-3350 its "
        "i5-3550, k20c its K20m, k40c its K40m, knl its Xeon Phi 7210."
    ),
}


_SAME_NAMES = (
    "opcode",
    "total_instruction_count",
    "total_barriers_hit",
    "max_simd_width",
    "mean_simd_width",
    "instructions_per_operand",
    "total_memory_footprint",
    "global_memory_address_entropy",
    *(f"local_memory_address_entropy_{n}" for n in range(1, 11)),
)

SAME_METRICS: dict[str, str] = {
    **{name: name for name in _SAME_NAMES},
    "workitems": "work_items",
    "min_instructions_to_barrier": "min_itb",
    "max_instructions_to_barrier": "max_itb",
    "median_instructions_to_barrier": "median_itb",
    "stddev_simd_width": "sd_simd_width",
    "ninety_percent_memory_footprint": "footprint_90",
    "total_unique_branch_instructions": "unique_branches",
    "ninety_percent_branch_instructions": "branches_90",
}
"""Our metric of each feature that says the same."""

UNLIKE_METRICS = (
    "granularity",
    "barriers_per_instruction",
    "operand_sum",
    "branch_entropy_yokota",
    "branch_entropy_average_linear",
)
"""Features that are defined in another way than our metrics of like names, or that we do not have."""


def _text(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "text", required=True) for name in names)


FEATURES_FILE = Schema(
    "features",
    1,
    (
        *_text("application", "kernel", "size"),
        Column("invocation", "integer", required=True, least=0),
        *(Column(name, "real", required=True, least=0) for name in (*SAME_METRICS, *UNLIKE_METRICS)),
    ),
    key=("application", "kernel", "size", "invocation"),
)
"""``features_all_invocations.parquet``: a row an invocation."""

RUNTIMES_FILE = Schema(
    "runtimes",
    1,
    (
        *_text("application", "kernel", "size", "device"),
        Column("run", "integer", required=True, least=1),
        Column("kernel_time_us", "real", "µs", required=True, least=0),
    ),
    # A run may be there more than once, with other times: see the notes.
    key=("application", "kernel", "size", "device", "run", "kernel_time_us"),
)
"""``runtimes.parquet``: a row for each kernel and run."""

ENERGY_FILE = Schema(
    "energy",
    1,
    (
        *_text("application", "device", "size"),
        Column("energy", "real", "J", required=True, least=0),
        Column("run", "integer", required=True, least=1),
    ),
    key=("application", "device", "size", "run"),
)
"""``energy_joules.csv``: a row for each application and run."""


_STRAY = ("kmeans", "calc_potential_single_step_dev")
_DIVISORS = ("work_items", "total_instruction_count")
_INTEGERS = frozenset(column.name for column in COLUMNS if column.type == "integer")


def is_stray(features: Mapping[str, Any]) -> bool:
    """Whether a row of the features is the one that is filed under the wrong application."""
    return (features["application"], features["kernel"]) == _STRAY


def profile_row(features: Mapping[str, Any], path: Path, number: int) -> dict[str, Any]:
    """Row of the table of profiles."""
    metrics: dict[str, Any] = {}
    for name, metric in SAME_METRICS.items():
        metrics[metric] = features[name]
        if metric in _INTEGERS:
            metrics[metric] = _whole(f"{path}: column {name!r}, row {number}", features[name], metric)
    items, instructions = metrics["work_items"], metrics["total_instruction_count"]
    return {
        "application": features["application"],
        "kernel": features["kernel"],
        "size": features["size"],
        "invocation": features["invocation"],
        **metrics,
        "granularity": 1 / items,
        "barriers_per_instruction": (metrics["total_barriers_hit"] + items) / instructions,
        "program": {"tool": "AIWC 2018", "published": {name: features[name] for name in UNLIKE_METRICS}},
    }


def _whole(where: str, value: float, metric: str) -> int:
    if not value.is_integer():
        raise InputError(f"{where}: expected a whole number, found {value:g}")
    if metric in _DIVISORS and value < 1:
        raise InputError(f"{where}: expected at least 1, found {value:g}")
    return int(value)


_DEFAULTS = "{}"
_SECOND_OF_A_RUN = 100
"""More than any run number of the source."""


def record_rows(
    runtimes: Iterable[Mapping[str, Any]], invocations: Mapping[tuple[str, str, str], int]
) -> Iterator[dict[str, Any]]:
    """Rows of the table of records."""
    seen: defaultdict[tuple[Any, ...], int] = defaultdict(int)
    for row in runtimes:
        kernel = (row["application"], row["kernel"], row["size"])
        earlier = seen[*kernel, row["device"], row["run"]]
        seen[*kernel, row["device"], row["run"]] += 1
        yield {
            "application": row["application"],
            "kernel": row["kernel"],
            "size": row["size"],
            "device": row["device"],
            "configuration": _DEFAULTS,
            "repeat": 0,
            "run": row["run"] - 1 + earlier * _SECOND_OF_A_RUN,
            "invocations": invocations.get(kernel),
            "time_s": [microseconds(row["kernel_time_us"])],
        }


def session_rows(runtimes: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of the table of sessions: one for each application, size and device."""
    kernels: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for row in runtimes:
        session = (row["application"], row["size"], row["device"])
        kernels[session].add(row["kernel"])
    for (application, size, device), names in kernels.items():
        yield {
            "application": application,
            "size": size,
            "device": device,
            "configuration": _DEFAULTS,
            "repeat": 0,
            "kernels": sorted(names),
        }


_SENSORS = {"i7-6700k": ("rapl", "package-0/core"), "gtx1080": ("nvml", "gpu")}
"""Sensor and domain on each device, as our own sensors name them."""

_ONLY_KERNELS = {"kmeans": "kmeansPoint", "dwt": "cl_fdwt53Kernel"}
"""Applications of which the source watched one kernel alone."""


def energy_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> Iterator[dict[str, Any]]:
    """Rows of the table of energy."""
    for number, row in enumerate(rows, start=1):
        device = row["device"]
        if device not in _SENSORS:
            raise InputError(
                f"{path}: column 'device', row {number}: expected {' or '.join(_SENSORS)}, found {device}"
            )
        sensor, domain = _SENSORS[device]
        yield {
            "application": row["application"],
            "kernel": _ONLY_KERNELS.get(row["application"]),
            "size": row["size"],
            "device": device,
            "configuration": "{}",
            "repeat": 0,
            "run": row["run"] - 1,
            "sensor": sensor,
            "domain": domain,
            "energy_j": row["energy"],
            "runs": 1,
        }


_FEATURES = "features_all_invocations.parquet"
_RUNTIMES = "runtimes.parquet"
_ENERGY = "energy_joules.csv"


def import_aiwc2018(folder: str | Path) -> Dataset:
    """Make a dataset of the published data."""
    folder = Path(folder)
    features, runtimes, energy = folder / _FEATURES, folder / _RUNTIMES, folder / _ENERGY
    profiles = [
        profile_row(row, features, number)
        for number, row in enumerate(read_source(features, FEATURES_FILE), start=1)
        if not is_stray(row)
    ]
    invocations = Counter((row["application"], row["kernel"], row["size"]) for row in profiles)
    runs = read_source(runtimes, RUNTIMES_FILE)
    devices = published_devices()
    known = {row["device"] for row in devices}
    for number, run in enumerate(runs, start=1):
        if run["device"] not in known:
            raise InputError(
                f"{runtimes}: column 'device', row {number}: expected one of {', '.join(sorted(known))}, "
                f"found {run['device']}"
            )
    watched = energy_rows(read_source(energy, ENERGY_FILE), energy) if energy.exists() else ()
    return Dataset(
        str(folder),
        devices=table_of(DEVICES, devices, notes.DEVICE_NOTES),
        profiles=table_of(PROFILES, profiles, notes.PROFILE_NOTES),
        records=table_of(RECORDS, record_rows(runs, invocations), notes.RECORD_NOTES),
        energy=table_of(ENERGY, watched, notes.ENERGY_NOTES),
        sessions=table_of(SESSIONS, session_rows(runs), notes.SESSION_NOTES),
    )


_HEADER = ["metric", "category", "count"]
_FILE_NAME = re.compile(r"aiwc_(?P<kernel>.+)_(?P<invocation>\d+)\.csv")
_DEFINED = {metric.name: metric.name for metric in METRICS}
_OURS: dict[str, str | None] = {**{row.name: row.metric for row in PUBLISHED_METRICS}, **_DEFINED}
"""Our metric of each name that a file may hold: the published tool's names, and our own."""
_NEEDED = ("Opcode", "Total Instruction Count")
"""Of each profile, by the tool's names: the first that it writes."""
_AIWC_FOLDER_INTEGERS = frozenset(column.name for column in COLUMNS if column.type == "integer")

_RATIOS = (
    ("unique_read_write_ratio", "unique_reads", "unique_writes"),
    ("reread_ratio", "unique_reads", "total_reads"),
    ("rewrite_ratio", "unique_writes", "total_writes"),
)

_NOTES = {
    "origin": "Files of the published AIWC tool.",
    "definitions": (
        "Numbers of the tool by its conventions: medians of an even count are cut to whole numbers, "
        "branches are told apart by their source line, and numbers have 6 or 4 significant digits. Ratios "
        "of reads and writes are computed here from the counts. The tool's two "
        "branch entropies follow other formulas than ours, so our columns are empty. What has no column "
        "is in the column program, under published."
    ),
    "defects": (
        "Releases of the tool are known to swap reads and writes, to lose barriers, to run instructions "
        "between barriers across work-items, and to count local addresses as global ones. A file does not "
        "tell which release wrote it."
    ),
}


def import_aiwc_folder(
    folder: str | Path, application: str | None = None, size: str | None = None
) -> Dataset:
    """Make a dataset, with profiles only."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: expected a folder with files aiwc_<kernel>_<n>.csv, found none")
    paths = sorted(folder.rglob("aiwc_*.csv"))
    if not paths:
        raise InputError(f"{folder}: expected files aiwc_<kernel>_<n>.csv, found none")
    default = (application or folder.resolve().name, size or "unknown")
    rows = [_aiwc_folder_row(path, *(_place(path, folder) or default)) for path in paths]
    return Dataset(str(folder), profiles=table_of(PROFILES, rows, _notes(rows)))


def _notes(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Notes on a table of these rows; they name the metrics of the files that nobody knows."""
    unknown = Counter(name for row in rows for name in row["program"]["published"] if name not in _OURS)
    if not unknown:
        return _NOTES
    names = ", ".join(f"{name} ({count} files)" for name, count in sorted(unknown.items()))
    return {**_NOTES, "other metrics": f"Metrics that Crosscast does not know: {names}."}


def _place(path: Path, folder: Path) -> tuple[str, str] | None:
    parts = path.relative_to(folder).parts[:-1]
    if not parts:
        return None
    if len(parts) != 2:
        expected = "the folder itself or <application>/<size>/"
        raise InputError(f"{path}: expected the file in {expected}, found it in {'/'.join(parts)}/")
    return parts[0], parts[1]


def _aiwc_folder_row(path: Path, application: str, size: str) -> dict[str, Any]:
    name = _FILE_NAME.fullmatch(path.name)
    if name is None:
        raise InputError(f"{path}: expected a name such as aiwc_<kernel>_<n>.csv, found {path.name}")
    metrics: dict[str, int | float] = {}
    other: dict[str, int | float] = {}
    for metric, value in _read(path).items():
        ours = _OURS.get(metric)
        if ours is None:
            other[metric] = value
        elif ours in metrics:
            raise InputError(f"{path}: the metric {ours} is there under two names")
        else:
            metrics[ours] = _number(path, metric, ours, value)
    for needed in _NEEDED:
        if _OURS[needed] not in metrics:
            raise InputError(f"{path}: expected the metric {needed}, found none: the file may be cut off")
    return {
        "application": application,
        "kernel": name["kernel"],
        "size": size,
        "invocation": int(name["invocation"]),
        **metrics,
        **_derived(metrics),
        "program": {"tool": "AIWC", "published": other},
    }


def _read(path: Path) -> dict[str, float]:
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot read the file ({error})") from error
    if not rows or rows[0] != _HEADER:
        found = ",".join(rows[0]) if rows else ""
        raise InputError(f"{path}: expected the columns {', '.join(_HEADER)}, found {found!r}")
    values: dict[str, float] = {}
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(_HEADER):
            raise InputError(f"{path}: row {number}: expected {len(_HEADER)} cells, found {len(row)}")
        metric, _, text = row
        if metric in values:
            raise InputError(f"{path}: row {number}: the metric {metric} is there a second time")
        values[metric] = _value(f"{path}: column 'count', row {number}", text)
    return values


def _value(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise InputError(f"{where}: expected a finite number of at least 0, found {text!r}")
    return value


def _number(path: Path, metric: str, ours: str, value: float) -> int | float:
    if ours not in _AIWC_FOLDER_INTEGERS:
        return value
    if not value.is_integer():
        raise InputError(f"{path}: the metric {metric}: expected a whole number, found {value:g}")
    return int(value)


def _derived(metrics: Mapping[str, int | float]) -> dict[str, int | float | None]:
    """Metrics of ours that the tool has not, or with fewer digits, or as 0 where they are not defined."""
    derived: dict[str, int | float | None] = {}
    for ratio, part, whole in _RATIOS:
        if {part, whole} <= metrics.keys():
            derived[ratio] = metrics[part] / metrics[whole] if metrics[whole] else None
    if {"min_ipt", "max_ipt"} <= metrics.keys():
        derived["load_imbalance"] = metrics["max_ipt"] - metrics["min_ipt"]
    return derived
