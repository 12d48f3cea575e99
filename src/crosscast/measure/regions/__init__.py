"""Regions of programs: keys, runs, histories, their files of one JSON object a line, and datasets."""

from __future__ import annotations

import logging
import math
import re
import sys
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache, partial
from itertools import chain
from numbers import Integral, Real
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from crosscast.data.configuration import Configuration
from crosscast.data.fields import STRICT_JSON, decode, excerpt
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.data.dataset import Dataset
    from crosscast.data.sources.runs import RunTable

# Python warnings would stop programs that turn them into errors.
say_once = lru_cache(maxsize=1000)(logging.getLogger("crosscast.regions").warning)
"""Logs a warning, unless it is among the last thousand."""

_WORD = re.compile(r"[\w+.-]{1,32}", re.ASCII)
_MOST_ELEMENTS = 8


def described(value: Any) -> str:
    """Describe an argument by its type and size, without its contents.

    >>> described(64), described(0.3), described(-5.0), described("jacobi"), described(b"data")
    ('64', 'float 2^-2', 'float -2^2', 'jacobi', 'bytes[4]')
    >>> import numpy as np
    >>> described(np.zeros((4, 3))), described(np.int32(7)), described((8, 8)), described([8, 8])
    ('float64[4x3]', 'int32 7', '(8, 8)', 'list[2]')
    """
    kind = type(value)
    if kind in (bool, int) or value is None:
        return str(value)
    if kind is float:
        return f"float {_number(value)}"
    if kind is str:
        return value if _WORD.fullmatch(value) else f"str[{len(value)}]"
    if kind is tuple and len(value) <= _MOST_ELEMENTS:
        return f"({', '.join(map(described, value))})"
    # Checked on the type, as objects with dynamic attributes may seem to have any.
    if hasattr(kind, "shape"):
        name, shape = _type_name(value.dtype) if hasattr(kind, "dtype") else kind.__name__, value.shape
        if shape == () and isinstance(value, Real):
            return f"{name} {_number(value)}"
        return f"{name}[{'x'.join(map(str, shape)) if isinstance(shape, tuple) else shape}]"
    if kind in (tuple, list, dict, set, frozenset, bytes, bytearray):
        return f"{kind.__name__}[{len(value)}]"
    if isinstance(value, Enum):
        return f"{kind.__name__}.{value.name}"
    size = value.size if hasattr(kind, "size") else None
    return f"{kind.__name__}[{size} B]" if type(size) is int else kind.__name__


def _number(value: Real) -> str:
    """Return a whole number, or the power of two below another one."""
    if isinstance(value, Integral):
        return str(value)
    number = float(value) + 0.0  # Without the sign of a zero
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    return f"{'-' if number < 0 else ''}2^{math.frexp(number)[1] - 1}"


# NumPy takes long to give the name of a type of element.
_type_name = lru_cache(maxsize=1000)(str)


class RegionKey(NamedTuple):
    """Key of runs that do the same work at the same site (Bailey et al. 2014, section VI)."""

    name: str  # Name of the region
    arguments: tuple[str, ...] = ()  # Description of each argument, such as `float64[64x64]`
    # Frame in which the region was entered, such as `model.step:12` for line 12 in the function `step` of the
    # module `model`; earlier histories may have some of its callers after it
    site: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the call and its site."""
        where = f" at {self.site[0]}" if self.site else ""
        return f"{self.name}({', '.join(self.arguments)}){where}"


NOTHING: Mapping[str, float] = MappingProxyType({})
"""An empty mapping."""


class RegionRun(NamedTuple):
    """Result of a run of a region."""

    key: RegionKey
    configuration: Configuration | None  # Configuration of the program; `None` if unknown
    started_s: float  # Start in seconds since 1970-01-01 UTC
    duration_s: float  # Duration in seconds
    metered_s: float | None = None  # Time of the energy, by the host's clock, in seconds
    energy_j: Mapping[str, float] = NOTHING  # Energy of each domain in that time, in joules
    # Power of each domain in watts, if accurate: over this run and those before it without one
    powers_w: Mapping[str, float] = NOTHING
    # Power of all domains that are not parts of others, in watts; `None` if one of them is unknown
    power_w: float | None = None
    counters: Mapping[str, float] = NOTHING  # Counts of the processor, by event
    failure: str | None = None  # Type of the exception that ended it. Failed runs are no samples


class History:
    """Runs of regions by key, in the order in which they ended; each is appended to a file, if any.

    So many runs of each key are kept in memory. All methods are thread-safe.
    """

    def __init__(self, path: Path | None = None, most_runs: int | None = 1000) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._runs: defaultdict[RegionKey, deque[RegionRun]] = defaultdict(partial(deque, maxlen=most_runs))
        if path is not None:
            self._begin = _begin(path)

    def __len__(self) -> int:
        """Number of runs."""
        with self._lock:
            return sum(map(len, self._runs.values()))

    def record(self, run: RegionRun) -> None:
        """Add a run, and append it to the file."""
        with self._lock:
            self._runs[run.key].append(run)
            if self.path is not None:
                self._append(self.path, self._begin + to_line(run))

    def _append(self, path: Path, line: bytes) -> None:
        try:
            with path.open("ab", buffering=0) as file:
                file.write(line)
            self._begin = b""
        except OSError as error:
            self.path = None
            say_once(f"{path}: the history cannot be written from now on: {error.strerror}")

    def keys(self, name: str | None = None) -> tuple[RegionKey, ...]:
        """Return the keys with runs, in order of the first run; optionally of one name only."""
        with self._lock:
            return tuple(key for key in self._runs if name is None or key.name == name)

    def runs(
        self, key: RegionKey, configuration: Configuration | None = None, *, failed: bool = False
    ) -> tuple[RegionRun, ...]:
        """Return the runs of a key, optionally of one configuration, by default without failures."""
        with self._lock:
            recorded = tuple(self._runs.get(key, ()))
        return tuple(
            run
            for run in recorded
            if (failed or run.failure is None) and configuration in (None, run.configuration)
        )

    def last(self, key: RegionKey) -> RegionRun | None:
        """Return the last run of a key that did not fail, if any."""
        return next(reversed(self.runs(key)), None)

    def mean_time_s(self, key: RegionKey, configuration: Configuration | None = None) -> float | None:
        """Return the mean time of the runs that did not fail, in seconds; ``None`` without runs."""
        times_s = [run.duration_s for run in self.runs(key, configuration)]
        return sum(times_s) / len(times_s) if times_s else None

    def mean_power_w(self, key: RegionKey, configuration: Configuration | None = None) -> float | None:
        """Return the mean power of the runs that did not fail, in watts; ``None`` without known power.

        Runs are weighted by their times.
        """
        runs = self.runs(key, configuration)
        known = [(r.power_w, r.metered_s) for r in runs if r.power_w is not None and r.metered_s]
        time_s = sum(metered_s for _, metered_s in known)
        return sum(power_w * metered_s for power_w, metered_s in known) / time_s if known else None


def samples_of(history: History, key: RegionKey) -> list[dict[str, str | float]]:
    """Return the samples of a key: a row for each run with a configuration that did not fail."""
    return [
        {
            "device": run.configuration.device,
            **run.configuration.settings,
            "time_s": run.duration_s,
            **({} if run.power_w is None else {"power_w": run.power_w}),
            **{f"{domain}_w": power_w for domain, power_w in run.powers_w.items()},
            **run.counters,
        }
        for run in history.runs(key)
        if run.configuration is not None
    ]


SUFFIX = ".jsonl"
"""Suffix of histories, by which they are told from tables."""

_VERSION = 1
"""Version of the format; raised when a field changes its name, type or meaning."""

_FIRST = f'{{"version":{_VERSION},"region":'.encode()
_Number = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_Amount = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0, le=sys.float_info.max)]
_Name = Annotated[str, Meta(min_length=1)]
_Amounts = dict[_Name, _Amount]


class _Line(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Fields of a line, as in `RegionRun`."""

    version: int
    region: _Name
    arguments: tuple[str, ...] = ()
    site: tuple[str, ...] = ()
    device: _Name | None = None
    settings: dict[str, _Number | str] = {}
    started_s: _Amount
    duration_s: _Amount
    metered_s: _Amount | None = None
    energy_j: _Amounts = {}
    powers_w: _Amounts = {}
    power_w: _Amount | None = None
    counters: _Amounts = {}
    failure: _Name | None = None


_encode = msgspec.json.Encoder().encode


def to_line(run: RegionRun) -> bytes:
    """Format a run as a line, with its end; missing fields are left out."""
    fields = run._asdict() | {name: dict(getattr(run, name)) for name in ("energy_j", "powers_w", "counters")}
    key, at = fields.pop("key"), fields.pop("configuration")
    if at is not None:
        fields |= at.to_dict()
    line = _Line(version=_VERSION, region=key.name, arguments=key.arguments, site=key.site, **fields)
    return _encode(line) + b"\n"


def from_line(text: bytes, where: str) -> RegionRun | None:
    """Parse a run; ``None`` if it is incomplete, as the last line of an interrupted process."""
    text = text.rstrip(b"\n")
    try:
        content = STRICT_JSON.decode(text.decode())
    except ValueError:
        if _FIRST.startswith(text[: len(_FIRST)]):
            return None
        content = None
    if not isinstance(content, dict):
        found = repr(text[:60].decode(errors="replace"))
        raise InputError.of(where=where, expected="a JSON object", found=found)
    if content.get("version") != _VERSION:
        expected, found = f"{_VERSION}, which this Crosscast reads", excerpt(content.get("version"))
        raise InputError.of(where=where, field="version", expected=expected, found=found)
    line = decode(_Line, content, where)
    configuration = None if line.device is None else Configuration(line.device, line.settings)
    what = RegionKey(line.region, line.arguments, line.site), configuration, line.started_s, line.duration_s
    return RegionRun(
        *what, line.metered_s, line.energy_j, line.powers_w, line.power_w, line.counters, line.failure
    )


def read_history(path: str | Path) -> History:
    """Read the runs of a history's file.

    A line that an interrupted process left incomplete is left out.

    Parameters
    ----------
    path
        The file, as `profiled` writes it.

    Returns
    -------
    History
        The runs by key: times in seconds, energy in joules, configurations.

    Raises
    ------
    InputError
        If the file cannot be read or is not a history; names the line and the field.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "runs.jsonl"
    ...     _ = file.write_text('{"version":1,"region":"step","started_s":1700000000,"duration_s":0.25}\\n')
    ...     history = read_history(file)
    >>> history.mean_time_s(history.keys("step")[0])
    0.25
    """
    history = History(most_runs=None)
    for run in _runs(Path(path)):
        history.record(run)
    return history


def _runs(path: Path) -> Iterator[RegionRun]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if run := from_line(line, f"{path}, line {number}"):
                    yield run
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot read the history ({error.strerror})") from error


def _begin(path: Path) -> bytes:
    """Return what to write before the first run: the end of an incomplete line; refuse what is no history."""
    try:
        with path.open("a+b") as file:
            file.seek(max(file.tell() - 1, 0))
            last = file.read()
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot write the history ({error.strerror})") from error
    next(_runs(path), None)
    return b"" if last in (b"", b"\n") else b"\n"


def runs_of_history(path: Path) -> RunTable:
    """Read the runs of a history: application and kernel are the region, the size is the rest of its key.

    The power of a run may be a mean over it and short ones before it. Runs that failed, without a
    configuration or without a time are left out.
    """
    # Imported here: programs with regions need nothing that is heavy.
    from crosscast.data.sources.runs import DEFAULT_SIZE, RecordedRun, RunTable

    history = read_history(path)
    runs = []
    left_out: Counter[str] = Counter()
    keys = history.keys()
    for key in keys:
        size = " ".join([", ".join(key.arguments) or DEFAULT_SIZE, *(f"at {frame}" for frame in key.site)])
        for number, run in enumerate(history.runs(key, failed=True), start=1):
            if run.failure is not None:
                left_out["failed"] += 1
            elif run.configuration is None:
                left_out["without a configuration"] += 1
            elif not run.duration_s:
                left_out["without a time"] += 1
            else:
                # Without the power of all domains, the others are not the total.
                measured = run.duration_s, run.power_w or None, run.powers_w if run.power_w else {}
                cell = key.name, key.name, size, run.configuration
                runs.append(RecordedRun(*cell, *measured, run.counters, f"{path}: {key}, run {number}"))
    return RunTable(runs, left_out=left_out)


class ImportedRuns(NamedTuple):
    """A dataset, and notes on its import."""

    dataset: Dataset
    notes: tuple[str, ...]  # Sentences on the interpretation of columns, and on omissions


def import_runs(path: str | Path, settings: Sequence[str] | None = None) -> ImportedRuns:
    """Make a dataset of the runs of a file, or of the files of a folder."""
    from crosscast.data.sources.runs import dataset_of_tables, read_run_table

    path, files = Path(path), [Path(path)]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".csv", SUFFIX) and file.is_file())
    if not files:
        raise InputError.of(where=path, expected=f"a file *.csv or *{SUFFIX}", found="none")
    if settings is not None and all(file.suffix == SUFFIX for file in files):
        raise InputError.of(
            where=path, field="settings", expected="with CSV files", found="histories, which tell theirs"
        )
    tables = {
        file.name: runs_of_history(file) if file.suffix == SUFFIX else read_run_table(file, settings)
        for file in files
    }
    dataset, summary = dataset_of_tables(str(path), tables)
    return ImportedRuns(dataset, (*chain.from_iterable(table.notes for table in tables.values()), *summary))
