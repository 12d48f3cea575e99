"""Profiles of launches that take too long: some of their work-groups are run, and the counts extrapolated.

Boxes of work-groups are run at several positions of the launch, along one, two or three dimensions. Each is
run with `step` groups of a dimension and with twice as many, so that each count is fitted by ``c0 + c1 n``,
and by products of these in several dimensions. Positions at both ends and between them show the effect of the
launch's borders. That is exact if groups are alike: instructions are proportional to the number of groups,
distinct lines of a tile with halo to ``n + h``, those of a matrix product's operands to one side. If groups
differ, so do positions, and their differences give the error (differences of neighbouring positions: Wolter,
Introduction to Variance Estimation, 2007, section 8.2).

Entropies are extrapolated in the logarithm of the number of groups. Least and greatest values are those of
all runs, means and the like those of the largest.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import Any, NamedTuple, TypeVar

from crosscast.data.launch_counts import REUSE_GROUPS
from crosscast.profile import METRICS, Profile

Groups = tuple[int, int]
"""Work-groups in two dimensions; the second is 1 in launches of one."""

K = TypeVar("K", bound=Hashable)

FEWEST_POSITIONS, _MOST_POSITIONS = 3, 16
_WIDE = 2
_CLUSTER = REUSE_GROUPS[-1]  # Groups in a row that run together, in the engine's counts of reuse
_ALIKE = 4
_SEED = 0


class Box(NamedTuple):
    """A box of a launch's work-groups: first one and number in three dimensions."""

    first: tuple[int, int, int]
    size: tuple[int, int, int]

    def pieces(self, groups: Sequence[int]) -> list[tuple[int, int]]:
        """Return ranges of the linear numbers of its groups, ends excluded."""
        ranges: list[tuple[int, int]] = []
        (x, y, z), (nx, ny, nz) = self.first, self.size
        for row in (groups[0] * (b + groups[1] * c) for c in range(z, z + nz) for b in range(y, y + ny)):
            if ranges and ranges[-1][1] == row + x:
                ranges[-1] = (ranges[-1][0], row + x + nx)
            else:
                ranges.append((row + x, row + x + nx))
        return ranges

    def together(self, groups: Sequence[int]) -> int:
        """Return the most of its groups that run together."""
        numbers = itertools.chain.from_iterable(itertools.starmap(range, self.pieces(groups)))
        return max(Counter(number // _CLUSTER for number in numbers).values())


@dataclass(frozen=True)
class SampledAxis:
    """A dimension along which a launch is sampled."""

    number: int
    extent: int  # Groups of the launch along it
    step: int  # Groups of a narrow box; wide ones have twice as many
    starts: tuple[int, ...]  # Of the wide boxes; of several, the first and the last are at the ends

    def span(self, position: int, size: int) -> tuple[int, int]:
        """Return first group and number of a box at a position; narrow boxes at the far end touch it."""
        is_end = position and position == len(self.starts) - 1
        return self.starts[position] + (self.step * (_WIDE - size) if is_end else 0), self.step * size

    def weight(
        self, position: int, size: int, count: int | None = None, *, by_inner: bool = False
    ) -> Fraction:
        """Return the weight of a box's count in the sum for the launch.

        Or in the sum for `count` groups away from both ends. With `by_inner`, groups at the ends, which may
        do less than others, have no weight.
        """
        positions, inner = len(self.starts), len(self.starts) - 2
        is_end = position in (0, positions - 1)
        if by_inner and is_end:
            return Fraction(0)
        slope = Fraction(count or self.extent, self.step * (inner if by_inner else positions))
        constant = Fraction(0 if count else 1) if is_end else Fraction(1 if count or by_inner else -1, inner)
        return slope - constant if size == _WIDE else 2 * constant - slope


Sampled = tuple[tuple[int, int], ...]
"""A box to run: its position and size (1 or 2) along each axis."""


Distinct = Mapping[tuple[int, int], tuple[int, int, int, int]]
"""Distinct bytes read and written, and lines of 64 and of 128 bytes, by address and size of a buffer."""


@dataclass(frozen=True)
class Sample:
    """Selection of work-groups of a launch to run."""

    groups: tuple[int, int, int]
    axes: tuple[SampledAxis, ...]

    def runs(self) -> list[Sampled]:
        """Return all boxes; wide ones follow narrow ones of the same position."""
        boxes = [itertools.product(range(len(axis.starts)), (1, _WIDE)) for axis in self.axes]
        return list(itertools.product(*boxes))

    def box(self, run: Sampled) -> Box:
        """Return the box of a run, with all groups in dimensions that are no axis."""
        first, size = [0, 0, 0], list(self.groups)
        for axis, (position, wide) in zip(self.axes, run, strict=True):
            first[axis.number], size[axis.number] = axis.span(position, wide)
        return Box((first[0], first[1], first[2]), (size[0], size[1], size[2]))

    def weight(
        self, run: Sampled, counts: Sequence[int | None] | None = None, *, by_inner: bool = False
    ) -> Fraction:
        """Return the weight of a run's counts in the sum for the launch, or for a box inside it."""
        along = counts or [None] * len(self.axes)
        return math.prod(
            (
                axis.weight(*box, n, by_inner=by_inner)
                for axis, box, n in zip(self.axes, run, along, strict=True)
            ),
            start=Fraction(1),
        )

    def larger_box(self) -> tuple[Box, list[int | None]]:
        """Return a larger inner box, and its groups along each axis: complete rows if they are short."""
        outermost, most = self.axes[-1], self.run_groups()
        row = math.prod(self.groups) // outermost.extent
        if row * 2 * _WIDE * outermost.step <= most:
            counts: list[int | None] = [None] * (len(self.axes) - 1)
            counts.append(max(2 * _WIDE * outermost.step, min(outermost.extent // 2, most // row)))
        else:
            counts = [2 * _WIDE * axis.step for axis in self.axes]
        first, size = [0, 0, 0], list(self.groups)
        for axis, count in zip(self.axes, counts, strict=True):
            if count is not None:
                last = axis.extent - count
                of_cluster = _CLUSTER // math.gcd(_CLUSTER, row)
                nearest = of_cluster * round(last // 2 / of_cluster)
                first[axis.number], size[axis.number] = nearest or last // 2, count
        return Box((first[0], first[1], first[2]), (size[0], size[1], size[2])), counts

    def run_groups(self) -> int:
        """Return the number of distinct work-groups to run, but for those of the larger box."""
        return sum(math.prod(self.box(run).size) for run in self.runs() if all(k == _WIDE for _, k in run))

    def ran_groups(self) -> int:
        """Return the number of work-groups to run, with those of the larger box."""
        return min(self.run_groups() + math.prod(self.larger_box()[0].size), math.prod(self.groups))

    def error(self, values: Mapping[Sampled, float], total: float) -> float:
        """Return twice the standard error of an extrapolated count, as a share of it."""
        by_position: dict[tuple[int, ...], float] = {}
        for run, value in values.items():
            sign = math.prod(1 if size == _WIDE else -1 for _, size in run)
            positions = tuple(position for position, _ in run)
            by_position[positions] = by_position.get(positions, 0.0) + sign * value
        slopes = list(by_position.values())
        differences = [b - a for a, b in itertools.pairwise(slopes)]
        variance = sum(d * d for d in differences) / (2 * len(differences) * len(slopes))
        times = math.prod(axis.extent / axis.step for axis in self.axes)
        return 2 * math.sqrt(variance) * times / total if total else 0.0


def sample_of(groups: tuple[int, int, int], most: int) -> Sample | None:
    """Select about `most` work-groups of a launch; ``None`` if it has hardly more.

    Complete rows or layers are run if they are few enough, as neighbours in the order of groups share caches.
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
    """Return the fewest work-groups of a sample; ``None`` if the launch is too small."""
    per_axis = _WIDE * FEWEST_POSITIONS
    fewest = math.prod(per_axis if n >= 2 * per_axis else n for n in groups)
    return fewest if 3 * fewest <= math.prod(groups) else None


def _axes(groups: Sequence[int], numbers: Sequence[int], most: int) -> tuple[SampledAxis, ...] | None:
    """Return axes along these dimensions, if `most` groups suffice."""
    if any(groups[n] < 2 * _WIDE * FEWEST_POSITIONS for n in numbers):
        return None
    boxes = most * math.prod(groups[n] for n in numbers) // math.prod(groups)
    positions = FEWEST_POSITIONS
    if len(numbers) == 1:
        positions = max(positions, min(_MOST_POSITIONS, boxes // _WIDE, groups[numbers[0]] // _WIDE))
    step = int((boxes / (_WIDE * positions) ** len(numbers)) ** (1 / len(numbers)) + 1e-9)
    if not step:
        return None
    return tuple(
        _axis(n, groups[n], min(step, groups[n] // (_WIDE * positions)), positions) for n in sorted(numbers)
    )


def _axis(number: int, extent: int, step: int, positions: int) -> SampledAxis:
    """Return an axis with a position at each end, and a random one in each of equal parts between."""
    # Along x, groups that begin at the same offset in a line of memory are alike.
    unit = _ALIKE if number == 0 and step >= _ALIKE else 1
    step -= step % unit
    wide, rng = _WIDE * step, random.Random(_SEED)
    inner = extent - 2 * wide
    edges = [wide + inner * k // (positions - 2) for k in range(positions - 1)]
    between = [
        rng.randint(low, max(low, high - wide)) // unit * unit for low, high in itertools.pairwise(edges)
    ]
    return SampledAxis(number, extent, step, (0, *between, extent - wide))


# --- From profiles of some groups to that of all groups

_LEAST, _MOST = ("min_",), ("max_", "error", "before", "behind")
_KEPT = ("mean", "sd_", "path", "longest", "rate", "opcode")
_KEPT_ENDS = ("_ratio", "_share", "branches_90", "_per_instruction", "_per_operand", "threads", "granularity")


@dataclass(frozen=True)
class _Extension:
    """Weights and sizes of runs, by which counts and entropies are extrapolated."""

    weights: Sequence[Fraction]
    sizes: Sequence[int]  # Work-groups of each run
    total: int  # Work-groups of the launch

    @property
    def largest(self) -> int:
        """Index of the middle one of the largest runs."""
        largest = [number for number, size in enumerate(self.sizes) if size == max(self.sizes)]
        return largest[len(largest) // 2]

    def of(self, name: str, values: Sequence[Any]) -> Any:
        last = values[self.largest]
        known = [value for value in values if value is not None]
        if name == "path" and known:
            return max(known, key=lambda path: path["instructions"])
        if known and all(isinstance(value, Mapping) for value in known):
            keys = dict.fromkeys(key for value in [*([last] if last else []), *known] for key in value)
            return {
                key: self.of(key, [value.get(key) if value else None for value in values]) for key in keys
            }
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
        # Counts are absent from groups without such instructions.
        return self._count([0 if value is None else value for value in values])

    def _count(self, values: Sequence[int | float]) -> int | float:
        total = sum((w * Fraction(v) for w, v in zip(self.weights, values, strict=True)), Fraction(0))
        # Counts grow with groups, whatever the differences between positions.
        total = max(total, Fraction(values[self.largest]))
        return round(total) if all(isinstance(value, int) for value in values) else float(total)

    def _in_logarithm(self, values: Sequence[float]) -> float:
        """Extrapolate from the means of the smallest and of the largest runs."""
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
    """Combine the profiles of runs by their weights to that of a launch of `total` groups."""
    runs = list(profiles)
    extension = _Extension([weights[run] for run in runs], [sizes[run] for run in runs], total)
    metrics = {
        metric.name: extension.of(metric.name, [profiles[run].metrics[metric.name] for run in runs])
        for metric in METRICS
    }
    launch = extension.of("launch", [profiles[run].launch for run in runs])
    if "reuse" in launch:
        bytes_behind, groups = falling(launch["reuse"]["bytes"]), sizes[runs[extension.largest]]
        reuse = {"bytes": bytes_behind, "groups": groups, "channel_share": None}
        launch["reuse"] = {**launch["reuse"], **reuse}
    instructions = extension.of("instructions", [profiles[run].instructions for run in runs])
    last = profiles[runs[extension.largest]]
    return replace(last, metrics={**metrics, **_ratios(metrics)}, launch=launch, instructions=instructions)


def falling(bytes_behind: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, object]:
    """Make bytes behind caches monotonic: a larger cache has no more than a smaller one."""

    def fall(sizes: Mapping[str, int]) -> dict[str, int]:
        ordered = ["first", *sorted((name for name in sizes if name != "first"), key=int, reverse=True)]
        # From the largest cache on, as each smaller one has at least as many.
        most = dict(zip(ordered, itertools.accumulate((sizes[name] for name in ordered), max), strict=True))
        return {name: most[name] for name in sizes}

    return {line: {n: fall(sizes) for n, sizes in of.items()} for line, of in bytes_behind.items()}


def _ratios(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics that are ratios of others."""
    ratios = {
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
            ratios[name] = metrics[above] / metrics[below]
    return ratios


@dataclass(frozen=True)
class BoxCounts:
    """Counts of some work-groups."""

    profile: Profile
    distinct: Distinct
    atomic_memory: frozenset[tuple[int, int]] = frozenset()  # Buffers with atomics, by address and size


def extend_sample(sample: Sample, boxes: Mapping[Sampled, BoxCounts], larger: BoxCounts) -> Profile:
    """Extrapolate the profile of a launch from its boxes, and from a larger box for the effect of caches."""
    box, counts = sample.larger_box()
    weights = [
        (
            {run: sample.weight(run, by_inner=by_inner) for run in boxes},
            {run: sample.weight(run, counts, by_inner=by_inner) for run in boxes},
        )
        for by_inner in (False, True)
    ]
    profiles = {run: each.profile for run, each in boxes.items()}
    sizes = {run: math.prod(sample.box(run).size) for run in boxes}
    profile = combined(profiles, weights[0][0], sizes, math.prod(sample.groups))
    errors = {
        name: sample.error({run: of(each) for run, each in profiles.items()}, of(profile))
        for name, of in _COUNTED.items()
    }
    distinct: list[_Extended] = []
    for unit in range(len(_UNITS)):
        distinct.append(_extended_distinct(boxes, larger, weights, unit, distinct))
    profile = _within_buffers(profile, distinct)
    if "atomics" in (known := profile.launch["distinct_bytes"]):
        memory = frozenset().union(*(each.atomic_memory for each in boxes.values()))
        written, lines = (round(sum(distinct[unit].estimate[key] for key in memory)) for unit in (1, 3))
        known = {**known, "atomics": {**known["atomics"], "written": written, "lines": lines}}
        profile = replace(profile, launch={**profile.launch, "distinct_bytes": known})
    errors["distinct_bytes"] = max(errors["distinct_bytes"], *(each.doubt for each in distinct[:2]))
    times = math.prod(sample.groups) / math.prod(box.size)
    before = larger.profile.launch["reuse"]
    # Neighbouring groups share channels, which others of the launch do not.
    of_launch = {"bytes": _reuse(before["bytes"], distinct[2:], times), "groups": box.together(sample.groups)}
    reuse = {**before, **of_launch, "channel_share": None}
    measured = [*profiles.values(), larger.profile]
    timing = {
        name: sum(each.timing_s[name] for each in measured) if name.startswith(("run", "metrics")) else value
        for name, value in profile.timing_s.items()
    }
    sampled = {"groups": sample.ran_groups(), "of": math.prod(sample.groups), "error": errors}
    return replace(profile, timing_s=timing, launch={**profile.launch, "reuse": reuse, "sampled": sampled})


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
"""Counts with stated errors."""


_UNITS = (1, 1, 64, 128)
"""Bytes of each unit of distinct memory, in the order of `Distinct`."""


@dataclass(frozen=True)
class _Extended:
    """Distinct bytes or lines of a launch, by address and size of their buffer."""

    linear: Mapping[tuple[int, int], float]  # By linear extrapolation
    estimate: Mapping[tuple[int, int], float]
    doubt: float  # As a share of the estimate
    larger: Mapping[tuple[int, int], int]  # In the larger box

    @property
    def share(self) -> float:
        """Ratio of estimate and linear extrapolation."""
        return sum(self.estimate.values()) / sum(self.linear.values()) if any(self.linear.values()) else 1.0


def _extended_distinct(
    boxes: Mapping[Sampled, BoxCounts],
    larger: BoxCounts,
    weights: Sequence[tuple[Mapping[Sampled, Fraction], Mapping[Sampled, Fraction]]],
    unit: int,
    before: Sequence[_Extended],
) -> _Extended:
    """Extrapolate distinct units; there are at least as many lines as the bytes in `before` fill.

    Of several weights, for the launch and for the larger box, those that leave the least doubt count.
    """
    linear, estimate, last, doubt = {}, {}, {}, 0.0
    for key in sorted({key for each in (*boxes.values(), larger) for key in each.distinct}):
        counts = {run: each.distinct.get(key, (0, 0, 0, 0))[unit] for run, each in boxes.items()}
        last[key] = larger.distinct.get(key, (0, 0, 0, 0))[unit]
        straight = max(_added(weights[0][0], counts), last[key], *counts.values())
        most = max(math.ceil(key[1] / _UNITS[unit]) + (_UNITS[unit] > 1), last[key])
        wides = [n for run, n in counts.items() if all(size == _WIDE for _, size in run)]
        wide = math.fsum(wides) / len(wides)
        curved, unsure = min(
            (
                _curved(wide, last[key], _added(inside, counts), max(_added(whole, counts), last[key]), most)
                for whole, inside in weights
            ),
            key=lambda pair: pair[1],
        )
        filled = max((each.estimate[key] / _UNITS[unit] for each in before[:2] if unit > 1), default=0.0)
        linear[key], estimate[key], doubt = straight, max(curved, filled), doubt + unsure
    return _Extended(linear, estimate, doubt / sum(estimate.values()) if doubt else 0.0, last)


def _added(weights: Mapping[Sampled, Fraction], counts: Mapping[Sampled, int]) -> float:
    return float(sum((weights[run] * n for run, n in counts.items()), Fraction(0)))


_CURVED = 2e-3


def _curved(wide: float, together: float, expected: float, linear: float, most: float) -> tuple[float, float]:
    """Estimate distinct addresses of a buffer of `most`, and their doubt.

    By linear extrapolation of smaller boxes, of which the wide ones have `wide`, a larger box would have
    `expected` and the launch `linear`; the larger box has `together`. If that is less, later groups return to
    addresses of earlier ones. Either all are drawn from `m` addresses, of which ``m (1 - exp(-n / m))``
    differ in `n` draws; or the line continues with a smaller slope, as if some accesses are to a table.
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
    """Limit the distinct addresses and bytes of a profile to those of its buffers."""
    read, written = (each.share for each in distinct[:2])
    if read == written == 1:
        return profile
    estimate = sum(sum(each.estimate.values()) for each in distinct[:2])
    share = estimate / sum(sum(each.linear.values()) for each in distinct[:2])
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
    measured: Mapping[str, Mapping[str, Mapping[str, int]]], lines: Sequence[_Extended], times: float
) -> dict[str, object]:
    """Return the bytes behind caches of a launch with `times` the groups of a box.

    Each line comes from memory once, and again if a cache does not hold the lines between two uses. Lines
    that groups outside of the box used before come back by the share of their buffer that a cache does not
    hold.
    """

    def behind(sizes: Mapping[str, int], line: int, distinct: _Extended) -> dict[str, int]:
        used = sum(distinct.larger.values())
        of_line = sizes["first"] / used if used else 0.0
        first = of_line * sum(distinct.estimate.values())
        by_size = {"first": round(first)}
        for size in list(sizes)[1:]:
            again = (sizes[size] - sizes["first"]) * times
            for key, n in distinct.estimate.items():
                reused = of_line * max(0.0, distinct.larger[key] * times - n)
                again += reused * max(0.0, 1 - int(size) / max(n * line, 1))
            by_size[size] = round(first + again)
        return by_size

    return falling(
        {
            line: {groups: behind(sizes, int(line), known) for groups, sizes in by_groups.items()}
            for (line, by_groups), known in zip(measured.items(), reversed(lines), strict=True)
        }
    )


# --- Launches whose buffers would be too large: smaller launches are run instead


def runs_for(groups: Groups, group_cost: float, most: float) -> list[Groups] | None:
    """Return the work-groups of the runs to extrapolate; ``None`` if the launch costs `most` or less."""
    if math.prod(groups) * group_cost <= most:
        return None
    # Runs of one and two boxes along each dimension are nine boxes together.
    box = max(1.0, most / max(group_cost, 1e-9) / 9)
    x = max(1, min(groups[0] // 2, int(box)))
    y = max(1, min(groups[1] // 2, int(box / x)))
    wide, high = groups[0] > 1, groups[1] > 1
    xs, ys = ([x, 2 * x] if wide else [1]), ([y, 2 * y] if high else [1])
    return [(i, j) for j in ys for i in xs]


def extended(profiles: Mapping[Groups, Profile], groups: Groups) -> Profile:
    """Extrapolate the profile of a launch of `groups` work-groups from smaller launches."""
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
    profile = combined(profiles, weights, sizes, math.prod(groups))
    local = profile.launch["local_size"]
    launch = {
        **profile.launch,
        "global_size": [size * count for size, count in zip(local, (*groups, 1), strict=False)],
        "extended": {"runs": [list(run) for run in profiles], "groups": list(groups)},
    }
    return replace(profile, launch=launch)


def profile_of(
    run: Callable[[Groups], Profile],
    groups: Groups,
    most_instructions: float,
    most_groups: int | None = None,
) -> Profile:
    """Profile a launch in full if it executes few instructions, else extrapolate from smaller ones.

    `run` profiles the launch with a number of its work-groups only. It executes about `most_instructions`, as
    the first two work-groups' are counted; launches of more than `most_groups` are never run in full, as
    their buffers would be too large.
    """
    first: Groups = (min(groups[0], 2), 1)
    profile = run(first)
    if first == groups:
        return profile
    cost = _number(profile, "total_instruction_count") / math.prod(first)
    if most_groups is not None and math.prod(groups) > most_groups:
        cost = max(cost, 9 * most_instructions / most_groups)
    runs = runs_for(groups, cost, most_instructions)
    if runs is None:
        return run(groups)
    return extended({size: profile if size == first else run(size) for size in runs}, groups)
