"""Profiles of all variants of a space: some are run, and the counts of the others follow from these.

Logarithms of counts are a Gaussian process over the parameters, with one set of lengths for all counts. What
it says of each variant that was run from all others says how far its counts are off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.profile import Profile
from crosscast.tuning.process import Prior, TuningProcess
from crosscast.tuning.spaces import LaunchRule, Variants

_PRIOR = Prior(constant=0.3, linear=1.0, smooth=1.0, noise=0.02, length=1.5)
_COMPONENTS = 12
_WIDTHS = (32, 64)
_LARGEST = 100.0
_SHARE = 0.02

Path = tuple[str, ...]
_AMD: Path = ("launch", "geometry", "amd")


def spread(coordinates: Reals, count: int, seed: int) -> Integers:
    """Choose some of many points that cover all: each is the one farthest from those before it.

    Of as many at random as keep that quick.
    """
    rng = np.random.default_rng(seed)
    n = len(coordinates)
    pool = np.sort(rng.permutation(n)[: max(40 * count, 4000)])
    points = coordinates[pool]
    # From the middle of the space on; all its corners would come first otherwise.
    weights = rng.uniform(0.5, 1.0, len(pool))
    first = int(np.argmin((points**2).sum(axis=1)))
    chosen, distance = [first], ((points - points[first]) ** 2).sum(axis=1)
    while len(chosen) < min(count, len(pool)):
        most = int(np.argmax(distance * weights))
        chosen.append(most)
        distance = np.minimum(distance, ((points - points[most]) ** 2).sum(axis=1))
        distance[chosen] = 0.0
    found: Integers = pool[np.array(chosen)]
    return found


@dataclass(frozen=True, eq=False)
class VariantCounts:
    """Counts of the variants that were run, by which those of all others are said."""

    variants: Variants
    rule: LaunchRule
    ran: Mapping[int, Profile]  # By their number among the variants

    def profiles(self, rows: Sequence[int]) -> list[Profile]:
        """Profiles of variants: those that were run, and others by their counts."""
        left = [row for row in rows if row not in self.ran]
        said = iter(self._said(left))
        return [self.ran[row] if row in self.ran else next(said) for row in rows]

    def left_out(self) -> list[Profile]:
        """What is said of each variant that was run from the others alone, in their order."""
        if len(self.ran) < 3:
            return list(self.ran.values())
        return self._of_components([fitted.left_out() for fitted, _ in self._fitted], list(self.ran))

    def _said(self, rows: Sequence[int]) -> list[Profile]:
        if not rows:
            return []
        points = self._points[list(rows)]
        means = [fitted.predict(points, points)[0] for fitted, _ in self._fitted]
        return self._of_components(means, rows)

    @cached_property
    def _points(self) -> Reals:
        return self.rule.coordinates(self.variants)

    @cached_property
    def _fitted(self) -> tuple[tuple[TuningProcess, _Table], ...]:
        points = self._points[list(self.ran)]
        profiles = list(self.ran.values())
        tables = [_Table.of([dict(_numbers(profile)) for profile in profiles])]
        # Registers change with other parameters than counts do, and by more.
        if any("amd" in profile.launch.get("geometry", {}) for profile in profiles):
            tables.append(_Table.of([dict(_registers(profile)) for profile in profiles]))
        return tuple((TuningProcess.fit(points, points, each.components, _PRIOR), each) for each in tables)

    def _of_components(self, components: Sequence[Reals], rows: Sequence[int]) -> list[Profile]:
        like = next(iter(self.ran.values()))
        tables = [table for _, table in self._fitted]
        paths = [path for table in tables for path in table.paths]
        counts = np.concatenate(
            [table.counts(each) for table, each in zip(tables, components, strict=True)], axis=1
        )
        return [
            _profile(like, dict(zip(paths, numbers, strict=True)), self.variants, self.rule, row)
            for row, numbers in zip(rows, counts.tolist(), strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Table:
    """Counts of profiles as a few numbers each: principal components of their logarithms."""

    paths: tuple[Path, ...]
    floor: Reals  # `(c,)` Added before logarithms are taken, as some are 0
    centre: Reals  # `(c,)`
    scale: Reals  # `(c,)`
    directions: Reals  # `(k, c)`
    components: Reals  # `(m, k)`
    sizes: Reals  # `(k,)` Deviations of the components
    most: Reals  # `(c,)` The largest count, by which others are bounded

    @classmethod
    def of(cls, found: Sequence[Mapping[Path, float]]) -> _Table:
        paths = tuple(sorted({path for each in found for path in each}))
        counts = np.array([[max(each.get(path, 0.0), 0.0) for path in paths] for each in found])
        floor = _floor(counts)
        logs = np.log(counts + floor)
        centre, scale = logs.mean(axis=0), np.maximum(logs.std(axis=0), 1e-9)
        scaled = (logs - centre) / scale
        _, sizes, directions = np.linalg.svd(scaled, full_matrices=False)
        kept = min(_COMPONENTS, len(sizes))
        deviations = np.maximum(sizes[:kept] / math.sqrt(len(found)), 1e-9)
        components = scaled @ directions[:kept].T / deviations
        return cls(paths, floor, centre, scale, directions[:kept], components, deviations, counts.max(axis=0))

    def counts(self, components: Reals) -> Reals:
        """Counts ``(n, c)`` of components ``(n, k)``."""
        logs = (components * self.sizes) @ self.directions * self.scale + self.centre
        counts: Reals = np.clip(np.exp(np.minimum(logs, 80.0)) - self.floor, 0.0, _LARGEST * self.most)
        return counts


def _floor(counts: Reals) -> Reals:
    """A small share of what each count is where it is not 0; nothing if it never is."""
    middle = np.array([np.median(column[column > 0]) if (column > 0).any() else 1.0 for column in counts.T])
    found: Reals = np.where((counts > 0).all(axis=0), 0.0, _SHARE * middle)
    return found


def _numbers(profile: Profile) -> Iterator[tuple[Path, float]]:
    yield from _leaves(("metrics",), profile.metrics)
    yield from ((path, n) for path, n in _leaves(("launch",), profile.launch) if path[:3] != _AMD)


def _registers(profile: Profile) -> Iterator[tuple[Path, float]]:
    """Registers on AMD GPUs; those of the IR where few are needed, as the compiler was not run then."""
    geometry = profile.launch.get("geometry", {})
    yield from _leaves(_AMD, geometry.get("amd", {"registers": geometry.get("registers", 0)}))


def _leaves(path: Path, value: object) -> Iterator[tuple[Path, float]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _leaves((*path, str(name)), each)
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        yield path, float(value)


def _profile(
    like: Profile, numbers: Mapping[Path, float], variants: Variants, rule: LaunchRule, row: int
) -> Profile:
    """A profile of counts that were said; what is known of its launch is not said but computed."""
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
        "arguments": like.launch.get("arguments", []),
        "counts_of_other_variants": True,
    }
    geometry = launch.setdefault("geometry", {})
    geometry |= {"groups": count, "group_items": items}
    geometry |= {f"sub_groups_{width}": count * -(-items // width) for width in _WIDTHS}
    metrics = {name: metrics.get(name) for name in like.metrics}
    metrics |= {"work_items": count * items, "work_groups": count}
    return replace(like, metrics=metrics, launch=launch, size=variants.labels[row], instructions={})
