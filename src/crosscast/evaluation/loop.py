"""The loop of every evaluation: tasks that are not kept are done, here or in other processes, and kept.

Processes are joblib's, so that its ``parallel_config`` may spread the work with Dask or Ray instead.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt

from crosscast.arrays import AnyArray, Arrays, Flags, Integers
from crosscast.errors import EnvironmentFault, InputError, MissingExtraError
from crosscast.evaluation.keep import Kept, digest

MOST_SEED = 2**32 - 1
"""The largest seed that scikit-learn takes."""

_WATCHED_S = 0.25
_SHORTEST_S = 1e-6
_ATTEMPTS = 5

Data = TypeVar("Data")
Known = TypeVar("Known", contravariant=True)


@dataclass(frozen=True, eq=False)
class Fold:
    """A part of the data, to be predicted by a model that was fitted to another part."""

    held_out: str  # What is held out, for people
    train: Integers  # Numbers of rows
    test: Integers

    @classmethod
    def of(cls, held_out: str, test: Flags) -> Fold:
        """Hold some rows out."""
        return cls(held_out, np.flatnonzero(~test), np.flatnonzero(test))


def folds_by_group(
    where: str, noun: str, labels: Sequence[str], groups: AnyArray | None = None
) -> tuple[Fold, ...]:
    """Hold each group of rows out in turn, in the order of the groups: by default the rows' labels."""
    groups = np.array(labels) if groups is None else groups
    each, first = np.unique(groups, return_index=True)
    if len(each) < 2:
        found = f"1 ({labels[0]})" if labels else "none"
        raise InputError.of(where=where, expected=f"at least 2 {noun} to split by", found=found)
    return tuple(Fold.of(labels[place], groups == groups[place]) for place in first.tolist())


class Task(Protocol[Known]):
    """Something to do: one fit, and all that is asked of it."""

    @property
    def label(self) -> str:
        """What it is, for people, as in "combined, kmeans held out"."""

    @property
    def kind(self) -> str:
        """Tasks of one kind take about as long as each other."""

    @property
    def cache_keys(self) -> Sequence[object]:
        """For each question, all that its answer depends on besides the data, of what JSON knows.

        Of the model, that is its `crosscast.evaluation.keep.fingerprint`.
        """

    def run(self, data: Known, asks: Sequence[int]) -> list[Arrays]:
        """Answers to the questions of these numbers."""

    def is_valid(self, data: Known, ask: int, arrays: Arrays) -> bool:
        """Whether arrays that were kept may be the answer to a question."""


ModelT = TypeVar("ModelT", bound="_Named")
FoldT = TypeVar("FoldT", bound="_HeldOut")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class _HeldOut(Protocol):
    @property
    def held_out(self) -> str: ...


@dataclass(frozen=True, eq=False)
class FoldTask(ABC, Generic[ModelT, FoldT, Data]):
    """A fit of a model without what a fold holds out, and what it answers about that: a `Task`."""

    model: ModelT
    fold: FoldT
    seed: int

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.model.name}, {self.fold.held_out} held out"

    @property
    def kind(self) -> str:
        """The model and what is asked of it."""
        return f"{type(self).__name__} {self.model.name}"

    @property
    @abstractmethod
    def cache_keys(self) -> Sequence[object]:
        """For each question, all that its answer depends on besides the data."""

    @abstractmethod
    def run(self, data: Data, asks: Sequence[int]) -> list[Arrays]:
        """Answers to the questions of these numbers."""

    @abstractmethod
    def is_valid(self, data: Data, ask: int, arrays: Arrays) -> bool:
        """Whether arrays that were kept may be the answer to a question."""


@dataclass(frozen=True)
class State:
    """How far the work is."""

    done: int  # Tasks that are done, and all of them
    total: int
    elapsed_s: float  # Seconds since the start, and about how many it will take from now on
    left_s: float
    label: str  # What has just been done


Progress = Callable[[State], None]


class RunArguments(TypedDict, total=False):
    """How work is done, which changes no answer: keyword arguments of `run_tasks` that are passed on."""

    cache: Path | None  # Folder of finished folds; by default none
    progress: Progress | None  # Called when a task is done
    jobs: int | None  # Worker processes; `None` for what joblib's ``parallel_config`` says


def run_tasks(
    tasks: Sequence[Task[Data]],
    data: Data,
    *,
    cache: Path | None = None,
    sources: Sequence[str] = (),
    progress: Progress | None = None,
    jobs: int | None = 1,
) -> list[list[Arrays]]:
    """Do all that a cache (a folder) does not know: for each task, an answer to each of its questions.

    `data` is sent once to each process; `sources` are files and folders of the package that answers depend
    on. Answers do not depend on `jobs`; for ``None`` see `worker_processes`.
    """
    check_jobs(jobs)
    jobs = worker_processes(jobs)
    kept = None if cache is None else Kept(cache, digest(data), tuple(sources))
    found: list[dict[int, Arrays]] = [{} for _ in tasks]
    if kept:
        for answers, task in zip(found, tasks, strict=True):
            for number, ask in enumerate(task.cache_keys):
                arrays = kept.load(ask)
                if arrays is not None and task.is_valid(data, number, arrays):
                    answers[number] = arrays
    left = {
        place: [number for number in range(len(task.cache_keys)) if number not in found[place]]
        for place, task in _of_each_kind_first(tasks)
        if len(found[place]) < len(task.cache_keys)
    }
    start, costs = time.monotonic(), _Costs([tasks[place].kind for place in left])
    with closing(_done(tasks, data, left, jobs)) as results:
        for done, (place, answered, took_s) in enumerate(results, 1):
            for number, answer in zip(left[place], answered, strict=True):
                found[place][number] = answer
                if kept:
                    kept.save(tasks[place].cache_keys[number], answer)
            costs.add(tasks[place].kind, took_s)
            if progress is not None:
                elapsed = time.monotonic() - start
                left_s = elapsed * costs.left / costs.done
                progress(State(done, len(left), elapsed, left_s, tasks[place].label))
    return [[answers[number] for number in sorted(answers)] for answers in found]


def _of_each_kind_first(tasks: Sequence[Task[Data]]) -> list[tuple[int, Task[Data]]]:
    """Tasks with their places, one of each kind in turn: soon it is known how long each kind takes."""
    seen: Counter[str] = Counter()
    turns = []
    for place, task in enumerate(tasks):
        turns.append((seen[task.kind], place))
        seen[task.kind] += 1
    return [(place, tasks[place]) for _, place in sorted(turns)]


class _Costs:
    """How much work is done, and is left, by how long tasks of each kind took."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._to_do = Counter(kinds)
        self._took: dict[str, list[float]] = {}

    def add(self, kind: str, took_s: float) -> None:
        """Know that a task is done."""
        self._to_do[kind] -= 1
        self._took.setdefault(kind, []).append(max(took_s, _SHORTEST_S))

    @property
    def done(self) -> float:
        """Seconds that all tasks took that are done."""
        return sum(map(sum, self._took.values()))

    @property
    def left(self) -> float:
        """Seconds that the others will take; one of a kind that is new takes as long as the mean of kinds."""
        means = {kind: sum(took) / len(took) for kind, took in self._took.items()}
        usual = sum(means.values()) / len(means)
        return sum(count * means.get(kind, usual) for kind, count in self._to_do.items())


def _done(
    tasks: Sequence[Task[Data]], data: Data, left: Mapping[int, list[int]], jobs: int | None
) -> Generator[tuple[int, list[Arrays], float], None, None]:
    """Place and answers of each task and how long it took, as they are done.

    A cluster that loses a worker may forget what it had done: that is done again.
    """
    waiting = dict(left)
    for attempt in range(_ATTEMPTS):
        try:
            with closing(_once(tasks, data, dict(waiting), jobs)) as results:
                for each in results:
                    del waiting[each[0]]
                    yield each
        except CancelledError as error:
            if attempt == _ATTEMPTS - 1:
                raise EnvironmentFault("the cluster lost its workers again and again") from error
        else:
            return


def _once(
    tasks: Sequence[Task[Data]], data: Data, left: Mapping[int, list[int]], jobs: int | None
) -> Generator[tuple[int, list[Arrays], float], None, None]:
    if jobs == 1 or not left:
        yield from ((place, *_answers(tasks[place], data, asks)) for place, asks in left.items())
        return
    try:
        import cloudpickle
        import joblib
        from joblib.parallel import get_active_backend
    except ImportError as error:
        raise MissingExtraError("train", "work in several processes") from error
    backend, configured = get_active_backend()
    words: dict[str, object] = {"n_jobs": jobs}
    if type(backend).__name__ == "LokyBackend":
        # Processes of this machine, which are ours to end.
        count = min(backend.effective_n_jobs(configured if jobs is None else jobs), len(left))
        if count == 1:
            yield from _once(tasks, data, left, 1)
            return
        in_main = threading.current_thread() is threading.main_thread()
        words = {"n_jobs": count, "initializer": _bind, "initargs": (os.getpid(), in_main)}
    content = cloudpickle.dumps(data, protocol=pickle.HIGHEST_PROTOCOL)
    # As an array: joblib maps a large one into the memory of each process, without a copy.
    sent = hashlib.sha256(content).hexdigest(), np.frombuffer(content, np.uint8)
    calls = [joblib.delayed(_answered)(place, tasks[place], *sent, asks) for place, asks in left.items()]
    results: Generator[tuple[int, list[Arrays], float], None, None] | None = None
    try:
        with _interrupts_held():
            results = joblib.Parallel(return_as="generator_unordered", batch_size=1, **words)(calls)
        yield from results
    except BrokenProcessPool as error:
        raise EnvironmentFault(
            "a process that fitted models was ended from outside, maybe for want of memory: try --jobs 1"
        ) from error
    finally:
        # Whatever ends this ends the processes.
        if results is not None:
            with warnings.catch_warnings():
                # joblib says that not all results were taken.
                warnings.simplefilter("ignore")
                results.close()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C until afterwards; processes that are started meanwhile never get it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_UNPACKED: dict[str, object] = {}


def _answered(
    place: int, task: Task[object], name: str, packed: npt.NDArray[np.uint8], asks: list[int]
) -> tuple[int, list[Arrays], float]:
    """Place, answers and seconds, of data that are unpacked once in each process."""
    data = _UNPACKED.get(name)
    if data is None:
        data = pickle.loads(packed.data)
        # Only the latest: data may be large.
        _UNPACKED.clear()
        _UNPACKED[name] = data
    return place, *_answers(task, data, asks)


def _answers(task: Task[Data], data: Data, asks: Sequence[int]) -> tuple[list[Arrays], float]:
    with one_thread("fitting models"):
        start = time.monotonic()
        try:
            return task.run(data, asks), time.monotonic() - start
        except InputError as error:
            raise error.within(task.label) from error


def one_thread(what: str) -> AbstractContextManager[object]:
    """Keep linear algebra to one thread, as sums in another order would have other last digits."""
    try:
        # The first two load the libraries that are limited.
        import scipy.linalg  # noqa: F401
        import sklearn.utils  # noqa: F401
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtraError("train", what) from error
    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits


def _bind(parent: int, in_main: bool) -> None:
    """Bind a process that starts to its parent: it ends when that has ended, however it did."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if in_main and sys.platform == "linux":
        # At once, and whatever the process does; but at the end of the thread that started it, too.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCHED_S)
    os._exit(1)


def counted_together(progress: Progress, sizes: Sequence[int]) -> tuple[Progress, ...]:
    """One progress callback a round of work, which counts the tasks of all rounds."""
    latest: dict[int, State] = {}

    def tell(number: int, state: State) -> None:
        latest[number] = state
        before = [each for place, each in latest.items() if place < number]
        done, after = sum(each.done for each in before), sum(sizes[number + 1 :])
        progress(
            State(
                done + state.done,
                done + state.total + after,
                sum(each.elapsed_s for each in before) + state.elapsed_s,
                state.left_s + after * state.elapsed_s / state.done,
                state.label,
            )
        )

    return tuple(partial(tell, number) for number in range(len(sizes)))


def rounds_of(run: RunArguments, sizes: Sequence[int]) -> list[RunArguments]:
    """Arguments for rounds of so many tasks, whose progress counts the tasks of all rounds."""
    progress = run.get("progress")
    if progress is None:
        return [run for _ in sizes]
    rounds: list[RunArguments] = []
    for each in counted_together(progress, sizes):
        rounds.append({**run, "progress": each})
    return rounds


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def worker_processes(jobs: int | None) -> int | None:
    """Processes for ``jobs=None``: as joblib's ``parallel_config`` says (``None``), or one a processor."""
    joblib = sys.modules.get("joblib")
    if jobs is None and joblib is not None and joblib.parallel.get_active_backend()[1] not in (None, 1):
        return None
    return processors() if jobs is None else jobs


def check_jobs(jobs: int | None) -> None:
    """Raise an `InputError` unless the number of processes is at least 1."""
    if jobs is not None and jobs < 1:
        raise InputError.of(where="jobs", expected="at least 1", found=jobs)


def check_seed(seed: int) -> None:
    """Refuse a seed that some library would refuse in the middle of the work."""
    if not 0 <= seed <= MOST_SEED:
        raise InputError.of(where="seed", expected=f"a number from 0 to {MOST_SEED}", found=seed)


def check_names(names: Sequence[str], what: str = "models") -> None:
    """Refuse names of which there are none, or one is there twice."""
    if not names or len(set(names)) < len(names):
        found = ", ".join(names) or "none"
        raise InputError.of(where=what, expected="at least one, and each once", found=found)
