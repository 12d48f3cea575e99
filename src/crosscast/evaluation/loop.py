"""Run the tasks of an evaluation, here or in other processes, and cache their answers.

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
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Generic, Protocol, Required, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt

from crosscast.arrays import AnyArray, Arrays, Flags, Integers
from crosscast.errors import EnvironmentFault, InputError, importing
from crosscast.evaluation.keep import AnswerCache, digest
from crosscast.prediction.trained import single_threaded

MOST_SEED = 2**32 - 1
"""The largest seed of scikit-learn."""

_WATCHED_S = 0.25
_SHORTEST_S = 1e-6
_ATTEMPTS = 5
_SEVERAL = "work in several processes"

Data = TypeVar("Data")
Known = TypeVar("Known", contravariant=True)
Thing = TypeVar("Thing")


@dataclass(frozen=True, eq=False)
class Fold:
    """A part of the data to predict, by a model that was fitted to another part."""

    held_out: str  # What is held out, for people
    train: Integers  # Indices of rows
    test: Integers

    @classmethod
    def of(cls, held_out: str, test: Flags) -> Fold:
        """Hold the rows of a mask out."""
        return cls(held_out, np.flatnonzero(~test), np.flatnonzero(test))


def folds_by_group(
    where: str, noun: str, labels: Sequence[str], groups: AnyArray | None = None
) -> tuple[Fold, ...]:
    """Hold each group of rows out in turn, in the order of the groups: by default the rows' labels."""
    groups = np.array(labels) if groups is None else groups
    names, first = np.unique(groups, return_index=True)
    if len(names) < 2:
        description = f"1 ({labels[0]})" if labels else "none"
        raise InputError.of(where=where, expected=f"at least 2 {noun} to split by", found=description)
    return tuple(Fold.of(labels[index], groups == groups[index]) for index in first.tolist())


class Task(Protocol[Known]):
    """One fit, and answers to several queries of the fitted model."""

    @property
    def label(self) -> str:
        """Name of the task, for people, as in "combined, kmeans held out"."""

    @property
    def kind(self) -> str:
        """Kind of the task; tasks of one kind take about equally long."""

    @property
    def cache_keys(self) -> Sequence[object]:
        """Key of each query, serializable as JSON: all that its answer depends on besides the data."""

    def run(self, data: Known, queries: Sequence[int]) -> list[Arrays]:
        """Answers to the queries of these indices."""

    def is_valid(self, data: Known, query: int, arrays: Arrays) -> bool:
        """Whether cached arrays may be the answer to a query."""


ModelT = TypeVar("ModelT", bound="_Named")
FoldT = TypeVar("FoldT", bound="_HeldOut")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class _HeldOut(Protocol):
    @property
    def held_out(self) -> str: ...


@dataclass(frozen=True, eq=False)
class FoldTask(Task[Data], Generic[ModelT, FoldT, Data]):
    """A task that fits a model without the held-out part of a fold, and predicts that."""

    model: ModelT
    fold: FoldT
    seed: int

    @property
    def label(self) -> str:
        """Name of the task, for people."""
        return f"{self.model.name}, {self.fold.held_out} held out"

    @property
    def kind(self) -> str:
        """The class of the task and the model."""
        return f"{type(self).__name__} {self.model.name}"


@dataclass(frozen=True)
class State:
    """Progress of the work."""

    done: int  # Finished tasks, and all tasks
    total: int
    elapsed_s: float  # Seconds since the start, and the estimated seconds that remain
    left_s: float
    label: str  # Of the task that has just finished


Progress = Callable[[State], None]


class RunArguments(TypedDict, total=False):
    """Keyword arguments of `run_tasks` that are passed on; they change no answer."""

    cache: Path | None  # Folder of finished folds; by default none
    progress: Progress | None  # Called after each task
    jobs: int | None  # Worker processes; `None` for those of joblib's ``parallel_config``


class SeededRun(RunArguments):
    """Keyword arguments of an evaluation or a training: `RunArguments` and the random seed."""

    seed: Required[int]


def run_tasks(
    tasks: Sequence[Task[Data]],
    data: Data,
    *,
    cache: Path | None = None,
    sources: Sequence[str] = (),
    progress: Progress | None = None,
    jobs: int | None = 1,
) -> list[list[Arrays]]:
    """Answer all queries of all tasks that the cache (a folder) lacks; return the answers of each task.

    `data` is sent once to each process; `sources` are files and folders of the package that answers depend
    on. Answers do not depend on `jobs`; for ``None`` see `worker_processes`.
    """
    check_jobs(jobs)
    jobs = worker_processes(jobs)
    stored = None if cache is None else AnswerCache(cache, digest(data), tuple(sources))
    answers: list[dict[int, Arrays]] = [{} for _ in tasks]
    if stored:
        for of_task, task in zip(answers, tasks, strict=True):
            for query, key in enumerate(task.cache_keys):
                arrays = stored.load(key)
                if arrays is not None and task.is_valid(data, query, arrays):
                    of_task[query] = arrays
    pending = {
        index: [query for query in range(len(task.cache_keys)) if query not in answers[index]]
        for index, task in _alternating_kinds(tasks)
        if len(answers[index]) < len(task.cache_keys)
    }
    start, costs = time.monotonic(), _Costs([tasks[index].kind for index in pending])
    with closing(_with_retries(tasks, data, pending, jobs)) as results:
        for done, (index, answered, took_s) in enumerate(results, 1):
            for query, answer in zip(pending[index], answered, strict=True):
                answers[index][query] = answer
                if stored:
                    stored.save(tasks[index].cache_keys[query], answer)
            costs.add(tasks[index].kind, took_s)
            if progress is not None:
                elapsed = time.monotonic() - start
                left_s = elapsed * costs.remaining / costs.done
                progress(State(done, len(pending), elapsed, left_s, tasks[index].label))
    return [[of_task[query] for query in sorted(of_task)] for of_task in answers]


def _alternating_kinds(tasks: Sequence[Task[Data]]) -> list[tuple[int, Task[Data]]]:
    """Tasks with their indices, one of each kind in turn, so that the time of each kind is soon known."""
    counts: Counter[str] = Counter()
    order = []
    for index, task in enumerate(tasks):
        order.append((counts[task.kind], index))
        counts[task.kind] += 1
    return [(index, tasks[index]) for _, index in sorted(order)]


class _Costs:
    """Seconds of finished and remaining tasks, estimated from the finished tasks of each kind."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._remaining = Counter(kinds)
        self._took: dict[str, list[float]] = {}

    def add(self, kind: str, took_s: float) -> None:
        """Record a finished task."""
        self._remaining[kind] -= 1
        self._took.setdefault(kind, []).append(max(took_s, _SHORTEST_S))

    @property
    def done(self) -> float:
        """Seconds of all finished tasks."""
        return sum(map(sum, self._took.values()))

    @property
    def remaining(self) -> float:
        """Expected seconds of the other tasks; a new kind is expected to take the mean over kinds."""
        means = {kind: sum(took) / len(took) for kind, took in self._took.items()}
        usual = sum(means.values()) / len(means)
        return sum(count * means.get(kind, usual) for kind, count in self._remaining.items())


def _with_retries(
    tasks: Sequence[Task[Data]], data: Data, pending: Mapping[int, list[int]], jobs: int | None
) -> Generator[tuple[int, list[Arrays], float], None, None]:
    """Index, answers and seconds of each task, in the order in which they finish.

    A cluster that loses a worker may lose results: these tasks are run again.
    """
    waiting = dict(pending)
    for attempt in range(_ATTEMPTS):
        try:
            with closing(_once(tasks, data, dict(waiting), jobs)) as results:
                for result in results:
                    del waiting[result[0]]
                    yield result
        except CancelledError as error:
            if attempt == _ATTEMPTS - 1:
                raise EnvironmentFault("the cluster lost its workers again and again") from error
        else:
            return


def _once(
    tasks: Sequence[Task[Data]], data: Data, pending: Mapping[int, list[int]], jobs: int | None
) -> Generator[tuple[int, list[Arrays], float], None, None]:
    if jobs == 1 or not pending:
        yield from ((index, *_answers(tasks[index], data, queries)) for index, queries in pending.items())
        return
    with importing("train", _SEVERAL):
        import cloudpickle
        import joblib
        from joblib.parallel import get_active_backend
    backend, configured = get_active_backend()
    options: dict[str, object] = {"n_jobs": jobs}
    if type(backend).__name__ == "LokyBackend":
        # Processes of this machine, which this process has to end.
        count = min(backend.effective_n_jobs(configured if jobs is None else jobs), len(pending))
        if count == 1:
            yield from _once(tasks, data, pending, 1)
            return
        options = _bound(count)
    content = cloudpickle.dumps(data, protocol=pickle.HIGHEST_PROTOCOL)
    # As an array: joblib maps a large one into the memory of each process, without a copy.
    sent = hashlib.sha256(content).hexdigest(), np.frombuffer(content, np.uint8)
    calls = [
        joblib.delayed(_answers_in_worker)(k, tasks[k], *sent, numbers) for k, numbers in pending.items()
    ]
    yield from _finished(calls, options, "fitted models")


def in_processes(
    function: Callable[..., Thing], arguments: Iterable[tuple[object, ...]], jobs: int, what: str
) -> Generator[Thing, None, None]:
    """Results of a function for each of its arguments, as they finish, from processes that end with this one.

    `what` the processes do is for the error if one is ended from outside.
    """
    with importing("train", _SEVERAL):
        import joblib
    calls = [joblib.delayed(function)(*each) for each in arguments]
    yield from _finished(calls, _bound(worker_processes(jobs) or jobs), what)


def _bound(count: int) -> dict[str, object]:
    """Options of joblib for so many processes that end with this one."""
    in_main = threading.current_thread() is threading.main_thread()
    return {"n_jobs": count, "initializer": _bind, "initargs": (os.getpid(), in_main)}


def _finished(
    calls: Sequence[object], options: Mapping[str, object], what: str
) -> Generator[Any, None, None]:
    """Results of calls as they finish."""
    import joblib

    results: Generator[Any, None, None] | None = None
    try:
        with _interrupts_held():
            results = joblib.Parallel(return_as="generator_unordered", batch_size=1, **options)(calls)
        yield from results
    except BrokenProcessPool as error:
        raise EnvironmentFault(
            f"a process that {what} was ended from outside, maybe for want of memory: try --jobs 1"
        ) from error
    finally:
        # However this ends, it ends the processes.
        if results is not None:
            with warnings.catch_warnings():
                # joblib warns that not all results were taken.
                warnings.simplefilter("ignore")
                results.close()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block; processes that are started within never get it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_UNPACKED: dict[str, object] = {}


def _answers_in_worker(
    index: int, task: Task[object], name: str, packed: npt.NDArray[np.uint8], queries: list[int]
) -> tuple[int, list[Arrays], float]:
    """Index, answers and seconds of a task; data are unpacked once in each process."""
    data = _UNPACKED.get(name)
    if data is None:
        data = pickle.loads(packed.data)
        # Only the latest: data may be large.
        _UNPACKED.clear()
        _UNPACKED[name] = data
    return index, *_answers(task, data, queries)


def _answers(task: Task[Data], data: Data, queries: Sequence[int]) -> tuple[list[Arrays], float]:
    with one_thread("fitting models"):
        start = time.monotonic()
        try:
            return task.run(data, queries), time.monotonic() - start
        except InputError as error:
            raise error.within(task.label) from error


def one_thread(what: str) -> AbstractContextManager[object]:
    """Limit linear algebra to one thread, as the order of sums changes last digits."""
    with importing("train", what):
        # These load the libraries that are limited.
        import scipy.linalg  # noqa: F401
        import sklearn.utils  # noqa: F401
    return single_threaded(what)


def _bind(parent: int, in_main: bool) -> None:
    """End this process when its parent has ended, for whatever reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if in_main and sys.platform == "linux":
        # Immediately, whatever the process does; but also at the end of the thread that started it.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCHED_S)
    os._exit(1)


def rounds_of(run: RunArguments, sizes: Sequence[int]) -> list[RunArguments]:
    """Arguments for rounds of these numbers of tasks, whose progress counts the tasks of all rounds."""
    progress = run.get("progress")
    if progress is None:
        return [run for _ in sizes]
    latest: dict[int, State] = {}

    def report(number: int, state: State) -> None:
        latest[number] = state
        before = [each for earlier, each in latest.items() if earlier < number]
        done, after = sum(each.done for each in before), sum(sizes[number + 1 :])
        elapsed_s = sum(each.elapsed_s for each in before) + state.elapsed_s
        left_s = state.left_s + after * state.elapsed_s / state.done
        progress(State(done + state.done, done + state.total + after, elapsed_s, left_s, state.label))

    return [RunArguments(**{**run, "progress": partial(report, number)}) for number in range(len(sizes))]


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_MOST_A_PROCESSOR = 4
"""Largest number of processes for each processor: more only wait for each other, and fill the memory."""


def worker_processes(jobs: int | None) -> int | None:
    """Processes for a number of `jobs`, of which too many are not started.

    For ``None`` those of joblib's ``parallel_config`` (``None``), or one for each processor.
    """
    joblib = sys.modules.get("joblib")
    if jobs is None and joblib is not None and joblib.parallel.get_active_backend()[1] not in (None, 1):
        return None
    return processors() if jobs is None else min(jobs, _MOST_A_PROCESSOR * processors())


def check_jobs(jobs: int | None) -> None:
    """Raise an `InputError` unless the number of processes is at least 1."""
    if jobs is not None and not (isinstance(jobs, Integral) and jobs >= 1):
        raise InputError.of(where="jobs", expected="at least 1", found=jobs)


def check_seed(seed: int) -> None:
    """Raise InputError for a seed that some library would refuse in the middle of the work."""
    if not (isinstance(seed, Integral) and 0 <= seed <= MOST_SEED):
        raise InputError.of(where="seed", expected=f"a number from 0 to {MOST_SEED}", found=seed)


def check_names(names: Sequence[str], what: str = "models") -> None:
    """Raise InputError unless there are names, each once."""
    if not names or len(set(names)) < len(names):
        listed = ", ".join(names) or "none"
        raise InputError.of(where=what, expected="at least one, and each once", found=listed)
