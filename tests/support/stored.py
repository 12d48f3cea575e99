"""Parts of models, compared to the last bit."""

from dataclasses import fields
from typing import Any

import numpy as np

from crosscast.prediction.serialization import Stored


def same(one: Any, other: Any) -> bool:
    """Whether two parts of models have the same in all fields, to the last bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Stored):
        names = [each.name for each in fields(one)]  # type: ignore[arg-type]
        return all(same(getattr(one, each), getattr(other, each)) for each in names)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return np.shape(one) == np.shape(other) and np.asarray(one).tobytes() == np.asarray(other).tobytes()
