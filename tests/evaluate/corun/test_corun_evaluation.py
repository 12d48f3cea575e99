"""Evaluation of models of co-running: nothing of what is held out is learned, and truths are found."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_co_runs import NAMES, made_bag, made_co_runs, made_solo
from numpy.testing import assert_array_equal

from crosscast.errors import InputError
from crosscast.evaluate.corun import (
    CoRunEvaluation,
    CoRunTask,
    answer_of,
    evaluate_corun,
    folds_of,
    left_out_errors,
    of_one_device,
    probing_of,
    train_corun,
)
from crosscast.evaluate.corun_scores import CoRunResult, measured, predicted
from crosscast.predict.corun.baselines import Mean, Sum
from crosscast.predict.corun.forecast import CoRunPrediction
from crosscast.predict.corun.process import Process
from crosscast.studies.corun import study_corun
from crosscast.tables.corun.bag import Bag, Member
from crosscast.tables.corun.view import CoRuns

PAIRS = made_co_runs()
BOTH = made_co_runs(NAMES[:5], bags=(2, 3))
QUICK = Process(trees=False)
OUT = "leave-benchmark-out"


def of(evaluation: CoRunEvaluation, model: str, quantity: str, size: int | None = None) -> CoRunResult:
    (found,) = (
        each
        for each in evaluation.results
        if (each.model, each.quantity, each.bag_size) == (model, quantity, size)
    )
    return found


def failing(bag: Bag) -> Bag:
    """One of which a member failed, with numbers that would be far off."""
    members = (replace(bag.members[0], slowdown=9.0, failure="killed"), *bag.members[1:])
    return replace(bag, members=members, time_s=99.0, power_w=999.0, repeat=7)


@pytest.fixture(scope="module")
def evaluation() -> CoRunEvaluation:
    return evaluate_corun(BOTH, [Process(), Mean(), Sum()], OUT, baselines=["mean", "sum"])


def test_the_truth_is_found_and_baselines_are_beaten(evaluation: CoRunEvaluation) -> None:
    mape = {name: of(evaluation, name, "slowdown").mape or 0.0 for name in ("process", "mean", "sum")}
    assert mape["process"] < 10
    assert mape["process"] < 0.6 * min(mape["mean"], mape["sum"])
    assert (of(evaluation, "process", "power").mape or 0.0) < 3


def test_there_is_a_result_for_each_size_and_for_all(evaluation: CoRunEvaluation) -> None:
    rows = {size: of(evaluation, "process", "slowdown", size).rows for size in (None, 2, 3)}
    # A bag of so many different applications is held out as often.
    pairs, triples = (
        sum(size * len(bag.applications) for bag in BOTH.bags if len(bag.members) == size) for size in (2, 3)
    )
    assert rows == {None: pairs + triples, 2: pairs, 3: triples}


def test_scores_are_what_their_rows_say(evaluation: CoRunEvaluation) -> None:
    found = of(evaluation, "process", "time", 3)
    rows = found.scored
    assert rows is not None
    error = np.abs(rows.centre - rows.true)
    assert found.mape == pytest.approx(100 * (error / rows.true).mean())
    assert found.mae == pytest.approx(error.mean())
    assert found.coverage == pytest.approx(((rows.low <= rows.true) & (rows.true <= rows.high)).mean())
    assert found.by_group is not None
    assert sorted(found.by_group) == sorted(NAMES[:5])


@pytest.mark.parametrize("probes", [0, 2])
def test_what_came_of_held_out_bags_changes_no_prediction_and_no_interval(probes: int) -> None:
    fold = folds_of(PAIRS.bags, OUT, 0)[1]
    task = CoRunTask(QUICK, fold, OUT, probes, 0.9, 0)
    first = answer_of(PAIRS, task)
    known = np.flatnonzero(np.isnan(first.values["time"]))
    assert len(known) == probes
    hidden = np.delete(fold.test, known).tolist()
    turned = list(PAIRS.bags)
    for place, other in zip(hidden, hidden[::-1], strict=True):
        bag = PAIRS.bags[other]
        members = tuple(
            Member(one.solo, 3 * (two.slowdown or 0))
            for one, two in zip(turned[place].members, bag.members, strict=True)
        )
        turned[place] = replace(turned[place], members=members, time_s=7.0, power_w=1.0, fits=False)
    second = answer_of(replace(PAIRS, bags=tuple(turned)), task)
    for name, values in first.values.items():
        assert_array_equal(second.values[name], values)
    for name, reach in first.reach.items():
        assert_array_equal(second.reach[name], reach)


@pytest.mark.parametrize("probes", [0, 2])
def test_widths_come_from_bags_that_are_not_known(probes: int) -> None:
    probing = probing_of(PAIRS, 0) if probes else None
    errors = left_out_errors(PAIRS, Mean(), OUT, 0, probes=probes, probing=probing)
    counts = np.bincount(errors["time"].group).tolist()
    assert errors["time"].groups == tuple(sorted(NAMES))
    assert counts == [len(NAMES) - probes] * len(NAMES)


def test_known_bags_are_not_scored_and_so_many_may_be_asked_for_that_none_is_left() -> None:
    found = evaluate_corun(PAIRS, [Mean()], OUT, probes=(0, 1, 1, 99), level=None)
    rows = {each.probes: each.rows for each in found.results if each.quantity == "time"}
    # Of each application all pairs with others are known then, and that with itself is left.
    assert rows == {0: 6 * 6, 1: 6 * 5, 99: 6}


def test_a_probe_that_was_measured_again_is_neither_scored_nor_a_measure_of_widths() -> None:
    again = (made_bag(bag.solos[::-1], repeat=1) for bag in PAIRS.bags)
    twice = replace(PAIRS, bags=(*PAIRS.bags, *again))
    found = evaluate_corun(twice, [Mean()], OUT, probes=(1,), level=None)
    assert {each.rows for each in found.results if each.quantity == "time"} == {2 * 6 * 5}
    errors = left_out_errors(twice, Mean(), OUT, 0, probes=1, probing=probing_of(twice, 0))
    assert np.bincount(errors["time"].group).tolist() == [2 * 5] * 6


@pytest.mark.parametrize("split", [OUT, "random-80-20"])
def test_failed_bags_change_no_score(split: str) -> None:
    if split == OUT:
        broken = replace(PAIRS, bags=(*PAIRS.bags, *(failing(bag) for bag in PAIRS.bags[:4])))
    else:
        broken = replace(PAIRS, bags=(*PAIRS.bags, *(failing(bag) for bag in PAIRS.bags)))
    first, second = (evaluate_corun(runs, [QUICK, Mean()], split) for runs in (PAIRS, broken))
    assert [each.to_dict() for each in first.results] == [each.to_dict() for each in second.results]


def test_processes_seeds_and_caches_give_the_same(tmp_path: Path) -> None:
    few = made_co_runs(NAMES[:4])

    def results(**options: Any) -> list[dict[str, Any]]:
        found = evaluate_corun(few, [QUICK], OUT, probes=(0, 1), **options)
        return [each.to_dict() for each in found.results]

    first = results(cache=tmp_path)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(kept) == 8
    told: list[str] = []
    assert results(cache=tmp_path, progress=lambda done, all_, label: told.append(label)) == first
    assert told == []
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept
    again = tmp_path / "again"
    assert results(jobs=2, cache=again) == first
    assert {path.name: path.read_bytes() for path in again.iterdir()} == kept


def test_a_damaged_cache_is_worked_out_again(tmp_path: Path) -> None:
    first = evaluate_corun(PAIRS, [Mean()], OUT, cache=tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(b"no answer")
    again = evaluate_corun(PAIRS, [Mean()], OUT, cache=tmp_path)
    assert [each.to_dict() for each in again.results] == [each.to_dict() for each in first.results]


def test_a_cache_knows_other_bags_apart(tmp_path: Path) -> None:
    evaluate_corun(PAIRS, [Mean()], OUT, cache=tmp_path)
    slower = replace(
        PAIRS.bags[0], members=tuple(replace(each, slowdown=5.0) for each in PAIRS.bags[0].members)
    )
    evaluate_corun(replace(PAIRS, bags=(slower, *PAIRS.bags[1:])), [Mean()], OUT, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 1.0}, r"^level: expected a probability between 0 and 1, found 1$"),
        ({"models": []}, r"^models: expected at least one, and each once, found none$"),
        ({"models": [Mean(), Mean()]}, r"found mean, mean$"),
        ({"probes": (-1,)}, r"^probes: expected 0 but where benchmarks are left out"),
        ({"split": "random-80-20", "probes": (0, 2)}, r"^probes: expected 0 but"),
        ({"seed": -1}, r"^seed: "),
        ({"jobs": 0}, r"^jobs: "),
    ],
)
def test_wrong_options_are_refused(change: dict[str, Any], message: str) -> None:
    options = {"models": [Mean()], "split": OUT, **change}
    with pytest.raises(InputError, match=message):
        evaluate_corun(PAIRS, options.pop("models"), options.pop("split"), **options)


def test_a_model_that_cannot_be_fitted_says_where() -> None:
    runs = made_co_runs(NAMES[:4])
    few = replace(runs, bags=runs.bags[:1] + tuple(replace(bag, members=tuple(
        replace(each, slowdown=None) for each in bag.members)) for bag in runs.bags[1:]))  # fmt: skip
    with pytest.raises(InputError, match=r"^process-alone, bfs held out: made up: expected at least 3 bags"):
        evaluate_corun(few, [QUICK], OUT)


def test_rows_of_members_and_bags() -> None:
    bags = [made_bag((made_solo("bfs"), made_solo("cfd"))), failing(PAIRS.bags[0])]
    members = (Member(bags[0].solos[0], 0.0), Member(bags[0].solos[1], None))
    zero = replace(bags[0], members=members, time_s=0.0, power_w=0.0, fits=False)
    slowdown = measured([*bags, zero], "slowdown")
    assert slowdown.bag.tolist() == [0, 0, 1, 1, 2, 2]
    assert np.isnan(slowdown.value).tolist() == [False] * 2 + [True] * 4
    assert_array_equal(measured(bags, "speed").value[:2], 1 / slowdown.value[:2])
    for quantity in ("time", "power"):
        assert np.isnan(measured([*bags, zero], quantity).value).tolist() == [False, True, True]
    assert_array_equal(measured([*bags, zero], "fits").value, [1.0, np.nan, 0.0])
    slowdowns = np.array([1.0, 2.0]), np.array([4.0] * 3)
    said = CoRunPrediction(slowdowns, np.array([3.0, 5.0]), np.full(2, np.nan), np.array([0.5, 1.0]))
    assert predicted(said, "speed").value.tolist() == [1.0, 0.5, 0.25, 0.25, 0.25]
    assert predicted(said, "speed").bag.tolist() == [0, 0, 1, 1, 1]
    assert predicted(said, "fits").value.tolist() == [0.5, 1.0]


def test_bags_of_one_device_and_way_of_sharing_are_taken() -> None:
    other = [replace(bag, device="gpu") for bag in PAIRS.bags[:9]]
    shared = [replace(bag, configuration='{"sharing": "mps"}', device="gpu") for bag in PAIRS.bags[:3]]
    runs = replace(PAIRS, bags=(*PAIRS.bags, *other, *shared))
    assert of_one_device(runs).bags == PAIRS.bags
    assert of_one_device(runs, "gpu").bags == tuple(other)
    assert of_one_device(runs, "gpu").solos == ()
    assert of_one_device(runs, "gpu", '{"sharing": "mps"}').bags == tuple(shared)
    with pytest.raises(InputError, match=r"^made up: expected bags on phi, found those on cpu \{\}, gpu"):
        of_one_device(runs, "phi")
    with pytest.raises(InputError, match=r"expected bags on a device, found those on none$"):
        of_one_device(CoRuns("empty", (), ()))


def test_a_card_says_what_was_learned_from_and_how_good_it_is() -> None:
    lone = Bag("lone", "cpu", (Member(made_solo("odd"), None, "killed"), *PAIRS.bags[0].members * 2))
    trained = train_corun(
        replace(PAIRS, bags=(*PAIRS.bags, lone)), QUICK, baselines=[Mean()], memory_bytes=64, seed=3
    )
    card = trained.card
    assert (card.model, card.seed, card.device, card.memory_bytes) == ("process-alone", 3, "cpu", 64)
    # Nothing was learned of what failed.
    assert card.sizes == (2,)
    assert card.applications == tuple(sorted(NAMES))
    assert (card.training["bags"], card.training["failed_bags"]) == (len(PAIRS.bags) + 1, 1)
    assert {each["model"] for each in card.errors["results"]} == {"process-alone", "mean"}
    assert {whose: sorted(found) for whose, found in trained.errors.items()} == {
        whose: ["power", "slowdown", "speed", "time"] for whose in ("known", "new")
    }
    assert trained.errors["new"]["slowdown"].groups == tuple(sorted(NAMES))


def test_a_study_tells_everything_as_json() -> None:
    told = study_corun(PAIRS, [QUICK], "leave-bag-out", baselines=[Sum()]).to_dict()
    assert told["bags"] == len(PAIRS.bags)
    assert told["device"] == "cpu"
    keys = {"model", "split", "bag_size", "quantity", "mape", "coverage", "auc"}
    assert all(keys <= set(each) for each in told["results"])
    assert {each["split"] for each in told["results"]} == {"leave-bag-out"}
    # All bags fit: there is nothing to tell apart.
    assert {each["quantity"] for each in told["results"]} == {"slowdown", "speed", "time", "power"}
