"""What was typed becomes a call: each declared command names the module that does its work."""

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
    """Let a function that declares a command call the one of the same name and parameters that does its work.

    Parameters
    ----------
    module
        Module of `crosscast.commands`. It is imported when the command runs, so that `--help` needs nothing
        of what the work needs.
    """

    def decorate(declared: Callable[P, None]) -> Callable[P, int | None]:
        @functools.wraps(declared)
        def command(*args: P.args, **kwargs: P.kwargs) -> int | None:
            # Defaults stand in the declaration alone.
            bound = inspect.signature(declared).bind(*args, **kwargs)
            bound.apply_defaults()
            return work(module, declared.__name__)(*bound.args, **bound.kwargs)

        command.__dict__["module"] = module
        return command

    return decorate


def work(module: str, name: str) -> Callable[..., int | None]:
    """The function of this name of a module of `crosscast.commands`, which is imported now."""
    function: Callable[..., int | None] = getattr(
        importlib.import_module(f"crosscast.commands.{module}"), name
    )
    return function


@dataclass(frozen=True)
class Typed:
    """A command line, and the warnings of its run: what a page repeats."""

    words: Sequence[str] = ()
    warnings: list[str] = field(default_factory=list)


TYPED: ContextVar[Typed] = ContextVar("TYPED")
