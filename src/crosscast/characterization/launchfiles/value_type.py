"""OpenCL C's scalar and vector types, as NumPy sees them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.characterization.scalars import SCALARS
from crosscast.errors import InputError

SCALAR_DTYPES = {name: np.dtype(f"{scalar.kind}{scalar.nbytes}") for name, scalar in SCALARS.items()}
"""NumPy type of each scalar type."""

_WIDTHS = (1, 2, 3, 4, 8, 16)


def limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Least and greatest finite number of a type; whole numbers for whole types."""
    if dtype.kind in "iu":
        integers = np.iinfo(dtype)
        return int(integers.min), int(integers.max)
    reals = np.finfo(dtype)
    return float(reals.min), float(reals.max)


@dataclass(frozen=True)
class ValueType:
    """A scalar or vector type."""

    name: str  # Its name in OpenCL C, such as `float4`
    dtype: np.dtype[Any]  # NumPy type of one component
    width: int  # Components: 1 for a scalar

    @classmethod
    def parse(cls, name: str) -> ValueType:
        """Type called `name`; an optional ``*`` at its end is ignored."""
        match = re.fullmatch(r"([a-z]+?)(\d*)\s*\*?", name)
        if match is None or match[1] not in SCALAR_DTYPES or int(match[2] or 1) not in _WIDTHS:
            raise InputError(
                f"expected a type such as float, float4 or uchar "
                f"(scalars are {', '.join(SCALAR_DTYPES)}; vectors have 2, 3, 4, 8 or 16 components), "
                f"found {name!r}"
            )
        return cls(match[1] + match[2], SCALAR_DTYPES[match[1]], int(match[2] or 1))

    @property
    def is_integer(self) -> bool:
        """True for whole numbers."""
        return self.dtype.kind in "iu"

    @property
    def slots(self) -> int:
        """Components that one value takes in memory: 4 where there are 3."""
        return 4 if self.width == 3 else self.width

    @property
    def limits(self) -> tuple[float, float]:
        """Least and greatest finite value of a component."""
        return limits(self.dtype)

    def shape(self, length: int) -> tuple[int, ...]:
        """Shape of an array of `length` values."""
        return (length,) if self.width == 1 else (length, self.slots)

    def check(self, value: float) -> None:
        """Refuse a number that the type cannot hold."""
        if self.is_integer and not isinstance(value, int):
            raise InputError(f"expected a whole number for {self.name}, found {value!r}")
        least, greatest = self.limits
        if abs(value) != float("inf") and not (least <= value <= greatest) and value == value:
            raise InputError(f"expected a number from {least} to {greatest} for {self.name}, found {value!r}")

    def scalar(self, value: float) -> np.generic:
        """`value` as a NumPy scalar; see `check` for what is refused."""
        self.check(value)
        packed: np.generic = self.dtype.type(value)
        return packed

    def pack(self, values: Sequence[float]) -> npt.NDArray[np.generic]:
        """Components in memory: one for each number, and a fourth of 0 after a vector of 3."""
        for value in values:
            self.check(value)
        if self.width > 1 and len(values) != self.width:
            raise InputError(f"expected {self.width} numbers for {self.name}, found {len(values)}")
        padding = [0] * (self.slots - self.width)
        return np.array([*values, *padding], dtype=self.dtype)
