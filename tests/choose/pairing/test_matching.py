"""Matchings, compared with networkx and with all that there are."""

import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crosscast.decide.pairing import best_matching
from crosscast.errors import InputError, MissingExtraError


def total(weights: np.ndarray, pairs: list[tuple[int, int]]) -> float:
    return sum(float(weights[pair]) for pair in pairs)


def best_of_all(weights: np.ndarray, left: tuple[int, ...]) -> float:
    if len(left) < 2:
        return 0.0
    first, *rest = left
    without = best_of_all(weights, tuple(rest))
    return max(
        without,
        *(
            float(weights[first, other]) + best_of_all(weights, tuple(each for each in rest if each != other))
            for other in rest
        ),
    )


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, (7, 7), elements=st.floats(-1, 10)))
def test_no_other_matching_is_worth_more(weights: np.ndarray) -> None:
    pairs = best_matching(weights)
    nodes = [node for pair in pairs for node in pair]
    assert len(set(nodes)) == len(nodes)
    assert all(one < other and weights[one, other] > 0 for one, other in pairs)
    assert total(weights, pairs) == pytest.approx(best_of_all(weights, tuple(range(7))), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_networkx_finds_no_more(seed: int) -> None:
    random = np.random.default_rng(seed)
    weights = random.gamma(1.0, size=(40, 40)) * (random.random((40, 40)) < 0.5)
    graph = nx.Graph()
    first, second = np.nonzero(np.triu(weights, 1))
    graph.add_weighted_edges_from(
        (int(one), int(other), float(weights[one, other])) for one, other in zip(first, second, strict=True)
    )
    theirs = [(min(pair), max(pair)) for pair in nx.max_weight_matching(graph)]
    assert total(weights, best_matching(weights)) == pytest.approx(total(weights, theirs), rel=1e-9)


def test_what_is_worth_nothing_is_never_a_pair() -> None:
    assert best_matching(np.array([[0.0, np.nan, -1.0], [9.0, 0.0, 0.0], [9.0, 9.0, 0.0]])) == []


def test_a_tiny_weight_beside_a_large_one_is_still_a_pair() -> None:
    weights = np.zeros((4, 4))
    weights[0, 1], weights[2, 3] = 1e9, 1e-9
    assert best_matching(weights) == [(0, 1), (2, 3)]


def test_without_rustworkx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rustworkx", None)
    with pytest.raises(MissingExtraError, match=r"pairing jobs needs.*crosscast\[corun\]"):
        best_matching(np.ones((2, 2)))


def test_wrong_weights_are_refused() -> None:
    with pytest.raises(InputError, match=r"weights: expected shape \(n, n\), found \(2, 3\)"):
        best_matching(np.zeros((2, 3)))
    with pytest.raises(InputError, match="weights: expected finite numbers"):
        best_matching(np.full((2, 2), np.inf))
