"""Dispatch of declared commands to the modules that do their work."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ParamSpec

__all__ = ["TYPED", "Typed", "runs", "work"]

P = ParamSpec("P")


def runs(module: str) -> Callable[[Callable[P, None]], Callable[P, int | None]]:
    """Make a function that declares a command call the function of the same name that does its work.

    Parameters
    ----------
    module
        Module of `crosscast.commands`. It is imported when the command runs, so that `--help` imports only
        the declarations.
    """

    def decorate(declared: Callable[P, None]) -> Callable[P, int | None]:
        @functools.wraps(declared)
        def command(*args: P.args, **kwargs: P.kwargs) -> int | None:
            # Defaults are in the declaration only.
            bound = inspect.signature(declared).bind(*args, **kwargs)
            bound.apply_defaults()
            return work(module, declared.__name__)(*bound.args, **bound.kwargs)

        command.__dict__["module"] = module
        return command

    return decorate


def work(module: str, name: str) -> Callable[..., int | None]:
    """Import a module of `crosscast.commands`, and return a function of it."""
    function: Callable[..., int | None] = getattr(
        importlib.import_module(f"crosscast.commands.{module}"), name
    )
    return function


@dataclass(frozen=True)
class Typed:
    """A command line, and the warnings of its run, which a page repeats."""

    words: Sequence[str] = ()
    warnings: list[str] = field(default_factory=list)


TYPED: ContextVar[Typed] = ContextVar("TYPED")
