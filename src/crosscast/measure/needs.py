"""What must be installed before applications can be measured."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from crosscast.errors import MissingExtraError
from crosscast.suite.registry import names

__all__ = ["expect_installed"]

_EXTRA = "suite"
_MEASURING = ("pyopencl", "pyarrow")
_CHECKING = ("scipy",)


def expect_installed(applications: Iterable[str]) -> None:
    """Check that the libraries are there, so that no work starts in vain; none is imported.

    Parameters
    ----------
    applications
        Applications by the name or path that they are found by; those of the suite check their
        results with a library.

    Raises
    ------
    MissingExtraError
        If one is not installed.
    """
    if not all(map(importlib.util.find_spec, _MEASURING)):
        raise MissingExtraError(_EXTRA, "measuring applications")
    if set(applications) & set(names()) and not all(map(importlib.util.find_spec, _CHECKING)):
        raise MissingExtraError(_EXTRA, "checking results of the suite")
