"""Errors of Crosscast, on their way between processes."""

import pickle

import pytest

from crosscast import errors
from crosscast.errors import CrosscastError, InputError, KernelFault, MissingExtraError


@pytest.mark.parametrize("name", [name for name in errors.__all__ if isinstance(getattr(errors, name), type)])
def test_every_error_survives_the_way_between_processes(name: str) -> None:
    kind = getattr(errors, name)
    words = ("train", "fitting a model") if kind is MissingExtraError else ("jobs: expected at least 1",)
    error = kind(*words)
    found = pickle.loads(pickle.dumps(error))
    assert isinstance(found, CrosscastError)
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))


def test_an_input_error_is_made_of_its_parts_and_keeps_them() -> None:
    error = InputError.of(where="model/card.json", field="seed", expected="a whole number", found=-1)
    assert str(error) == "model/card.json: seed: expected a whole number, found -1"
    parts = (error.where, error.field, error.expected, error.found)
    assert parts == ("model/card.json", "seed", "a whole number", "-1")


def test_parts_and_type_survive_the_way_between_processes_and_a_label_in_front() -> None:
    error = KernelFault.of(where="k", field="x", expected="a number", found="none").within("fold 1")
    found = pickle.loads(pickle.dumps(error))
    assert isinstance(found, KernelFault)
    assert str(found) == "fold 1: k: x: expected a number, found none"
    assert (found.where, found.field, found.expected, found.found) == ("fold 1: k", "x", "a number", "none")
