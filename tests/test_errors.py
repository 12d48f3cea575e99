"""Errors of Crosscast, on their way between processes."""

import pickle

import pytest

from crosscast import errors
from crosscast.errors import CrosscastError, MissingExtraError


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_survives_the_way_between_processes(name: str) -> None:
    kind = getattr(errors, name)
    words = ("train", "fitting a model") if kind is MissingExtraError else ("jobs: expected at least 1",)
    error = kind(*words)
    found = pickle.loads(pickle.dumps(error))
    assert isinstance(found, CrosscastError)
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))
