"""Training a model of configurations: what it learns, what its card says, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_surfaces import made_surfaces

from crosscast.configuration import Configuration
from crosscast.decide.samples import two_samples
from crosscast.decide.training import machine_of, train_chooser
from crosscast.errors import InputError
from crosscast.evaluate.processes import State
from crosscast.predict.configuration.data import Space, Surfaces
from made_configured import configured_dataset

MADE = made_surfaces(4, noise=0.01)


def test_the_machine_of_a_dataset_is_what_was_measured() -> None:
    found = machine_of(configured_dataset(MADE))
    assert (found.space, found.kernels) == (MADE.space, MADE.kernels)
    np.testing.assert_allclose(found.power_w, MADE.power_w)
    np.testing.assert_allclose(
        machine_of(configured_dataset(MADE), power_domain="gpu").power_w, MADE.domains["gpu"]
    )


def test_the_card_says_what_was_learned_and_how_good_that_is() -> None:
    surfaces = machine_of(configured_dataset(MADE))
    trained = train_chooser(surfaces, "published-log", seed=3)
    card = trained.card
    assert (card.model, card.seed, card.samples) == ("published-log", 3, two_samples(surfaces))
    assert card.totals == {"node": (("cpu", "gpu"),)}
    assert card.domains == ("cpu", "gpu")
    facts = dict(card.training)
    assert facts["names"] == ["app0", "app1", "app2", "app3"]
    assert (facts["cells"], facts["kernels_at_a_size"], facts["configurations"]) == (96, 8, 12)
    assert card.errors["programs"] == 4
    assert 0 < card.errors["rmse_log_power"] < 0.5
    for each in card.errors["choices"]:
        assert each["method"] in ("published-log", "published-log+fl")
        assert 0 <= each["score"] <= 1
    assert len(card.errors["choices"]) == 2
    again = train_chooser(surfaces, "published-log", seed=3)
    assert again.card == card


def test_fits_for_errors_and_for_choices_are_counted_together(tmp_path: Path) -> None:
    states: list[State] = []
    train_chooser(made_surfaces(4), "published-log", progress=states.append, cache=tmp_path)
    assert [(each.done, each.total) for each in states] == [(done, 8) for done in range(1, 9)]
    states.clear()
    # What was chosen is known, but not the errors.
    train_chooser(made_surfaces(4), "published-log", progress=states.append, cache=tmp_path)
    assert [each.done for each in states] == [1, 2, 3, 4]


def test_samples_can_be_named() -> None:
    surfaces = made_surfaces(4)
    wanted = [surfaces.space.configurations[number] for number in (5, 2)]
    assert train_chooser(surfaces, "published-log", samples=wanted).card.samples == (5, 2)
    with pytest.raises(InputError, match="samples: configuration: expected one of the 12 that are known"):
        train_chooser(surfaces, "published-log", samples=[Configuration("node", {})])
    with pytest.raises(InputError, match="samples: expected at least one configuration, and each once"):
        train_chooser(surfaces, "published-log", samples=[wanted[0], wanted[0]])


def test_too_few_programs_or_an_unknown_model_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected at least 3 applications .* found app0, app1"):
        train_chooser(made_surfaces(2), "published")
    with pytest.raises(InputError, match="model: expected one of model, published"):
        train_chooser(made_surfaces(4), "magic")


def renamed(surfaces: Surfaces, device: str) -> Surfaces:
    space = Space(tuple(Configuration(device, each.settings) for each in surfaces.space.configurations))
    kernels = tuple(each._replace(application=f"{device}-{each.application}") for each in surfaces.kernels)
    return replace(surfaces, space=space, kernels=kernels)


def test_machines_without_a_kernel_in_common_are_told_apart() -> None:
    both = configured_dataset(*(renamed(made_surfaces(3), name) for name in ("left", "right")))
    with pytest.raises(InputError, match=r"device: expected those of one machine, found 2 .*\(left; right\)"):
        machine_of(both)
    assert machine_of(both, devices=["right"]).space.devices == ("right",)


def test_a_single_configuration_leaves_nothing_to_choose() -> None:
    made = made_surfaces(3)
    space = Space(made.space.configurations[:1])
    lone = Surfaces("lone", made.kernels, space, made.time_s[:, :1], made.power_w[:, :1])
    lone = replace(lone, domains={"cpu": lone.power_w})
    with pytest.raises(InputError, match="expected at least 2 configurations to choose from, found 1"):
        machine_of(configured_dataset(lone))
