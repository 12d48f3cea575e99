"""What was printed or forecast before, compared with what is now."""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def assert_close(
    found: Any, expected: Any, where: str = "", rel: float = 1e-6, smallest: float = 1e-12
) -> None:
    """The same keys and words, and numbers as close; what is no number is null in JSON."""
    if isinstance(found, np.ndarray):
        found = found.tolist()
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for name, each in expected.items():
            assert_close(found[name], each, f"{where}.{name}", rel, smallest)
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, each in enumerate(expected):
            assert_close(found[place], each, f"{where}[{place}]", rel, smallest)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=rel, abs=smallest), where
    else:
        assert found == expected or (expected is None and np.isnan(found)), where


def assert_printed(text: str, path: Path) -> None:
    """The text that a file keeps; `make golden` writes what is printed now into the file instead."""
    if os.environ.get("CROSSCAST_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "run `make golden`, and look at what changed"


def assert_kept(found: Any, path: Path) -> None:
    """The words that a JSON file keeps, and its numbers to a thousandth; `make golden` writes it anew."""
    plain = _plain(found)
    if os.environ.get("CROSSCAST_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(plain) + "\n")
    assert_close(plain, json.loads(path.read_text()), path.stem, rel=1e-3, smallest=1e-7)


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
