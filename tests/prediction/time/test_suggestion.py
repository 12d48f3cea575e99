"""Suggested probes are those that tell most, by the scatter of the model's errors."""

from __future__ import annotations

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.prediction.time.card import suggest_probes
from crosscast.prediction.time.gaussian import GaussianPredictor, Scatter

KEYS = ("a", "b", "c", "d")


class Errors(GaussianPredictor):
    """A predictor of which only the scatter of its errors matters."""

    def __init__(self, covariance: list[list[float]]) -> None:
        object.__setattr__(self, "covariance", np.array(covariance))

    keys = KEYS

    @property
    def scatter(self) -> Scatter:
        return Scatter(self.covariance)


# b hangs together with c and d, and a with nothing.
STAR = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.8, 0.8], [0.0, 0.8, 1.0, 0.64], [0.0, 0.8, 0.64, 1.0]]


def test_the_device_that_the_others_hang_on_is_named_first() -> None:
    suggestion = suggest_probes(Errors(STAR), 1)
    assert suggestion.devices == ("b",)
    # Of three devices one is as unknown as before, and two have 0.6 of their standard deviation left.
    left = np.sqrt(2 / np.pi) * (1 + 2 * 0.6) / 3
    assert suggestion.error == pytest.approx(np.expm1(left), rel=0.05)
    assert suggestion.error_before == pytest.approx(np.expm1(np.sqrt(2 / np.pi)), rel=0.05)


def test_what_is_measured_is_not_named_again_and_counts() -> None:
    suggestion = suggest_probes(Errors(STAR), 1, measured=["b"])
    assert suggestion.devices == ("a",)
    assert suggestion.error < suggestion.error_before < suggest_probes(Errors(STAR), 1).error_before


def test_only_devices_of_interest_are_named() -> None:
    assert suggest_probes(Errors(STAR), 1, among=["a", "c", "d"]).devices[0] in ("c", "d")


@pytest.mark.parametrize("count", [0, 4])
def test_too_few_or_many_are_refused(count: int) -> None:
    with pytest.raises(InputError, match="suggest-probes: expected from 1 to 3, as 4 devices"):
        suggest_probes(Errors(STAR), count)
