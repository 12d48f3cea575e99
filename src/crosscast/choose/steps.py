"""Steps from one configuration to a neighbour: one knob a notch down or up, all else the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.configuration.space import Space

__all__ = ["highest", "lowest", "step_down", "step_up"]


def step_down(space: Space, number: int, available: Flags, knobs: Sequence[str]) -> int | None:
    """The configuration a notch lower: in the first of the knobs that has one.

    Parameters
    ----------
    space
        The configurations.
    number
        Where the step starts.
    available
        ``(c,)`` Configurations that may be taken.
    knobs
        Names of the knobs that may be set, in the order in which they are: the second is set when the first
        can go no further.

    Returns
    -------
    int or None
        The next lower setting that may be taken, with the same device and other settings; ``None`` if no
        knob can go further.
    """
    return _step(space, number, available, knobs, -1)


def step_up(space: Space, number: int, available: Flags, knobs: Sequence[str]) -> int | None:
    """The configuration a notch higher; parameters and result are those of `step_down`."""
    return _step(space, number, available, knobs, 1)


def _step(space: Space, number: int, available: Flags, knobs: Sequence[str], sign: int) -> int | None:
    alike = [_alike(column, column[number]) for column in space.matrix.T]
    fixed = available & (space.device_numbers == space.device_numbers[number])
    for word in space.words:
        own = space.configurations[number].settings.get(word)
        fixed = fixed & [each.settings.get(word) == own for each in space.configurations]
    for knob in knobs:
        if knob not in space.knobs:
            continue
        place = space.knobs.index(knob)
        same = np.logical_and.reduce([fixed, *alike[:place], *alike[place + 1 :]])
        distance = sign * (space.matrix[:, place] - space.matrix[number, place])
        beyond = np.flatnonzero(same & (distance > 0))
        if beyond.size:
            return int(beyond[np.argmin(distance[beyond])])
    return None


def _alike(column: Reals, value: float) -> Flags:
    return np.isnan(column) if np.isnan(value) else column == value


def highest(space: Space, available: Flags, device: str | None = None) -> int:
    """The configuration with all knobs at their maximum, or the one that comes nearest to it.

    That is the one with the highest sum of the ranks of its settings, and the last of several.

    Parameters
    ----------
    space
        The configurations.
    available
        ``(c,)`` Configurations that may be taken.
    device
        Key of the device; any by default, or if none of its configurations may be taken.

    Raises
    ------
    InputError
        If no configuration may be taken.
    """
    numbers, ranks = _ranked(space, available, device)
    return int(numbers[len(numbers) - 1 - np.argmax(ranks[::-1])])


def lowest(space: Space, available: Flags, device: str | None = None) -> int:
    """The configuration with all knobs at their minimum, or the one that comes nearest; as `highest`."""
    numbers, ranks = _ranked(space, available, device)
    return int(numbers[np.argmin(ranks)])


def _ranked(
    space: Space, available: Flags, device: str | None
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Reals]:
    if not available.any():
        raise InputError("configurations: expected one that may be taken, found none")
    numbers = np.flatnonzero(available)
    if device in space.devices:
        own = available & (space.device_numbers == space.devices.index(device))
        numbers = np.flatnonzero(own) if own.any() else numbers
    ranks = np.zeros(len(numbers))
    for column in space.matrix[numbers].T:
        values, rank = np.unique(column, return_inverse=True)
        ranks += rank / max(len(values) - 1, 1)
    return numbers, ranks
