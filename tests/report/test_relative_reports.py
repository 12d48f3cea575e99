"""What people see of models of relative vectors, and of what these predict."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosscast.predict.relative.artefact import (
    RelativeCard,
    TrainedRelativeModel,
    load_relative_model,
    relative_predictions_of,
)
from crosscast.report.relative_prediction import print_relative_predictions
from crosscast.report.relative_training import honest_relative_errors, print_relative_training
from made_vectors import kept_relative, made_vectors, trained


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TrainedRelativeModel:
    return load_relative_model(kept_relative(tmp_path_factory.mktemp("kept") / "rpv"))


def shown(model: TrainedRelativeModel, count: int, relative_to: str | None = None) -> list[str]:
    runs = made_vectors().observations.rows(np.arange(count))
    stream = io.StringIO()
    found = relative_predictions_of(model, runs, relative_to=relative_to)
    print_relative_predictions(found, model.card, stream)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_devices_are_in_the_order_of_their_times(model: TrainedRelativeModel) -> None:
    lines = shown(model, 1, "cpu")
    (found,) = relative_predictions_of(
        model, made_vectors().observations.rows(np.array([0])), relative_to="cpu"
    )
    assert [line.split()[0] for line in lines[2:5]] == [each.device for each in found.order]
    own = next(line for line in lines[2:5] if line.startswith("cpu"))
    assert own.split()[1:4] == ["1", "itself", "1.00×"]
    assert f"Take {found.order[0].device}: the fastest with a probability of" in lines[6]


def test_of_many_runs_each_has_a_line(model: TrainedRelativeModel) -> None:
    assert sum(line.startswith("Take ") for line in shown(model, 12)) == 12
    lines = shown(model, 13)
    assert not any(line.startswith("Take ") for line in lines)
    assert sum(line.startswith("app0") for line in lines) == 13
    assert lines[0].split()[:4] == ["run", "counted", "on", "take"]


def test_a_device_that_is_more_often_the_fastest_than_the_first_is_named(
    model: TrainedRelativeModel,
) -> None:
    runs = made_vectors().observations.rows(np.array([0]))
    (found,) = relative_predictions_of(model, runs)
    swapped = tuple(
        replace(each, probability_fastest=0.7 if each.rank == 2 else 0.15) for each in found.devices
    )
    stream = io.StringIO()
    print_relative_predictions([replace(found, devices=swapped)], model.card, stream)
    second = found.order[1].device
    assert f"More often than that, {second} is the fastest (70 %)." in stream.getvalue()


def printed(card: RelativeCard) -> str:
    stream = io.StringIO()
    print_relative_training(card, Path("rpv"), stream)
    return stream.getvalue()


def test_a_card_is_printed_with_the_baselines_and_what_was_left_out() -> None:
    card = trained().card
    text = printed(card)
    assert "published-mean (baseline)" in text
    assert "90 % intervals by the errors on the 11 others held" in text
    own = f"{card.errors['results'][0]['mae']:.3f}"
    assert own in text
    of_kernels = replace(card, errors={**card.errors, "protocol": "leave-kernel-out"})
    assert "Each kernel was left out in turn" in printed(of_kernels)


def test_a_card_of_profiles_says_that_they_are_of_no_device() -> None:
    assert "with profiles that are of no device" in printed(replace(trained().card, sources=("none",)))


def test_a_card_without_scores_has_no_sentence_of_them() -> None:
    card = replace(trained().card, errors={})
    assert honest_relative_errors(card) == []
    assert "published-linear, trained on made up" in printed(card)
