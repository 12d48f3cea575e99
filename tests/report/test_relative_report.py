"""Evaluations of relative performance on a terminal and as pictures."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from crosscast.evaluation.relative.evaluation import evaluate_relative
from crosscast.prediction.relative.artefact import RelativeCard
from crosscast.prediction.relative.nichols2024 import PublishedMean
from crosscast.report.document import Report
from crosscast.report.relative import evaluation_report, forecasts_report, held_out_errors, training_report
from crosscast.studies.nichols2024 import study_report
from support.golden import assert_printed
from support.vectors import made_vectors, relative_study, trained

FEW = made_vectors(applications=4, kernels=1)


def text_of(show: Callable[..., Report], *what: Any) -> str:
    return str(show(*what).to_text())


def test_tables_of_a_study_are_as_they_were() -> None:
    printed = text_of(study_report, relative_study())
    assert_printed(printed, Path(__file__).with_name("golden") / "relative.txt")


def evaluated(split: str) -> str:
    return text_of(evaluation_report, evaluate_relative(FEW, [PublishedMean()], split))


def test_only_the_published_split_is_called_a_leak() -> None:
    assert "a look-up table" in evaluated("published")
    assert "a look-up table" not in evaluated("leave-application-out")


def test_a_held_out_machine_counts_known_work() -> None:
    assert "what is new is the device that counts, not the work" in evaluated("leave-machine-out")


def shown(count: int, relative_to: str | None = None) -> list[str]:
    model = trained()
    forecast = model.predict(made_vectors().observations.rows(np.arange(count)), relative_to=relative_to)
    text = text_of(forecasts_report, [forecast], model.card)
    return [line.rstrip() for line in text.splitlines()]


def test_devices_are_in_the_order_of_their_times() -> None:
    lines = shown(1, "cpu")
    order = trained().predict(made_vectors().observations.rows(np.array([0]))).in_order(0)
    assert tuple(line.split()[0] for line in lines[2:5]) == order
    own = next(line for line in lines[2:5] if line.startswith("cpu"))
    assert own.split()[1:4] == ["1", "itself", "1.00×"]
    assert f"Recommended: {order[0]}, the fastest with a probability of" in lines[6]


def test_of_many_runs_each_has_a_line() -> None:
    assert sum(line.startswith("Recommended: ") for line in shown(12)) == 12
    lines = shown(13)
    assert not any(line.startswith("Recommended: ") for line in lines)
    assert sum(line.startswith("app0") for line in lines) == 13
    assert lines[0].split()[:4] == ["run", "counted", "on", "recommended"]


def test_a_device_that_is_more_often_the_fastest_than_the_first_is_named() -> None:
    found = trained().predict(made_vectors().observations.rows(np.array([0])))
    second = found.in_order(0)[1]
    fastest = np.where(np.array(found.devices) == second, 0.7, 0.15)[None]
    text = text_of(forecasts_report, [replace(found, fastest=fastest)], trained().card)
    assert f"{second} is more likely to be (70 %)." in text


def printed_card(card: RelativeCard) -> str:
    return text_of(training_report, card, Path("rpv"))


def test_a_card_is_printed_with_the_baselines_and_what_was_left_out() -> None:
    card = trained().card
    text = printed_card(card)
    assert "published-mean (baseline)" in text
    assert "Coverage of 90 % intervals by the errors on the 11 others:" in text
    results: Any = card.errors["results"]
    assert f"{results[0]['mae']:.4f}" in text
    of_kernels = structs.replace(card, errors={**card.errors, "protocol": "leave-kernel-out"})
    assert "Each kernel was left out in turn" in printed_card(of_kernels)


def test_a_card_without_scores_has_no_sentence_of_them() -> None:
    card = structs.replace(trained().card, errors={})
    assert held_out_errors(card) == []
    assert "published-linear, trained on made up" in printed_card(card)
