"""Training a model of relative vectors: what is left out, what goes on the card, what is refused."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.evaluate.processes import State
from crosscast.evaluate.relative import held_out_errors, left_out_split, train_relative
from crosscast.predict.relative.data import Vectors
from crosscast.predict.relative.nichols2024 import FittedVector, PublishedMean
from made_vectors import COUNTERS, DEVICES, made_vectors, trained

SEEN: list[tuple[set[str], int]] = []


@dataclass(frozen=True)
class Watched:
    """The mean, that tells which applications it saw."""

    name: str = "watched"

    def fit(self, vectors: Vectors, seed: int) -> FittedVector:
        SEEN.append((set(vectors.observations.application), seed))
        return PublishedMean().fit(vectors)


def few(applications: int, kernels: int = 2) -> Vectors:
    return made_vectors(applications=applications, kernels=kernels, sizes=1)


def test_each_application_is_left_out_once_and_the_model_itself_sees_all() -> None:
    SEEN.clear()
    vectors = few(4)
    told: list[State] = []
    train_relative(vectors, Watched(), seed=5, progress=told.append)
    names = set(vectors.observations.application)
    (first, *rest) = SEEN
    assert first == (names, 5)
    assert sorted(sorted(names - seen) for seen, _ in rest) == [[name] for name in sorted(names)]
    assert [(each.done, each.total) for each in told] == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_of_few_applications_kernels_are_left_out_instead() -> None:
    found = train_relative(few(2, kernels=3), PublishedMean())
    assert found.card.errors["protocol"] == "leave-kernel-out"
    assert len(found.held_out.groups) == 6
    assert left_out_split(few(3), "it").name == "leave-application-out"


def test_too_few_kernels_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        train_relative(few(1), PublishedMean(), label="small")
    assert str(caught.value) == (
        "small: expected at least 3 applications or kernels with counters, and times on the devices, to "
        "train and test a model, found 1 and 2"
    )


def test_errors_are_logarithms_of_predicted_over_true_with_both_relative_to_the_slowest() -> None:
    vectors = few(3)
    # Twice as slow on the first device as it is, and scaled by something that does not matter.
    predicted = 0.37 * vectors.vector * np.array([2.0, 1.0, 1.0])
    found = held_out_errors(vectors, predicted, vectors.observations.application)
    np.testing.assert_allclose(found.relative_errors(2)[:, 0], np.log(2.0))
    np.testing.assert_allclose(found.relative_errors(2)[:, 1], 0.0, atol=1e-12)
    slower = vectors.vector * np.array([2.0, 1.0, 1.0])
    expected = np.log(slower / slower.max(axis=1, keepdims=True) / vectors.vector)
    np.testing.assert_allclose(np.sort(found.log_error, axis=0), np.sort(expected, axis=0), atol=1e-12)


def test_repeats_count_once_with_the_mean_of_their_errors() -> None:
    once = few(3)
    n = len(once)
    twice = Vectors(
        once.observations.rows(np.tile(np.arange(n), 2)), once.devices, np.tile(once.times_s, (2, 1))
    )
    predicted = np.ones((2 * n, 3))
    predicted[:n, 1], predicted[n:, 1] = 0.5, 0.125
    found = held_out_errors(twice, predicted, twice.observations.application)
    assert found.log_error.shape == (n, 3)
    single = np.ones((n, 3))
    single[:, 1] = 0.25
    expected = held_out_errors(once, single, once.observations.application)
    np.testing.assert_allclose(found.log_error, expected.log_error)
    assert (found.groups, found.sources) == (expected.groups, expected.sources)


def test_the_card_says_what_it_was_trained_on_and_how_good_it_is() -> None:
    card = trained().card
    assert (card.model, card.seed, card.devices) == ("published-linear", 0, DEVICES)
    assert (card.sources, card.counters, card.configuration) == (("cpu", "fast"), COUNTERS, ("cores",))
    facts = {name: card.training[name] for name in ("dataset", "runs", "kernels", "applications")}
    assert facts == {"dataset": "made up", "runs": 144, "kernels": 36, "applications": 12}
    own, *baselines = card.errors["results"]
    assert [own["model"], *(each["model"] for each in baselines)] == [
        "published-linear",
        "published-mean",
        "log-mean",
    ]
    assert own["mae"] < 0.6 * baselines[0]["mae"]
    assert 0.8 < own["coverage"] <= 1
    assert (card.errors["groups"], card.errors["vectors"]) == (12, 144)


def test_another_time_is_another_hash() -> None:
    vectors = few(3)
    other = replace(vectors, times_s=vectors.times_s * np.array([1, 1, 1 + 1e-12]))
    one, two = (train_relative(each, PublishedMean()).card.training["sha256"] for each in (vectors, other))
    assert one != two


@pytest.mark.parametrize(
    ("wrong", "reason"), [({"seed": -1}, "seed: "), ({"jobs": 0}, "jobs: "), ({"level": 1.0}, "level: ")]
)
def test_wrong_arguments_are_refused(wrong: dict[str, float], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        train_relative(few(3), PublishedMean(), **wrong)  # type: ignore[arg-type]
