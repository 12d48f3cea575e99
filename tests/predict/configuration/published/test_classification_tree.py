"""The tree says what scikit-learn's does, in words and as data, and refuses what is no tree."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.configuration.bailey2014 import (
    ClassificationTree,
    fit_classification_tree,
)

NAMES = ("a", "b", "c")


def sample(seed: int, n: int = 40) -> tuple[Reals, Integers]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3)).round(1)
    kinds = np.unique((rows[:, 0] > 0) + 2 * (rows[:, 1] > 0.3) + (rng.random(n) < 0.2), return_inverse=True)
    return rows, kinds[1].astype(np.int64)


def grown(seed: int = 0, depth: int = 3) -> ClassificationTree:
    return fit_classification_tree(NAMES, *sample(seed), depth=depth, seed=seed)


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_it_classifies_as_scikit_learn_does(seed: int, depth: int) -> None:
    rows, kinds = sample(seed)
    tree = grown(seed, depth)
    other = DecisionTreeClassifier(max_depth=depth, random_state=seed).fit(rows, kinds)
    asked = np.concatenate([rows, sample(seed + 1)[0]])
    assert [tree.cluster_of(row) for row in asked] == other.predict(asked).tolist()
    assert tree.depth == other.get_depth()


def test_its_nodes_count_the_training_kernels() -> None:
    tree, (_, kinds) = grown(), sample(0)
    nodes = tree.nodes
    assert nodes[0].counts == tuple(np.bincount(kinds))
    for node in nodes:
        if node.left is not None and node.right is not None:
            below = np.array(nodes[node.left].counts) + np.array(nodes[node.right].counts)
            assert tuple(below) == node.counts
            assert node.feature in NAMES
        else:
            assert node.cluster == int(np.argmax(node.counts))
            assert node.threshold is None


def test_its_text_has_a_line_a_branch() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 5.0]])
    tree = fit_classification_tree(("watts", "misses"), rows, np.array([0, 0, 1]), depth=1, seed=3)
    feature = tree.nodes[0].feature
    threshold = {"watts": "1.5", "misses": "3"}[str(feature)]
    assert tree.text().splitlines() == [
        f"{feature} <= {threshold}",
        "|   cluster 0 (2 training kernels)",
        f"{feature} > {threshold}",
        "|   cluster 1 (1 training kernel)",
    ]


@pytest.mark.parametrize("names", [NAMES, ()])
def test_one_cluster_or_no_feature_asks_nothing(names: tuple[str, ...]) -> None:
    kinds = np.array([0, 0, 0] if names else [0, 1, 1])
    tree = fit_classification_tree(names, np.empty((3, len(names))), kinds, depth=3, seed=0)
    assert (len(tree.nodes), tree.depth) == (1, 0)
    assert tree.cluster_of(np.zeros(len(names))) == (0 if names else 1)


def test_it_comes_back_from_its_state() -> None:
    tree = grown()
    again = ClassificationTree.from_state(tree.state(), NAMES, tree.counts.shape[1])
    assert again.nodes == tree.nodes


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("tree_feature", lambda a: a + 3, "tree_feature: expected integers from -1 to 2"),
        ("tree_left", lambda a: np.zeros_like(a), "tree_left: expected every node but the root below one"),
        ("tree_right", lambda a: a + 100, "tree_right: expected integers from -1 to"),
        ("tree_right", lambda a: np.where(a > 0, 1, a), "tree_left: expected every node but the root"),
        ("tree_counts", lambda a: a[1:], "tree_counts: expected a node at least"),
        ("tree_counts", lambda a: a[:, 1:], "tree_counts: expected a node at least"),
        ("tree_threshold", lambda a: a * np.nan, "tree_threshold: expected finite numbers"),
    ],
)
def test_a_damaged_state_is_refused(name: str, change: Any, sentence: str) -> None:
    tree = grown()
    state = tree.state()
    with pytest.raises(InputError, match=sentence):
        ClassificationTree.from_state({**state, name: change(state[name])}, NAMES, tree.counts.shape[1])


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_state_with_any_one_node_changed_is_refused_or_still_a_tree(data: st.DataObject) -> None:
    tree = grown()
    state = tree.state()
    name = data.draw(st.sampled_from(["tree_feature", "tree_left", "tree_right"]))
    array = state[name].copy()
    array[data.draw(st.integers(0, len(array) - 1))] = data.draw(st.integers(-3, 30))
    try:
        again = ClassificationTree.from_state({**state, name: array}, NAMES, tree.counts.shape[1])
    except InputError:
        return
    assert all(0 <= again.cluster_of(row) < tree.counts.shape[1] for row in sample(1)[0])
