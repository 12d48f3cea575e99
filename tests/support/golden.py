"""What was printed or forecast before, compared with what is now."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def assert_close(found: Any, expected: Any, where: str = "") -> None:
    """The same keys and words, and numbers to a millionth; what is no number is null in JSON."""
    if isinstance(found, np.ndarray):
        found = found.tolist()
    if isinstance(expected, dict):
        assert set(found) == set(expected), where
        for name, each in expected.items():
            assert_close(found[name], each, f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, each in enumerate(expected):
            assert_close(found[place], each, f"{where}[{place}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12), where
    else:
        assert found == expected or (expected is None and np.isnan(found)), where


def assert_printed(text: str, path: Path) -> None:
    """The text that a file keeps; `make golden` writes what is printed now into the file instead."""
    if os.environ.get("CROSSCAST_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "run `make golden`, and look at what changed"
