"""Types of arrays that the whole package shares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Flags", "Integers", "Reals"]

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
