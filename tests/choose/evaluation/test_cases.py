"""Cases: kernels under the caps of their true frontiers, and their weights."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast.configuration import Configuration
from crosscast.decide.cases import cases_of, joined
from crosscast.errors import InputError
from crosscast.predict.configuration.data import KernelAt, Space, Surfaces
from made_walks import random_surfaces


def small() -> Surfaces:
    """Program p has kernels x and y at size big, which take 3 s and 1 s, and x at size small; q has x."""
    kernels = [("p", "x", "big"), ("p", "y", "big"), ("p", "x", "small"), ("q", "x", "big")]
    space = Space(tuple(Configuration("node", {"cap_w": cap}) for cap in (1.0, 2.0, 3.0)))
    time_s = np.array([[9.0, 5.0, 3.0], [4.0, 2.0, 1.0], [7.0, 6.0, 7.0], [8.0, 8.0, 2.0]])
    power_w = np.tile([10.0, 20.0, 30.0], (4, 1))
    return Surfaces("small", tuple(KernelAt(*each) for each in kernels), space, time_s, power_w)


def test_caps_are_the_powers_on_the_frontier() -> None:
    cases = cases_of(small(), (2, 0))
    assert cases.kernel.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    assert cases.power_cap.tolist() == [10, 20, 30, 10, 20, 30, 10, 20, 10, 30]
    assert cases.oracle_time_s.tolist() == [9, 5, 3, 4, 2, 1, 7, 6, 8, 2]
    assert cases.oracle.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 0, 2]
    assert cases.programs == ("p", "q")


def test_kernels_weigh_by_their_time_and_sizes_equally() -> None:
    share = cases_of(small(), (2, 0)).share
    assert share.tolist() == pytest.approx([3 / 24] * 3 + [1 / 24] * 3 + [1 / 4] * 2 + [1 / 2] * 2)


def test_all_kernels_at_a_size_may_weigh_equally() -> None:
    share = cases_of(small(), (2, 0), weighting="equal").share
    assert share.tolist() == pytest.approx([1 / 9] * 6 + [1 / 6] * 2 + [1 / 2] * 2)


@given(seed=st.integers(0, 10_000), weighting=st.sampled_from(["time", "equal"]))
@settings(max_examples=40, deadline=None)
def test_weights_within_a_program_sum_to_1(seed: int, weighting: str) -> None:
    cases = cases_of(random_surfaces(seed), (8, 0), weighting=weighting)  # type: ignore[arg-type]
    assert cases.within_programs.sum(axis=1) == pytest.approx(np.ones(len(cases.programs)))


def test_kernels_without_samples_or_choice_are_left_out_by_name() -> None:
    surfaces = small()
    time_s, power_w = surfaces.time_s.copy(), surfaces.power_w.copy()
    time_s[0, 2] = power_w[0, 2] = np.nan
    time_s[2] = 5.0, 6.0, 7.0
    cases = cases_of(replace(surfaces, time_s=time_s, power_w=power_w), (2, 0))
    assert [(str(each.kernel), each.reason) for each in cases.left_out] == [
        ("p/x big", "no run at the sample configuration node: cap_w 3"),
        ("p/x small", "1 configuration on its frontier"),
    ]
    assert cases.kernel.tolist() == [1, 1, 1, 3, 3]
    assert cases.share.tolist() == pytest.approx([1 / 3] * 3 + [1 / 2] * 2)


def test_parts_are_joined_as_if_they_had_been_one() -> None:
    surfaces = small()
    whole = cases_of(surfaces, (2, 0))
    parts = [cases_of(surfaces, (2, 0), surfaces.rows_of([name])) for name in ("p", "q")]
    both = joined(parts)
    for name in ("kernel", "power_cap", "oracle", "oracle_time_s", "share", "program"):
        assert np.array_equal(getattr(whole, name), getattr(both, name))
    assert both.programs == whole.programs


def test_another_weighting_is_refused() -> None:
    with pytest.raises(InputError, match="weighting: expected one of time, equal, found 'cases'"):
        cases_of(small(), (0,), weighting="cases")  # type: ignore[arg-type]
