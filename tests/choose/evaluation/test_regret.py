"""Regret is counted with the weights of the cases."""

import numpy as np

from crosscast.decide.scores import Regret


def test_percentiles_are_weighted() -> None:
    regret = np.array([0.5, 0.0, 0.1, 0.2])
    assert Regret.of(regret, np.array([1.0, 50, 41, 8])) == Regret(0.0, 0.1, 0.2)
    assert Regret.of(regret, np.array([11.0, 49, 30, 10])) == Regret(0.1, 0.5, 0.5)


def test_nothing_under_the_limit_has_no_regret() -> None:
    assert Regret.of(np.zeros(0), np.zeros(0)) is None
