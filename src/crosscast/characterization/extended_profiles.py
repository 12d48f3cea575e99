"""Profiles of launches that are too long to run: some of their work-groups are, and the counts are extended.

A launch of X x Y work-groups is run with x x y, 2x x y, x x 2y and 2x x 2y of them, and each count is taken
as c0 + c1 X + c2 Y + c3 X Y. That is exact where groups are alike: instructions go with X Y, distinct lines
of a tile with halo with (X + h) (Y + h), those of a matrix product's operands with X and with Y. Launches
of one dimension need two runs. Entropies are extended in the logarithm of the number of groups; least,
greatest, mean and ratio are those of the largest run, unless their counts are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from crosscast.profile import METRICS, Profile

Groups = tuple[int, int]
"""Work-groups in two dimensions; the second is 1 in launches of one."""

_KEPT = (
    "min_",
    "max_",
    "mean",
    "median",
    "sd_",
    "path",
    "longest",
    "load_imbalance",
    "rate",
    "error",
    "opcode",
)
_KEPT_ENDS = ("_ratio", "_share", "_90", "_per_instruction", "_per_operand", "threads", "granularity")
_TOO_FEW = 64.0


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
    """The profile of a launch of so many work-groups, of those of its runs."""
    runs = list(profiles)
    largest = profiles[max(runs, key=math.prod)]
    weights = _weights(runs, groups)

    def extend(name: str, values: Sequence[Any]) -> Any:
        last = values[runs.index(max(runs, key=math.prod))]
        if isinstance(last, Mapping):
            return {key: extend(key, [value.get(key) for value in values]) for key, value in last.items()}
        if isinstance(last, (list, tuple)):
            if any(not isinstance(v, (list, tuple)) or len(v) != len(last) for v in values):
                return last
            return [extend(name, [value[k] for value in values]) for k in range(len(last))]
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
        if not numbers or len(set(values)) == 1 or name.startswith(_KEPT) or name.endswith(_KEPT_ENDS):
            return last
        if "entropy" in name:
            return _in_logarithm(runs, values, groups)
        # No count falls when groups are added; rounding must not make it.
        found = max(math.fsum(w * v for w, v in zip(weights, values, strict=True)), last)
        return round(found) if isinstance(last, int) else found

    metrics = {
        metric.name: extend(metric.name, [profiles[run].metrics[metric.name] for run in runs])
        for metric in METRICS
    }
    launch = extend("launch", [profiles[run].launch for run in runs])
    local = largest.launch["local_size"]
    launch["global_size"] = [size * count for size, count in zip(local, (*groups, 1), strict=False)]
    launch["extended"] = {"runs": [list(run) for run in runs], "groups": list(groups)}
    instructions = extend("instructions", [profiles[run].instructions for run in runs])
    return replace(largest, metrics={**metrics, **_ratios(metrics)}, launch=launch, instructions=instructions)


def _ratios(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Metrics that follow from counts."""
    found = {"granularity": 1 / metrics["work_items"]}
    for name, above, below in (
        ("unique_read_write_ratio", "unique_reads", "unique_writes"),
        ("reread_ratio", "unique_reads", "total_reads"),
        ("rewrite_ratio", "unique_writes", "total_writes"),
    ):
        if metrics[below]:
            found[name] = metrics[above] / metrics[below]
    return found


def _weights(runs: Sequence[Groups], groups: Groups) -> list[float]:
    """What to multiply each run's counts with: products of those of straight lines through two points."""
    xs, ys = sorted({run[0] for run in runs}), sorted({run[1] for run in runs})

    def line(points: Sequence[int], at: int, to: int) -> float:
        if len(points) == 1:
            return 1.0
        low, high = points
        return (to - low) / (high - low) if at == high else (high - to) / (high - low)

    return [line(xs, x, groups[0]) * line(ys, y, groups[1]) for x, y in runs]


def _in_logarithm(runs: Sequence[Groups], values: Sequence[float], groups: Groups) -> float:
    order = sorted(range(len(runs)), key=lambda k: math.prod(runs[k]))
    low, high = order[0], order[-1]
    step = math.log2(math.prod(runs[high]) / math.prod(runs[low]))
    slope = (values[high] - values[low]) / step
    return float(values[high] + slope * math.log2(math.prod(groups) / math.prod(runs[high])))


def profile_of(
    run: Callable[[Groups], Profile], groups: Groups, limit_s: float, most_groups: int | None = None
) -> Profile:
    """Profile a launch in full if that takes no longer than a limit, else extend the profiles of some groups.

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
