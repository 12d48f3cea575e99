"""Arrays in archives of NumPy's ``.npz`` form that may be damaged, or made to do harm."""

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
"""What Python and NumPy raise on files that are no archive of arrays, or a damaged one."""


def array_header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Shape and type of an array in an archive, before memory is taken for what they say."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(member)
    return shape, dtype
