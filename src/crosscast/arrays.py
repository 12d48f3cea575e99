"""Arrays of NumPy: names for what they hold, and the bytes that they are kept as."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

__all__ = ["AnyArray", "Arrays", "Flags", "Integers", "Reals", "Texts", "npz_bytes"]

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.str_]

AnyArray = npt.NDArray[np.generic]
"""An array of any type, such as a buffer of a kernel."""

Arrays = dict[str, AnyArray]
"""Arrays by name."""


def npz_bytes(arrays: Mapping[str, AnyArray]) -> bytes:
    """An ``.npz`` archive of arrays; the same bytes for the same arrays, as its members have no dates."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, array in arrays.items():
            # Made of a name alone, it is of 1980.
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    return whole.getvalue()
