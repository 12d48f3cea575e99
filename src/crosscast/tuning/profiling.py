"""Profiles of some variants of a space, made once: those that compile to the same code share theirs."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from crosscast.characterization import frontend
from crosscast.characterization.run import Options, characterize_launch
from crosscast.characterization.sampling import profile_of
from crosscast.data.files import cache_home, make_folder
from crosscast.data.profiles import from_row, to_row
from crosscast.errors import CrosscastError, InputError
from crosscast.evaluation.keep import sources_digest
from crosscast.evaluation.loop import State
from crosscast.kernel import Kernel
from crosscast.profile import Profile
from crosscast.tuning.spaces import LaunchRule, Variant, label_of

_SOURCES = ("characterization", "kernel.py", "profile.py", "tuning/spaces.py", "tuning/profiling.py")
Progress = Callable[[State], None]


@dataclass
class Profiler:
    """Profiles variants of a kernel, and keeps what it made in a folder.

    Launches that would run longer than `limit_s` are run in part, and their counts are extended
    (`crosscast.characterization.sampling`).
    """

    rule: LaunchRule
    jobs: int = 2
    limit_s: float = 1.0
    timeout_s: float = 120.0
    folder: Path | None = None  # By default one in the user's cache
    failed: dict[str, str] = field(default_factory=dict)
    """Why variants have no profile, by label."""
    shared: int = 0
    """Variants that took the profile of another, as they compile to the same code."""

    def __post_init__(self) -> None:
        self._kernels: dict[bytes, Kernel] = {}
        self._made: dict[tuple[object, ...], Future[Profile]] = {}
        self._lock = threading.Lock()
        folder = cache_home() / "tuning" if self.folder is None else self.folder
        self.name = self._digest()
        self._file = make_folder(folder, "cache") / f"{self.name}.jsonl"
        self._kept = dict(_read(self._file))

    def _digest(self) -> str:
        """A name of all that profiles depend on."""
        rule = self.rule
        sizes = {name: [each.text for each in found] for name, found in rule.sizes.items()}
        facts = [
            sources_digest(_SOURCES),
            rule.program.sha256,
            [rule.program.form, rule.program.standard, *rule.program.options],
            [rule.kernel, sizes, rule.shared and rule.shared.text, rule.seed, self.limit_s],
            [dict(each) for each in rule.arguments],
            str(rule.program.path and rule.program.path.parent),
        ]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]

    def profiles(
        self, variants: Sequence[Variant], progress: Progress = lambda state: None
    ) -> dict[str, Profile]:
        """Profile variants, by their label; why others have none is in `failed`.

        What was made is kept before the next is begun, so that an interrupted run goes on.

        Raises
        ------
        InputError
            If none of them can be profiled: the sentence is that of the first.
        """
        labels = [label_of(each) for each in variants]
        left = [
            (label, each)
            for label, each in zip(labels, variants, strict=True)
            if label not in self._kept and label not in self.failed
        ]
        start, done = time.monotonic(), 0
        pool = ThreadPoolExecutor(self.jobs)
        running = {pool.submit(self._profile, each): label for label, each in left}
        try:
            for future in as_completed(running):
                self._keep(running[future], future)
                done += 1
                elapsed_s = time.monotonic() - start
                left_s = elapsed_s / done * (len(left) - done)
                progress(State(done, len(left), elapsed_s, left_s, running[future]))
        finally:
            # What runs is short; what has not begun is not begun after an error or Ctrl-C.
            pool.shutdown(cancel_futures=True)
        found = {label: self._kept[label] for label in labels if label in self._kept}
        if labels and not found:
            reason = self.failed.get(labels[0], "")
            raise InputError(
                f"{self.rule.where}: expected variants that can be profiled, found none of "
                f"{len(labels)} ({labels[0]}: {reason})"
            )
        return found

    def _keep(self, label: str, future: Future[Profile]) -> None:
        try:
            profile = replace(future.result(), application=self.rule.kernel, size=label)
        except InputError as error:
            self.failed[label] = str(error)
            return
        self._kept[label] = profile
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(to_row(profile)) + "\n")

    def _profile(self, variant: Variant) -> Profile:
        kernel = self._same_code(self.rule.kernel_of(variant))
        groups, local = self.rule.groups(variant)
        tables = json.dumps(self.rule.tables(variant), sort_keys=True)
        key = (kernel, groups, local, tables)
        with self._lock:
            first = self._made.get(key)
            if first is None:
                mine: Future[Profile] = Future()
                self._made[key] = mine
            else:
                self.shared += 1
        if first is not None:
            return first.result()
        try:
            mine.set_result(self._run(kernel, variant, groups))
        except CrosscastError as error:
            mine.set_exception(error)
        finally:
            mine.cancel()  # So that nobody waits for what will not come
        return mine.result()

    def _same_code(self, kernel: Kernel) -> Kernel:
        """The first kernel that compiled to the same code, so that it is instrumented once."""
        module = frontend.load(kernel.program, kernel.name).module
        text = repr((module.functions, module.globals, module.types))
        code = hashlib.sha256(text.encode()).digest()
        with self._lock:
            return self._kernels.setdefault(code, kernel)

    def _run(self, kernel: Kernel, variant: Variant, groups: tuple[int, ...]) -> Profile:
        options = Options(timeout_s=self.timeout_s)

        def run(some: Sequence[int]) -> Profile:
            launch = replace(self.rule.launch(variant, (*some, *groups[2:])), kernel=kernel)
            return characterize_launch(launch, options=options)

        wide = (*groups, 1)[:2]
        return profile_of(lambda some: run(some[: len(groups)]), (wide[0], wide[1]), self.limit_s)


def _read(path: Path) -> Mapping[str, Profile]:
    """Profiles that were kept; a last line that was cut off is none."""
    found: dict[str, Profile] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for line in lines:
        try:
            profile = from_row(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue
        found[str(profile.size)] = profile
    return found
