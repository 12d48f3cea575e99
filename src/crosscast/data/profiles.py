"""The table of profiles, a row for each launch, and its files.

It has columns for the launch, each metric, seconds spent, and JSON for parts without fixed fields. Version 1
lacked the columns ``application`` and ``size``, and version 2 the counts of `launch_counts`.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.data.fields import TableRow
from crosscast.data.files import atomic_file
from crosscast.data.launch_counts import COUNTS, counts_of
from crosscast.data.schema import Column, ColumnType, Schema, json_text
from crosscast.errors import InputError, importing
from crosscast.profile import METRICS, Metric, Profile

if TYPE_CHECKING:
    from crosscast.data.table import Table, Upgrade


VERSION = 10
"""Version of the schema; it rises when a column changes its name, type or meaning."""

_TIMES = {
    "compile": "time to compile the program",
    "instrument": "time to instrument it",
    "run": "time of the instrumented run",
    "run_cpu": "the same, of all threads together",
    "metrics": "time to compute the metrics",
}
_REAL_COUNTS = frozenset({"median_itb", "median_ipt", "mean_simd_width", "sd_simd_width"})
_LATER_COUNTS = {
    4: ("work_item_moved_bytes", "work_item_mean_walk_log2"),
    5: ("work_item_mean_alignment_log2", "reuse_channel_share"),
    6: (
        *(f"sub_group_{width}_atomic_accesses" for width in (32, 64)),
        "path_block_instructions",
        *(f"path_block_loads_{space}" for space in ("global", "constant", "local")),
    ),
    7: (),  # Reuse: accesses of straight code go together
    8: tuple(
        f"sub_group_{width}_{name}"
        for width in (32, 64)
        for name in ("same_address_read", "sectors_32_read_only")
    ),
    9: tuple(
        f"instructions_int{bits}_div_by_{divisor}"
        for bits in (16, 32, 64)
        for divisor in ("variable", "invariant")
    ),
    10: (
        *(f"sub_group_{width}_sub_group_fp{bits}" for width in (32, 64) for bits in (32, 64)),
        *(f"instructions_int{bits}_{kind}" for bits in (16, 32, 64) for kind in ("joined", "shift")),
    ),
}
_NEW_IN: Mapping[int, Sequence[str]] = {
    2: ("application", "size"),
    3: [name for count in COUNTS if (name := count.column.name) not in chain(*_LATER_COUNTS.values())],
    **_LATER_COUNTS,
}
"""Columns that a version added."""


def _metric_column(metric: Metric) -> Column:
    real = metric.unit in ("1", "bits") or metric.name in _REAL_COUNTS
    return Column(metric.name, "real" if real else "integer", metric.unit, metric.title, ge=0)


COLUMNS: tuple[Column, ...] = (
    Column("application", "text", title="application that launched it; empty outside a suite"),
    Column("size", "text", title="problem size; empty outside a suite"),
    Column("kernel", "text", title="kernel", required=True),
    Column("invocation", "integer", "count", "number of the launch in its run, from 0", required=True, ge=0),
    *(_metric_column(metric) for metric in METRICS),
    *(Column(f"{name}_s", "real", "s", title, ge=0) for name, title in _TIMES.items()),
    *(count.column for count in COUNTS),
    Column("launch", "json", title="sizes of the launch, a summary of each argument, and every count"),
    Column("program", "json", title="path, hash, compiler and options of what was characterized"),
    Column("environment", "json", title="package, toolchain and machine"),
)
"""The columns in order."""

PROFILES = Schema("profiles", VERSION, COLUMNS, key=("application", "kernel", "size", "invocation"))
"""Profiles of a dataset."""

LOOSE_PROFILES = replace(PROFILES, key=())
"""Profiles in a file outside of a dataset, where two kernels may have one name."""


def with_empty_columns(columns: Iterable[Column]) -> Upgrade:
    """Return the upgrade that adds empty columns to a table."""

    def upgrade(table: Table) -> Table:
        from crosscast.data.table import with_empty

        return with_empty(table, columns)

    return upgrade


UPGRADES: Mapping[int, Upgrade] = {
    version - 1: with_empty_columns([column for column in COLUMNS if column.name in names])
    for version, names in _NEW_IN.items()
}
"""Upgrades from each past version to the next."""


def to_row(profile: Profile) -> dict[str, object]:
    """Cells of a profile by column; ``None`` is an empty cell."""
    cells: dict[str, object] = {
        "application": profile.application,
        "size": profile.size,
        "kernel": profile.kernel,
        "invocation": profile.invocation,
        **profile.metrics,
        **{f"{name}_s": profile.timing_s.get(name) for name in _TIMES},
        **counts_of(profile.launch),
        "launch": json_text(dict(profile.launch)),
        "program": json_text(dict(profile.program)),
        "environment": json_text(dict(profile.environment)),
    }
    return {column.name: cells.get(column.name) for column in COLUMNS}


def from_row(row: Mapping[str, object]) -> Profile:
    """Make the profile of a row; printed text and published metrics, which tables lack, are empty.

    Counts are read from the column ``launch``, which has all of them.
    """
    cells = TableRow(row)
    times = {name: cells.number_or_none(f"{name}_s") for name in _TIMES}
    return Profile(
        kernel=cells.text("kernel"),
        invocation=cells.integer("invocation"),
        metrics={metric.name: cells.number_or_none(metric.name) for metric in METRICS},
        timing_s={name: time_s for name, time_s in times.items() if time_s is not None},
        launch=_object(cells, "launch"),
        program=_object(cells, "program"),
        environment=_object(cells, "environment"),
        application=cells.text_or_none("application"),
        size=cells.text_or_none("size"),
    )


def _object(cells: TableRow, name: str) -> dict[str, object]:
    text = cells.text_or_none(name) or "{}"
    return TableRow({name: json.loads(text)}).entries(name)


def csv_header() -> str:
    """Header of the CSV form, without a newline."""
    return ",".join(column.name for column in COLUMNS)


def csv_row(profile: Profile) -> str:
    """Line of a profile, without a newline; numbers have all their digits."""
    text = io.StringIO()
    cells = to_row(profile).values()
    csv.writer(text, lineterminator="").writerow("" if cell is None else cell for cell in cells)
    return text.getvalue()


def read_csv(path: str | Path) -> list[Profile]:
    """Read a CSV file of this or a past version."""
    path = Path(path)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError.of(where=path, problem=f"cannot read the table of profiles ({error})") from error
    versions = map(_columns_of, range(VERSION, 0, -1))
    columns = next((v for v in versions if rows and rows[0] == [column.name for column in v]), None)
    if columns is None:
        raise InputError.of(
            where=path, expected=f"a table of profiles, version {VERSION} or older", found="other columns"
        )
    profiles = []
    for number, row in enumerate(rows[1:], start=2):
        try:
            cells = {column.name: _read(column, text) for column, text in zip(columns, row, strict=True)}
        except ValueError as error:
            raise InputError.of(
                where=f"{path}:{number}", problem=f"not a row of a table of profiles ({error})"
            ) from error
        profiles.append(from_row(dict.fromkeys(_NEW_IN[2]) | cells))
    return profiles


def _columns_of(version: int) -> list[Column]:
    later = {name for number, names in _NEW_IN.items() if number > version for name in names}
    return [column for column in COLUMNS if column.name not in later]


def _read(column: Column, text: str) -> str | int | float | None:
    if not text:
        if column.required:
            raise ValueError(f"column {column.name!r}: expected a value, found none")
        return None
    try:
        cell = _READERS[column.type](text)
    except ValueError as error:
        raise ValueError(f"column {column.name!r}: {error}") from error
    if column.ge is not None and not isinstance(cell, str) and not column.ge <= cell < math.inf:
        raise ValueError(f"column {column.name!r}: expected at least {column.ge:g}, found {text}")
    return cell


def _checked_json(text: str) -> str:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, found {text}")
    # Python parses numbers that are not finite, which JSON does not allow.
    json_text(value)
    return text


_READERS: dict[ColumnType, Callable[[str], str | int | float]] = {
    "text": str,
    "integer": int,
    "real": float,
    "json": _checked_json,
}


def write_parquet(profiles: Iterable[Profile], path: str | Path) -> None:
    """Write a Parquet file; units and the schema's version are in its metadata."""
    path = Path(path)
    require_pyarrow()
    from crosscast.data.table import save, table_of

    table = table_of(LOOSE_PROFILES, map(to_row, profiles))
    with atomic_file(path) as temporary:
        save(table, temporary)


def read_parquet(path: str | Path) -> list[Profile]:
    """Read a Parquet file of this or a past version: one that `write_parquet` wrote, or a dataset's."""
    path = Path(path)
    require_pyarrow()
    from crosscast.data.table import read_table

    return [from_row(row) for row in read_table(path, LOOSE_PROFILES, UPGRADES).to_pylist()]


def require_pyarrow() -> None:
    """Raise MissingExtraError unless Parquet files can be read and written."""
    with importing("parquet", "a Parquet file"):
        import pyarrow.parquet  # noqa: F401


@dataclass(frozen=True)
class PublishedMetric:
    """A row of the published tool's file."""

    name: str  # Its name there
    category: str  # Its category there
    metric: str | None = None  # Our metric of the same meaning; `None` where there is none


PUBLISHED_METRICS: tuple[PublishedMetric, ...] = (
    PublishedMetric("Opcode", "Compute", "opcode"),
    PublishedMetric("Total Instruction Count", "Compute", "total_instruction_count"),
    PublishedMetric("Freedom to Reorder", "Compute"),
    PublishedMetric("Resource Pressure", "Compute"),
    PublishedMetric("Work-items", "Parallelism", "work_items"),
    PublishedMetric("Work-groups", "Parallelism", "work_groups"),
    PublishedMetric("Work-items per Work-group", "Parallelism"),
    PublishedMetric("SIMD Operand Sum", "Parallelism"),
    PublishedMetric("Total Barriers Hit", "Parallelism", "total_barriers_hit"),
    PublishedMetric("Min ITB", "Parallelism", "min_itb"),
    PublishedMetric("Max ITB", "Parallelism", "max_itb"),
    # The tool truncates both medians of an even number of values to whole numbers.
    PublishedMetric("Median ITB", "Parallelism", "median_itb"),
    PublishedMetric("Min IPT", "Parallelism", "min_ipt"),
    PublishedMetric("Max IPT", "Parallelism", "max_ipt"),
    PublishedMetric("Median IPT", "Parallelism", "median_ipt"),
    PublishedMetric("Max SIMD Width", "Parallelism", "max_simd_width"),
    PublishedMetric("Mean SIMD Width", "Parallelism", "mean_simd_width"),
    PublishedMetric("SD SIMD Width", "Parallelism", "sd_simd_width"),
    PublishedMetric("Granularity", "Parallelism", "granularity"),
    PublishedMetric("Barriers Per Instruction", "Parallelism", "barriers_per_instruction"),
    PublishedMetric("Instructions Per Operand", "Parallelism", "instructions_per_operand"),
    PublishedMetric("Total Memory Footprint", "Memory", "total_memory_footprint"),
    PublishedMetric("Unique Memory Accesses", "Memory"),
    PublishedMetric("Unique Reads", "Memory", "unique_reads"),
    PublishedMetric("Unique Writes", "Memory", "unique_writes"),
    PublishedMetric("Unique Read/Write Ratio", "Memory", "unique_read_write_ratio"),
    PublishedMetric("Total Reads", "Memory", "total_reads"),
    PublishedMetric("Total Writes", "Memory", "total_writes"),
    # Inverses of our ratios.
    PublishedMetric("Rereads", "Memory"),
    PublishedMetric("Rewrites", "Memory"),
    PublishedMetric("90% Memory Footprint", "Memory", "footprint_90"),
    PublishedMetric("Global Memory Address Entropy", "Memory", "global_memory_address_entropy"),
    *(
        PublishedMetric(f"LMAE -- Skipped {n} LSBs", "Memory", f"local_memory_address_entropy_{n}")
        for n in range(1, 11)
    ),
    PublishedMetric("Total Global Memory Accessed", "Memory", "global_accesses"),
    PublishedMetric("Total Local Memory Accessed", "Memory", "local_accesses"),
    PublishedMetric("Total Constant Memory Accessed", "Memory", "constant_accesses"),
    PublishedMetric("Relative Local Memory Usage", "Memory"),
    PublishedMetric("Relative Constant Memory Usage", "Memory"),
    # The tool identifies branches by their source line.
    PublishedMetric("Total Unique Branch Instructions", "Control", "unique_branches"),
    PublishedMetric("90% Branch Instructions", "Control", "branches_90"),
    # Other formulas under similar names, in the tool's category Memory.
    PublishedMetric("Yokota Branch Entropy", "Memory"),
    PublishedMetric("Average Linear Branch Entropy", "Memory"),
)
"""Rows of the tool's file, in its order."""


# The tool writes 6 significant digits up to this metric, and 4 from here on.
_FIRST_WITH_4_DIGITS = "Unique Read/Write Ratio"


def render_aiwc(profile: Profile) -> str:
    """Write the content of the file: columns metric, category and count."""
    lines = ["metric,category,count"]
    digits = 6
    for metric, category, value in profile.published:
        if metric == _FIRST_WITH_4_DIGITS:
            digits = 4
        text = str(value) if isinstance(value, int) else f"{value:.{digits}g}"
        lines.append(f"{metric},{category},{text}")
    return "\n".join(lines) + "\n"


def write_aiwc(profile: Profile, folder: str | Path, invocation: int = 0) -> Path:
    """Write ``aiwc_<kernel>_<invocation>.csv``; return its path.

    Writing invocation 0 removes the kernel's files of an earlier run, which would otherwise pass for further
    invocations of this one.
    """
    folder = Path(folder)
    path = folder / f"aiwc_{profile.kernel}_{invocation}.csv"
    try:
        if not invocation:
            earlier = re.compile(rf"aiwc_{re.escape(profile.kernel)}_\d+\.csv")
            for file in [file for file in folder.iterdir() if earlier.fullmatch(file.name)]:
                file.unlink()
        with atomic_file(path) as temporary:
            temporary.write_text(render_aiwc(profile), encoding="utf-8")
    except OSError as error:
        raise InputError.of(where="--out", problem=f"cannot write {path} ({error.strerror})") from error
    return path
