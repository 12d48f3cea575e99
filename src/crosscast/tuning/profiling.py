"""Profile variants of a space, each once: variants that compile to the same code share a profile."""

from __future__ import annotations

import gc
import hashlib
import json
import pickle
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from crosscast.characterization import frontend
from crosscast.characterization.run import Options, characterize_launch
from crosscast.characterization.sampling import Groups, profile_of
from crosscast.data.files import cache_home, make_folder
from crosscast.data.profiles import from_row, to_row
from crosscast.errors import CrosscastError, InputError
from crosscast.evaluation.keep import sources_digest
from crosscast.evaluation.loop import State, in_processes
from crosscast.kernel import Kernel
from crosscast.profile import Profile
from crosscast.tuning.spaces import LaunchRule, Variant, label_of

_SOURCES = ("characterization", "kernel.py", "profile.py", "tuning/spaces.py", "tuning/profiling.py")
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


def _read(path: Path) -> dict[str, Profile]:
    """Read profiles by label, and skip a truncated line."""
    profiles: dict[str, Profile] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for line in lines:
        try:
            profile = from_row(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue
        profiles[str(profile.size)] = profile
    return profiles
