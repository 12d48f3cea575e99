"""NumPy array types by element, and arrays as bytes of a file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.str_]

AnyArray = npt.NDArray[np.generic]
"""An array of any type, such as a buffer of a kernel."""

Arrays = dict[str, AnyArray]
"""Arrays by name."""


def npz_bytes(arrays: Mapping[str, AnyArray]) -> bytes:
    """Pack arrays into an ``.npz`` archive; equal arrays give equal bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            # Without a date of its own a member is dated 1980, so that bytes do not depend on the clock.
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    return content.getvalue()
