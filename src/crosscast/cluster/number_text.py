"""Numbers as files of traces and schedules have them: as short as they can be read back."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.jobs import Reals

__all__ = ["texts_of"]

_EXACT = 2.0**53


def texts_of(numbers: Reals, missing: str) -> list[str]:
    """Write each number: whole ones without a fraction, others as short as they are read back the same.

    Parameters
    ----------
    numbers
        Numbers; not a number where there is none.
    missing
        What is written there.

    Examples
    --------
    >>> import numpy as np
    >>> texts_of(np.array([3.0, 0.1, np.nan]), "-1")
    ['3', '0.1', '-1']
    """
    absent = np.isnan(numbers)
    # Taken in one step where that is all there is, as in most columns.
    if not absent.any() and (np.abs(numbers) <= _EXACT).all() and (numbers == np.floor(numbers)).all():
        return list(map(str, numbers.astype(np.int64).tolist()))
    return [
        missing if none else _text(value)
        for none, value in zip(absent.tolist(), numbers.tolist(), strict=True)
    ]


def _text(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) <= _EXACT else repr(value)
