"""Splits: what is held out is held out whole, and each row once."""

from dataclasses import replace

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.evaluate.relative import (
    FOLDS,
    PUBLISHED,
    SPLITS,
    TEST_SHARE,
    Weighting,
    row_weights,
    split_named,
)
from made_vectors import made_vectors

ROWS = made_vectors(applications=5, repeats=2).observations
WHOLE = sorted(set(SPLITS) - {PUBLISHED})


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("seed", [0, 1, 7])
def test_no_group_is_on_both_sides_and_each_row_is_tested_once(name: str, seed: int) -> None:
    split = split_named(name)
    groups = np.array(split.group(ROWS))
    folds = split.folds_of(ROWS, seed)
    for fold in folds:
        assert set(groups[fold.train]).isdisjoint(groups[fold.test])
        assert len(fold.train) > 0
        assert sorted([*fold.train, *fold.test]) == list(range(len(ROWS)))
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(len(ROWS)))


def test_a_fold_is_named_after_the_group_that_it_holds_out() -> None:
    folds = split_named("leave-kernel-out").folds_of(ROWS, 0)
    for fold in folds:
        application, kernel = fold.held_out.split("/")
        assert {ROWS.application[row] for row in fold.test} == {application}
        assert {ROWS.kernel[row] for row in fold.test} == {kernel}
    assert len(folds) == 15


def test_a_kernel_at_a_size_keeps_its_runs_on_all_sources_together() -> None:
    folds = split_named("leave-configuration-out").folds_of(ROWS, 0)
    assert len(folds) == FOLDS
    assert {len({ROWS.source[row] for row in fold.test}) for fold in folds} == {2}


def test_fewer_groups_than_folds_have_a_fold_each() -> None:
    few = ROWS.rows(np.flatnonzero([name == "app00" for name in ROWS.application]))
    few = few.rows(np.flatnonzero([name != "kernel2" for name in few.kernel]))
    assert len(split_named("leave-configuration-out").folds_of(few, 0)) == 4


def test_the_published_split_tests_a_tenth_and_validates_within_the_rest() -> None:
    test, *within = split_named(PUBLISHED).folds_of(ROWS, 0)
    assert len(test.test) == round(TEST_SHARE * len(ROWS))
    assert sorted([*test.train, *test.test]) == list(range(len(ROWS)))
    assert len(within) == 5
    assert sorted(np.concatenate([fold.test for fold in within])) == test.train.tolist()
    for fold in within:
        assert sorted([*fold.train, *fold.test]) == test.train.tolist()


def test_dealing_depends_on_the_seed_alone() -> None:
    for name in (PUBLISHED, "leave-configuration-out"):
        folds = [split_named(name).folds_of(ROWS, seed)[0].test.tolist() for seed in (3, 3, 4)]
        assert folds[0] == folds[1] != folds[2]


@pytest.mark.parametrize("name", WHOLE)
def test_a_single_group_cannot_be_split(name: str) -> None:
    with pytest.raises(InputError, match=f"^{name}: expected at least 2 .* to split by, found 1"):
        split_named(name).folds_of(ROWS.rows(np.array([0])), 0)


def test_one_source_is_named() -> None:
    one = ROWS.rows(np.flatnonzero([name == "cpu" for name in ROWS.source]))
    with pytest.raises(InputError) as caught:
        split_named("leave-machine-out").folds_of(one, 0)
    assert str(caught.value) == (
        "leave-machine-out: expected at least 2 devices with counters to split by, found 1 (cpu)"
    )


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(InputError, match=r"^split: expected one of published, .*, found 'leave-town'"):
        split_named("leave-town")


@pytest.mark.parametrize(
    ("weighting", "expected"), [("rows", [1 / 4] * 4), ("kernels", [1 / 6, 1 / 6, 1 / 3, 1 / 3])]
)
def test_weights_are_as_by_hand(weighting: Weighting, expected: list[float]) -> None:
    rows = replace(
        ROWS.rows(np.arange(4)), application=("a", "a", "a", "b"), kernel=("sum", "sum", "scan", "sum")
    )
    assert row_weights(rows, weighting).tolist() == pytest.approx(expected)


def test_applications_weigh_the_same() -> None:
    rows = replace(ROWS.rows(np.arange(4)), application=("a", "a", "a", "b"))
    assert row_weights(rows, "applications").tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])


def test_an_unknown_weighting_is_refused() -> None:
    with pytest.raises(InputError, match=r"^weights: expected one of rows, kernels, applications"):
        row_weights(ROWS, "sizes")  # type: ignore[arg-type]
