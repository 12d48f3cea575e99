"""Profiles of the published AIWC tool: the data of 2018 with times on 15 devices, and folders of files."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from crosscast.data.dataset import Dataset
from crosscast.data.fields import TableRow
from crosscast.data.files import csv_rows, number_of_text
from crosscast.data.profiles import COLUMNS, PROFILES, PUBLISHED_METRICS
from crosscast.data.schema import DEVICES, ENERGY, RECORDS, SESSIONS
from crosscast.data.sources.source import File, Source, SourceContents, facts_of, required
from crosscast.data.table import table_of
from crosscast.devices.catalogue import published_sheets
from crosscast.errors import InputError
from crosscast.profile import METRICS
from crosscast.units import microseconds


def published_devices() -> list[TableRow]:
    """Rows of the table of devices for the published data."""
    return [TableRow({**row, "sources": json.dumps(row["sources"])}) for row in published_sheets().values()]


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
"""Features with the same meaning as one of our metrics, and that metric."""

UNLIKE_METRICS = (
    "granularity",
    "barriers_per_instruction",
    "operand_sum",
    "branch_entropy_yokota",
    "branch_entropy_average_linear",
)
"""Features that are defined differently than our metrics of similar names, or that we lack."""


_INTEGERS = frozenset(column.name for column in COLUMNS if column.type == "integer")
_DIVISORS = ("workitems", "total_instruction_count")
_COUNTS = tuple(name for name, ours in SAME_METRICS.items() if ours in _INTEGERS)

_FEATURES = File(
    ("features_all_invocations.parquet",),
    (
        *required("text", "application", "kernel", "size"),
        *required("integer", "invocation", ge=0),
        *required("integer", *_DIVISORS, ge=1),
        *required("integer", *(name for name in _COUNTS if name not in _DIVISORS), ge=0),
        *required("real", *(name for name in SAME_METRICS if name not in _COUNTS), *UNLIKE_METRICS, ge=0),
    ),
    key=("application", "kernel", "size", "invocation"),
)
"""A row for each invocation."""

_DEVICES = (
    *("xeon_es-2697v2", "i7-6700k", "i5-3350", "knl", "titanx", "gtx1080", "gtx1080ti", "k20c", "k40c"),
    *("firepro-s9150", "tahiti-hd7970", "hawaii-r9-290x", "hawaii-r9-295x2", "fiji-furyx", "polaris-rx480"),
)
"""Keys of the devices of devices/published.json."""

_RUNTIMES = File(
    ("runtimes.parquet",),
    (
        *required("text", "application", "kernel", "size"),
        *required("text", "device", choices=_DEVICES),
        *required("integer", "run", ge=1),
        *required("real", "kernel_time_us", unit="µs", ge=0),
    ),
    # A run may occur more than once, with different times: see the notes.
    key=("application", "kernel", "size", "device", "run", "kernel_time_us"),
)
"""A row for each kernel and run."""

_SENSORS = {"i7-6700k": ("rapl", "package-0/core"), "gtx1080": ("nvml", "gpu")}
"""Sensor and domain on each device, by the names of our sensors."""

_ENERGY = File(
    ("energy_joules.csv",),
    (
        *required("text", "application", "size"),
        *required("text", "device", choices=tuple(_SENSORS)),
        *required("real", "energy", unit="J", ge=0),
        *required("integer", "run", ge=1),
    ),
    key=("application", "device", "size", "run"),
    is_required=False,
)
"""A row for each application and run."""


_STRAY = ("kmeans", "calc_potential_single_step_dev")
"""Application and kernel of the one row of the features with a wrong application."""


def _profile_row(features: TableRow) -> dict[str, object]:
    metrics = {ours: features.number(name) for name, ours in SAME_METRICS.items()}
    items, instructions = metrics["work_items"], metrics["total_instruction_count"]
    return {
        **{name: features[name] for name in _FEATURES.key},
        **metrics,
        "granularity": 1 / items,
        "barriers_per_instruction": (metrics["total_barriers_hit"] + items) / instructions,
        "program": {"tool": "AIWC 2018", "published": {name: features[name] for name in UNLIKE_METRICS}},
    }


_SESSION = ("application", "size", "device")
_SECOND_OF_A_RUN = 100
"""Offset of the numbers of repeated runs; larger than any run number of the source."""


def _session_of(row: Mapping[str, object]) -> dict[str, object]:
    """Key of a row's session; the source has one for each application, size and device."""
    return {**{name: row[name] for name in _SESSION}, "configuration": "{}", "repeat": 0}


def _kernel_of(row: TableRow) -> tuple[str, str, str]:
    return row.text("application"), row.text("kernel"), row.text("size")


def _record_rows(
    runtimes: Iterable[TableRow], invocations: Mapping[tuple[str, str, str], int]
) -> Iterator[dict[str, object]]:
    """Rows of the table of records."""
    seen: defaultdict[tuple[object, ...], int] = defaultdict(int)
    for row in runtimes:
        kernel, run = _kernel_of(row), row.integer("run")
        earlier = seen[*kernel, row["device"], run]
        seen[*kernel, row["device"], run] += 1
        yield {
            **_session_of(row),
            "kernel": row["kernel"],
            "run": run - 1 + earlier * _SECOND_OF_A_RUN,
            "invocations": invocations.get(kernel),
            "time_s": [microseconds(row.number("kernel_time_us"))],
        }


def _session_rows(runtimes: Iterable[TableRow]) -> Iterator[dict[str, object]]:
    """Rows of the table of sessions: one for each application, size and device."""
    kernels: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for row in runtimes:
        session = (row.text("application"), row.text("size"), row.text("device"))
        kernels[session].add(row.text("kernel"))
    for session, names in kernels.items():
        keys = dict(zip(_SESSION, session, strict=True))
        yield {**_session_of(keys), "kernels": sorted(names)}


_ONLY_KERNELS = {"kmeans": "kmeansPoint", "dwt": "cl_fdwt53Kernel"}
"""Applications of which the source measured the energy of one kernel only."""


def _energy_row(row: TableRow) -> dict[str, object]:
    sensor, domain = _SENSORS[row.text("device")]
    return {
        **_session_of(row),
        "kernel": _ONLY_KERNELS.get(row.text("application")),
        "run": row.integer("run") - 1,
        "sensor": sensor,
        "domain": domain,
        "energy_j": row["energy"],
        "runs": 1,
    }


def _aiwc2018(contents: SourceContents) -> Dataset:
    """Make the dataset of the published data: profiles, times, and energy if its file exists."""
    (features,), (runtimes,), energy = (contents.files[file] for file in AIWC2018.files)
    if all(row["invocation"] == 0 for row in features.rows):
        # Kernels are launched up to thousands of times, with different counts: forecasts moved by a third.
        expected = "all invocations of each kernel"
        raise InputError.of(where=features.path, field="invocation", expected=expected, found=_FIRST_ALONE)
    profiles = [_profile_row(row) for row in features.rows if (row["application"], row["kernel"]) != _STRAY]
    invocations = Counter(_kernel_of(TableRow(row)) for row in profiles)
    energies = (_energy_row(row) for file in energy for row in file.rows)
    return Dataset(
        contents.label,
        devices=table_of(DEVICES, published_devices(), contents.notes["devices"]),
        profiles=table_of(PROFILES, profiles, contents.notes["profiles"]),
        records=table_of(RECORDS, _record_rows(runtimes.rows, invocations), contents.notes["records"]),
        energy=table_of(ENERGY, energies, contents.notes["energy"]),
        sessions=table_of(SESSIONS, _session_rows(runtimes.rows), contents.notes["sessions"]),
    )


_FIRST_ALONE = "0 alone, as the origin's full_dat.Rda has it"
_FILES_OF_R = (".rda", ".rdata", ".rds")


@dataclass(frozen=True)
class _AIWC2018(Source):
    """The source; the origin's R files get an error that says what they lack."""

    def __call__(self, path: str | Path, **options: object) -> Dataset:
        """Make a dataset from a folder with the source's files."""
        path = Path(path)
        paths = sorted(path.glob("*")) if path.is_dir() else [path]
        of_r = [file.name for file in paths if file.suffix.lower() in _FILES_OF_R]
        if of_r and not (_FEATURES.matches(paths) and _RUNTIMES.matches(paths)):
            names = (*_FEATURES.names, *_RUNTIMES.names)
            raise InputError.of(
                where=path,
                expected=f"a folder with {' and '.join(names)} (docs/importing.md has their columns)",
                found=(
                    f"R's data files ({', '.join(of_r)}): of the origin's, full_dat.Rda has the features of "
                    "invocation 0 alone, and featdata.Rda names its columns otherwise"
                ),
            )
        return super().__call__(path, **options)


AIWC2018 = _AIWC2018("aiwc2018", (_FEATURES, _RUNTIMES, _ENERGY), _aiwc2018)
_HEADER = ["metric", "category", "count"]
_MOST_BYTES = 1 << 20
_FILE_NAME = re.compile(r"aiwc_(?P<kernel>.+)_(?P<invocation>\d+)\.csv")
_DEFINED = {metric.name: metric.name for metric in METRICS}
_OURS: dict[str, str | None] = {**{row.name: row.metric for row in PUBLISHED_METRICS}, **_DEFINED}
"""Metrics by the names in files, which are the published tool's names or ours."""
_NEEDED = ("Opcode", "Total Instruction Count")
"""Metrics that each file must have: the first that the tool writes."""
_RATIOS = (
    ("unique_read_write_ratio", "unique_reads", "unique_writes"),
    ("reread_ratio", "unique_reads", "total_reads"),
    ("rewrite_ratio", "unique_writes", "total_writes"),
)


def import_aiwc_folder(
    folder: str | Path, application: str | None = None, size: str | None = None
) -> Dataset:
    """Make a dataset with profiles only from a folder of the tool's files."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError.of(where=folder, expected="a folder with files aiwc_<kernel>_<n>.csv", found="none")
    paths = sorted(folder.rglob("aiwc_*.csv"))
    if not paths:
        raise InputError.of(where=folder, expected="files aiwc_<kernel>_<n>.csv", found="none")
    default = (application or folder.resolve().name, size or "unknown")
    unknown: Counter[str] = Counter()
    rows = [_folder_row(path, *(_cell_of(path, folder) or default), unknown) for path in paths]
    return Dataset(str(folder), profiles=table_of(PROFILES, rows, _notes(unknown)))


def _notes(unknown: Mapping[str, int]) -> dict[str, str]:
    """Notes on a table of profiles, with the unknown metrics and their numbers of files."""
    notes = facts_of("aiwc")[0]["profiles"]
    if not unknown:
        return notes
    names = ", ".join(f"{name} ({count} files)" for name, count in sorted(unknown.items()))
    return {**notes, "other metrics": f"Metrics that Crosscast does not know: {names}."}


def _cell_of(path: Path, folder: Path) -> tuple[str, str] | None:
    """Application and size from the folders of a file; ``None`` in the folder itself."""
    parts = path.relative_to(folder).parts[:-1]
    if not parts:
        return None
    if len(parts) != 2:
        expected = "the folder itself or <application>/<size>/"
        raise InputError.of(where=path, expected=f"the file in {expected}", found=f"it in {'/'.join(parts)}/")
    return parts[0], parts[1]


def _folder_row(path: Path, application: str, size: str, unknown: Counter[str]) -> dict[str, object]:
    """Make the row of a file, and count its unknown metrics in `unknown`."""
    name = _FILE_NAME.fullmatch(path.name)
    if name is None:
        raise InputError.of(where=path, expected="a name such as aiwc_<kernel>_<n>.csv", found=f"{path.name}")
    metrics: dict[str, int | float] = {}
    other: dict[str, int | float] = {}
    for metric, value in _read(path).items():
        ours = _OURS.get(metric)
        if ours is None:
            other[metric] = value
        elif ours in metrics:
            raise InputError.of(where=path, problem=f"the metric {ours} is there under two names")
        else:
            metrics[ours] = _number(path, metric, ours, value)
    unknown.update(name for name in other if name not in _OURS)
    for needed in _NEEDED:
        if _OURS[needed] not in metrics:
            raise InputError.of(
                where=path, expected=f"the metric {needed}", found="none: the file may be cut off"
            )
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
    _, header, rows = csv_rows(path, "metrics", ", ".join(_HEADER), _MOST_BYTES)
    if list(header) != _HEADER:
        raise InputError.of(where=path, expected=f"the columns {', '.join(_HEADER)}", found=",".join(header))
    values: dict[str, float] = {}
    for where, row in rows:
        metric, text = row["metric"], row["count"]
        if metric in values:
            raise InputError.of(where=where, problem=f"the metric {metric} is there a second time")
        values[metric] = number_of_text(text)
        if not values[metric] >= 0:
            raise InputError.of(
                where=where, field="count", expected="a finite number of at least 0", found=repr(text)
            )
    return values


def _number(path: Path, metric: str, ours: str, value: float) -> int | float:
    if ours not in _INTEGERS:
        return value
    if not value.is_integer():
        raise InputError.of(
            where=path, problem=f"the metric {metric}: expected a whole number, found {value:g}"
        )
    return int(value)


def _derived(metrics: Mapping[str, int | float]) -> dict[str, int | float | None]:
    """Metrics that the tool lacks, or has with fewer digits, or as 0 where they are not defined."""
    derived: dict[str, int | float | None] = {}
    for ratio, numerator, denominator in _RATIOS:
        if {numerator, denominator} <= metrics.keys():
            derived[ratio] = metrics[numerator] / metrics[denominator] if metrics[denominator] else None
    if {"min_ipt", "max_ipt"} <= metrics.keys():
        derived["load_imbalance"] = metrics["max_ipt"] - metrics["min_ipt"]
    return derived
