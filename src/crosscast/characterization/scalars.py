"""The scalar types of OpenCL C: the one table that all that depends on them is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Scalar:
    """A scalar type."""

    kind: Literal["i", "u", "f"]  # Signed, unsigned or floating-point, as NumPy calls it
    nbytes: int
    codes: tuple[str, ...]  # In mangled names


SCALARS = {
    "char": Scalar("i", 1, ("c", "a")),
    "uchar": Scalar("u", 1, ("h",)),
    "short": Scalar("i", 2, ("s",)),
    "ushort": Scalar("u", 2, ("t",)),
    "int": Scalar("i", 4, ("i",)),
    "uint": Scalar("u", 4, ("j",)),
    "long": Scalar("i", 8, ("l", "x")),
    "ulong": Scalar("u", 8, ("m", "y")),
    "half": Scalar("f", 2, ("Dh", "DF16_")),
    "float": Scalar("f", 4, ("f",)),
    "double": Scalar("f", 8, ("d",)),
}
