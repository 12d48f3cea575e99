"""Executors of parallel work: a Dask cluster at an address, or one that is started as jobs of Slurm."""

from __future__ import annotations

import logging
import shutil
import signal
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from crosscast.errors import EnvironmentFault, InputError, importing

Thing = TypeVar("Thing")

_SPREAD: ContextVar[bool] = ContextVar("_SPREAD", default=False)
_CONNECT_S, _WAIT_S = 20, 300
_MOST_JOBS = 10_000  # As Slurm's MaxJobCount, by default
_FIELD = "executor"
_EXPECTED = "local, dask://HOST:PORT, or slurm:FILE.toml"


@contextmanager
def workers(executor: str) -> Iterator[object]:
    """A Dask client with its workers; those that it started end with it.

    `executor` is ``dask://HOST:PORT`` for the scheduler of a running cluster, ``slurm:FILE.toml`` for one
    that is started: ``jobs`` workers, with all else in the file as arguments of
    ``dask_jobqueue.SLURMCluster``. Without workers after five minutes, it fails.
    """
    kind, _, target = executor.partition(":")
    if kind not in ("dask", "slurm") or not target.removeprefix("//"):
        raise InputError.of(where=_FIELD, expected=_EXPECTED, found=repr(executor))
    with importing("dask", "work on several machines"), warnings.catch_warnings():
        # Some imports of Dask are deprecated.
        warnings.simplefilter("ignore")
        from distributed import Client
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with ExitStack() as undo:
        undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        count = 1
        address: object = f"tcp:{target}"
        if kind == "slurm":
            cluster, count = _slurm(Path(target))
            address = undo.enter_context(cluster)
        try:
            client = undo.enter_context(Client(address, timeout=_CONNECT_S))
            # Without this joblib silently uses one process of this machine.
            client.wait_for_workers(count, timeout=_WAIT_S)
        except (OSError, TimeoutError, ValueError) as error:
            raise EnvironmentFault(f"{_FIELD}: {executor} gives no workers ({error})") from error
        yield client


def _slurm(path: Path) -> tuple[AbstractContextManager[object], int]:
    """A cluster of Dask whose workers are jobs, and their number."""
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError.of(
            where=path, problem=f"cannot read what workers are to be started ({reason})"
        ) from error
    count = settings.pop("jobs", None)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST_JOBS:
        expected = f"a number of workers from 1 to {_MOST_JOBS:,}"
        raise InputError.of(where=path, field="jobs", expected=expected, found=repr(count))
    dask_jobqueue = _jobqueue()
    try:
        # One task at a time in each, as measurements need the whole machine.
        cluster = vars(dask_jobqueue)["SLURMCluster"](
            **{"cores": 1, "processes": 1, "memory": "2GB", **settings}
        )
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError.of(where=path, problem=reason) from error
    if shutil.which("sbatch") is None:
        cluster.close()
        raise EnvironmentFault(f"{_FIELD}: slurm:{path} needs Slurm's sbatch, which this machine has not")
    cluster.scale(jobs=count)
    return cluster, count


def _jobqueue() -> ModuleType:
    """Import ``dask_jobqueue`` without its handlers of Ctrl-C and SIGTERM."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with importing("dask", "workers as jobs of Slurm"):
            import dask_jobqueue
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    module: ModuleType = dask_jobqueue
    return module


@contextmanager
def spreading(executor: str | None) -> Iterator[None]:
    """Run joblib's parallel work on an executor; ``None`` and ``local`` leave it in this process."""
    if executor in (None, "local"):
        yield
        return
    with workers(str(executor)), importing("train", "work in several processes"):
        import joblib

        before = _SPREAD.set(True)
        try:
            with joblib.parallel_config(backend="dask", n_jobs=-1):
                yield
        finally:
            _SPREAD.reset(before)


def mapped(function: Callable[..., Thing], arguments: Iterable[tuple[object, ...]]) -> Iterator[Thing]:
    """Results of a function for each of its arguments, in order: here, or on the chosen executor."""
    if not _SPREAD.get():
        yield from (function(*each) for each in arguments)
        return
    import joblib

    calls = (joblib.delayed(function)(*each) for each in arguments)
    yield from joblib.Parallel(return_as="generator")(calls)
