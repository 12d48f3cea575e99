"""Work in pieces: here or in several processes, told piece by piece."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from crosscast.errors import EnvironmentFault, InputError, MissingExtraError
from crosscast.evaluation.loop import Progress as Progress
from crosscast.evaluation.loop import State as State

Name = TypeVar("Name", bound=Hashable)
Piece = TypeVar("Piece")
Result = TypeVar("Result")


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that is none."""
    if jobs < 1:
        raise InputError(f"jobs: expected at least 1, found {jobs}")


def told(
    results: Iterable[tuple[Name, Result]],
    total: int,
    label: Callable[[Name], str],
    progress: Progress | None,
) -> Iterator[tuple[Name, Result]]:
    """Pass on the results of pieces, and tell of each when it has been dealt with."""
    start = time.monotonic()
    for done, (name, result) in enumerate(results, 1):
        yield name, result
        if progress is not None:
            elapsed = time.monotonic() - start
            progress(State(done, total, elapsed, elapsed / done * (total - done), label(name)))


def done_pieces(
    pieces: Mapping[Name, Piece],
    prepare: Callable[..., Callable[[Piece], Result]],
    arguments: tuple[Any, ...],
    jobs: int,
    what: str,
) -> Iterator[tuple[Name, Result]]:
    """Do pieces of work."""
    if min(jobs, len(pieces)) < 2:
        work = prepare(*arguments)
        for name, piece in pieces.items():
            yield name, work(piece)
        return
    # Not forked: threads of the libraries do not survive that.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(
        min(jobs, len(pieces)), mp_context=context, initializer=_start, initargs=(prepare, arguments)
    )
    try:
        futures: dict[Future[Result], Name] = {
            executor.submit(_do, piece): name for name, piece in pieces.items()
        }
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise EnvironmentFault(
            f"a process that {what} was ended from outside, maybe for want of memory: try --jobs 1"
        ) from error
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        # After an interruption, nobody waits for the pieces in progress.
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()


_WORK: list[Callable[[Any], Any]] = []
"""In a process that works: what does a piece."""


def _start(prepare: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]) -> None:
    # Ctrl-C reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _WORK.append(prepare(*arguments))


def _do(piece: Any) -> Any:
    return _WORK[-1](piece)


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


_Asked = TypeVar("_Asked", contravariant=True)
_Result = TypeVar("_Result")


class Task(Protocol):
    """Something to do."""

    @property
    def label(self) -> str:
        """What it is, for people."""
        ...


class Kept(Protocol[_Asked, _Result]):
    """Where results are kept."""

    def load(self, task: _Asked, /) -> _Result | None:
        """The result of a task; ``None`` if it is not there."""

    def save(self, task: _Asked, result: _Result, /) -> None:
        """Keep it."""


_Task = TypeVar("_Task", bound=Task)


def done_tasks(
    tasks: Sequence[_Task],
    kept: Kept[_Task, _Result] | None,
    prepare: Callable[..., Callable[[_Task], _Result]],
    known: Any,
    *,
    what: str,
    progress: Progress | None = None,
    jobs: int = 1,
) -> list[_Result]:
    """Do all tasks that are not kept."""
    check_jobs(jobs)
    loaded = [(place, kept.load(task)) for place, task in enumerate(tasks)] if kept else []
    found = {place: result for place, result in loaded if result is not None}
    left = {place: task for place, task in enumerate(tasks) if place not in found}
    done = done_pieces(left, prepare, (known,), jobs, what)
    for place, result in told(done, len(left), lambda place: tasks[place].label, progress):
        found[place] = result
        if kept:
            kept.save(tasks[place], result)
    return [found[place] for place in range(len(tasks))]


def counted_together(progress: Progress, pieces: Sequence[int]) -> tuple[Progress, ...]:
    """Whom each round of work is to tell, so that the pieces of all rounds are counted together."""
    latest: dict[int, State] = {}

    def of_round(number: int) -> Progress:
        def tell(state: State) -> None:
            latest[number] = state
            before = [each for place, each in latest.items() if place < number]
            after = sum(pieces[number + 1 :])
            done = sum(each.done for each in before)
            progress(
                State(
                    done + state.done,
                    done + state.total + after,
                    sum(each.elapsed_s for each in before) + state.elapsed_s,
                    state.left_s + after * state.elapsed_s / state.done,
                    state.label,
                )
            )

        return tell

    return tuple(of_round(number) for number in range(len(pieces)))


MOST = 2**32 - 1
"""The largest that scikit-learn takes."""


def check_seed(seed: int) -> None:
    """Refuse a seed that some library would refuse in the middle of the work."""
    if not 0 <= seed <= MOST:
        raise InputError(f"seed: expected a number from 0 to {MOST}, found {seed}")
