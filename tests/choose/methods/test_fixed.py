"""The best fixed configuration is the one with the best score on the training kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_surfaces import made_surfaces

from crosscast.decide.cases import cases_of
from crosscast.decide.policies import Fixed
from crosscast.decide.scores import Metrics, tallies_of
from crosscast.errors import InputError
from made_walks import random_surfaces


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_no_other_configuration_scores_better_on_the_training_kernels(seed: int) -> None:
    surfaces = random_surfaces(seed, missing=0)
    samples = (8, 0)
    cases = cases_of(surfaces, samples)
    scores = []
    for number in range(9):
        time_s, power_w = surfaces.time_s[cases.kernel, number], surfaces.power_w[cases.kernel, number]
        score = Metrics.of(tallies_of(cases, time_s, power_w, np.zeros(len(cases)))).score
        assert score is not None
        scores.append(score)
    chooser = Fixed().fit(surfaces, samples)
    everything = np.ones(9, np.bool_)
    observed = surfaces.observed(0, samples)
    number = next(chooser.walk(observed, 1.0, everything, 0))
    assert scores[number] == pytest.approx(max(scores))
    # The cap does not matter; where the best cannot be taken, the next best is.
    assert next(chooser.walk(observed, 1e9, everything, 0)) == number
    everything[number] = False
    other = next(chooser.walk(observed, 1.0, everything, 0))
    assert scores[other] == pytest.approx(sorted(scores)[-2])


def test_it_chooses_once() -> None:
    surfaces = made_surfaces()
    walk = Fixed().fit(surfaces, (11, 0)).walk(surfaces.observed(0, (11, 0)), 1.0, surfaces.known[0], 9)
    number = next(walk)
    with pytest.raises(StopIteration):
        walk.send(surfaces.observed(0, (number,)))


def test_without_a_training_kernel_under_caps_there_is_none() -> None:
    surfaces = made_surfaces(1)
    power_w = surfaces.power_w * 0 + 100.0
    flat = type(surfaces)("flat", surfaces.kernels, surfaces.space, surfaces.time_s, power_w)
    with pytest.raises(InputError, match="flat: expected training kernels under caps, found none"):
        Fixed().fit(flat, (11, 0))
