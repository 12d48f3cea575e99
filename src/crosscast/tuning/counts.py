"""Profiles of all variants of a space: some are run, and the counts of the others are estimated from these.

Logarithms of counts are a Gaussian process over the parameters, with one set of length scales for all counts.
Leave-one-out estimates of the variants that were run show the error of estimated counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.launch_counts import SUB_GROUPS
from crosscast.profile import Profile
from crosscast.tuning.search import Prior, TuningProcess
from crosscast.tuning.spaces import LaunchRule, Variants

_PRIOR = Prior(constant=0.3, linear=1.0, smooth=1.0, noise=0.02, length=1.5)
_COMPONENTS = 12
_LARGEST_FACTOR = 100.0
_FLOOR_SHARE = 0.02

Path = tuple[str, ...]
_AMD: Path = ("launch", "geometry", "amd")


def spread(coordinates: Reals, count: int, seed: int) -> Integers:
    """Choose `count` rows of points ``(n, p)`` that cover a space: each is farthest from those before it.

    They are chosen among a random sample of the points, which bounds the cost.
    """
    rng = np.random.default_rng(seed)
    n = len(coordinates)
    pool = np.sort(rng.permutation(n)[: max(40 * count, 4000)])
    points = coordinates[pool]
    # The first is in the middle, and weights are random; all corners would come first otherwise.
    weights = rng.uniform(0.5, 1.0, len(pool))
    first = int(np.argmin((points**2).sum(axis=1)))
    chosen, distance = [first], ((points - points[first]) ** 2).sum(axis=1)
    while len(chosen) < min(count, len(pool)):
        farthest = int(np.argmax(distance * weights))
        chosen.append(farthest)
        distance = np.minimum(distance, ((points - points[farthest]) ** 2).sum(axis=1))
        distance[chosen] = 0.0
    rows: Integers = pool[np.array(chosen)]
    return rows


@dataclass(frozen=True, eq=False)
class VariantCounts:
    """Profiles of the variants that were run, from which counts of all others are estimated."""

    variants: Variants
    rule: LaunchRule
    profiled: Mapping[int, Profile]  # By row of the variants

    def profiles(self, rows: Sequence[int]) -> list[Profile]:
        """Return profiles of variants, with estimated counts of those that were not run."""
        estimates = iter(self._estimated([row for row in rows if row not in self.profiled]))
        return [self.profiled[row] if row in self.profiled else next(estimates) for row in rows]

    def leave_one_out(self) -> list[Profile]:
        """Estimate each variant that was run from the others alone, in the order of `profiled`."""
        if len(self.profiled) < 3:
            return list(self.profiled.values())
        components = [process.leave_one_out() for process, _ in self._fitted]
        return self._of_components(components, list(self.profiled))

    def _estimated(self, rows: Sequence[int]) -> list[Profile]:
        if not rows:
            return []
        points = self._points[list(rows)]
        means = [process.predict(points, points)[0] for process, _ in self._fitted]
        return self._of_components(means, rows)

    @cached_property
    def _points(self) -> Reals:
        return self.rule.coordinates(self.variants)

    @cached_property
    def _fitted(self) -> tuple[tuple[TuningProcess, _Table], ...]:
        points = self._points[list(self.profiled)]
        profiles = list(self.profiled.values())
        tables = [_Table.of([dict(_numbers(profile)) for profile in profiles])]
        # Registers change with other parameters than counts do, and by more.
        if any("amd" in profile.launch.get("geometry", {}) for profile in profiles):
            tables.append(_Table.of([dict(_registers(profile)) for profile in profiles]))
        return tuple((TuningProcess.fit(points, points, table.components, _PRIOR), table) for table in tables)

    def _of_components(self, components: Sequence[Reals], rows: Sequence[int]) -> list[Profile]:
        template = next(iter(self.profiled.values()))
        tables = [table for _, table in self._fitted]
        paths = [path for table in tables for path in table.paths]
        counts = np.concatenate(
            [table.counts(values) for table, values in zip(tables, components, strict=True)], axis=1
        )
        return [
            _profile(template, dict(zip(paths, numbers, strict=True)), self.variants, self.rule, row)
            for row, numbers in zip(rows, counts.tolist(), strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Table:
    """Principal components of the logarithms of ``c`` counts of ``m`` profiles."""

    paths: tuple[Path, ...]  # Of the counts
    floor: Reals  # `(c,)` Added before logarithms are taken, as some counts are 0
    centre: Reals  # `(c,)` Means of the logarithms
    scale: Reals  # `(c,)` Their standard deviations
    directions: Reals  # `(k, c)`
    components: Reals  # `(m, k)` Of deviation 1
    sizes: Reals  # `(k,)` Deviations of the components before they were scaled
    most: Reals  # `(c,)` The largest count, which bounds estimates

    @classmethod
    def of(cls, profiles: Sequence[Mapping[Path, float]]) -> _Table:
        paths = tuple(sorted({path for profile in profiles for path in profile}))
        counts = np.array([[max(profile.get(path, 0.0), 0.0) for path in paths] for profile in profiles])
        floor = _floor(counts)
        logs = np.log(counts + floor)
        centre, scale = logs.mean(axis=0), np.maximum(logs.std(axis=0), 1e-9)
        scaled = (logs - centre) / scale
        _, sizes, directions = np.linalg.svd(scaled, full_matrices=False)
        k = min(_COMPONENTS, len(sizes))
        deviations = np.maximum(sizes[:k] / math.sqrt(len(profiles)), 1e-9)
        components = scaled @ directions[:k].T / deviations
        return cls(paths, floor, centre, scale, directions[:k], components, deviations, counts.max(axis=0))

    def counts(self, components: Reals) -> Reals:
        """Return the counts ``(n, c)`` of components ``(n, k)``."""
        logs = (components * self.sizes) @ self.directions * self.scale + self.centre
        counts: Reals = np.clip(np.exp(np.minimum(logs, 80.0)) - self.floor, 0.0, _LARGEST_FACTOR * self.most)
        return counts


def _floor(counts: Reals) -> Reals:
    """Return a small share of each count's median where it is not 0; 0 for counts that are never 0."""
    medians = np.array([np.median(column[column > 0]) if (column > 0).any() else 1.0 for column in counts.T])
    floor: Reals = np.where((counts > 0).all(axis=0), 0.0, _FLOOR_SHARE * medians)
    return floor


def _numbers(profile: Profile) -> Iterator[tuple[Path, float]]:
    yield from _leaves(("metrics",), profile.metrics)
    yield from ((path, n) for path, n in _leaves(("launch",), profile.launch) if path[:3] != _AMD)


def _registers(profile: Profile) -> Iterator[tuple[Path, float]]:
    """Yield registers on AMD GPUs; those of the IR if these are few, as AMD's compiler was not run then."""
    geometry = profile.launch.get("geometry", {})
    yield from _leaves(_AMD, geometry.get("amd", {"registers": geometry.get("registers", 0)}))


def _leaves(path: Path, value: object) -> Iterator[tuple[Path, float]]:
    if isinstance(value, Mapping):
        for name, child in value.items():
            yield from _leaves((*path, str(name)), child)
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        yield path, float(value)


def _profile(
    template: Profile, numbers: Mapping[Path, float], variants: Variants, rule: LaunchRule, row: int
) -> Profile:
    """Make a profile of estimated counts; sizes of its launch are computed, not estimated."""
    metrics: dict[str, Any] = {}
    launch: dict[str, Any] = {}
    for path, value in numbers.items():
        table: dict[str, Any] = {"metrics": metrics, "launch": launch}
        for name in path[:-1]:
            table = table.setdefault(name, {})
        table[path[-1]] = value
    groups, local = rule.groups(variants[row])
    count, items = math.prod(groups), math.prod(local)
    launch |= {
        "global_size": [a * b for a, b in zip(groups, local, strict=True)],
        "local_size": list(local),
        "global_offset": [0] * len(local),
        "arguments": template.launch.get("arguments", []),
        "counts_of_other_variants": True,
    }
    geometry = launch.setdefault("geometry", {})
    geometry |= {"groups": count, "group_items": items}
    geometry |= {f"sub_groups_{width}": count * -(-items // width) for width in SUB_GROUPS}
    metrics = {name: metrics.get(name) for name in template.metrics}
    metrics |= {"work_items": count * items, "work_groups": count}
    return replace(template, metrics=metrics, launch=launch, size=variants.labels[row], instructions={})
