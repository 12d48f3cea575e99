"""Work in pieces: here or in several processes, told piece by piece."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from crosscast.errors import EnvironmentFault, InputError, MissingExtraError

__all__ = ["Progress", "State", "check_jobs", "done_pieces", "one_thread", "told"]

Name = TypeVar("Name", bound=Hashable)
Piece = TypeVar("Piece")
Result = TypeVar("Result")


@dataclass(frozen=True)
class State:
    """How far the work is.

    Parameters
    ----------
    done, total
        Pieces that are done, and all of them.
    elapsed_s, left_s
        Seconds since the start, and about how many it will take from now on.
    label
        What has just been done.
    """

    done: int
    total: int
    elapsed_s: float
    left_s: float
    label: str


Progress = Callable[[State], None]


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that is none.

    Raises
    ------
    InputError
        If there is no process to work.
    """
    if jobs < 1:
        raise InputError(f"jobs: expected at least 1, found {jobs}")


def told(
    results: Iterable[tuple[Name, Result]],
    total: int,
    label: Callable[[Name], str],
    progress: Progress | None,
) -> Iterator[tuple[Name, Result]]:
    """Pass on the results of pieces, and tell of each when it has been dealt with.

    Parameters
    ----------
    results
        Results, as they come.
    total
        How many there will be.
    label
        Says what a piece is.
    progress
        Whom to tell, if anybody.
    """
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
    """Do pieces of work.

    Parameters
    ----------
    pieces
        The pieces by name.
    prepare
        Function of a module: makes what does a piece, once in each process.
    arguments
        What it needs; sent once to each process.
    jobs
        Processes that work at the same time; with one or one piece, all is done here.
    what
        What a process does, as in "fitted a model", for messages.

    Yields
    ------
    tuple
        The name and the result of each piece, as they are done.

    Raises
    ------
    EnvironmentFault
        If a process that worked was ended by another.
    """
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
    """Keep linear algebra to one thread, as sums in another order would have other last digits.

    Parameters
    ----------
    what
        What needs the libraries, as in "evaluating models", for messages.

    Raises
    ------
    MissingExtraError
        If scikit-learn, scipy or threadpoolctl is not installed.
    """
    try:
        # The first two load the libraries that are limited.
        import scipy.linalg  # noqa: F401
        import sklearn.utils  # noqa: F401
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtraError("train", what) from error
    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits
