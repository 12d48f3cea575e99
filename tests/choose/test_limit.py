"""A power keeps to a cap that it equals, whatever arithmetic rounded."""

import numpy as np

from crosscast.decide.power_cap import within_cap


def test_a_cap_that_was_scaled_and_back_is_kept() -> None:
    power = 93.69114981347391
    assert within_cap(power, power / 3 * 3 * (1 - 1e-15))
    assert not within_cap(power * 1.000001, power)
    assert within_cap(power * 1.0099, power, 0.01)
    assert not within_cap(power * 1.0101, power, 0.01)


def test_what_is_not_known_keeps_to_no_cap() -> None:
    assert within_cap(np.array([1.0, np.nan, 3.0]), 2.0).tolist() == [True, False, False]
