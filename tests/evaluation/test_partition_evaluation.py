"""Evaluation of models of parts: what is held out stays unknown, and what the results say."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from crosscast.data.corun import mixes_of
from crosscast.errors import InputError
from crosscast.evaluation.partition import (
    MIX_SPLITS,
    PartitionEvaluation,
    PartitionResult,
    evaluate_partition,
    folds_of_mixes,
)
from support.mixes import made_mixes
from support.shared import published

SMALL = made_mixes(jobs=5, mixes=40, members=3)


@cache
def study(split: str) -> PartitionEvaluation:
    return evaluate_partition(SMALL, ["mean", "partition"], split)


def overall(results: tuple[PartitionResult, ...]) -> dict[str, PartitionResult]:
    return {each.model: each for each in results if each.slices is None}


@pytest.mark.parametrize("split", MIX_SPLITS)
def test_there_is_a_result_of_each_size_of_parts_and_of_all(split: str) -> None:
    found = study(split)
    assert [(each.model, each.slices) for each in found.results] == [
        (model, slices) for model in ("mean", "partition") for slices in (None, 7, 4, 3)
    ]
    members = int(found.mixes.judged.sum())
    for each in found.results:
        assert (each.quantity, each.split, each.probes, each.bag_size) == ("partition", split, 0, None)
        assert each.rows == members * (3 if each.slices is None else 1)
        assert each.baseline == (each.model == "mean")
        assert each.mae is not None
        assert each.coverage is not None
        assert 0 <= (each.worst_coverage or 0) <= each.coverage <= 1
        assert each.worst in (each.by_group or {})
    by_size = [each.mae for each in found.results if each.model == "mean" and each.slices is not None]
    assert overall(found.results)["mean"].mae == pytest.approx(
        np.mean([mae for mae in by_size if mae is not None])
    )


@pytest.mark.parametrize(("split", "share"), [("leave-bag-out", 0.5), ("leave-benchmark-out", 0.8)])
def test_looking_at_the_mix_is_better_than_not(split: str, share: float) -> None:
    found = overall(study(split).results)
    assert (found["partition"].mae or 1) < share * (found["mean"].mae or 0)


def test_the_constant_is_scored_as_counted_by_hand() -> None:
    found = overall(study("leave-benchmark-out").results)["mean"]
    errors = []
    mixes = SMALL.without_copies()
    for job in range(1, 6):
        without = ~(mixes.job == job).any(axis=1)
        mean = mixes.alone[without][mixes.judged[without]].mean(axis=0)
        errors.append(np.abs(mixes.alone[mixes.job == job] - mean))
    assert found.mae == pytest.approx(np.concatenate(errors).mean())


@pytest.mark.parametrize("split", MIX_SPLITS)
def test_nothing_of_what_is_held_out_is_learned(split: str) -> None:
    mixes = SMALL.without_copies()
    fold = folds_of_mixes(mixes, split, 0)[0]
    alone = mixes.alone.copy()
    alone[~fold.train] = 0.123
    shared = mixes.shared.copy()
    met = fold.test.any(axis=1)
    shared[~fold.train & ~met] = 0.5
    changed = replace(mixes, alone=alone, shared=shared)
    for names in (["mean"], ["partition"]):
        before, after = (
            overall(evaluate_partition(each, names, split, folds=[fold]).results)[names[0]]
            for each in (mixes, changed)
        )
        assert before.scored is not None
        assert after.scored is not None
        np.testing.assert_array_equal(before.scored.centre, after.scored.centre)
        np.testing.assert_array_equal(before.scored.high, after.scored.high)


def test_copies_are_left_out_before_anything_is_split() -> None:
    twice = SMALL.where(np.arange(len(SMALL)).repeat(2))
    found = evaluate_partition(twice, ["mean"], "leave-bag-out")
    assert found.copies == len(SMALL) + study("leave-bag-out").copies
    once = overall(study("leave-bag-out").results)["mean"]
    assert overall(found.results)["mean"].to_dict() == once.to_dict()


def test_what_cannot_be_evaluated_is_refused() -> None:
    with pytest.raises(InputError, match="expected one of leave-benchmark-out, leave-bag-out of mixes"):
        folds_of_mixes(SMALL, "random-80-20", 0)
    with pytest.raises(InputError, match="expected at least 3 to leave one out, found 2"):
        folds_of_mixes(made_mixes(jobs=2, members=2), "leave-benchmark-out", 0)


def test_the_published_mixes_are_predicted_as_well_as_asked_for() -> None:
    # The whole of both is python -m benchmarks.corun_partition.
    mixes = mixes_of(published("miso", "gpu_corun")).without_copies()
    known = folds_of_mixes(mixes, "leave-bag-out", 0)[:1]
    (mean, own) = overall(
        evaluate_partition(mixes, ["mean", "partition"], "leave-bag-out", folds=known).results
    ).values()
    assert (own.mae or 1) <= 0.018 < (mean.mae or 0)
    assert 0.88 <= (own.coverage or 0) <= 0.97
    new = folds_of_mixes(mixes, "leave-benchmark-out", 0)[1::6]
    (mean, own) = overall(
        evaluate_partition(mixes, ["mean", "partition"], "leave-benchmark-out", folds=new).results
    ).values()
    assert (own.mae or 1) <= 0.030 < (mean.mae or 0)
