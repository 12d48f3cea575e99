"""Steps go to the next setting of one knob, with all else the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_surfaces import made_space

from crosscast.configuration import Configuration
from crosscast.decide.power_cap import highest, lowest, step_down, step_up
from crosscast.errors import InputError
from crosscast.predict.configuration.data import Space

SPACE = made_space()
ALL = np.ones(len(SPACE), np.bool_)
KNOBS = ("cpu_cap_w", "gpu_cap_w")


def at(cpu: float, gpu: float) -> int:
    return SPACE.number_of(Configuration("node", {"cpu_cap_w": cpu, "gpu_cap_w": gpu}))


def test_the_first_knob_goes_to_its_minimum_before_the_second_moves() -> None:
    number: int | None = highest(SPACE, ALL)
    path = []
    while number is not None:
        path.append(number)
        number = step_down(SPACE, number, ALL, KNOBS)
    assert path == [at(100, 250), at(80, 250), at(60, 250), at(60, 200), at(60, 150), at(60, 100)]
    assert path[-1] == lowest(SPACE, ALL)


def test_the_order_of_the_knobs_is_the_callers() -> None:
    assert step_down(SPACE, at(80, 200), ALL, KNOBS[::-1]) == at(80, 150)
    assert step_up(SPACE, at(80, 200), ALL, KNOBS[::-1]) == at(80, 250)
    assert step_up(SPACE, at(80, 250), ALL, ("gpu_cap_w",)) is None
    assert step_up(SPACE, at(80, 250), ALL, ("gpu_cap_w", "no_knob_w")) is None


def test_settings_that_may_not_be_taken_are_stepped_over() -> None:
    available = ALL.copy()
    available[at(80, 250)] = False
    assert step_down(SPACE, at(100, 250), available, KNOBS) == at(60, 250)
    available[at(60, 250)] = False
    assert step_down(SPACE, at(100, 250), available, KNOBS) == at(100, 200)


@given(number=st.integers(0, len(SPACE) - 1), missing=st.sets(st.integers(0, len(SPACE) - 1)))
def test_a_step_up_undoes_a_step_down_of_the_same_knob(number: int, missing: set[int]) -> None:
    available = ALL.copy()
    available[list(missing - {number})] = False
    for knob in KNOBS:
        down = step_down(SPACE, number, available, (knob,))
        if down is not None:
            assert available[down]
            assert step_up(SPACE, down, available, (knob,)) == number


def several() -> Space:
    """A CPU with cores and a governor, and a GPU with a clock."""
    cpu = [
        Configuration("cpu", {"cores": cores, "governor": word})
        for cores in (1, 2)
        for word in ("low", "swift")
    ]
    return Space((*cpu, *(Configuration("gpu", {"clock_hz": clock}) for clock in (1e9, 2e9))))


def test_no_step_leaves_the_device_or_changes_a_word() -> None:
    space = several()
    everything = np.ones(6, np.bool_)
    cpu = space.number_of(Configuration("cpu", {"cores": 2, "governor": "swift"}))
    down = step_down(space, cpu, everything, space.knobs)
    assert down is not None
    assert space.configurations[down] == Configuration("cpu", {"cores": 1, "governor": "swift"})
    assert step_down(space, down, everything, space.knobs) is None
    gpu = highest(space, everything, "gpu")
    assert str(space.configurations[gpu]) == "gpu: clock_hz 2e+09"
    assert step_up(space, gpu, everything, space.knobs) is None


def test_the_highest_may_not_be_there() -> None:
    available = ALL.copy()
    available[at(100, 250)] = False
    assert highest(SPACE, available) == at(100, 200)
    available[at(60, 100)] = False
    assert lowest(SPACE, available) == at(60, 150)


def test_a_device_that_may_not_be_taken_is_replaced() -> None:
    space = several()
    available = space.device_numbers == 1
    assert space.configurations[highest(space, available, "cpu")].device == "gpu"
    with pytest.raises(InputError, match="configurations: expected one that may be taken, found none"):
        highest(space, np.zeros(6, np.bool_))
