"""Starts of random numbers that all libraries take."""

from __future__ import annotations

from crosscast.errors import InputError

__all__ = ["MOST", "check_seed"]

MOST = 2**32 - 1
"""The largest that scikit-learn takes."""


def check_seed(seed: int) -> None:
    """Refuse a seed that some library would refuse in the middle of the work.

    Raises
    ------
    InputError
        If it is negative or too large.
    """
    if not 0 <= seed <= MOST:
        raise InputError(f"seed: expected a number from 0 to {MOST}, found {seed}")
