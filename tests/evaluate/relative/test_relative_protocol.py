"""Evaluation: models learn from the rows of training alone, and are scored on the others."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.evaluate.processes import State
from crosscast.evaluate.relative import evaluate_relative, held_out_predictions
from crosscast.predict.relative.data import Observations, RelativeModel, Vectors
from crosscast.predict.relative.nichols2024 import (
    FittedVector,
    LogMean,
    PublishedForest,
    PublishedLinear,
    PublishedMean,
    PublishedXGBoost,
)
from made_vectors import made_vectors

VECTORS = made_vectors(applications=4)
QUICK = PublishedXGBoost(rounds=20, depth=3)


@dataclass
class Watching:
    """A mean that notes what it was given."""

    seen: list[tuple[set[str], set[str]]]
    name: str = "watching"

    def fit(self, vectors: Vectors, seed: int) -> "Asked":
        return Asked(self, vectors, PublishedMean().fit(vectors))


@dataclass
class Asked:
    model: Watching
    trained: Vectors
    fitted: FittedVector

    def predict(self, observations: Observations) -> Reals:
        self.model.seen.append((set(self.trained.observations.application), set(observations.application)))
        return self.fitted.predict(observations)

    def state(self) -> dict[str, Reals]:
        return self.fitted.state()


def test_a_model_is_given_nothing_of_what_is_held_out() -> None:
    model = Watching([])
    evaluate_relative(VECTORS, [model], "leave-application-out")
    assert len(model.seen) == 4
    for trained, asked in model.seen:
        assert len(asked) == 1
        assert trained.isdisjoint(asked)
        assert len(trained | asked) == 4


def test_times_of_what_is_held_out_change_no_prediction_of_it() -> None:
    held_out = np.flatnonzero([name == "app00" for name in VECTORS.observations.application])
    times = VECTORS.times_s.copy()
    times[held_out] = times[held_out][:, ::-1] * 3
    changed = Vectors(VECTORS.observations, VECTORS.devices, times)
    for model in (QUICK, PublishedLinear(), PublishedForest(trees=5)):
        before, after = (
            evaluate_relative(each, [model], "leave-application-out").results[0].predicted[held_out]
            for each in (VECTORS, changed)
        )
        assert np.array_equal(before, after)


@pytest.mark.parametrize("model", [QUICK, PublishedForest(trees=20), PublishedLinear()])
def test_counters_that_tell_beat_the_mean(model: RelativeModel) -> None:
    found = evaluate_relative(made_vectors(), [model, PublishedMean(), LogMean()], "leave-application-out")
    best, *means = found.results
    assert not best.baseline
    assert found.best() is best
    assert all(each.baseline and best.metrics.mae < 0.8 * each.metrics.mae for each in means)
    difference = best.sure.differences["mae"]
    assert difference.better
    assert difference.value == pytest.approx(best.metrics.mae - min(each.metrics.mae for each in means))
    assert not means[0].sure.differences


def test_scores_and_groups_are_those_of_the_predictions() -> None:
    found = evaluate_relative(VECTORS, [PublishedMean()], "leave-kernel-out").results[0]
    errors = np.abs(found.predicted - VECTORS.vector).mean(axis=1)
    assert found.by_weighting["rows"].mae == pytest.approx(errors.mean())
    assert found.weighting == "kernels"
    assert found.metrics.mae == pytest.approx(np.mean([each.mae for each in found.per_group.values()]))
    assert sum(each.rows for each in found.per_group.values()) == len(VECTORS)
    low_high = found.sure.intervals["mae"]
    assert low_high.low < found.metrics.mae < low_high.high


def test_the_published_split_leaks_and_says_so() -> None:
    repeated = made_vectors(applications=3, repeats=4)
    found = evaluate_relative(repeated, [PublishedMean()], "published")
    assert found.repeated > 0.9
    result = found.results[0]
    assert len(result.rows) == round(0.1 * len(repeated))
    assert result.validation_mae is not None
    errors = [
        np.abs(PublishedMean().fit(repeated.rows(fold.train)).vector - repeated.vector[fold.test]).mean()
        for fold in found.folds[1:]
    ]
    assert result.validation_mae == pytest.approx(np.mean(errors))


@pytest.mark.parametrize("split", ["leave-configuration-out", "leave-application-out", "leave-scale-out"])
def test_other_splits_repeat_nothing(split: str) -> None:
    found = evaluate_relative(VECTORS, [PublishedMean()], split)
    assert found.repeated == 0
    assert found.results[0].validation_mae is None
    assert len(found.results[0].rows) == len(VECTORS)


def test_a_new_source_is_of_known_work() -> None:
    found = evaluate_relative(VECTORS, [PublishedMean()], "leave-machine-out")
    assert sorted(found.results[0].per_group) == ["cpu", "fast"]
    assert found.repeated == 1


def test_processes_and_a_cache_change_nothing(tmp_path: Path) -> None:
    models: list[RelativeModel] = [QUICK, PublishedForest(trees=5), PublishedLinear()]
    states: list[State] = []
    runs = [
        evaluate_relative(
            VECTORS, models, "leave-application-out", cache=cache, jobs=jobs, progress=states.append, seed=5
        )
        for cache, jobs in ((None, 1), (tmp_path, 2), (tmp_path, 1))
    ]
    assert len(states) == 24
    assert len(list(tmp_path.glob("relative-*.npz"))) == 12
    for run in runs[1:]:
        for one, other in zip(runs[0].results, run.results, strict=True):
            assert np.array_equal(one.predicted, other.predicted)
            assert one.to_dict() == other.to_dict()


def test_a_cache_knows_what_it_is_of(tmp_path: Path) -> None:
    evaluate_relative(VECTORS, [PublishedMean()], "leave-application-out", cache=tmp_path)
    times = VECTORS.times_s.copy()
    times[0, 0] *= 2
    changed = Vectors(VECTORS.observations, VECTORS.devices, times)
    counters = replace(VECTORS.observations, counters=VECTORS.observations.counters * 2)
    for vectors, model, seed in (
        (changed, PublishedMean(), 0),
        (Vectors(counters, VECTORS.devices, VECTORS.times_s), PublishedMean(), 0),
        (VECTORS, LogMean(), 0),
        (VECTORS, PublishedMean(), 1),
    ):
        before = len(list(tmp_path.glob("*.npz")))
        evaluate_relative(vectors, [model], "leave-application-out", cache=tmp_path, seed=seed)
        assert len(list(tmp_path.glob("*.npz"))) == before + 4


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 no archive", None])
def test_a_damaged_entry_of_a_cache_is_as_good_as_none(tmp_path: Path, damage: bytes | None) -> None:
    whole = evaluate_relative(VECTORS, [PublishedMean()], "leave-application-out", cache=tmp_path)
    for path in tmp_path.glob("*.npz"):
        if damage is None:
            np.savez(path, predicted=np.full((3, 3), -1.0))
        else:
            path.write_bytes(damage)
    again = evaluate_relative(VECTORS, [PublishedMean()], "leave-application-out", cache=tmp_path)
    assert np.array_equal(whole.results[0].predicted, again.results[0].predicted)


def test_held_out_predictions_go_with_their_rows() -> None:
    found = held_out_predictions(VECTORS, PublishedMean(), "leave-application-out")
    assert found.observations.kernel == VECTORS.observations.kernel
    assert np.array_equal(found.times_s, VECTORS.times_s)
    others = np.array([name != "app00" for name in VECTORS.observations.application])
    np.testing.assert_allclose(
        found.predicted[~others], VECTORS.vector[others].mean(axis=0)[None].repeat(12, 0)
    )
    tested = held_out_predictions(VECTORS, PublishedMean(), "published")
    assert len(tested.observations) == len(tested.predicted) == 5


@dataclass(frozen=True)
class Refusing:
    """A model that cannot be fitted."""

    name: str = "refusing"

    def fit(self, vectors: Vectors, seed: int) -> FittedVector:
        raise InputError("counters: expected more")


def test_a_fit_that_fails_is_named() -> None:
    with pytest.raises(InputError) as caught:
        evaluate_relative(VECTORS, [Refusing()], "leave-application-out")
    assert str(caught.value) == "refusing, app00 held out: counters: expected more"


@dataclass(frozen=True)
class Negative:
    """A model that predicts what no vector is."""

    name: str = "negative"

    def fit(self, vectors: Vectors, seed: int) -> FittedVector:
        return FittedVector(np.array([-1.0, 0.5, 1.0]))


def test_predictions_that_are_no_vectors_are_refused() -> None:
    with pytest.raises(InputError, match=r"^negative, app00 held out: expected positive numbers"):
        evaluate_relative(VECTORS, [Negative()], "leave-application-out")


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match=r"^models: expected at least one, and each once, found none"):
        evaluate_relative(VECTORS, [], "published")
    with pytest.raises(InputError, match=r"each once, found log-mean, log-mean"):
        evaluate_relative(VECTORS, [LogMean(), LogMean()], "published")
    with pytest.raises(InputError, match=r"^jobs: "):
        evaluate_relative(VECTORS, [LogMean()], "published", jobs=0)
    with pytest.raises(InputError, match=r"^seed: "):
        evaluate_relative(VECTORS, [LogMean()], "published", seed=-1)
    with pytest.raises(InputError, match=r"^weights: "):
        evaluate_relative(VECTORS, [LogMean()], "published", weighting="none")  # type: ignore[arg-type]
    gaps = VECTORS.times_s.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(InputError, match=r"^vectors: expected a time above 0 on each device"):
        evaluate_relative(Vectors(VECTORS.observations, VECTORS.devices, gaps), [LogMean()], "published")
