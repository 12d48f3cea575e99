"""Configurations and samples come back from arrays, or are refused."""

from typing import Any

import numpy as np
import pytest
from linear_machine import linear_space

from crosscast.errors import InputError
from crosscast.predict.configuration.data import kept_space, space_state


def test_they_come_back() -> None:
    space = linear_space()
    assert kept_space(space_state(space, (9, 2))) == (space, (9, 2))


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("configuration_device", lambda a: a[1:], "expected those of 11 configurations, found 12"),
        ("configuration_device", lambda a: a[::-1], "expected configurations in order"),
        ("configuration_settings", lambda a: np.array(["{"] * len(a)), "expected JSON objects, found '{'"),
        ("configuration_settings", lambda a: np.array(["[]"] * len(a)), "expected an object of settings"),
        ("samples", lambda a: a + 100, "samples: expected integers from 0 to 11"),
        ("samples", lambda a: a[:0], "samples: expected at least one"),
    ],
)
def test_a_damaged_state_is_refused(name: str, change: Any, sentence: str) -> None:
    state = space_state(linear_space(), (0, 11))
    with pytest.raises(InputError, match=sentence):
        kept_space({**state, name: change(state[name])})
