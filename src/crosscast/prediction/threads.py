"""Numerical libraries with one thread."""

from __future__ import annotations

import functools
import sys
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from crosscast.errors import importing

if TYPE_CHECKING:  # an extra brings it
    from threadpoolctl import ThreadpoolController


def single_threaded(purpose: str = "fitting a model") -> AbstractContextManager[object]:
    """Limit the numerical libraries that are loaded to one thread each.

    Synchronizing threads takes longer than small matrices do, and the order of sums changes last digits.

    Parameters
    ----------
    purpose
        What needs it, for the error.

    Raises
    ------
    MissingExtraError
        If threadpoolctl is not installed.
    """
    with importing("train", purpose):
        controller = _controller(len(sys.modules))
    limits: AbstractContextManager[object] = controller.limit(limits=1)
    return limits


@functools.lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Find the libraries that so many modules have loaded; each fit would take milliseconds to find them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
