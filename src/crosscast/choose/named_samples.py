"""Sample configurations that somebody named."""

from __future__ import annotations

from collections.abc import Sequence

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.predict.configuration.space import Space

__all__ = ["sample_numbers"]


def sample_numbers(space: Space, samples: Sequence[Configuration]) -> tuple[int, ...]:
    """Numbers of sample configurations.

    Parameters
    ----------
    space
        What one may choose from.
    samples
        The configurations.

    Raises
    ------
    InputError
        If there is none, or one is not known or named twice.
    """
    try:
        numbers = tuple(space.number_of(each) for each in samples)
    except InputError as error:
        raise InputError(f"samples: {error}") from error
    if not numbers or len(set(numbers)) < len(numbers):
        found = "; ".join(map(str, samples)) or "none"
        raise InputError(f"samples: expected at least one configuration, and each once, found {found}")
    return numbers
