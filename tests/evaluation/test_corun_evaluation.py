"""Scores of predictions of co-running.

Times of one device are translated to another by a line that left-out applications judge.
"""

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
from crosscast.evaluation.corun.evaluation import (
    SPLITS,
    CoRunEvaluation,
    CoRunTask,
    Probing,
    evaluate_corun,
    folds_of,
    of_one_device,
    out_of_fold_errors,
)
from crosscast.evaluation.corun.question import train_corun
from crosscast.evaluation.corun.scores import CoRunResult, ScoredValues, with_scores
from crosscast.prediction.corun.models import Mean, Sum
from crosscast.prediction.corun.process import Process
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


@given(st.sampled_from(SPLITS), st.integers(0, 1000))
def test_every_mix_is_on_one_side_of_a_fold(split: str, seed: int) -> None:
    for fold in folds_of(MIXES, split, seed):
        both = np.concatenate([fold.train, fold.test])
        assert sorted(both.tolist()) == list(range(len(MIXES)))


def test_no_mix_with_the_benchmark_that_is_left_out_is_learned_from() -> None:
    folds = folds_of(MIXES, "leave-benchmark-out", 0)
    assert [fold.held_out for fold in folds] == sorted(NAMES)
    for fold in folds:
        assert all(fold.held_out in MIXES[index].applications for index in fold.test)
        assert not any(fold.held_out in MIXES[index].applications for index in fold.train)


@pytest.mark.parametrize("split", ["leave-mix-out", "random-80-20"])
def test_repeats_and_reorderings_of_a_mix_are_held_out_together(split: str) -> None:
    twice = [*MIXES, *(make_mix(mix.isolated_runs[::-1], repeat=1) for mix in MIXES)]
    for fold in folds_of(twice, split, 3):
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
        folds_of(mixes, split, 0)


FEW = NAMES[:4]
PAIRS, BOTH = made_co_runs(FEW), made_co_runs(NAMES[:5], mixes=(2, 3))
QUICK = Process(trees=False)
OUT = "leave-benchmark-out"


def of(evaluation: CoRunEvaluation, model: str, quantity: str, size: int | None = None) -> CoRunResult:
    (result,) = (
        each
        for each in evaluation.results
        if (each.model, each.quantity, each.mix_size) == (model, quantity, size)
    )
    return result


def failing(mix: MeasuredMix) -> MeasuredMix:
    """One of which a member failed, with numbers that would be far off."""
    members = (replace(mix.members[0], slowdown=9.0, failure="killed"), *mix.members[1:])
    return replace(mix, members=members, time_s=99.0, power_w=999.0, repeat=7)


@pytest.fixture(scope="module")
def evaluation() -> CoRunEvaluation:
    return evaluate_corun(BOTH, [Process(), Mean(), Sum()], OUT, baselines=["mean", "sum"])


def test_the_truth_is_found_and_baselines_are_beaten(evaluation: CoRunEvaluation) -> None:
    mape = {name: of(evaluation, name, "slowdown").mape or 0.0 for name in ("process", "mean", "sum")}
    assert mape["process"] < 0.1
    assert mape["process"] < 0.6 * min(mape["mean"], mape["sum"])
    assert (of(evaluation, "process", "power").mape or 0.0) < 0.03


def test_scores_are_what_their_rows_say(evaluation: CoRunEvaluation) -> None:
    result = of(evaluation, "process", "time", 3)
    rows = result.scored
    assert rows is not None
    error = np.abs(rows.centre - rows.true)
    assert result.mape == pytest.approx((error / rows.true).mean())
    assert result.mae == pytest.approx(error.mean())
    assert result.coverage == pytest.approx(((rows.low <= rows.true) & (rows.true <= rows.high)).mean())
    assert result.by_group is not None
    assert sorted(result.by_group) == sorted(NAMES[:5])


@pytest.mark.parametrize("probes", [0, 2])
def test_what_came_of_held_out_mixes_changes_no_prediction_and_no_interval(probes: int) -> None:
    fold = folds_of(PAIRS.mixes, OUT, 0)[1]
    task = CoRunTask(QUICK, fold, 0, OUT, probes, 0.9)
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


@pytest.mark.parametrize("probes", [0, 2])
def test_widths_come_from_mixes_that_are_not_known(probes: int) -> None:
    probing = Probing.of(PAIRS, 0) if probes else None
    errors = out_of_fold_errors(PAIRS, Mean(), OUT, 0, probes=probes, probing=probing)
    counts = np.bincount(errors["time"].group).tolist()
    assert errors["time"].groups == tuple(sorted(FEW))
    assert counts == [len(FEW) - probes] * len(FEW)


def test_known_mixes_are_not_scored_nor_are_their_repeats() -> None:
    evaluation = evaluate_corun(PAIRS, [Mean()], OUT, probes=(0, 1, 1, 99), level=None)
    rows = {each.probes: each.rows for each in evaluation.results if each.quantity == "time"}
    # Of each application all pairs with others are known then, and that with itself is left.
    assert rows == {0: 4 * 4, 1: 4 * 3, 99: 4}
    again = (make_mix(mix.isolated_runs[::-1], repeat=1) for mix in PAIRS.mixes)
    twice = replace(PAIRS, mixes=(*PAIRS.mixes, *again))
    evaluation = evaluate_corun(twice, [Mean()], OUT, probes=(1,), level=None)
    assert {each.rows for each in evaluation.results if each.quantity == "time"} == {2 * 4 * 3}
    errors = out_of_fold_errors(twice, Mean(), OUT, 0, probes=1, probing=Probing.of(twice, 0))
    assert np.bincount(errors["time"].group).tolist() == [2 * 3] * 4


@pytest.mark.parametrize("split", [OUT, "random-80-20"])
def test_failed_mixes_change_no_score(split: str) -> None:
    failed = map(failing, PAIRS.mixes[: 4 if split == OUT else None])
    broken = replace(PAIRS, mixes=(*PAIRS.mixes, *failed))
    first, second = (evaluate_corun(runs, [QUICK, Mean()], split) for runs in (PAIRS, broken))
    assert [each.to_dict() for each in first.results] == [each.to_dict() for each in second.results]


def test_mixes_of_one_device_and_way_of_sharing_are_taken() -> None:
    other = [replace(mix, device="gpu") for mix in PAIRS.mixes[:9]]
    shared = [replace(mix, configuration='{"sharing": "mps"}', device="gpu") for mix in PAIRS.mixes[:3]]
    runs = replace(PAIRS, mixes=(*PAIRS.mixes, *other, *shared))
    assert of_one_device(runs).mixes == PAIRS.mixes
    assert of_one_device(runs, "gpu").mixes == tuple(other)
    assert of_one_device(runs, "gpu").isolated_runs == ()
    with pytest.raises(InputError, match=r"^made up: expected mixes on phi, found those on cpu, gpu"):
        of_one_device(runs, "phi")
    with pytest.raises(InputError, match=r"expected mixes on a device, found those on none$"):
        of_one_device(CoRuns("empty", (), ()))


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


def test_mixes_are_left_out_whole_and_those_that_are_known_in_part_stay_together() -> None:
    runs = made_co_runs(mixes=(2, 3))
    errors = out_of_fold_errors(runs, Mean(), "leave-benchmark-out", 0)
    slowdown = errors["slowdown"].mix
    assert slowdown is not None
    numbers, counts = np.unique(slowdown, return_counts=True)
    # A mix is left out with each of its applications.
    times = [len(mix.applications) for mix in runs.mixes]
    assert len(numbers) == sum(times)
    assert sorted(counts.tolist()) == sorted(
        len(mix.members) for mix, count in zip(runs.mixes, times, strict=True) for _ in range(count)
    )
    time = errors["time"].mix
    assert time is not None and sorted(time.tolist()) == numbers.tolist()
    # One co-runner of which nothing is known leaves the others with their mix.
    runs = made_co_runs()
    first, *rest = runs.mixes
    half = replace(first, members=(replace(first.members[0], slowdown=None), first.members[1]))
    mix = out_of_fold_errors(replace(runs, mixes=(half, *rest)), Mean(), "leave-mix-out", 0)["slowdown"].mix
    assert mix is not None
    _, counts = np.unique(mix, return_counts=True)
    assert sorted(counts.tolist()) == [1] + [2] * len(rest)
