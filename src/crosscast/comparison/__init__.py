"""Compare two profiles, datasets, models or schedules, and find changes that are too large."""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from crosscast.cluster import read_schedule_times
from crosscast.cluster.metrics import bounded_slowdown
from crosscast.cluster.trace_files import read_swf
from crosscast.data.launch_counts import counts_of, kinds_of, work_of
from crosscast.data.profiles import from_row
from crosscast.errors import InputError
from crosscast.forecasting import STORED, characterized, read_profiles
from crosscast.prediction import store
from crosscast.prediction.named_models import folder_of, is_named
from crosscast.profile import Profile
from crosscast.results import Tabular, rows_of

if TYPE_CHECKING:
    from crosscast.results import Column

Kind = Literal["profiles", "dataset", "model", "schedule"]
Numbers = Mapping[str, float | None]

_SCHEDULE = "the schedule"
"""The item with the numbers of a whole schedule."""

_MISSING = "missing"
"""The condition that an item is in only one of the two."""


@dataclass(frozen=True)
class Contents:
    """Numbers to compare, by item and metric."""

    kind: Kind
    label: str
    items: Mapping[str, Numbers]
    question: str = ""  # Of a model


def contents_of(path: str | Path, profiles: Sequence[Profile] | None = None) -> Contents:
    """Read a file of profiles, a launch file, a schedule, the folder of a dataset or model, or one by name.

    A schedule is an ``.swf`` file, or the ``.csv`` that ``crosscast simulate`` writes. `profiles` are those
    of the path, if they are already read.
    """
    file = Path(path)
    if profiles is not None:
        return Contents("profiles", str(path), _of_profiles(profiles, file))
    kind = kind_of(path)
    if kind == "dataset":
        return Contents(kind, str(path), _of_dataset(file))
    if kind == "model":
        stored = store.read(folder_of(path))
        return Contents(kind, str(path), _of_card(stored.card), stored.question)
    if kind == "schedule":
        return Contents(kind, str(path), _of_schedule(file))
    profiles = read_profiles(file, partial(characterized, optimize=False))[0]
    return Contents(kind, str(path), _of_profiles(profiles, file))


def _contents(compared: str | Path | Profile | Contents) -> Contents:
    if isinstance(compared, Contents):
        return compared
    if isinstance(compared, Profile):
        return Contents("profiles", compared.kernel, _of_profiles([compared]))
    return contents_of(compared)


def kind_of(path: str | Path) -> Kind:
    """Kind of a path, by its content."""
    file, name = Path(path), str(path)
    if not file.exists():
        if name in ("bundled", "bundled-corun"):
            return "dataset"
        if is_named(name):
            return "model"
        raise InputError.of(
            where=path, expected="a file, a folder, or the name of a model or dataset", found="none"
        )
    if file.is_dir():
        return "model" if (file / store.CARD).exists() else "dataset"
    if file.suffix == ".swf" or file.name.endswith(".swf.gz"):
        return "schedule"
    if file.suffix == ".csv" and _header(file)[:4] == ["job", "submit", "start", "end"]:
        return "schedule"
    return "profiles"


def _header(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError.of(where=path, problem=f"cannot read the file ({reason})") from error


def _of_profiles(profiles: Iterable[Profile], path: Path | None = None) -> dict[str, Numbers]:
    # Kernels of a launch file are an application of its name, which stored profiles and other files lack.
    of_file = path.stem if path is not None and path.is_file() and path.suffix not in STORED else None
    contents: dict[str, Numbers] = {}
    launches: Counter[str] = Counter()
    for each in profiles:
        application = "" if each.application == of_file else each.application
        name = " ".join(filter(None, (application, each.kernel, each.size)))
        launches[name] += 1
        label = name if launches[name] == 1 else f"{name}, launch {launches[name]}"
        counted = {name: n for name, n in counts_of(each.launch).items() if not name.startswith("host_")}
        numbers = {**work_of(each.launch), **kinds_of(each.launch), **counted}
        contents[label] = {**each.metrics, **{name: float(n) for name, n in numbers.items() if n is not None}}
    return contents


def _flat(values: Mapping[str, object], before: str = "") -> Iterator[tuple[str, float]]:
    """Numbers of nested objects, by names joined with dots."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{before}{name}", float(value)


def _of_dataset(folder: Path) -> dict[str, Numbers]:
    """Rows of the tables, metrics of profiles, and the median time of each measurement point."""
    # Imported here, as other kinds need no tables.
    from crosscast.data import dataset as datasets
    from crosscast.data import views

    dataset = datasets.dataset_named(folder)
    rows = {f"rows_of_{schema.table}": float(dataset.table(schema).num_rows) for schema in datasets.TABLES}
    contents: dict[str, Numbers] = {"the dataset": rows}
    contents |= _of_profiles(from_row(row) for row in dataset.profiles.to_pylist())
    columns = ("application", "kernel", "size", "device", "configuration", "time_median_s")
    joined = views.join(dataset)
    for *names, device, configuration, time_s in zip(
        *(joined.column(name).to_pylist() for name in columns), strict=True
    ):
        settings = "" if configuration in (None, "{}") else f" {configuration}"
        contents[f"{' '.join(filter(None, names))} on {device}{settings}"] = {"time_median_s": time_s}
    return contents


_IDENTIFYING = ("model", "method", "folds", "device", "quantity", "probes", "mix_size")
"""Members that identify an entry in a list of a card."""


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _of_card(card: Mapping[str, object]) -> dict[str, Numbers]:
    """Training data and errors of a model; each entry of its lists of scores is an item."""
    training, errors = _object(card.get("training")), _object(card.get("errors"))
    applications = training.get("names")
    listed = applications if isinstance(applications, list) else ()
    known = {k: v for k, v in training.items() if k != "libraries"}
    contents: dict[str, Numbers] = {"training": dict(_flat(known))}
    plain = {k: v for k, v in errors.items() if k not in ("bootstrap", "seed", "by_program")}
    if numbers := dict(_flat(plain)):
        contents["errors"] = numbers
    for program, by_name in _object(errors.get("by_program")).items():
        contents[f"errors of {program}"] = dict(_flat(_object(by_name)))
    contents |= {f"application {name}": {} for name in listed}
    for name, entries in errors.items():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping):
                identity = {key: entry[key] for key in _IDENTIFYING if entry.get(key) is not None}
                label = ", ".join(f"{k} {v}" if isinstance(v, int) else str(v) for k, v in identity.items())
                left_out = (*_IDENTIFYING, "intervals", "applications")
                scores = {k: v for k, v in entry.items() if k not in left_out}
                contents[f"{name}: {label}"] = dict(_flat(scores))
    return contents


def _of_schedule(path: Path) -> dict[str, Numbers]:
    if path.suffix == ".csv":
        number, submit_s, start_s, end_s = read_schedule_times(path)
    else:
        columns = read_swf(path).columns
        ran = np.isfinite(columns["submit_s"] + columns["wait_s"] + columns["run_s"])
        number, submit_s = columns["job"][ran].astype(np.int64), columns["submit_s"][ran]
        start_s = submit_s + columns["wait_s"][ran]
        end_s = start_s + columns["run_s"][ran]
    wait_s, ran_s = start_s - submit_s, end_s - start_s
    totals: dict[str, float | None] = {"jobs": float(len(number))}
    if len(number):
        totals |= {
            "makespan_s": float(end_s.max() - submit_s.min()),
            "average_bounded_slowdown": float(bounded_slowdown(wait_s + ran_s, ran_s).mean()),
            "mean_wait_s": float(wait_s.mean()),
            "median_wait_s": float(np.median(wait_s)),
            "wait_p95_s": float(np.quantile(wait_s, 0.95)),
        }
    jobs = zip(number.tolist(), wait_s.tolist(), ran_s.tolist(), strict=True)
    return {_SCHEDULE: totals} | {f"job {job}": {"wait_s": wait, "run_s": ran} for job, wait, ran in jobs}


def _over_shorter_runs(items: dict[str, Numbers], others: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Return a schedule with slowdowns over the shorter of a job's run times, as one may be stretched."""
    jobs = [item for item in items if item != _SCHEDULE]
    if _SCHEDULE not in items or not jobs:
        return items
    wait_s, ran_s = (np.array([items[job][name] for job in jobs], np.float64) for name in ("wait_s", "run_s"))
    other_s = np.array([others.get(job, items[job])["run_s"] for job in jobs], np.float64)
    slowdown = bounded_slowdown(wait_s + ran_s, np.minimum(ran_s, other_s)).mean()
    return items | {_SCHEDULE: {**items[_SCHEDULE], "average_bounded_slowdown": float(slowdown)}}


@dataclass(frozen=True)
class Difference:
    """A number that differs in the second; ``None`` where it is not known."""

    item: str
    metric: str
    first: float | None
    second: float | None

    @property
    def change(self) -> float | None:
        """The second less the first."""
        return None if self.first is None or self.second is None else self.second - self.first

    @property
    def relative(self) -> float | None:
        """The change over the size of the first; infinite from 0."""
        if self.first is None or self.second is None:
            return None
        if not self.first:
            return math.copysign(math.inf, self.second) if self.second else 0.0
        return (self.second - self.first) / abs(self.first)


@dataclass(frozen=True)
class Condition:
    """A change that is too large, written as ``metric>+5%``."""

    text: str
    metric: str  # `missing` for items in only one of the two
    more: bool = True  # Whether it holds above the limit, or below
    limit: float = 0.0
    share: bool = False  # Whether the limit is a share of the first number

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read ``missing``, or a metric, ``>`` or ``<``, and a number with or without ``%``.

        >>> condition = Condition.parse("total_instruction_count>+5%")
        >>> condition.metric, condition.more, condition.limit, condition.share
        ('total_instruction_count', True, 0.05, True)
        """
        if text == _MISSING:
            return cls(text, _MISSING)
        match = re.fullmatch(
            r"\s*([\w.]+)\s*([<>])\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(%?)\s*", text
        )
        if match is None:
            expected = "METRIC>+5%, METRIC<-0.1 or the like, or missing"
            raise InputError.of(where="--fail-on", expected=expected, found=repr(text))
        if not math.isfinite(float(match[3])):
            raise InputError.of(where="--fail-on", expected="a finite number", found=match[3])
        share = match[4] == "%"
        return cls(text, match[1], match[2] == ">", float(match[3]) / (100 if share else 1), share)

    def holds(self, difference: Difference) -> bool:
        """Whether a change is too large; one from or to an unknown number always is."""
        if difference.metric != self.metric:
            return False
        if difference.first is None and difference.second is None:
            return False
        change = difference.relative if self.share else difference.change
        return change is None or (change > self.limit if self.more else change < self.limit)


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """Differences between two of a kind; as a table, a row for each difference."""

    kind: Kind
    labels: tuple[str, str]
    differences: tuple[Difference, ...]  # Those of whole schedules, then the largest relative change first
    only: tuple[tuple[str, ...], tuple[str, ...]]  # Items in only the first, and in only the second
    compared: int  # Numbers that both have
    failed: Mapping[str, tuple[str, ...]]  # Items for which each condition holds

    @cached_property
    def passes(self) -> bool:
        """Whether no condition holds."""
        return not any(self.failed.values())

    def columns(self) -> Mapping[str, Column]:
        """The differences."""
        names = ("item", "metric", "first", "second", "change", "relative")
        return {name: [getattr(each, name) for each in self.differences] for name in names}

    def to_dict(self) -> dict[str, object]:
        """The comparison, as ``--json`` prints it; infinite relative changes are null."""
        return {
            "kind": self.kind,
            "first": self.labels[0],
            "second": self.labels[1],
            "compared": self.compared,
            "differences": rows_of(self.plain_columns()),
            "only_in_first": list(self.only[0]),
            "only_in_second": list(self.only[1]),
            "conditions": [
                {"condition": text, "holds_for": list(items)} for text, items in self.failed.items()
            ],
            "passes": self.passes,
        }


def compare(
    first: str | Path | Profile | Contents,
    second: str | Path | Profile | Contents,
    fail_on: Sequence[str] = (),
) -> Comparison:
    """Find all numbers that differ, items that only one of the two has, and conditions that hold.

    ``crosscast compare`` does the same. A single kernel on each side is compared whatever its name is.

    Parameters
    ----------
    first, second
        Two of a kind: profiles, or files of them; launch files, which are characterized now; folders or names
        of datasets or models; or schedules. Changes are relative to the first.
    fail_on
        Conditions such as ``total_instruction_count>+5%`` or ``missing``.

    Returns
    -------
    Comparison
        ``to_pandas()`` has the differences; ``passes`` is true if no condition holds.

    Raises
    ------
    InputError
        If the two are of different kinds, or a condition is invalid or of an unknown metric.
    """
    first, second = map(_contents, (first, second))
    if first.kind != second.kind:
        expected = f"{_noun(first.kind)} as {first.label} is"
        raise InputError.of(where=second.label, expected=expected, found=_noun(second.kind))
    if first.question != second.question:
        expected = f"a model of {first.question} as {first.label} is"
        raise InputError.of(where=second.label, expected=expected, found=f"one of {second.question}")
    ones, others = dict(first.items), dict(second.items)
    if first.kind == "profiles" and len(ones) == len(others) == 1 and ones.keys() != others.keys():
        label = f"{next(iter(ones))} → {next(iter(others))}"
        ones, others = ({label: next(iter(each.values()))} for each in (ones, others))
    if first.kind == "schedule":
        ones, others = _over_shorter_runs(ones, others), _over_shorter_runs(others, ones)
    conditions = [Condition.parse(text) for text in fail_on]
    known = {metric for items in (ones, others) for numbers in items.values() for metric in numbers}
    for condition in conditions:
        _check_metric(condition, known)
    pairs = [
        Difference(item, metric, ones[item].get(metric), others[item].get(metric))
        for item in ones
        if item in others
        for metric in dict.fromkeys([*ones[item], *others[item]])
    ]
    shared = {each.metric for each in pairs}
    for condition in conditions:
        if condition.metric not in {_MISSING, *shared}:
            raise InputError.of(
                where="--fail-on",
                field=condition.metric,
                expected=f"something that both {first.label} and {second.label} have it of",
                found="none, so that nothing would be compared",
            )
    order = {item: index for index, item in enumerate(ones)}
    differences = sorted(
        (each for each in pairs if each.first != each.second),
        key=lambda each: (each.item != _SCHEDULE, -_size(each), order[each.item], each.metric),
    )
    compared = sum(each.change is not None for each in pairs)
    only = (
        tuple(item for item in ones if item not in others),
        tuple(item for item in others if item not in ones),
    )
    failed = {each.text: _holding(each, pairs, only) for each in conditions}
    return Comparison(first.kind, (first.label, second.label), tuple(differences), only, compared, failed)


def _noun(kind: Kind) -> str:
    return kind if kind == "profiles" else f"a {kind}"


def _check_metric(condition: Condition, known: set[str]) -> None:
    if condition.metric == _MISSING or condition.metric in known:
        return
    near = difflib.get_close_matches(condition.metric, known, n=3, cutoff=0.5)
    examples = ", ".join(near or sorted(known)[:5])
    raise InputError.of(
        where="--fail-on",
        expected="a metric that one of the two has",
        found=f"{condition.metric!r}, {'near to which there are' if near else 'where there are'} {examples}",
    )


def _size(difference: Difference) -> float:
    relative = difference.relative
    return math.inf if relative is None else abs(relative)


def _holding(
    condition: Condition, pairs: Sequence[Difference], only: tuple[tuple[str, ...], tuple[str, ...]]
) -> tuple[str, ...]:
    if condition.metric == _MISSING:
        return tuple(item for items in only for item in items)
    return tuple(each.item for each in pairs if condition.holds(each))
