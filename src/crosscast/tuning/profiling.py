"""Profiles of the variants of a space: some are run, and the counts of the others are estimated from these.

Variants that compile to the same code share a profile. Logarithms of counts are a Gaussian process over the
parameters, with one set of length scales for all counts. Leave-one-out estimates of the variants that were
run show the error of estimated counts.
"""

from __future__ import annotations

import gc
import hashlib
import json
import math
import pickle
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.characterization import frontend
from crosscast.characterization.run import Options, characterize_launch
from crosscast.characterization.sampling import Groups, profile_of
from crosscast.data.files import cache_home, make_folder
from crosscast.data.launch_counts import SUB_GROUPS
from crosscast.data.profiles import from_row, to_row
from crosscast.errors import CrosscastError, InputError
from crosscast.evaluation.keep import sources_digest
from crosscast.evaluation.loop import State, in_processes
from crosscast.kernel import Kernel
from crosscast.profile import Profile
from crosscast.tuning import LaunchRule, Variant, Variants, label_of
from crosscast.tuning.search import Prior, TuningProcess

_SOURCES = ("characterization", "kernel.py", "profile.py", "tuning/__init__.py", "tuning/profiling.py")
Begin = Callable[[int, float], None]
Progress = Callable[[State], None]

_LEAST_FOR_PROCESSES, _SLOW_S = 8, 1.0
"""Variants, and seconds of each, from which on processes pay."""


@dataclass
class Profiler:
    """Profiles variants of a kernel, and keeps the profiles in a folder.

    Launches of more than about `most_instructions` are run in part, and their counts are extrapolated
    (`crosscast.characterization.sampling`).
    """

    rule: LaunchRule
    jobs: int = 2
    most_instructions: float = 1.5e8  # Half a second
    timeout_s: float = 120.0
    folder: Path | None = None  # By default one in the user's cache
    failed: dict[str, str] = field(default_factory=dict)
    """Why variants have no profile, by label."""
    shared: int = 0
    """Number of variants that took the profile of another, as they compile to the same code."""

    def __post_init__(self) -> None:
        self._kernels: dict[bytes, Kernel] = {}
        self._made: dict[tuple[object, ...], Future[Profile]] = {}
        self._lock = threading.Lock()

    @cached_property
    def _file(self) -> Path:
        folder = cache_home() / "tuning" if self.folder is None else self.folder
        return make_folder(folder, "cache") / f"{self.name}.jsonl"

    @cached_property
    def _profiles(self) -> dict[str, Profile]:
        """Profiles by label: those of the file, and those made since."""
        return _read(self._file)

    @cached_property
    def name(self) -> str:
        """Digest of all that profiles depend on."""
        rule = self.rule
        sizes = {name: [each.text for each in axes] for name, axes in rule.sizes.items()}
        facts = [
            sources_digest(_SOURCES),
            rule.program.sha256,
            [rule.program.form, rule.program.standard, *rule.program.options],
            [rule.kernel, sizes, rule.shared and rule.shared.text, rule.seed, self.most_instructions],
            [dict(each) for each in rule.arguments],
            str(rule.program.path and rule.program.path.parent),
        ]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]

    def profiles(
        self, variants: Sequence[Variant], progress: Progress = lambda state: None
    ) -> dict[str, Profile]:
        """Profile variants, and return the profiles by label; `failed` says why others have none.

        Each profile is written to the file when it is made, so that an interrupted run resumes.
        """
        labels = [label_of(each) for each in variants]
        pending = [
            (label, variant)
            for label, variant in zip(labels, variants, strict=True)
            if label not in self._profiles and label not in self.failed
        ]
        start = time.monotonic()
        with closing(self._results(pending)) as results:
            for done, (label, result) in enumerate(results, 1):
                self._keep(label, result)
                elapsed_s = time.monotonic() - start
                left_s = elapsed_s / done * (len(pending) - done)
                progress(State(done, len(pending), elapsed_s, left_s, label))
        return {label: self._profiles[label] for label in labels if label in self._profiles}

    def _results(
        self, pending: Sequence[tuple[str, Variant]]
    ) -> Generator[tuple[str, Profile | str], None, None]:
        """Profile variants: the first by threads, and if these are slow, the rest by processes.

        Threads share one interpreter, which plans what each variant counts, and a profile of variants of the
        same code; processes share neither.
        """
        start, first = time.monotonic(), pending[: 2 * self.jobs]
        yield from self._by_threads(first)
        rest = pending[len(first) :]
        is_slow = time.monotonic() - start > _SLOW_S * len(first)
        if self.jobs > 1 and is_slow and len(rest) >= _LEAST_FOR_PROCESSES:
            yield from self._by_processes(rest)
        else:
            yield from self._by_threads(rest)

    def _by_threads(
        self, pending: Sequence[tuple[str, Variant]]
    ) -> Generator[tuple[str, Profile | str], None, None]:
        """Profile variants, and yield the label of each with its profile, or why it has none."""
        pool = ThreadPoolExecutor(self.jobs)
        running = {pool.submit(self._result, variant): label for label, variant in pending}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        finally:
            # After an error or Ctrl-C, running profiles end soon, and no other starts.
            pool.shutdown(cancel_futures=True)

    def _by_processes(
        self, pending: Sequence[tuple[str, Variant]]
    ) -> Generator[tuple[str, Profile | str], None, None]:
        """As `_by_threads`, in processes, of which each needs about a second to start."""
        settings = (self.rule, self.most_instructions, self.timeout_s)
        arguments = [(settings, label, variant) for label, variant in pending]
        for label, result, shared in in_processes(_in_process, arguments, self.jobs, "profiled variants"):
            self.shared += shared
            yield label, result

    def _result(self, variant: Variant) -> Profile | str:
        try:
            return self._profile(variant)
        except InputError as error:
            return str(error)

    def _keep(self, label: str, result: Profile | str) -> None:
        if isinstance(result, str):
            self.failed[label] = result
            return
        profile = replace(result, application=self.rule.kernel, size=label)
        self._profiles[label] = profile
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(to_row(profile)) + "\n")

    def _profile(self, variant: Variant) -> Profile:
        kernel = self._same_code(self.rule.kernel_of(variant).optimized())
        groups, local = self.rule.groups(variant)
        tables = json.dumps(self.rule.tables(variant), sort_keys=True)
        key = (kernel, groups, local, tables)
        with self._lock:
            shared = self._made.get(key)
            if shared is None:
                future: Future[Profile] = Future()
                self._made[key] = future
            else:
                self.shared += 1
        if shared is not None:
            return shared.result()
        try:
            future.set_result(self._run(kernel, variant, groups))
        except CrosscastError as error:
            future.set_exception(error)
        finally:
            future.cancel()  # After another error no thread waits for a result
        return future.result()

    def _same_code(self, kernel: Kernel) -> Kernel:
        """Return the first kernel that compiled to the same code, so that this is instrumented once."""
        module = frontend.load(kernel.program, kernel.name).module
        text = repr((module.functions, module.globals, module.types))
        code = hashlib.sha256(text.encode()).digest()
        with self._lock:
            return self._kernels.setdefault(code, kernel)

    def _run(self, kernel: Kernel, variant: Variant, groups: tuple[int, ...]) -> Profile:
        launch = replace(self.rule.launch(variant, copies=False), kernel=kernel)
        x, y, z = (*groups, 1, 1)[:3]

        def run(some: Groups) -> Profile:
            # Of the whole launch, as a smaller one has more work for each item of a loop over the grid.
            first = None if some == (x, y) else (*some, z)
            return characterize_launch(
                launch, options=Options(timeout_s=self.timeout_s, trial=True, first_groups=first)
            )

        return profile_of(run, (x, y), self.most_instructions)


_OF_PROCESS: dict[bytes, Profiler] = {}
_COLLECTED_EVERY = 8


def _in_process(
    settings: tuple[LaunchRule, float, float], label: str, variant: Variant
) -> tuple[str, Profile | str, int]:
    """Profile a variant in a process of its own; return the label, the result, and whether it was shared."""
    rule, most_instructions, timeout_s = settings
    key = pickle.dumps(settings)
    if key not in _OF_PROCESS:
        _OF_PROCESS.clear()
        _OF_PROCESS[key] = Profiler(rule, 1, most_instructions, timeout_s)
        gc.disable()  # A fifth of the time, as modules of several variants are alive
    profiler = _OF_PROCESS[key]
    before = profiler.shared
    result = profiler._result(variant)
    if len(profiler._made) % _COLLECTED_EVERY == 0:
        gc.collect()
    return label, result, profiler.shared - before


def json_lines(path: Path) -> Iterator[Any]:
    """Yield the values of a file's lines, without a truncated one; none if there is no file."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        with suppress(ValueError):
            yield json.loads(line)


def _read(path: Path) -> dict[str, Profile]:
    """Read profiles by label."""
    profiles = {}
    for row in json_lines(path):
        with suppress(ValueError, KeyError, TypeError):
            profiles[str(row["size"])] = from_row(row)
    return profiles


_PRIOR = Prior(constant=0.3, linear=1.0, smooth=1.0, noise=0.02, length=1.5)
_COMPONENTS = 12
_LARGEST_FACTOR = 100.0
_FLOOR_SHARE = 0.02

_Keys = tuple[str, ...]
_AMD: _Keys = ("launch", "geometry", "amd")


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

    paths: tuple[_Keys, ...]  # Of the counts
    floor: Reals  # `(c,)` Added before logarithms are taken, as some counts are 0
    centre: Reals  # `(c,)` Means of the logarithms
    scale: Reals  # `(c,)` Their standard deviations
    directions: Reals  # `(k, c)`
    components: Reals  # `(m, k)` Of deviation 1
    sizes: Reals  # `(k,)` Deviations of the components before they were scaled
    most: Reals  # `(c,)` The largest count, which bounds estimates

    @classmethod
    def of(cls, profiles: Sequence[Mapping[_Keys, float]]) -> _Table:
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


def _numbers(profile: Profile) -> Iterator[tuple[_Keys, float]]:
    yield from _leaves(("metrics",), profile.metrics)
    yield from ((path, n) for path, n in _leaves(("launch",), profile.launch) if path[:3] != _AMD)


def _registers(profile: Profile) -> Iterator[tuple[_Keys, float]]:
    """Yield registers on AMD GPUs; those of the IR if these are few, as AMD's compiler was not run then."""
    geometry = profile.launch.get("geometry", {})
    yield from _leaves(_AMD, geometry.get("amd", {"registers": geometry.get("registers", 0)}))


def _leaves(path: _Keys, value: object) -> Iterator[tuple[_Keys, float]]:
    if isinstance(value, Mapping):
        for name, child in value.items():
            yield from _leaves((*path, str(name)), child)
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        yield path, float(value)


def _profile(
    template: Profile, numbers: Mapping[_Keys, float], variants: Variants, rule: LaunchRule, row: int
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
