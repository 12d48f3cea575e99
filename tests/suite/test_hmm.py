"""Training of a hidden Markov model: what the kernels estimate, and that the check sees what is wrong."""

import numpy as np
import pytest

from crosscast.errors import CheckFailed
from crosscast.suite.hmm.driver import Hmm
from crosscast.suite.registry import profiles_of


@pytest.mark.parametrize("nbytes", [8 << 10, 50_000, 256 << 10, 8 << 20])
def test_the_working_set_is_just_below_what_was_asked_for(nbytes: int) -> None:
    assert 0.9 * nbytes < Hmm(Hmm.fit(nbytes), seed=0).nbytes <= nbytes


def test_the_largest_model_has_a_bounded_number_of_steps() -> None:
    assert Hmm.fit(1 << 30)["steps"] == 64


@pytest.mark.parametrize(
    ("states", "symbols", "steps"), [(37, 5, 5), (3, 70, 2)], ids=["few symbols", "few states"]
)
def test_odd_models_are_updated_as_in_double_precision(states: int, symbols: int, steps: int) -> None:
    application = Hmm({"states": states, "symbols": symbols, "steps": steps}, seed=3)
    profiles_of(application, "odd")  # checks
    pi, a, b = application.result
    for sums in (pi.sum(), a.sum(axis=1), b.sum(axis=0)):
        np.testing.assert_allclose(sums, 1, rtol=1e-5)
    assert not np.allclose(a, application.model.a, rtol=0.01)


@pytest.mark.parametrize("field", [0, 1, 2], ids=["pi", "a", "b"])
def test_one_wrong_value_fails_the_check(field: int) -> None:
    application = Hmm({"states": 5, "symbols": 3, "steps": 4}, seed=4)
    for found, expected in zip(application.result, application._expected, strict=True):
        found[:] = expected
    application.check()
    application.result[field].flat[2] += 0.01
    with pytest.raises(CheckFailed, match=("pi", "a", "b")[field]):
        application.check()


def test_an_iteration_makes_the_observed_symbols_more_likely() -> None:
    application = Hmm({"states": 6, "symbols": 4, "steps": 5}, seed=5)
    profiles_of(application, "odd")
    symbols = application.buffers["symbols"]
    before, after = (
        _likelihood(model.pi, model.a, model.b, symbols) for model in (application.model, application.result)
    )
    assert after > before


def _likelihood(pi: np.ndarray, a: np.ndarray, b: np.ndarray, symbols: np.ndarray) -> float:
    alpha = pi * b[symbols[0]]
    for symbol in symbols[1:]:
        alpha = (alpha @ a) * b[symbol]
    return float(alpha.sum())
