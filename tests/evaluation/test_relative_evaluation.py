"""Scores of predicted vectors: cases that can be counted by hand, and laws."""

from dataclasses import dataclass, replace
from itertools import combinations
from math import log

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.evaluation.loop import State
from crosscast.evaluation.relative import Weighting, evaluation
from crosscast.evaluation.relative.question import held_out_split, residuals_of, train_relative
from crosscast.prediction.relative import Vectors, relative_to_slowest
from crosscast.prediction.relative.nichols2024 import (
    FixedVector,
    PublishedLinear,
    PublishedMean,
    PublishedVectorForest,
    PublishedXGBoost,
)
from support.refusals import refusal, refusals
from support.vectors import COUNTERS, DEVICES, made_vectors, trained

TIMES = arrays(np.float64, (4, 3), elements=st.floats(1e-3, 1e3) | st.sampled_from([0.25, 0.5, 1.0]))
"""With devices that tie."""


def scored(times: list[list[float]], predicted: list[list[float]]) -> evaluation.RowScores:
    return evaluation.row_scores(np.array(times), np.array(predicted))


def test_rows_without_weight_do_not_count_and_no_rows_have_no_metrics() -> None:
    scores = scored([[1.0, 2.0], [1.0, 4.0]], [[0.5, 1.0], [1.0, 0.5]])
    assert evaluation.metrics_of(scores, np.array([1.0, 0.0])).mae == 0
    assert "at least one row" in refusal(
        evaluation.metrics_of, scored([[1.0, 2.0]], [[0.5, 1.0]]), np.zeros(1)
    )


def plainly(times: list[float], predicted: list[float]) -> dict[str, float]:
    """Scores of a row, by their definitions."""
    vector = [time / max(times) for time in times]
    pairs = list(combinations(range(len(times)), 2))
    chosen = times[predicted.index(min(predicted))]
    return {
        "mae": sum(abs(p - v) for p, v in zip(predicted, vector, strict=True)) / len(times),
        "same_order": float(
            all(
                predicted[i] < predicted[j]
                for one in pairs
                for i, j in (one, one[::-1])
                if times[i] < times[j]
            )
        ),
        "top1": float(chosen / min(times) == 1),
        "regret": chosen / min(times) - 1,
        "log_error": sum(abs(log(predicted[i] / predicted[j]) - log(vector[i] / vector[j])) for i, j in pairs)
        / len(pairs),
    }


@given(TIMES, TIMES, st.booleans())
@example(np.array([[1.0, 1.0, 2.0]]), np.array([[0.5, 0.4, 1.0]]), False)
def test_rows_are_scored_as_by_the_definitions(times: Reals, predicted: Reals, right: bool) -> None:
    predicted = relative_to_slowest(times) if right else predicted
    scores = evaluation.row_scores(times, predicted)
    for row, (time, guess) in enumerate(zip(times.tolist(), predicted.tolist(), strict=True)):
        expected = plainly(time, guess)
        assert {name: values[row] for name, values in scores.items()} == pytest.approx(
            expected, rel=1e-9, abs=1e-9
        )
    factor = evaluation.metrics_of(scores, np.ones(len(times))).typical_factor
    assert factor == pytest.approx(np.exp(scores["log_error"].mean()))


@refusals("times predicted")
def test_what_is_no_vector_is_refused(times: list[list[float]], predicted: list[list[float]]) -> None:
    with pytest.raises(InputError, match=r"^(times_s|predicted): expected"):
        scored(times, predicted)


ROWS = made_vectors(applications=5, repeats=2).observations
WHOLE = sorted(set(evaluation.SPLITS) - {evaluation.PUBLISHED})


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("seed", [0, 7])
def test_no_group_is_on_both_sides_and_each_row_is_tested_once(name: str, seed: int) -> None:
    split = evaluation.split_named(name)
    groups = np.array(split.groups(ROWS))
    folds = split.folds_of(ROWS, seed)
    for fold in folds:
        assert set(groups[fold.train]).isdisjoint(groups[fold.test])
        assert len(fold.train) > 0
        assert sorted([*fold.train, *fold.test]) == list(range(len(ROWS)))
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(len(ROWS)))
    with pytest.raises(InputError, match=f"^{name}: expected at least 2 .* to split by, found 1"):
        split.folds_of(ROWS.rows(np.array([0])), seed)


def test_the_published_split_tests_a_tenth_and_validates_within_the_rest() -> None:
    test, *within = evaluation.split_named(evaluation.PUBLISHED).folds_of(ROWS, 0)
    assert len(test.test) == round(evaluation.TEST_SHARE * len(ROWS))
    assert sorted([*test.train, *test.test]) == list(range(len(ROWS)))
    assert len(within) == 5
    assert sorted(np.concatenate([fold.test for fold in within])) == test.train.tolist()
    for fold in within:
        assert sorted([*fold.train, *fold.test]) == test.train.tolist()


def test_dealing_depends_on_the_seed_alone() -> None:
    for name in (evaluation.PUBLISHED, "leave-configuration-out"):
        folds = [evaluation.split_named(name).folds_of(ROWS, seed)[0].test.tolist() for seed in (3, 3, 4)]
        assert folds[0] == folds[1] != folds[2]


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [
        ("rows", [1 / 4] * 4),
        ("kernels", [1 / 6, 1 / 6, 1 / 3, 1 / 3]),
        ("applications", [1 / 6, 1 / 6, 1 / 6, 1 / 2]),
    ],
)
def test_weights_are_as_by_hand(weighting: Weighting, expected: list[float]) -> None:
    rows = replace(
        ROWS.rows(np.arange(4)), application=("a", "a", "a", "b"), kernel=("sum", "sum", "scan", "sum")
    )
    assert evaluation.row_weights(rows, weighting).tolist() == pytest.approx(expected)


VECTORS = made_vectors(applications=4)
QUICK = PublishedXGBoost(rounds=20, depth=3)


def test_times_of_what_is_held_out_change_no_prediction_of_it() -> None:
    held_out = np.flatnonzero([name == "app00" for name in VECTORS.observations.application])
    times = VECTORS.times_s.copy()
    times[held_out] = times[held_out][:, ::-1] * 3
    changed = Vectors(VECTORS.observations, VECTORS.devices, times)
    for model in (QUICK, PublishedLinear(), PublishedVectorForest(trees=5)):
        before, after = (
            evaluation.evaluate_relative(each, [model], "leave-application-out")
            .results[0]
            .predicted[held_out]
            for each in (VECTORS, changed)
        )
        assert np.array_equal(before, after)


def test_held_out_predictions_go_with_their_rows() -> None:
    result = evaluation.held_out_predictions(VECTORS, PublishedMean(), "leave-application-out")
    assert result.vectors.observations.kernel == VECTORS.observations.kernel
    assert np.array_equal(result.vectors.times_s, VECTORS.times_s)
    others = np.array([name != "app00" for name in VECTORS.observations.application])
    np.testing.assert_allclose(
        result.predicted[~others], VECTORS.vector[others].mean(axis=0)[None].repeat(12, 0)
    )
    tested = evaluation.held_out_predictions(VECTORS, PublishedMean(), "published")
    assert len(tested.vectors) == len(tested.predicted) == 5


@dataclass(frozen=True)
class Watched:
    """The mean, or what no vector is, that tells which applications it saw."""

    name: str = "watched"
    fixed: tuple[float, ...] = ()

    def fit(self, vectors: Vectors, seed: int) -> FixedVector:
        SEEN.append((set(vectors.observations.application), seed))
        return FixedVector(np.array(self.fixed)) if self.fixed else PublishedMean().fit(vectors)


def test_predictions_that_are_no_vectors_are_refused() -> None:
    with pytest.raises(InputError, match=r"^negative, app00 held out: predicted: expected numbers above 0"):
        evaluation.evaluate_relative(
            VECTORS, [Watched("negative", (-1.0, 0.5, 1.0))], "leave-application-out"
        )


SEEN: list[tuple[set[str], int]] = []


def few(applications: int, kernels: int = 2) -> Vectors:
    return made_vectors(applications=applications, kernels=kernels, sizes=1)


def test_each_application_is_left_out_once_and_the_model_itself_sees_all() -> None:
    SEEN.clear()
    vectors = few(4)
    states: list[State] = []
    train_relative(vectors, Watched(), seed=5, progress=states.append)
    names = set(vectors.observations.application)
    (first, *rest) = SEEN
    assert first == (names, 5)
    assert sorted(sorted(names - seen) for seen, _ in rest) == [[name] for name in sorted(names)]
    assert [(each.done, each.total) for each in states] == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_few_applications_leave_kernels_out_and_too_few_are_refused() -> None:
    fitted = train_relative(few(2, kernels=3), PublishedMean())
    assert fitted.card.errors["folds"] == "leave-kernel-out"
    assert len(fitted.residuals.groups) == 6
    assert held_out_split(few(3), "it").name == "leave-application-out"
    too_few = refusal(train_relative, few(1), PublishedMean(), label="small")
    assert (
        too_few.startswith("small: expected at least 3 applications or kernels")
        and "found 1 and 2" in too_few
    )


def test_errors_are_logarithms_of_predicted_over_true_with_both_relative_to_the_slowest() -> None:
    vectors = few(3)
    # Twice as slow on the first device as it is, and scaled by something that does not matter.
    slower = vectors.vector * np.array([2.0, 1.0, 1.0])
    residuals = residuals_of(vectors, 0.37 * slower, vectors.observations.application)
    np.testing.assert_allclose(residuals.relative_errors(2)[:, 0], np.log(2.0))
    np.testing.assert_allclose(residuals.relative_errors(2)[:, 1], 0.0, atol=1e-12)
    expected = np.log(slower / slower.max(axis=1, keepdims=True) / vectors.vector)
    np.testing.assert_allclose(np.sort(residuals.log_error, axis=0), np.sort(expected, axis=0), atol=1e-12)


def test_repeats_count_once_with_the_mean_of_their_errors() -> None:
    once = few(3)
    n = len(once)
    twice = Vectors(
        once.observations.rows(np.tile(np.arange(n), 2)), once.devices, np.tile(once.times_s, (2, 1))
    )
    predicted = np.ones((2 * n, 3))
    predicted[:n, 1], predicted[n:, 1] = 0.5, 0.125
    residuals = residuals_of(twice, predicted, twice.observations.application)
    assert residuals.log_error.shape == (n, 3)
    single = np.ones((n, 3))
    single[:, 1] = 0.25
    expected = residuals_of(once, single, once.observations.application)
    np.testing.assert_allclose(residuals.log_error, expected.log_error)
    assert (residuals.groups, residuals.sources) == (expected.groups, expected.sources)


def test_the_card_says_what_it_was_trained_on() -> None:
    card = trained().card
    assert (card.model, card.seed, card.devices) == ("published-linear", 0, DEVICES)
    assert (card.sources, card.counters, card.configuration) == (("cpu", "fast"), COUNTERS, ("cores",))
    facts = {"dataset": "made up", "runs": 144, "kernels": 36, "applications": 12}
    assert facts.items() <= card.training.items()
    # Another time is another hash.
    vectors = few(3)
    other = replace(vectors, times_s=vectors.times_s * np.array([1, 1, 1 + 1e-12]))
    one, two = (train_relative(each, PublishedMean()).card.training["sha256"] for each in (vectors, other))
    assert one != two


def test_wrong_arguments_are_refused() -> None:
    for wrong, reason in (({"seed": -1}, "seed: "), ({"jobs": 0}, "jobs: "), ({"level": 1.0}, "level: ")):
        assert reason in refusal(train_relative, few(3), PublishedMean(), **wrong)
