"""The variables of the linear models: what a configuration is set to, and products of two settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.predict.configuration.space import Space

__all__ = ["Design", "design_of"]


@dataclass(frozen=True)
class Design:
    """``p`` variables of ``c`` configurations, and a constant for each of ``d`` devices.

    Parameters
    ----------
    names
        ``(p,)`` ``device: variable``.
    matrix
        ``(c, p)`` Their values; a variable is 0 at the configurations of other devices. Each is divided by
        its largest size, which leaves a linear model what it is, and makes it well scaled.
    devices
        ``(d,)`` Keys of the devices.
    on_device
        ``(c, d)`` 1 for the device of a configuration.
    """

    names: tuple[str, ...]
    matrix: Reals
    devices: tuple[str, ...]
    on_device: Reals

    @property
    def with_constants(self) -> Reals:
        """``(c, p + d)`` The variables, and the devices' constants."""
        return np.hstack([self.matrix, self.on_device])


def design_of(space: Space) -> Design:
    """Variables of the configurations of a space, apart for each device.

    They are the numbers that vary on the device, one variable for each value of a setting of words, and the
    products of two of them (Bailey et al. 2014, section III-B: first-order interactions). A device on which
    nothing varies has the variable 1.
    """
    names: list[str] = []
    columns: list[Reals] = []
    for number, device in enumerate(space.devices):
        rows = space.device_numbers == number
        for name, values in _with_products(_variables(space, rows)):
            names.append(f"{device}: {name}")
            columns.append(np.where(rows, values, 0.0))
    matrix = np.stack(columns, axis=1)
    on_device = (space.device_numbers[:, None] == np.arange(len(space.devices))).astype(np.float64)
    return Design(tuple(names), matrix / np.abs(matrix).max(axis=0), space.devices, on_device)


_Variable = tuple[str, Reals]


def _variables(space: Space, rows: Flags) -> list[_Variable]:
    found: list[_Variable] = []
    for name, values in zip(space.knobs, space.matrix.T, strict=True):
        if len(np.unique(values[rows])) > 1:
            # A configuration of the device that lacks the setting: as if it were 0.
            found.append((name, np.where(np.isfinite(values), values, 0.0)))
    for name in space.words:
        settings = np.array([str(each.settings.get(name, "")) for each in space.configurations])
        words = np.unique(settings[rows])
        if len(words) > 1:
            found += [(f"{name}={word}", (settings == word).astype(np.float64)) for word in words]
    return found or [("1", np.ones(len(space)))]


def _with_products(variables: Sequence[_Variable]) -> list[_Variable]:
    found = list(variables)
    for place, (name, values) in enumerate(variables):
        for other, others in variables[:place]:
            product = values * others
            if product.any():
                found.append((f"{other} * {name}", product))
    return found
