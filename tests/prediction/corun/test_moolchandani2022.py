"""The published models of Moolchandani et al. 2022 predict what scikit-learn does, from their features."""

from dataclasses import replace
from functools import cache
from warnings import catch_warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from crosscast.arrays import Reals
from crosscast.data.corun import CoRuns, IsolatedRun
from crosscast.errors import InputError
from crosscast.prediction.corun import CoRunPrediction
from crosscast.prediction.corun.features import (
    FAIRNESS,
    PERFORMANCE,
    POWER,
    Combination,
    FairnessChoice,
    MixColumns,
    value_of,
)
from crosscast.prediction.corun.models import models_named
from crosscast.prediction.corun.moolchandani2022 import (
    DEPTH,
    KINDS,
    PERFORMANCE_DEPTH,
    Published,
    PublishedCoRunPredictor,
    estimator,
)
from crosscast.studies.moolchandani2022_features import TABLE_7
from support.mixes import with_members
from support.published_mixes import made_co_runs, slowdowns
from support.refusals import refusal

PAIRS = made_co_runs((2,))
TESTED = [mix.isolated_runs for mix in made_co_runs((2,), seed=9, applications=6).mixes]


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


def test_slowdowns_follow_from_times_where_none_was_measured() -> None:
    said = Published("linear").fit(made_co_runs((2,), slowed=False), 0).predict(TESTED)
    for (first, second), slowed, time in zip(TESTED, said.slowdown, said.time_s, strict=True):
        short, long = sorted([first.time_s or 0.0, second.time_s or 0.0])
        assert slowed[0] == slowed[1] == pytest.approx(max(1.0, 1 + (time - long) / short))


def test_mixes_of_which_nothing_is_known_or_that_failed_teach_nothing() -> None:
    nothing = made_co_runs((2,), time=False, slowed=False, power=False)
    with pytest.raises(InputError, match=r"^made-up: expected mixes with a slowdown, a time or a power"):
        Published("linear").fit(nothing, 0)
    spoilt = [
        replace(mix, time_s=1e9, members=(replace(mix.members[0], failure="killed"), mix.members[1]))
        for mix in PAIRS.mixes[:3]
    ]
    more = CoRuns("made-up", PAIRS.isolated_runs, (*PAIRS.mixes, *spoilt))
    first, second = (Published("linear").fit(each, 0).predict(TESTED) for each in (PAIRS, more))
    np.testing.assert_array_equal(flat(first), flat(second))


def test_nothing_below_the_least_is_predicted() -> None:
    """A linear function of misses would send slowdowns below 0."""
    fitted = Published("linear", performance=Combination("misses", ("LLC_miss",))).fit(PAIRS, 0)
    none = replace(TESTED[0][0], features={"llc_miss": -99.0})
    least = min(min(slowdowns(mix.isolated_runs)) for mix in PAIRS.mixes)
    assert fitted.predict([(none, none)]).slowdown[0] == pytest.approx([least, least])


def test_kinds_names_and_features_that_there_are_not_are_refused() -> None:
    assert "expected features of applications alone, found CPU" in refusal(
        Published, "forest", power=TABLE_7[16]
    )
    assert "model: expected one of decision-tree, " in refusal(Published, "oracle")
    assert "models: expected one of mean, sum, " in refusal(models_named, ["mean", "oracle"])
    nothing = IsolatedRun("a", "s", "d", None)
    none = refusal(MixColumns.fit, ("IPC", FAIRNESS), [(nothing, nothing)])
    assert none.startswith("features: expected at least one of IPC, fairness, found none")


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
        each.application: replace(each, features={**each.features, "batch_size": 8.0})
        for each in PAIRS.isolated_runs
    }
    mixes = [Published("linear", others=others).fit(with_members(PAIRS, more), 0) for others in (False, True)]
    assert ["batch_size" in each.of_size(2).columns.columns for each in mixes] == [False, True]


def test_mixes_of_five_are_learned_from_in_one_order() -> None:
    co_runs = made_co_runs((5,), applications=7)
    said = Published("decision-tree").fit(co_runs, 0).predict([mix.isolated_runs for mix in co_runs.mixes])
    assert said.time_s == pytest.approx([mix.time_s for mix in co_runs.mixes], rel=0.2)


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


FAIR = {"fairness_low": 0.9, "fairness_medium": 0.6, "fairness_high": 0.3}


def missing(amount: float) -> IsolatedRun:
    return IsolatedRun(f"misses {amount}", "s", "d", 1.0, features={"llc_miss": amount, **FAIR})


FEATURE_PAIRS = [(missing(a), missing(b)) for a in (0.0, 0.3, 0.9) for b in (0.0, 0.3, 0.9)]


def test_the_thresholds_part_the_sums_in_thirds_and_the_others_decide() -> None:
    choice = FairnessChoice.fit(FEATURE_PAIRS)
    assert choice.pressure == "llc_miss"
    assert np.bincount(choice.levels(FEATURE_PAIRS).ravel()).tolist() == [6, 6, 6]
    assert choice.fairness([(missing(0.0), missing(0.9))]).tolist() == [[0.3, 0.9]]
    # Only sums above a threshold are medium, or high.
    choice = replace(choice, pressure_thresholds=np.array([0.3, 0.9]))
    assert choice.levels([(missing(0.3), missing(0.9)), (missing(0.4), missing(1.0))]).tolist() == [
        [1, 0],
        [2, 1],
    ]


def test_members_without_a_time_come_last() -> None:
    unknown, known = (
        IsolatedRun(name, "s", "d", time_s, features={"ipc": ipc})
        for name, time_s, ipc in (("a", None, 2.0), ("b", 0.5, 1.0))
    )
    assert MixColumns.fit(("IPC",), [(unknown, known)]).of([(unknown, known)])[1].tolist() == [[1, 0]]


def test_what_some_lack_is_filled_with_the_median_and_flagged() -> None:
    isolated_runs = [
        IsolatedRun(f"a{n}", "s", "d", 1.0 + n, features={"ipc": float(n), "llc_miss": 0.0}) for n in range(3)
    ]
    lacks = IsolatedRun("lacks", "s", "d", 9.0, features={"llc_miss": 0.0})
    columns = MixColumns.fit(
        ("IPC", "LLC_miss"), [(isolated_runs[0], isolated_runs[1]), (isolated_runs[2], lacks)]
    )
    assert columns.titles == ("IPC", "LLC_miss", "IPC missing")
    values, _ = columns.of([(lacks, isolated_runs[2])])
    # Misses that are 0 are as measured: they are not missing, and have no flag.
    assert values[0].tolist() == [[0.5, 0.0, 1.0], [1.0, 0.0, 0.0]]
    assert columns.indices(["IPC"]).tolist() == [0, 2]
    assert columns.indices(["LLC_miss"]).tolist() == [1]
    assert replace(columns, flagged=np.array([0, 1])).indices(["LLC_miss"]).tolist() == [1, 3]
