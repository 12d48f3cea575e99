"""Numbers that were forecast and scored before, in JSON files beside the tests; parts that are equal."""

import json
import math
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.prediction.serialization import Stored


def assert_kept(found: Any, path: Path) -> None:
    """The same words, and numbers to a thousandth; `make golden` writes the file anew."""
    if os.environ.get("CROSSCAST_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(_plain(found)) + "\n")
    _compare(_plain(found), json.loads(path.read_text()), path.stem)


def _plain(value: Any) -> Any:
    """As JSON keeps it, with numbers of six digits; what is no number is null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _compare(found: Any, kept: Any, where: str) -> None:
    if isinstance(kept, dict):
        assert list(found) == list(kept), where
        for name, each in kept.items():
            _compare(found[name], each, f"{where}.{name}")
    elif isinstance(kept, list):
        assert len(found) == len(kept), where
        for place, each in enumerate(kept):
            _compare(found[place], each, f"{where}[{place}]")
    elif isinstance(kept, float):
        assert found == pytest.approx(kept, rel=1e-3, abs=1e-7), where
    else:
        assert found == kept, where


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
