"""Reading of ``.npz`` archives that may be damaged or malicious."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from typing import IO

import numpy as np

DAMAGE = (
    ArithmeticError,
    EOFError,
    KeyError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions that Python and NumPy raise on files that are damaged or no archive of arrays."""


def array_header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Read the shape and type of an array in an archive without allocating the array."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(member)
    return shape, dtype
