"""A walk is taken as far as the budget goes."""

import numpy as np
import pytest

from crosscast.decide.power_cap import Settled, Walk, settle
from crosscast.predict.configuration.data import Observed


def run(number: int) -> Observed:
    return Observed(np.array([number]), np.ones(1), np.full(1, 10.0 * number))


def along(numbers: list[int], sent: list[float], ended: list[bool]) -> Walk:
    try:
        for number in numbers:
            found = yield number
            sent.append(float(found.power_w[0]))
    finally:
        ended.append(True)


@pytest.mark.parametrize(
    ("budget", "settled", "powers"),
    [
        (0, Settled(4, 0), []),
        (1, Settled(7, 1), [40.0]),
        (2, Settled(5, 2), [40.0, 70.0]),
        (3, Settled(5, 2), [40.0, 70.0, 50.0]),
        (9, Settled(5, 2), [40.0, 70.0, 50.0]),
    ],
)
def test_it_ends_by_itself_or_by_the_budget(budget: int, settled: Settled, powers: list[float]) -> None:
    sent, ended = list[float](), list[bool]()
    assert settle(along([4, 7, 5], sent, ended), run, budget) == settled
    assert sent == powers
    # Nothing is left running.
    assert ended == [True]
