"""Names for arrays of NumPy by what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Arrays", "Flags", "Integers", "Reals"]

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

Arrays = dict[str, npt.NDArray[Any]]
"""Arrays by name."""
