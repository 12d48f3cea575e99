"""Numbers in text as C++ streams read them: the longest beginning that is a number, the rest stays.

Oclgrind reads its simulator files with ``>>``, so ``7,`` is 7 and a comma, ``1-2`` is two numbers,
``-1`` is the greatest value of an unsigned type, and ``nan`` is no number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.characterization.launchfiles.value_type import limits

__all__ = ["NumberReader"]

_DECIMAL = re.compile(r"[+-]?[0-9]+")
_HEXADECIMAL = re.compile(r"[+-]?(?:0[xX])?[0-9a-fA-F]+")
_DANGLING_PREFIX = re.compile(r"[+-]?0[xX](?![0-9a-fA-F])")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DANGLING_EXPONENT = re.compile(r"[eE][+-]?")
_PLAIN_INTEGERS = re.compile(r"[0-9+\-\s]*")
_PLAIN_REALS = re.compile(r"[0-9+\-.eE\s]*")


@dataclass(frozen=True)
class NumberReader:
    """Reads numbers of one type.

    Parameters
    ----------
    dtype
        The type: an integer of 1 to 8 bytes, or ``float32`` or ``float64``.
    hexadecimal
        Integers are hexadecimal, with or without ``0x``.
    """

    dtype: np.dtype[Any]
    hexadecimal: bool = False

    def match(self, text: str, start: int) -> tuple[int | float, int] | str:
        """Read the number at `start`.

        Returns
        -------
        tuple or str
            The number and where the rest begins; or what is wrong.
        """
        if self.dtype.kind == "f":
            return self._match_real(text, start)
        return self._match_integer(text, start)

    def many(self, line: str) -> npt.NDArray[Any] | None:
        """Read a whole line of nothing but plain, fitting numbers at once; ``None`` if it has more."""
        if self.dtype.kind == "f":
            return self._many_reals(line)
        if self.hexadecimal or _PLAIN_INTEGERS.fullmatch(line) is None:
            return None
        try:
            numbers = [int(token) for token in line.split()]
        except ValueError:
            return None
        least, greatest = limits(self.dtype)
        if numbers and not least <= min(numbers) <= max(numbers) <= greatest:
            return None
        return np.array(numbers, dtype=self.dtype)

    def _many_reals(self, line: str) -> npt.NDArray[Any] | None:
        if _PLAIN_REALS.fullmatch(line) is None:
            return None
        try:
            numbers = np.array([float(token) for token in line.split()])
        except ValueError:
            return None
        if numbers.size and not np.abs(numbers).max() <= limits(self.dtype)[1]:
            return None
        return numbers.astype(self.dtype)

    def _match_real(self, text: str, start: int) -> tuple[float, int] | str:
        found = _REAL.match(text, start)
        # C++ takes the `e` of `1e` as the start of an exponent, and fails for want of digits.
        if found is None or _DANGLING_EXPONENT.match(text, found.end()):
            return f"Failed to parse {_token(text, start)!r} as {self._name}"
        value = float(found[0])
        if not abs(value) <= limits(self.dtype)[1]:
            return f"Number out of range for {self._name}: {_token(text, start)!r}"
        return value, found.end()

    def _match_integer(self, text: str, start: int) -> tuple[int, int] | str:
        pattern = _HEXADECIMAL if self.hexadecimal else _DECIMAL
        found = pattern.match(text, start)
        if found is None or (self.hexadecimal and _DANGLING_PREFIX.match(text, start)):
            return f"Failed to parse {_token(text, start)!r} as {self._name}"
        value = int(found[0], 16 if self.hexadecimal else 10)
        least, greatest = limits(self.dtype)
        if self.dtype.itemsize == 1 and not least <= value <= greatest:
            return f"Invalid char value {_token(text, start)!r}, expected {least} to {greatest}"
        if self.dtype.kind == "u" and -greatest <= value < 0:
            value += int(greatest) + 1
        if not least <= value <= greatest:
            return f"Number out of range for {self._name}: {_token(text, start)!r}"
        return value, found.end()

    @property
    def _name(self) -> str:
        return "a real number" if self.dtype.kind == "f" else f"a {self.dtype.itemsize * 8}-bit integer"


def _token(text: str, start: int) -> str:
    """The word at `start`, for messages."""
    return text[start:].split(maxsplit=1)[0] if text[start:].strip() else ""
