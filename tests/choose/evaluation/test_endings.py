"""Walks end where `settle` ends them, whether they are walked once or for each budget."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast.decide.cases import endings
from crosscast.decide.policies import Fixed, Limiter, limited
from crosscast.decide.power_cap import Method, settle
from made_walks import Wanderer, random_surfaces


@given(
    seed=st.integers(0, 10_000),
    number=st.integers(0, 2),
    budgets=st.sampled_from([(0, 1, 2, 5, 20), (0, 1, 3), (2,)]),
)
@settings(max_examples=40, deadline=None)
def test_one_long_walk_ends_as_short_ones_do(seed: int, number: int, budgets: tuple[int, ...]) -> None:
    methods: tuple[Method, ...] = (Limiter(), Wanderer(1, 2), limited(Fixed()))
    surfaces = random_surfaces(seed)
    samples = (len(surfaces.space) - 1, 0)
    chooser = methods[number].fit(surfaces, samples)
    row = seed % len(surfaces.kernels)
    observed, known = surfaces.observed(row, samples), surfaces.known[row]
    cap = float(np.nanquantile(surfaces.power_w[row], 0.4))
    found = endings(chooser, observed, cap, known, budgets, lambda place: surfaces.observed(row, (place,)))
    for budget, end in zip(budgets, found, strict=True):
        walk = chooser.walk(observed, cap, known, budget)
        assert end == settle(walk, lambda place: surfaces.observed(row, (place,)), budget)


@pytest.mark.parametrize("uses_budget", [False, True])
def test_no_budget_means_the_first_configuration(uses_budget: bool) -> None:
    surfaces = random_surfaces(1)
    chooser = replace(Wanderer(3), uses_budget=uses_budget).fit(surfaces, (0,))
    ends = endings(
        chooser,
        surfaces.observed(0, (0,)),
        1.0,
        surfaces.known[0],
        (0, 2, 9),
        lambda place: surfaces.observed(0, (place,)),
    )
    there = np.flatnonzero(surfaces.known[0])
    assert [(end.number, end.changes) for end in ends] == [
        (there[3], 0),
        (there[5], 2),
        (there[8 % len(there)], 5),
    ]
