"""The published models of Moolchandani et al. 2022 predict what scikit-learn does, and hold their laws."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import permutations
from warnings import catch_warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from crosscast.arrays import Reals
from crosscast.data.corun import CoRuns, IsolatedRun
from crosscast.errors import InputError
from crosscast.prediction.corun.forecast import CoRunModel, CoRunPrediction
from crosscast.prediction.corun.models import BASELINES, DEFAULT_MODEL, MODELS, models_named
from crosscast.prediction.corun.moolchandani2022 import (
    DEPTH,
    KINDS,
    PERFORMANCE_DEPTH,
    Published,
    PublishedCoRunPredictor,
    estimator,
)
from crosscast.prediction.corun.moolchandani2022_features import (
    FAIRNESS,
    PERFORMANCE,
    POWER,
    Combination,
    FairnessChoice,
    value_of,
)
from crosscast.studies.moolchandani2022_features import TABLE_7, decision_paths
from support.published_mixes import made_co_runs, mix_of, slowdowns, with_members, without

PAIRS = made_co_runs((2,))
TIMES = made_co_runs((2,), slowed=False, power=False)
TESTED = [mix.isolated_runs for mix in made_co_runs((2,), seed=9, applications=6).mixes]
FAST = ("decision-tree", "boosting", "linear", "mlp", "svr")


@cache
def fitted_to_pairs(kind: str) -> PublishedCoRunPredictor:
    return Published(kind).fit(PAIRS, 3)


def flat(said: CoRunPrediction) -> Reals:
    return np.concatenate([*said.slowdown, said.time_s, said.power_w])


def by_hand(
    kind: str,
    features: tuple[str, ...],
    quantity: str,
    co_runs: CoRuns,
    tested: list[tuple[IsolatedRun, ...]],
) -> Reals:
    """Predictions of scikit-learn alone: pairs, the longest first, in both orders, all between 0 and 1."""
    choice = FairnessChoice.fit([mix.isolated_runs for mix in co_runs.mixes])

    def members(mixes: list[tuple[IsolatedRun, ...]]) -> Reals:
        fairness = choice.fairness(mixes)
        rows = []
        for mix, fair in zip(mixes, fairness, strict=True):
            each = [
                [fair[index] if name == FAIRNESS else value_of(isolated_run, name) for name in features]
                for index, isolated_run in enumerate(mix)
            ]
            longest = 0 if (mix[0].time_s or 0) >= (mix[1].time_s or 0) else 1
            rows.append([each[longest], each[1 - longest]])
        return np.array(rows)

    known = [mix.isolated_runs for mix in co_runs.mixes]
    learned, unseen = members(known), members(tested)
    low, high = (each(learned.reshape(-1, len(features)), axis=0) for each in (np.min, np.max))
    learned, unseen = (learned - low) / (high - low), (unseen - low) / (high - low)
    wanted = np.array([getattr(mix, quantity) for mix in co_runs.mixes])
    least, span = wanted.min(), wanted.max() - wanted.min()
    rows = np.stack([learned, learned[:, ::-1]], axis=1).reshape(2 * len(learned), -1)
    aims = np.repeat((wanted - least) / span, 2)
    depth = PERFORMANCE_DEPTH if quantity == "time_s" and kind == "decision-tree" else DEPTH
    with catch_warnings(category=ConvergenceWarning, action="ignore"):
        model = estimator(kind, 3, depth).fit(rows, aims)
    said = least + span * model.predict(unseen.reshape(len(unseen), -1))
    floored: Reals = np.maximum(said, least)
    return floored


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("quantity", "features"), [("time_s", PERFORMANCE.features), ("power_w", POWER.features)]
)
def test_each_predicts_what_scikit_learn_does(kind: str, quantity: str, features: tuple[str, ...]) -> None:
    said = fitted_to_pairs(kind).predict(TESTED)
    expected = by_hand(kind, features, quantity, PAIRS, TESTED)
    np.testing.assert_allclose(getattr(said, quantity), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_mixes_and_seed_give_the_same_numbers(kind: str) -> None:
    first, second = (Published(kind).fit(TIMES, 5).state() for _ in range(2))
    assert all(np.array_equal(array, second[name]) for name, array in first.items())


def test_slowdowns_come_in_the_order_of_the_mix() -> None:
    fitted = Published("linear").fit(made_co_runs((3,), applications=5), 0)
    mix = made_co_runs((3,), applications=4, seed=4).mixes[0].isolated_runs
    alone = fitted.predict([mix])
    for indices in permutations(range(3)):
        said = fitted.predict([tuple(mix[index] for index in indices)])
        np.testing.assert_allclose(said.slowdown[0], alone.slowdown[0][list(indices)], rtol=1e-12)
        np.testing.assert_allclose([said.time_s, said.power_w], [alone.time_s, alone.power_w], rtol=1e-12)


@pytest.mark.parametrize("kind", ["decision-tree", "svr"])
def test_a_mix_is_predicted_alone_as_among_many(kind: str) -> None:
    fitted = fitted_to_pairs(kind)
    # Medians, ranges and thresholds are those of the training mixes, whatever else is predicted.
    odd = tuple(
        replace(isolated_run, features=dict.fromkeys(isolated_run.features, 1000000.0))
        for isolated_run in TESTED[0]
    )
    mixes = [*TESTED, odd, *TESTED]
    together = fitted.predict(mixes)
    for index in (0, 7, len(mixes) - 1):
        alone = fitted.predict([mixes[index]])
        np.testing.assert_allclose(alone.slowdown[0], together.slowdown[index], rtol=1e-12)
        assert alone.time_s[0] == pytest.approx(together.time_s[index], rel=1e-12)
        assert alone.power_w[0] == pytest.approx(together.power_w[index], rel=1e-12)


def test_what_is_held_out_does_not_matter() -> None:
    """Applications that no training mix has are among the isolated runs, and not learned from."""
    training = tuple(mix for mix in TIMES.mixes if "app0" not in mix.applications)
    held = [mix.isolated_runs for mix in TIMES.mixes if "app0" in mix.applications]
    changed = tuple(
        replace(isolated_run, time_s=77.0, features={"ipc": 1e6})
        if isolated_run.application == "app0"
        else isolated_run
        for isolated_run in TIMES.isolated_runs
    )
    said = [
        Published("linear").fit(CoRuns("made-up", isolated_runs, training), 0).predict(held)
        for isolated_runs in (TIMES.isolated_runs, changed)
    ]
    np.testing.assert_array_equal(flat(said[0]), flat(said[1]))


def test_mixes_of_a_size_that_was_not_trained_for_are_refused() -> None:
    fitted = Published("linear").fit(made_co_runs((2, 4), applications=5), 0)
    with pytest.raises(InputError, match=r"^mix: expected as many applications .*\(2, 4\), found 3$"):
        fitted.predict([TESTED[0], (*TESTED[0], TESTED[1][1])])


def test_times_follow_from_slowdowns_where_none_was_measured() -> None:
    """Of a pair: until the first ends both are slowed down, then the other one is alone."""
    said = Published("linear").fit(made_co_runs((2,), time=False), 0).predict(TESTED)
    for (first, second), slowed, time in zip(TESTED, said.slowdown, said.time_s, strict=True):
        work = np.array([first.time_s, second.time_s], dtype=float)
        ends = work * slowed
        early = int(np.argmin(ends))
        late = 1 - early
        assert time == pytest.approx(ends[early] + work[late] - ends[early] / slowed[late])


def test_those_that_are_left_of_three_are_slowed_down_as_pairs_are() -> None:
    mixes = made_co_runs((2, 3), time=False, applications=6)
    fitted = Published("linear").fit(mixes, 0)
    three = made_co_runs((3,), applications=3, seed=5).mixes[0].isolated_runs
    said = fitted.predict([three])
    work, slowed = np.array([isolated_run.time_s for isolated_run in three], dtype=float), said.slowdown[0]
    elapsed = float((work * slowed).min())
    out = int(np.argmin(work * slowed))
    left = [index for index in range(3) if index != out]
    work = work - elapsed / slowed
    pair = fitted.predict([tuple(three[index] for index in left)]).slowdown[0]
    ends = work[left] * pair
    early, late = int(np.argmin(ends)), int(np.argmax(ends))
    expected = elapsed + ends[early] + work[left][late] - ends[early] / pair[late]
    assert said.time_s[0] == pytest.approx(expected)


def test_slowdowns_follow_from_times_where_none_was_measured() -> None:
    said = Published("linear").fit(made_co_runs((2,), slowed=False), 0).predict(TESTED)
    for (first, second), slowed, time in zip(TESTED, said.slowdown, said.time_s, strict=True):
        short, long = sorted([first.time_s or 0.0, second.time_s or 0.0])
        assert slowed[0] == slowed[1] == pytest.approx(max(1.0, 1 + (time - long) / short))


def test_without_power_nothing_is_said_of_power() -> None:
    said = Published("linear").fit(made_co_runs((2,), power=False), 0).predict(TESTED)
    assert np.isnan(said.power_w).all()
    assert np.isfinite(said.time_s).all()
    assert np.isnan(said.fits).all()


def test_mixes_of_which_nothing_is_known_or_that_failed_teach_nothing() -> None:
    nothing = made_co_runs((2,), time=False, slowed=False, power=False)
    with pytest.raises(InputError, match=r"^made-up: expected mixes with a slowdown, a time or a power"):
        Published("linear").fit(nothing, 0)
    spoilt = [
        replace(mix, time_s=1e9, members=(replace(mix.members[0], failure="killed"), mix.members[1]))
        for mix in PAIRS.mixes[:3]
    ]
    first = Published("linear").fit(PAIRS, 0).predict(TESTED)
    second = (
        Published("linear")
        .fit(CoRuns("made-up", PAIRS.isolated_runs, (*PAIRS.mixes, *spoilt)), 0)
        .predict(TESTED)
    )
    np.testing.assert_array_equal(flat(first), flat(second))


def test_nothing_below_the_least_is_predicted() -> None:
    """A linear function of misses would send slowdowns below 0."""
    fitted = Published("linear", performance=Combination("misses", ("LLC_miss",))).fit(PAIRS, 0)
    none = replace(TESTED[0][0], features={"llc_miss": -99.0})
    least = min(min(slowdowns(mix.isolated_runs)) for mix in PAIRS.mixes)
    assert fitted.predict([(none, none)]).slowdown[0] == pytest.approx([least, least])


def test_features_that_are_missing_are_named() -> None:
    poor = {
        isolated_run.application: without(isolated_run, "llc_miss", "cpu_power_w")
        for isolated_run in PAIRS.isolated_runs
    }
    fitted = Published("linear").fit(with_members(PAIRS, poor), 0)
    assert fitted.of_size(2).columns.dropped == ("CPU_power", "LLC_miss")


def test_a_combination_that_needs_a_run_of_the_mix_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^comb17: expected features of applications alone, found CPU_power_sh,"
    ):
        Published("forest", power=TABLE_7[16])


def test_other_features_are_taken_where_there_are_none_of_the_paper_or_they_are_asked_for() -> None:
    """As of data that tell batch sizes, and nothing else."""
    isolated_runs = [
        IsolatedRun(f"a{n}", "s", "gpu", None, features={"batch_size": float(n)}) for n in range(8)
    ]
    rich = {f"app{n}": isolated_run for n, isolated_run in enumerate(isolated_runs)}
    co_runs = with_members(made_co_runs((2,), time=False, power=False), rich)
    fitted = Published("decision-tree").fit(co_runs, 0)
    assert fitted.of_size(2).columns.columns == ("batch_size",)
    assert np.isnan(fitted.predict([(isolated_runs[0], isolated_runs[1])]).time_s).all()
    more = {
        isolated_run.application: replace(isolated_run, features={**isolated_run.features, "batch_size": 8.0})
        for isolated_run in PAIRS.isolated_runs
    }
    mixes = [Published("linear", others=others).fit(with_members(PAIRS, more), 0) for others in (False, True)]
    assert ["batch_size" in each.of_size(2).columns.columns for each in mixes] == [False, True]


def test_what_a_target_is_predicted_from_is_its_own_combination() -> None:
    """Power that is predicted from GPU_power alone does not move with anything else."""
    model = Published("linear", power=Combination("one", ("GPU_power",)))
    fitted = model.fit(PAIRS, 0)
    changed = [
        tuple(
            replace(isolated_run, features=dict.fromkeys(isolated_run.features, 0.5)) for isolated_run in mix
        )
        for mix in TESTED
    ]
    first, second = fitted.predict(TESTED), fitted.predict(changed)
    np.testing.assert_allclose(first.power_w, second.power_w, rtol=1e-12)
    assert not np.allclose(first.time_s, second.time_s)


def test_the_order_of_training_mixes_members_is_a_setting_that_matters() -> None:
    one, both = (Published("svr", permuted=permuted).fit(PAIRS, 0) for permuted in (False, True))
    assert not np.allclose(one.predict(TESTED).time_s, both.predict(TESTED).time_s)
    # Of two, the other one has one order only.
    np.testing.assert_array_equal(
        np.concatenate(one.predict(TESTED).slowdown), np.concatenate(both.predict(TESTED).slowdown)
    )


def test_mixes_of_five_are_learned_from_in_one_order() -> None:
    co_runs = made_co_runs((5,), applications=7)
    said = Published("decision-tree").fit(co_runs, 0).predict([mix.isolated_runs for mix in co_runs.mixes])
    assert said.time_s == pytest.approx([mix.time_s for mix in co_runs.mixes], rel=0.2)


def test_unknown_kinds_and_names_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"^model: expected one of decision-tree, forest, .* found 'oracle'$"
    ):
        Published("oracle")
    with pytest.raises(InputError, match=r"^models: expected one of mean, sum, .* found 'oracle'$"):
        models_named(["mean", "oracle"])


def test_the_registry_makes_models_by_their_names() -> None:
    made: list[CoRunModel] = models_named([*MODELS, "mean"])
    assert [model.name for model in made] == list(MODELS)
    assert {*BASELINES, DEFAULT_MODEL} <= set(MODELS)
    assert {f"published-{kind}" for kind in KINDS} <= set(MODELS)


def test_one_application_twice_is_a_mix_like_others() -> None:
    same = [mix_of((isolated_run, isolated_run)) for isolated_run in PAIRS.isolated_runs]
    fitted = Published("decision-tree").fit(CoRuns("made-up", PAIRS.isolated_runs, tuple(same)), 0)
    for mix in same:
        said = fitted.predict([mix.isolated_runs])
        assert said.slowdown[0] == pytest.approx(slowdowns(mix.isolated_runs))
        assert said.time_s[0] == pytest.approx(mix.time_s)


def test_the_regressors_are_set_as_table_6_and_section_5_4_say() -> None:
    settings: dict[str, dict[str, object]] = {
        "decision-tree": {"max_depth": 10},
        "boosting": {"loss": "squared_error", "n_estimators": 100},
        "linear": {"fit_intercept": True},
        "mlp": {"hidden_layer_sizes": (100,), "activation": "logistic"},
        "forest": {"max_depth": 10, "n_estimators": 100},
        "svr": {"kernel": "rbf"},
    }
    assert set(settings) == set(KINDS)
    for kind, expected in settings.items():
        assert expected.items() <= estimator(kind, 0).get_params().items()
    assert PERFORMANCE_DEPTH == 7


def test_the_tree_of_times_is_less_deep_than_that_of_power() -> None:
    """Both have enough mixes to be as deep as they may."""
    co_runs = made_co_runs((2,), applications=20)
    predictor = Published("decision-tree", permuted=False).fit(co_runs, 0).of_size(2)
    mixes = [mix.isolated_runs for mix in co_runs.mixes]
    deepest = [
        int(decision_paths(predictor, mixes, target).times.sum(axis=1).max())
        for target in ("time_s", "power_w")
    ]
    assert deepest == [7, 10]


@pytest.mark.parametrize("kind", FAST)
@pytest.mark.parametrize("value", [1e300, -1e300])
def test_absurd_features_give_numbers(kind: str, value: float) -> None:
    absurd = replace(TESTED[0][0], features=dict.fromkeys(TESTED[0][0].features, value))
    assert np.isfinite(flat(fitted_to_pairs(kind).predict([(absurd, TESTED[0][1])]))).all()


@pytest.mark.parametrize("kind", FAST)
def test_one_mix_is_enough_to_be_fitted(kind: str) -> None:
    one = CoRuns("made-up", PAIRS.isolated_runs, PAIRS.mixes[:1])
    mix = PAIRS.mixes[0]
    said = Published(kind).fit(one, 0).predict([mix.isolated_runs])
    assert said.time_s[0] == pytest.approx(mix.time_s, rel=0.5)
