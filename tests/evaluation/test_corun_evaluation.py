"""Evaluations of co-running: folds, scores, and errors on mixes that were left out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.metrics import mean_absolute_percentage_error

from crosscast.data.corun import CoRuns, MeasuredMix, Member
from crosscast.errors import InputError
from crosscast.evaluation.corun import evaluation as corun_evaluation
from crosscast.evaluation.corun.evaluation import CoRunResult, ScoredValues, with_scores
from crosscast.evaluation.corun.question import train_corun
from crosscast.prediction.corun.models import Mean, Process
from support.mixes import (
    NAMES,
    made_co_runs,
    make_isolated_run,
    make_mix,
)

VALUES = st.floats(0.1, 10)


def scored(true: Any, centre: Any) -> ScoredValues:
    nothing = np.full(len(true), np.nan)
    return ScoredValues(true, centre, nothing, nothing, np.zeros(len(true), np.int64), np.full(len(true), 2))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=20))
def test_errors_in_per_cent_are_those_of_scikit_learn(pairs: Any) -> None:
    true, centre = map(np.array, zip(*pairs, strict=True))
    empty = CoRunResult("any", False, OUT, 0)
    scores = with_scores(empty, scored(true, centre), ["a"])
    assert scores.mape == pytest.approx(mean_absolute_percentage_error(true, centre))
    assert scores.by_group == {"a": scores.mape}
    # Without limits nothing is held.
    assert scores.coverage is None


MIXES = made_co_runs(mixes=(2, 3)).mixes


def names_of(mix: MeasuredMix) -> tuple[str, ...]:
    return tuple(sorted(each.name for each in mix.isolated_runs))


@given(st.sampled_from(corun_evaluation.SPLITS), st.integers(0, 1000))
def test_every_mix_is_on_one_side_of_a_fold(split: str, seed: int) -> None:
    for fold in corun_evaluation.folds_of(MIXES, split, seed):
        both = np.concatenate([fold.train, fold.test])
        assert sorted(both.tolist()) == list(range(len(MIXES)))


def test_no_mix_with_the_benchmark_that_is_left_out_is_learned_from() -> None:
    folds = corun_evaluation.folds_of(MIXES, "leave-benchmark-out", 0)
    assert [fold.held_out for fold in folds] == sorted(NAMES)
    for fold in folds:
        for index in range(len(MIXES)):
            assert (fold.held_out in MIXES[index].applications) == (index in fold.test)


@pytest.mark.parametrize("split", ["leave-mix-out", "random-80-20"])
def test_repeats_and_reorderings_of_a_mix_are_held_out_together(split: str) -> None:
    twice = [*MIXES, *(make_mix(mix.isolated_runs[::-1], repeat=1) for mix in MIXES)]
    for fold in corun_evaluation.folds_of(twice, split, 3):
        tested = {names_of(twice[index]) for index in fold.test}
        assert not tested & {names_of(twice[index]) for index in fold.train}


@pytest.mark.parametrize(
    ("mixes", "split", "message"),
    [
        (MIXES, "leave-nothing-out", "folds: expected one of leave-benchmark-out"),
        (MIXES[:2], "random-80-20", "expected at least 5 different ones"),
        (made_co_runs(NAMES[:2]).mixes, "leave-benchmark-out", "at least 3 to leave one out, found 2"),
        (
            [make_mix((make_isolated_run("bfs"), make_isolated_run(name))) for name in NAMES],
            "leave-benchmark-out",
            "mixes without bfs to learn from",
        ),
    ],
)
def test_what_cannot_be_split_is_refused(mixes: Sequence[MeasuredMix], split: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        corun_evaluation.folds_of(mixes, split, 0)


FEW = NAMES[:4]
PAIRS = made_co_runs(FEW)
QUICK = Process(trees=False)
OUT = "leave-benchmark-out"


def failing(mix: MeasuredMix) -> MeasuredMix:
    """One of which a member failed, with numbers that would be far off."""
    members = (replace(mix.members[0], slowdown=9.0, failure="killed"), *mix.members[1:])
    return replace(mix, members=members, time_s=99.0, power_w=999.0, repeat=7)


@pytest.mark.parametrize("probes", [0, 2])
def test_what_came_of_held_out_mixes_changes_no_prediction_and_no_interval(probes: int) -> None:
    fold = corun_evaluation.folds_of(PAIRS.mixes, OUT, 0)[1]
    task = corun_evaluation.CoRunTask(QUICK, fold, 0, OUT, probes, 0.9)
    first = task.run(PAIRS)[0]
    known = np.flatnonzero(np.isnan(first["time"]))
    assert len(known) == probes
    hidden = np.delete(fold.test, known).tolist()
    turned = list(PAIRS.mixes)
    for index, other in zip(hidden, hidden[::-1], strict=True):
        mix = PAIRS.mixes[other]
        members = tuple(
            Member(one.isolated_run, 3 * (two.slowdown or 0))
            for one, two in zip(turned[index].members, mix.members, strict=True)
        )
        turned[index] = replace(turned[index], members=members, time_s=7.0, power_w=1.0, fits=False)
    second = task.run(replace(PAIRS, mixes=tuple(turned)))[0]
    for name, values in first.items():
        assert_array_equal(second[name], values)


def test_known_mixes_are_not_scored_nor_are_their_repeats() -> None:
    evaluation = corun_evaluation.evaluate_corun(PAIRS, [Mean()], OUT, probes=(0, 1, 1, 99), level=None)
    rows = {each.probes: each.rows for each in evaluation.results if each.quantity == "time"}
    # Of each application all pairs with others are known then, and that with itself is left.
    assert rows == {0: 4 * 4, 1: 4 * 3, 99: 4}
    again = (make_mix(mix.isolated_runs[::-1], repeat=1) for mix in PAIRS.mixes)
    twice = replace(PAIRS, mixes=(*PAIRS.mixes, *again))
    evaluation = corun_evaluation.evaluate_corun(twice, [Mean()], OUT, probes=(1,), level=None)
    assert {each.rows for each in evaluation.results if each.quantity == "time"} == {2 * 4 * 3}
    errors = corun_evaluation.out_of_fold_errors(
        twice, Mean(), OUT, 0, probes=1, probing=corun_evaluation.Probing.of(twice, 0)
    )
    assert np.bincount(errors["time"].group).tolist() == [2 * 3] * 4


@pytest.mark.parametrize("split", [OUT, "random-80-20"])
def test_failed_mixes_change_no_score(split: str) -> None:
    failed = map(failing, PAIRS.mixes[: 4 if split == OUT else None])
    broken = replace(PAIRS, mixes=(*PAIRS.mixes, *failed))
    first, second = (
        corun_evaluation.evaluate_corun(runs, [QUICK, Mean()], split) for runs in (PAIRS, broken)
    )
    assert [each.to_dict() for each in first.results] == [each.to_dict() for each in second.results]


def test_mixes_of_one_device_and_way_of_sharing_are_taken() -> None:
    other = [replace(mix, device="gpu") for mix in PAIRS.mixes[:9]]
    shared = [replace(mix, configuration='{"sharing": "mps"}', device="gpu") for mix in PAIRS.mixes[:3]]
    runs = replace(PAIRS, mixes=(*PAIRS.mixes, *other, *shared))
    assert corun_evaluation.of_one_device(runs).mixes == PAIRS.mixes
    assert corun_evaluation.of_one_device(runs, "gpu").mixes == tuple(other)
    assert corun_evaluation.of_one_device(runs, "gpu").isolated_runs == ()
    with pytest.raises(InputError, match=r"^made up: expected mixes on phi, found those on cpu, gpu"):
        corun_evaluation.of_one_device(runs, "phi")
    with pytest.raises(InputError, match=r"expected mixes on a device, found those on none$"):
        corun_evaluation.of_one_device(CoRuns("empty", (), ()))


def test_a_card_says_what_was_learned_from_and_how_good_it_is() -> None:
    lone = MeasuredMix(
        "lone", "cpu", (Member(make_isolated_run("odd"), None, "killed"), *PAIRS.mixes[0].members * 2)
    )
    trained = train_corun(
        replace(PAIRS, mixes=(*PAIRS.mixes, lone)), QUICK, baselines=[Mean()], memory_bytes=64, seed=3
    )
    card = trained.card
    assert (card.model, card.seed, card.device, card.memory_bytes) == ("process-alone", 3, "cpu", 64)
    # Nothing was learned of what failed.
    assert card.sizes == (2,)
    assert card.applications == tuple(sorted(FEW))
    assert (card.training["mixes"], card.training["failed_mixes"]) == (len(PAIRS.mixes) + 1, 1)
    results: Any = card.errors["results"]
    assert {each["model"] for each in results} == {"process-alone", "mean"}
    assert {whose: sorted(result) for whose, result in trained.errors.items()} == {
        whose: ["power", "slowdown", "time"] for whose in ("known", "new")
    }
    assert trained.errors["new"]["slowdown"].groups == tuple(sorted(FEW))
