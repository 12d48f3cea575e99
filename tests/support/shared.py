"""Published data that is too large for the package: beside the checkout, in ``shared/data``, or elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("CROSSCAST_DATA") or Path(__file__).parents[3] / "shared" / "data")


def shared_data(name: str) -> Path:
    """A file or folder of it; a test that asks for what is not there is skipped."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"the published data is not in {path}: set CROSSCAST_DATA")
    return path
