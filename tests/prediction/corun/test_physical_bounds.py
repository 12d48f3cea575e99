"""Who shares a device is no faster than alone, unless that was measured."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.corun import IsolatedRun
from crosscast.prediction.corun.forecast import CoRunPrediction, longest_alone, mix_key, physical


def mix_of(times: list[float]) -> tuple[IsolatedRun, ...]:
    return tuple(IsolatedRun(f"application {k}", "small", "cpu", each) for k, each in enumerate(times))


values = st.floats(0.2, 5.0)


@given(st.lists(st.tuples(values, values), min_size=1, max_size=4), values)
def test_no_slowdown_is_below_one_and_no_mix_is_over_before_its_longest(
    runs: list[tuple[float, float]], time_s: float
) -> None:
    mix = mix_of([alone for alone, _ in runs])
    slowdown = np.array([each for _, each in runs])
    nothing = np.array([np.nan])
    result = CoRunPrediction((slowdown,), np.array([time_s]), nothing, nothing)
    bounded = physical(result, [mix], frozenset())
    assert (bounded.slowdown[0] == np.maximum(slowdown, 1.0)).all()
    assert bounded.time_s[0] == max(time_s, longest_alone(mix))
    measured = physical(result, [mix], frozenset({mix_key(mix[::-1])}))
    assert (measured.slowdown[0] == slowdown).all()
    assert measured.time_s[0] == time_s
