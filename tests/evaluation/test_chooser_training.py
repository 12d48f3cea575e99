"""Errors of a model on programs that it has not seen, counted another way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.data.configuration import Configuration
from crosscast.decide.samples import two_samples
from crosscast.errors import InputError
from crosscast.evaluation.configuration.question import held_out_errors, machine_of, train_configuration
from crosscast.evaluation.loop import State
from crosscast.prediction.configuration.bailey2014 import PublishedModel
from crosscast.prediction.configuration.data import (
    ConfigurationSpace,
    Observed,
    Quantity,
    SurfaceForecast,
    Surfaces,
)
from crosscast.prediction.configuration.models import NearestKernels
from support.choices import chosen_study, named_surfaces
from support.surfaces import configured_dataset, made_surfaces

SAMPLES = (11, 0)


def fixed(surfaces: Surfaces, seed: int) -> tuple[int, ...]:
    return SAMPLES


def test_each_program_is_predicted_by_a_model_of_the_others() -> None:
    surfaces = made_surfaces(noise=0.01)
    errors: dict[str, Any] = held_out_errors(surfaces, NearestKernels(), samples=fixed)
    assert list(errors["by_program"]) == list(surfaces.applications)
    everywhere = []
    for name in surfaces.applications:
        rows = surfaces.rows_of([name])
        fitted = NearestKernels().fit(surfaces.take(~rows), SAMPLES)
        expected = []
        for row in np.flatnonzero(rows).tolist():
            forecast = fitted.forecast(surfaces.observed(row, SAMPLES))
            elsewhere = [number for number in range(12) if number not in SAMPLES]
            expected += np.log(forecast.power.centre[elsewhere] / surfaces.power_w[row, elsewhere]).tolist()
        everywhere.append(np.mean(np.square(expected)))
        assert errors["by_program"][name]["rmse_log_power"] == pytest.approx(everywhere[-1] ** 0.5)
    # Programs weigh the same.
    assert errors["rmse_log_power"] == pytest.approx(np.mean(everywhere) ** 0.5)
    assert errors["coverage_power"] is None


class Off:
    """Predicts what is true, but a tenth too much, and is sure to a fifth."""

    name = "off"
    samples = SAMPLES
    kind = ""
    fitted = None

    def __init__(self, surfaces: Surfaces) -> None:
        self.surfaces = surfaces

    @property
    def space(self) -> ConfigurationSpace:
        return self.surfaces.space

    def fit(self, surfaces: Surfaces, samples: object, seed: int = 0) -> Off:
        return self

    def forecast(self, observed: Observed) -> SurfaceForecast:
        (row,) = np.flatnonzero(self.surfaces.time_s[:, 11] == observed.time_s[observed.numbers == 11])
        measured = np.isin(np.arange(12), observed.numbers)
        errors = np.linspace(-1, 1, 101)
        time, power = (
            Quantity(
                np.where(measured, values[row], values[row] * 1.1), np.where(measured, 0, spread), errors
            )
            for values, spread in ((self.surfaces.time_s, 0.2), (self.surfaces.power_w, 0.05))
        )
        return SurfaceForecast(time, power, measured)


def test_scores_are_those_of_known_errors() -> None:
    surfaces = made_surfaces(noise=0.01)
    errors: dict[str, Any] = held_out_errors(surfaces, Off(surfaces), samples=fixed)
    assert errors["rmse_log_time"] == pytest.approx(np.log(1.1))
    assert errors["median_ape_power"] == pytest.approx(0.1)
    assert (errors["coverage_time"], errors["coverage_power"]) == (1, 0)
    assert (errors["programs"], errors["cells"]) == (6, 6 * 2 * 10)


MADE = made_surfaces(4, noise=0.01)


def test_the_card_says_what_was_learned_and_how_good_that_is() -> None:
    surfaces = machine_of(configured_dataset(MADE))
    trained = train_configuration(surfaces, "published", seed=3)
    card = trained.card
    assert (card.model, card.seed, card.numbers) == ("published", 3, two_samples(surfaces))
    assert card.power.totals == {"node": (("cpu", "gpu"),)}
    assert card.domains == ("cpu", "gpu")
    facts = dict(card.training)
    assert facts["names"] == ["app0", "app1", "app2", "app3"]
    assert (facts["cells"], facts["kernels_at_a_size"], facts["configurations"]) == (96, 8, 12)
    errors: dict[str, Any] = card.errors
    assert errors["programs"] == 4
    assert 0 < errors["rmse_log_power"] < 0.5
    for each in errors["choices"]:
        assert each["method"] in ("published", "published+fl")
        assert 0 <= each["score"] <= 1
    assert len(errors["choices"]) == 2
    again = train_configuration(surfaces, "published", seed=3)
    assert again.card == card


def test_some_programs_can_be_learned_from_alone() -> None:
    surfaces = made_surfaces(5)
    states: list[State] = []
    tested = ["app1", "app3"]
    trained = train_configuration(surfaces, "published", held_out=tested, progress=states.append)
    assert trained.card.training["names"] == [f"app{number}" for number in range(5)]
    errors: dict[str, Any] = trained.card.errors
    assert list(errors["by_program"]) == tested
    assert states[-1].total == 4
    with pytest.raises(InputError, match=r"held_out: expected some of app0, .*, found 'app9'"):
        train_configuration(surfaces, "published", held_out=["app9"])


def test_fits_for_errors_and_for_choices_are_counted_together(tmp_path: Path) -> None:
    states: list[State] = []
    train_configuration(made_surfaces(4), "published", progress=states.append, cache=tmp_path)
    assert [(each.done, each.total) for each in states] == [(done, 8) for done in range(1, 9)]
    states.clear()
    train_configuration(made_surfaces(4), "published", progress=states.append, cache=tmp_path)
    assert not states


def test_samples_can_be_named() -> None:
    surfaces = made_surfaces(4)
    wanted = [surfaces.space.configurations[number] for number in (5, 2)]
    assert train_configuration(surfaces, "published", samples=wanted).card.numbers == (5, 2)


def test_too_few_programs_or_an_unknown_model_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected at least 3 applications .* found app0, app1"):
        train_configuration(made_surfaces(2), "published")
    with pytest.raises(InputError, match="model: expected one of model, published"):
        train_configuration(made_surfaces(4), "magic")


def renamed(surfaces: Surfaces, device: str) -> Surfaces:
    space = ConfigurationSpace(
        tuple(Configuration(device, each.settings) for each in surfaces.space.configurations)
    )
    kernels = tuple(each._replace(application=f"{device}-{each.application}") for each in surfaces.kernels)
    return replace(surfaces, space=space, kernels=kernels)


def test_machines_without_a_kernel_in_common_are_told_apart() -> None:
    both = configured_dataset(*(renamed(made_surfaces(3), name) for name in ("left", "right")))
    with pytest.raises(InputError, match=r"device: expected those of one machine, found 2 .*\(left; right\)"):
        machine_of(both)
    assert machine_of(both, devices=["right"]).space.devices == ("right",)


def test_a_single_configuration_leaves_nothing_to_choose() -> None:
    made = made_surfaces(3)
    space = ConfigurationSpace(made.space.configurations[:1])
    lone = Surfaces("lone", made.kernels, space, made.time_s[:, :1], made.power_w[:, :1])
    lone = replace(lone, domains={"cpu": lone.power_w})
    with pytest.raises(InputError, match="expected at least 2 configurations to choose from, found 1"):
        machine_of(configured_dataset(lone))


def test_the_published_model_is_told_with_clusters_and_tree_where_there_is_something_to_cluster() -> None:
    machine = chosen_study().machines[0]
    fitted = PublishedModel().fit(named_surfaces(), (11, 0))
    assert machine.published.samples == (11, 0)
    document: Any = machine.to_dict()["published_model"]
    assert document == fitted.to_dict()
    assert not document["nothing_to_cluster"]
    listed = sorted(name for group in document["clusters"] for name in group)
    assert listed == sorted(str(kernel) for kernel in named_surfaces().kernels)
    assert document["tree"] == fitted.fitted.tree.text()
    document = chosen_study(both=True).machines[1].to_dict()["published_model"]
    assert document["nothing_to_cluster"]
    assert document["note"].startswith("nothing to cluster: Kendall's tau is 1 for every pair of kernels")
    assert document["least_correlation"] == document["most_correlation"] == 1
    assert document["clusters"] == []
    assert document["tree"] is None
