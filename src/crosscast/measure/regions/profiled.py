"""Regions as programs write them: a ``with`` block or a decorated function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.measure.regions.applying import Apply
from crosscast.measure.regions.chooser import Chooser
from crosscast.measure.regions.history import History
from crosscast.measure.regions.key import RegionKey, arguments_of
from crosscast.measure.regions.line import MOST_NAME
from crosscast.measure.regions.metering import Metering
from crosscast.measure.regions.place import MOST_PLACES, site_of
from crosscast.measure.regions.recorder import Recorder, Running

__all__ = ["Profiled", "profiled"]

P = ParamSpec("P")
T = TypeVar("T")

_ENTERED: ContextVar[tuple[Running, ...]] = ContextVar("entered", default=())


class Profiled:
    """A region of a program: each run of it is recorded, in time, energy and counters.

    Use it in a ``with`` block, which gives the `Running`, or as decorator of a function, of which each call
    is a run. It may be entered again inside of itself and in several threads. Exceptions pass; the run that
    one ends is recorded as failed.

    Parameters
    ----------
    name
        Name of the region, of 200 characters at most.
    arguments
        What the region works on. Runs are told apart by kind, not by contents: arrays by type and shape,
        whole numbers by value (`crosscast.measure.regions.argument`). A decorated function's are those of
        the call.
    history
        File that runs are appended to, or a `History`; by default they are kept in memory only.
    selector
        Chooses the configuration of each run.
    configuration
        What the program runs on, if there is no selector.
    apply
        Sets a configuration; called at entry if it is not the one that it was called with last. Without it,
        the program does so itself, by `Running.configuration`.
    sensors
        ``auto`` (all that work), ``rapl``, ``nvml``, ``nvml:UUID``, ``replay:PATH``, ``none``, or meters.
    counters
        CPU counters to read, of `crosscast.measure.counters.EVENTS`; each costs some microseconds a thread.
    callers
        How many callers of the place where it is entered tell runs apart as well, 16 at most.

    Raises
    ------
    InputError
        If an argument is wrong, or the file cannot be a history.

    Examples
    --------
    >>> import crosscast
    >>> for _ in range(3):
    ...     with crosscast.profiled("sum", arguments=(1000,)) as run:
    ...         total = sum(range(1000))
    >>> print(run.key.name, run.key.arguments, len(run.history.runs(run.key)))
    sum ('1000',) 3
    """

    __slots__ = ("_arguments", "_callers", "_name", "_open", "_recorder")

    def __init__(
        self,
        name: str,
        *,
        arguments: Sequence[object] = (),
        history: History | str | Path | None = None,
        selector: Chooser | None = None,
        configuration: Configuration | None = None,
        apply: Apply | None = None,
        sensors: str | Metering = "auto",
        counters: Sequence[str] = (),
        callers: int = 0,
    ) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME:
            raise InputError(f"name: expected a text of 1 to {MOST_NAME} characters, found {name!r}")
        if not isinstance(arguments, (tuple, list)):
            kind = type(arguments).__name__
            raise InputError(f"arguments of {name}: expected a tuple of them, found one of type {kind}")
        if not 0 <= callers <= MOST_PLACES:
            raise InputError(f"callers: expected a number from 0 to {MOST_PLACES}, found {callers}")
        self._name = name
        self._arguments = arguments
        self._callers = callers
        self._recorder = Recorder(history, selector, configuration, apply, sensors, counters)
        self._open: list[Running] = []

    @property
    def history(self) -> History:
        """Where runs are recorded."""
        return self._recorder.history

    def __enter__(self) -> Running:
        key = self._key(self._arguments, sys._getframe(1))
        running = self._recorder.begin(key)
        self._open.append(running)
        _ENTERED.set((*_ENTERED.get(), running))
        return running

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entered = _ENTERED.get()
        # The one that this thread, or this asynchronous task, has entered last.
        running = next((one for one in reversed(entered) if one in self._open), self._open[-1])
        self._open.remove(running)
        _ENTERED.set(tuple([one for one in entered if one is not running]))
        running.__exit__(kind, error, trace)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Make each call of a function a run.

        Raises
        ------
        InputError
            If the function is one that runs in turns with others.
        """
        for is_one, what in _IN_TURNS:
            if is_one(function):
                raise InputError(
                    f"profiled: expected a function that runs from its begin to its end, found the {what} "
                    f"{function.__qualname__}, which runs in turns with others: profile what it calls"
                )
        bind, recorder = inspect.signature(function).bind, self._recorder

        @wraps(function)
        def profiled_call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                bound = bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # Says itself what is wrong.
            bound.apply_defaults()
            with recorder.begin(self._key(bound.arguments.values(), sys._getframe(1))):
                return function(*args, **kwargs)

        return profiled_call

    def _key(self, arguments: Iterable[object], frame: FrameType) -> RegionKey:
        return RegionKey(self._name, arguments_of(arguments), site_of(frame, self._callers))


_IN_TURNS: tuple[tuple[Callable[[object], bool], str], ...] = (
    (inspect.iscoroutinefunction, "coroutine"),
    (inspect.isasyncgenfunction, "asynchronous generator"),
    (inspect.isgeneratorfunction, "generator"),
)

profiled = Profiled
"""The name by which programs know it."""
