"""The functions of the command line declare options; what they do is imported when they run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec

__all__ = ["runs"]

P = ParamSpec("P")


def runs(
    work: Callable[[], Callable[P, int | None]],
) -> Callable[[Callable[P, None]], Callable[P, int | None]]:
    """Let a function that declares options call another one, which has the same parameters.

    Parameters
    ----------
    work
        Returns the function that does the work; it is called when the command runs, so that what the work
        needs is not imported for `--help`. mypy compares the parameters of both.
    """

    def decorate(declared: Callable[P, None]) -> Callable[P, int | None]:
        @functools.wraps(declared)
        def command(*args: P.args, **kwargs: P.kwargs) -> int | None:
            # Defaults stand in the declaration alone.
            bound = inspect.signature(declared).bind(*args, **kwargs)
            bound.apply_defaults()
            run: Callable[..., int | None] = work()
            return run(*bound.args, **bound.kwargs)

        return command

    return decorate
