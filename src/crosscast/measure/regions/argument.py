"""What an argument is, as far as it tells how much work there is.

Whole numbers and truths are told by value, as they are sizes and choices more often than not. Other numbers
are told by the power of two below them: a time step or a tolerance that moves a little is the same work.
Arrays are told by shape and type, buffers by size, words by themselves, and all else by type only. Contents
are never told, nor texts that are no words, as they may be names of files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import Enum
from numbers import Integral, Real
from typing import Any

__all__ = ["MOST_CHARACTERS", "described"]

MOST_CHARACTERS = 100
"""Length of what is told of an argument."""

_MOST_BITS = 64
_WORD = re.compile(r"[\w+.-]{1,32}", re.ASCII)
_MOST_ELEMENTS = 8


def described(value: object) -> str:
    """Tell what an argument is.

    Examples
    --------
    >>> described(64), described(0.3), described(-5.0), described("jacobi"), described(b"data")
    ('64', 'float 2^-2', 'float -2^2', 'jacobi', 'bytes[4 B]')
    >>> import numpy as np
    >>> described(np.zeros((4, 3))), described(np.int32(7)), described((8, 8)), described([8, 8])
    ('float64[4x3]', 'int32 7', '(8, 8)', 'list[2]')
    """
    kind = type(value)
    teller = _TELLERS.get(kind)
    text = teller(value) if teller is not None else _other(value, kind)
    return text[:MOST_CHARACTERS]


def _whole(value: Any) -> str:
    return str(value) if value.bit_length() <= _MOST_BITS else f"int of {value.bit_length()} bits"


def _real(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"float {value:g}".replace("-0", "0")
    return f"float {'-' if value < 0 else ''}2^{math.frexp(value)[1] - 1}"


def _text(value: str) -> str:
    return value if _WORD.fullmatch(value) else f"str[{len(value)}]"


def _bytes(value: Any) -> str:
    return f"{type(value).__name__}[{memoryview(value).nbytes} B]"


def _tuple(value: tuple[object, ...]) -> str:
    if len(value) > _MOST_ELEMENTS:
        return f"tuple[{len(value)}]"
    return f"({', '.join(map(described, value))})"


def _sized(value: Any) -> str:
    return f"{type(value).__name__}[{len(value)}]"


_TELLERS: dict[type, Callable[[Any], str]] = {
    int: _whole,
    bool: str,
    type(None): str,
    float: _real,
    str: _text,
    bytes: _bytes,
    bytearray: _bytes,
    memoryview: _bytes,
    tuple: _tuple,
    list: _sized,
    dict: _sized,
    set: _sized,
    frozenset: _sized,
}


def _other(value: Any, kind: type) -> str:
    # Asked of the type first, as objects with attributes of their own making may have any.
    if hasattr(kind, "shape"):
        return _array(value, kind)
    if isinstance(value, Enum):
        return f"{kind.__name__}.{value.name}"
    size = value.size if hasattr(kind, "size") else None
    return f"{kind.__name__}[{size} B]" if type(size) is int else kind.__name__


def _array(value: Any, kind: type) -> str:
    shape = value.shape
    name = _type_name(value.dtype) if hasattr(kind, "dtype") else kind.__name__
    if shape == () and isinstance(value, Integral):
        return f"{name} {_whole(int(value))}"
    if shape == () and isinstance(value, Real):
        return f"{name} {_real(float(value)).removeprefix('float ')}"
    extents = "x".join(map(str, shape)) if isinstance(shape, tuple) else str(shape)
    return f"{name}[{extents}]"


_TYPE_NAMES: dict[Any, str] = {}
_MOST_TYPES = 1000


def _type_name(dtype: Any) -> str:
    """Name of an array's type of element; NumPy takes longer to tell it than all else takes."""
    try:
        return _TYPE_NAMES[dtype]
    except KeyError:
        if len(_TYPE_NAMES) >= _MOST_TYPES:
            _TYPE_NAMES.clear()
        name = _TYPE_NAMES[dtype] = str(dtype)
        return name
