"""Published data that is too large for the package: beside the checkout, in ``shared/data``, or elsewhere."""

import os
from functools import cache
from pathlib import Path

import pytest

from crosscast.data.dataset import Dataset
from crosscast.data.sources import import_source

SHARED = Path(os.environ.get("CROSSCAST_SHARED") or Path(__file__).parents[3] / "shared")
DATA = Path(os.environ.get("CROSSCAST_DATA") or SHARED / "data")


def shared_data(name: str) -> Path:
    """A file or folder of it; a test that asks for what is not there is skipped."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"the published data is not in {path}: set CROSSCAST_DATA")
    return path


@cache
def published(source: str, folder: str, cores: int | None = None) -> Dataset:
    """The dataset that is imported from a folder of it, once for all tests of a process."""
    return import_source(source, shared_data(folder), **({} if cores is None else {"cores": cores}))
