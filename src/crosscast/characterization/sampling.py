"""Profiles of launches that are too long to run: some of their work-groups are, and the counts are extended.

Boxes of work-groups are run at several places, in the launch as it is, along one dimension or two or three.
Each is run with `step` groups of a dimension and with twice as many, so that each count is known to be
``c0 + c1 n``, and products of these in several dimensions. Places at both ends and between them tell what the
rims of the launch have more or less. That is exact where groups are alike: instructions go with the number of
groups, distinct lines of a tile with halo with ``n + h``, those of a matrix product's operands with one side.
Where groups are not alike, places differ, and how much they do is the error (differences of neighbouring
places: Wolter, Introduction to Variance Estimation, 2007, section 8.2).

Entropies are extended in the logarithm of the number of groups. Least and greatest values are those of all
runs, means and the like those of the largest.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import Any, NamedTuple, TypeVar

from crosscast.profile import METRICS, Profile

Groups = tuple[int, int]
"""Work-groups in two dimensions; the second is 1 in launches of one."""

K = TypeVar("K", bound=Hashable)

FEWEST_PLACES, _MOST_PLACES = 3, 16
_WIDE = 2
_ALIKE = 4
_SEED = 0


class Box(NamedTuple):
    """Some of a launch's work-groups: the first, and how many, in three dimensions."""

    first: tuple[int, int, int]
    size: tuple[int, int, int]

    def pieces(self, groups: Sequence[int]) -> list[tuple[int, int]]:
        """Numbers of its groups, counted through all dimensions, from one to before another."""
        found: list[tuple[int, int]] = []
        (x, y, z), (nx, ny, nz) = self.first, self.size
        for row in (groups[0] * (b + groups[1] * c) for c in range(z, z + nz) for b in range(y, y + ny)):
            if found and found[-1][1] == row + x:
                found[-1] = (found[-1][0], row + x + nx)
            else:
                found.append((row + x, row + x + nx))
        return found


@dataclass(frozen=True)
class SampledAxis:
    """A dimension along which a launch is sampled."""

    number: int
    extent: int  # Groups of the launch along it
    step: int  # Groups of a narrow box; wide ones have twice as many
    starts: tuple[int, ...]  # Of the wide boxes; of several, the first and the last stand at the ends

    def span(self, place: int, size: int) -> tuple[int, int]:
        """First group and number of a box at a place; narrow ones at the far end stand at that end."""
        is_end = place and place == len(self.starts) - 1
        return self.starts[place] + (self.step * (_WIDE - size) if is_end else 0), self.step * size

    def weight(self, place: int, size: int, count: int | None = None) -> Fraction:
        """What to multiply a count of a box with, to add up to that of the launch.

        Or to that of `count` groups which are at neither end.
        """
        places = len(self.starts)
        slope = Fraction(count or self.extent, self.step * places)
        is_end = place in (0, places - 1)
        constant = Fraction(1) if is_end else Fraction(-1, places - 2)
        if count:
            constant = Fraction(0) if is_end else Fraction(1, places - 2)
        return slope - constant if size == _WIDE else 2 * constant - slope


Sampled = tuple[tuple[int, int], ...]
"""A box that is run: its place and size (1 or 2) along each axis."""


Distinct = Mapping[tuple[int, int], tuple[int, int, int, int]]
"""Distinct bytes read and written, and lines of 64 and of 128 bytes, by address and size of what has them."""


@dataclass(frozen=True)
class Sample:
    """Which work-groups of a launch are run."""

    groups: tuple[int, int, int]
    axes: tuple[SampledAxis, ...]

    def runs(self) -> list[Sampled]:
        """All boxes; the wide ones stand behind narrow ones of the same place."""
        each = [itertools.product(range(len(axis.starts)), (1, _WIDE)) for axis in self.axes]
        return list(itertools.product(*each))

    def box(self, run: Sampled) -> Box:
        """The box of a run: all groups in dimensions that are no axis."""
        first, size = [0, 0, 0], list(self.groups)
        for axis, (place, wide) in zip(self.axes, run, strict=True):
            first[axis.number], size[axis.number] = axis.span(place, wide)
        return Box((first[0], first[1], first[2]), (size[0], size[1], size[2]))

    def weight(self, run: Sampled, counts: Sequence[int | None] | None = None) -> Fraction:
        """What counts of a run are multiplied with, to be those of the launch, or of a box inside it."""
        along = counts or [None] * len(self.axes)
        return math.prod(
            (axis.weight(*each, n) for axis, each, n in zip(self.axes, run, along, strict=True)),
            start=Fraction(1),
        )

    def together(self) -> tuple[Box, list[int | None]]:
        """A larger box inside, and its groups along each axis: whole rows of groups if they are short."""
        outer, most = self.axes[-1], self.run_groups()
        row = math.prod(self.groups) // outer.extent
        if row * 2 * _WIDE * outer.step <= most:
            counts: list[int | None] = [None] * (len(self.axes) - 1)
            counts.append(max(2 * _WIDE * outer.step, min(outer.extent // 2, most // row)))
        else:
            counts = [2 * _WIDE * axis.step for axis in self.axes]
        first, size = [0, 0, 0], list(self.groups)
        for axis, count in zip(self.axes, counts, strict=True):
            if count is not None:
                first[axis.number], size[axis.number] = (axis.extent - count) // 2, count
        return Box((first[0], first[1], first[2]), (size[0], size[1], size[2])), counts

    def run_groups(self) -> int:
        """Work-groups that are run, each of them once."""
        return sum(math.prod(self.box(run).size) for run in self.runs() if all(k == _WIDE for _, k in run))

    def error(self, values: Mapping[Sampled, float], total: float) -> float:
        """Twice the standard error of a count that was extended, as a share of it."""
        found: dict[tuple[int, ...], float] = {}
        for run, value in values.items():
            sign = math.prod(1 if size == _WIDE else -1 for _, size in run)
            places = tuple(place for place, _ in run)
            found[places] = found.get(places, 0.0) + sign * value
        slopes = list(found.values())
        differences = [b - a for a, b in itertools.pairwise(slopes)]
        variance = sum(d * d for d in differences) / (2 * len(differences) * len(slopes))
        times = math.prod(axis.extent / axis.step for axis in self.axes)
        return 2 * math.sqrt(variance) * times / total if total else 0.0


def sample_of(groups: tuple[int, int, int], most: int) -> Sample | None:
    """Choose some work-groups of a launch, `most` about; ``None`` if it has hardly more.

    Whole rows or layers are run where they are few enough, as neighbours in the order of groups share caches.
    """
    total = math.prod(groups)
    if 3 * most > total:
        return None
    for count in (1, 2, 3):
        for numbers in itertools.combinations((2, 1, 0), count):
            axes = _axes(groups, numbers, most)
            if axes is not None:
                return Sample(groups, axes)
    return None


def fewest_groups(groups: tuple[int, int, int]) -> int | None:
    """The fewest work-groups of which a launch can be told; ``None`` if it has too few."""
    places = _WIDE * FEWEST_PLACES
    found = math.prod(places if n >= 2 * places else n for n in groups)
    return found if 3 * found <= math.prod(groups) else None


def _axes(groups: Sequence[int], numbers: Sequence[int], most: int) -> tuple[SampledAxis, ...] | None:
    """Axes along these dimensions, if so few groups do."""
    if any(groups[n] < 2 * _WIDE * FEWEST_PLACES for n in numbers):
        return None
    boxes = most * math.prod(groups[n] for n in numbers) // math.prod(groups)
    places = FEWEST_PLACES
    if len(numbers) == 1:
        places = max(places, min(_MOST_PLACES, boxes // _WIDE, groups[numbers[0]] // _WIDE))
    step = int((boxes / (_WIDE * places) ** len(numbers)) ** (1 / len(numbers)) + 1e-9)
    if not step:
        return None
    return tuple(
        _axis(n, groups[n], min(step, groups[n] // (_WIDE * places)), places) for n in sorted(numbers)
    )


def _axis(number: int, extent: int, step: int, places: int) -> SampledAxis:
    """One place at each end, and one somewhere in each of equal parts between."""
    # Along x, groups that begin at the same place of a line of memory are alike.
    alike = _ALIKE if number == 0 and step >= _ALIKE else 1
    step -= step % alike
    wide, rng = _WIDE * step, random.Random(_SEED)
    inner = extent - 2 * wide
    edges = [wide + inner * k // (places - 2) for k in range(places - 1)]
    between = [
        rng.randint(low, max(low, high - wide)) // alike * alike for low, high in itertools.pairwise(edges)
    ]
    return SampledAxis(number, extent, step, (0, *between, extent - wide))


# --- From profiles of some groups to that of all

_LEAST, _MOST = ("min_",), ("max_", "error", "before", "behind")
_KEPT = ("mean", "sd_", "path", "longest", "rate", "opcode")
_KEPT_ENDS = ("_ratio", "_share", "branches_90", "_per_instruction", "_per_operand", "threads", "granularity")


@dataclass(frozen=True)
class _Extension:
    """Weights of runs, the largest of them, and the logarithms for entropies."""

    weights: Sequence[Fraction]
    sizes: Sequence[int]  # Work-groups of each run
    total: int  # Work-groups of the launch

    @property
    def largest(self) -> int:
        """The one in the middle of the largest runs."""
        most = max(self.sizes)
        found = [number for number, size in enumerate(self.sizes) if size == most]
        return found[len(found) // 2]

    def of(self, name: str, values: Sequence[Any]) -> Any:
        last = values[self.largest]
        known = [value for value in values if value is not None]
        if name == "path" and known:
            return max(known, key=lambda path: path["instructions"])
        if known and all(isinstance(value, Mapping) for value in known):
            keys = dict.fromkeys(key for value in [*([last] if last else []), *known] for key in value)
            return {key: self.of(key, [value and value.get(key) for value in values]) for key in keys}
        if known and all(isinstance(value, (list, tuple)) for value in known):
            if any(value is None or len(value) != len(last) for value in values):
                return last
            return [self.of(name, [value[k] for value in values]) for k in range(len(last))]
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in known)
        if not known or not numbers:
            return known[0] if last is None and known else last
        if name.startswith(_LEAST):
            return min(known)
        if name.startswith(_MOST):
            return max(known)
        if name.startswith("median"):
            return median(known)
        if len(set(values)) == 1 or name.startswith(_KEPT) or name.endswith(_KEPT_ENDS):
            return known[0] if last is None else last
        if "entropy" in name:
            return known[-1] if len(known) < len(values) else self._in_logarithm(values)
        # What some groups do not do at all is not counted there.
        return self._count([0 if value is None else value for value in values])

    def _count(self, values: Sequence[int | float]) -> int | float:
        found = sum((w * Fraction(v) for w, v in zip(self.weights, values, strict=True)), Fraction(0))
        # No count falls when groups are added; what differs between places must not make it.
        found = max(found, Fraction(values[self.largest]))
        return round(found) if all(isinstance(value, int) for value in values) else float(found)

    def _in_logarithm(self, values: Sequence[float]) -> float:
        """From the means of the smallest and of the largest runs."""
        low, high = (
            [v for v, n in zip(values, self.sizes, strict=True) if n == size]
            for size in (min(self.sizes), max(self.sizes))
        )
        mean = math.fsum(high) / len(high)
        step = math.log2(max(self.sizes) / min(self.sizes))
        slope = (mean - math.fsum(low) / len(low)) / step if step else 0.0
        return mean + slope * math.log2(self.total / max(self.sizes))


def combined(
    profiles: Mapping[K, Profile], weights: Mapping[K, Fraction], sizes: Mapping[K, int], total: int
) -> Profile:
    """The profile of a launch of so many groups, of those of its runs and what these are multiplied with."""
    runs = list(profiles)
    extension = _Extension([weights[run] for run in runs], [sizes[run] for run in runs], total)
    metrics = {
        metric.name: extension.of(metric.name, [profiles[run].metrics[metric.name] for run in runs])
        for metric in METRICS
    }
    launch = extension.of("launch", [profiles[run].launch for run in runs])
    if "reuse" in launch:
        launch["reuse"] = {**launch["reuse"], "bytes": falling(launch["reuse"]["bytes"])}
    instructions = extension.of("instructions", [profiles[run].instructions for run in runs])
    last = profiles[runs[extension.largest]]
    return replace(last, metrics={**metrics, **_ratios(metrics)}, launch=launch, instructions=instructions)


def falling(found: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, object]:
    """Bytes behind caches, of which a larger cache has no more than a smaller one."""

    def fall(sizes: Mapping[str, int]) -> dict[str, int]:
        ordered = ["first", *sorted((name for name in sizes if name != "first"), key=int, reverse=True)]
        # From the largest on: each smaller one has at least as many.
        most = dict(zip(ordered, itertools.accumulate((sizes[name] for name in ordered), max), strict=True))
        return {name: most[name] for name in sizes}

    return {line: {n: fall(sizes) for n, sizes in of.items()} for line, of in found.items()}


def _ratios(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Metrics that follow from others."""
    found = {
        "granularity": 1 / metrics["work_items"],
        "load_imbalance": metrics["max_ipt"] - metrics["min_ipt"],
        "barriers_per_instruction": (metrics["total_barriers_hit"] + metrics["work_items"])
        / metrics["total_instruction_count"],
    }
    for name, above, below in (
        ("unique_read_write_ratio", "unique_reads", "unique_writes"),
        ("reread_ratio", "unique_reads", "total_reads"),
        ("rewrite_ratio", "unique_writes", "total_writes"),
    ):
        if metrics[below]:
            found[name] = metrics[above] / metrics[below]
    return found


@dataclass(frozen=True)
class Seen:
    """What was counted of some work-groups."""

    profile: Profile
    distinct: Distinct


def extend_sample(sample: Sample, boxes: Mapping[Sampled, Seen], together: Seen) -> Profile:
    """The profile of a launch of those of its boxes, and of a larger box that tells of caches."""
    weights = {run: sample.weight(run) for run in boxes}
    box, counts = sample.together()
    inside = {run: sample.weight(run, counts) for run in boxes}
    profiles = {run: each.profile for run, each in boxes.items()}
    sizes = {run: math.prod(sample.box(run).size) for run in boxes}
    found = combined(profiles, weights, sizes, math.prod(sample.groups))
    errors = {
        name: sample.error({run: of(each) for run, each in profiles.items()}, of(found))
        for name, of in _COUNTED.items()
    }
    distinct: list[_Extended] = []
    for place in range(len(_UNITS)):
        distinct.append(_extended_distinct(boxes, together, weights, inside, place, distinct))
    found = _within_buffers(found, distinct)
    errors["distinct_bytes"] = max(errors["distinct_bytes"], *(each.doubt for each in distinct[:2]))
    times = math.prod(sample.groups) / math.prod(box.size)
    before = together.profile.launch["reuse"]
    reuse = {**before, "bytes": _reuse(before["bytes"], distinct[2:], times)}
    seen = [*profiles.values(), together.profile]
    timing = {
        name: sum(each.timing_s[name] for each in seen) if name.startswith(("run", "metrics")) else value
        for name, value in found.timing_s.items()
    }
    groups = min(sample.run_groups() + math.prod(box.size), math.prod(sample.groups))
    sampled = {"groups": groups, "of": math.prod(sample.groups), "error": errors}
    return replace(found, timing_s=timing, launch={**found.launch, "reuse": reuse, "sampled": sampled})


def _number(profile: Profile, name: str) -> int | float:
    return profile.metrics[name] or 0


def _of_sub_groups(profile: Profile, name: str) -> int:
    counts: Mapping[str, int] = profile.launch["sub_groups"]["32"]
    return counts[f"{name}_read"] + counts[f"{name}_write"]


_COUNTED: Mapping[str, Callable[[Profile], float]] = {
    "instructions": lambda p: _number(p, "total_instruction_count"),
    "accesses": lambda p: _number(p, "total_reads") + _number(p, "total_writes"),
    "sectors_32": lambda p: _of_sub_groups(p, "sectors_32"),
    "lines_128": lambda p: _of_sub_groups(p, "lines_128"),
    "distinct_bytes": lambda p: sum(p.launch["distinct_bytes"].get("global", {}).values()),
}
"""Counts whose errors are stated."""


_UNITS = (1, 1, 64, 128)
"""Bytes of what is distinct, by where it stands."""


@dataclass(frozen=True)
class _Extended:
    """What is distinct in a launch, by address and size of what has it."""

    linear: Mapping[tuple[int, int], float]  # As a straight line has it
    found: Mapping[tuple[int, int], float]
    doubt: float  # As a share of all
    together: Mapping[tuple[int, int], int]  # In the box that is larger than others

    @property
    def share(self) -> float:
        """What is left of the straight line."""
        return sum(self.found.values()) / sum(self.linear.values()) if any(self.linear.values()) else 1.0


def _extended_distinct(
    boxes: Mapping[Sampled, Seen],
    together: Seen,
    weights: Mapping[Sampled, Fraction],
    inside: Mapping[Sampled, Fraction],
    place: int,
    before: Sequence[_Extended],
) -> _Extended:
    """What is distinct; there are as many lines, at least, as bytes `before` fill."""
    linear, found, last, doubt = {}, {}, {}, 0.0
    for key in sorted({key for each in (*boxes.values(), together) for key in each.distinct}):
        seen = {run: each.distinct.get(key, (0, 0, 0, 0))[place] for run, each in boxes.items()}
        last[key] = together.distinct.get(key, (0, 0, 0, 0))[place]
        line = max(_added(weights, seen), last[key], *seen.values())
        most = max(math.ceil(key[1] / _UNITS[place]) + (_UNITS[place] > 1), last[key])
        wides = [n for run, n in seen.items() if all(size == _WIDE for _, size in run)]
        wide = math.fsum(wides) / len(wides)
        one, unsure = _curved(wide, last[key], _added(inside, seen), line, most)
        filled = max((each.found[key] / _UNITS[place] for each in before[:2] if place > 1), default=0.0)
        linear[key], found[key], doubt = line, max(one, filled), doubt + unsure
    return _Extended(linear, found, doubt / sum(found.values()) if doubt else 0.0, last)


def _added(weights: Mapping[Sampled, Fraction], seen: Mapping[Sampled, int]) -> float:
    return float(sum((weights[run] * n for run, n in seen.items()), Fraction(0)))


_CURVED = 2e-3


def _curved(wide: float, together: float, expected: float, linear: float, most: float) -> tuple[float, float]:
    """Distinct addresses of a buffer of `most`, and their doubt.

    In a straight line through smaller boxes, of which the wide ones have `wide`, a larger box that has
    `together` had `expected`, and the launch has `linear`. If it has less, later groups come back to what
    earlier ones accessed. All may be drawn from `m` addresses, of which ``m (1 - exp(-n / m))`` differ in `n`
    draws; or the line goes on less steeply, as where some accesses are to a table and others are not.
    """
    if together >= expected * (1 - _CURVED):
        return min(linear, most), 0.0 if linear <= most else most * math.exp(-linear / most)

    def drawn(n: float, m: float) -> float:
        return -m * math.expm1(-n / m)

    low, high = max(together, 1.0), most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if drawn(expected, middle) < together else (low, middle)
    later = max(0.0, together - wide) / (expected - wide) if expected > wide else 0.0
    least = max(drawn(linear, high), together)
    greatest = max(min(together + later * (linear - expected), most), least)
    return (least + greatest) / 2, (greatest - least) / 2


def _within_buffers(profile: Profile, distinct: Sequence[_Extended]) -> Profile:
    """The profile with no more distinct addresses and bytes of buffers than these have."""
    read, written = (each.share for each in distinct[:2])
    if read == written == 1:
        return profile
    found, linear = (
        sum(sum(each.values()) for each in of)
        for of in ([each.found for each in distinct[:2]], [each.linear for each in distinct[:2]])
    )
    share = found / linear
    metrics, shares = dict(profile.metrics), {"read": read, "written": written}
    for name, by in (
        *(("unique_reads", read), ("unique_writes", written)),
        *(("total_memory_footprint", share), ("footprint_90", share)),
    ):
        metrics[name] = round(_number(profile, name) * by)
    known = profile.launch["distinct_bytes"]
    of_buffers = {side: round(n * shares[side]) for side, n in known["global"].items()}
    launch = {**profile.launch, "distinct_bytes": {**known, "global": of_buffers}}
    return replace(profile, metrics={**metrics, **_ratios(metrics)}, launch=launch)


def _reuse(
    seen: Mapping[str, Mapping[str, Mapping[str, int]]], lines: Sequence[_Extended], times: float
) -> dict[str, object]:
    """Bytes behind caches of a launch that has so many `times` the groups of a box.

    Each line comes from memory once, and where a cache does not hold what is used between two uses. Of what
    others used before the box does, the share of a buffer comes back that a cache does not hold.
    """

    def behind(sizes: Mapping[str, int], line: int, known: _Extended) -> dict[str, int]:
        used = sum(known.together.values())
        of_line = sizes["first"] / used if used else 0.0
        first = of_line * sum(known.found.values())
        found = {"first": round(first)}
        for size in list(sizes)[1:]:
            again = (sizes[size] - sizes["first"]) * times
            for key, n in known.found.items():
                back = of_line * max(0.0, known.together[key] * times - n)
                again += back * max(0.0, 1 - int(size) / max(n * line, 1))
            found[size] = round(first + again)
        return found

    return falling(
        {
            line: {groups: behind(sizes, int(line), known) for groups, sizes in by_groups.items()}
            for (line, by_groups), known in zip(seen.items(), reversed(lines), strict=True)
        }
    )


# --- Launches whose buffers would be too large: smaller launches are made instead


def runs_for(groups: Groups, group_s: float, limit_s: float) -> list[Groups] | None:
    """Work-groups of the runs to extend; ``None`` if the whole launch is short enough."""
    if math.prod(groups) * group_s <= limit_s:
        return None
    most = max(1.0, limit_s / max(group_s, 1e-9) / 9)
    x = max(1, min(groups[0] // 2, int(most)))
    y = max(1, min(groups[1] // 2, int(most / x)))
    wide, high = groups[0] > 1, groups[1] > 1
    xs, ys = ([x, 2 * x] if wide else [1]), ([y, 2 * y] if high else [1])
    return [(i, j) for j in ys for i in xs]


def extended(profiles: Mapping[Groups, Profile], groups: Groups) -> Profile:
    """The profile of a launch of so many work-groups, of those of smaller launches."""
    axes = [
        SampledAxis(number, groups[number], min(run[number] for run in profiles), (0,))
        for number in range(2)
        if len({run[number] for run in profiles}) > 1
    ]
    weights = {
        run: math.prod((axis.weight(0, run[axis.number] // axis.step) for axis in axes), start=Fraction(1))
        for run in profiles
    }
    sizes = {run: math.prod(run) for run in profiles}
    found = combined(profiles, weights, sizes, math.prod(groups))
    local = found.launch["local_size"]
    launch = {
        **found.launch,
        "global_size": [size * count for size, count in zip(local, (*groups, 1), strict=False)],
        "extended": {"runs": [list(run) for run in profiles], "groups": list(groups)},
    }
    return replace(found, launch=launch)


_TOO_FEW = 64.0


def profile_of(
    run: Callable[[Groups], Profile], groups: Groups, limit_s: float, most_groups: int | None = None
) -> Profile:
    """Profile a launch in full if that takes no longer than a limit, else extend profiles of smaller ones.

    Parameters
    ----------
    run
        Profiles the launch with only so many of its work-groups.
    groups
        Work-groups of the launch.
    limit_s
        Seconds of running that one launch may take, about.
    most_groups
        Launches of more groups are never run in full, as their buffers would be too large.
    """
    first: Groups = (min(groups[0], 2), 1)
    tried = run(first)
    # The least that a run costs says nothing of a group.
    group_s = tried.timing_s["run_cpu"] / math.prod(first)
    wider: Groups = (min(groups[0], int(_TOO_FEW)), 1)
    if wider != first and group_s * math.prod(wider) < limit_s:
        tried = run(wider)
        group_s = tried.timing_s["run_cpu"] / math.prod(wider)
    if most_groups is not None and math.prod(groups) > most_groups:
        group_s = max(group_s, 9 * limit_s / most_groups)
    runs = runs_for(groups, group_s, limit_s)
    if runs is None:
        return run(groups)
    return extended({each: run(each) for each in runs}, groups)
