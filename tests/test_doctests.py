"""The examples in docstrings do what they say."""

import doctest
import importlib
import pkgutil

import pytest

import crosscast

MODULES = [
    module.name
    for module in pkgutil.walk_packages(crosscast.__path__, "crosscast.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
