"""Artefacts of models of configurations, and the nearest kernels: what comes back, and what is refused."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.configuration import Surfaces
from crosscast.prediction.configuration.artefact import (
    NearestKernels,
    TrainedConfigurationModel,
    model_named,
)
from crosscast.prediction.configuration.choice import choice_of
from crosscast.prediction.configuration.features import TrainingRuns
from crosscast.prediction.named_models import load_model
from support.models import chooser_card, kept_chooser
from support.refusals import refusal
from support.surfaces import made_surfaces


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return kept_chooser(tmp_path / "capmodel")


def test_a_model_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    card = chooser_card()
    nearest = NearestKernels().fit(made_surfaces(), card.numbers)
    with pytest.raises(InputError, match=r"expected one that can be kept \(.*\), found nearest"):
        card = msgspec.structs.replace(card, model="nearest")
        TrainedConfigurationModel(card, nearest).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    assert "model: expected one of model, published" in refusal(model_named, "magic")


def measured(number: int, row: int = 2) -> dict[str, float]:
    surfaces = made_surfaces()
    given = {"time_s": surfaces.time_s[row, number], "power_w": surfaces.power_w[row, number]}
    given |= {f"{name}_w": values[row, number] for name, values in surfaces.domains.items()}
    return given | {name: values[row, number] for name, values in surfaces.counters.items()}


def test_it_chooses_by_runs_that_are_named_by_their_configurations(folder: Path) -> None:
    model = load_model(folder)
    space = model.predictor.space
    runs = {space.configurations[number]: measured(number) for number in (0, 11)}
    forecast = model.predictor.forecast(made_surfaces().observed(2, (0, 11)))
    np.testing.assert_array_equal(model.predict(runs).time.centre, forecast.time.centre)
    choice = model.choose(runs, 250.0)
    assert choice == choice_of(forecast, space, 250.0)
    assert choice.recommended is not None
    assert len(choice.columns()["time_s"]) == len(choice.frontier)
    assert str(choice.recommended.configuration) in choice._repr_html_()
    assert model.choose(runs, 250.0, "energy").objective == "energy"
    assert model.choose(runs, 1.0).recommended is None


def test_runs_that_are_not_there_are_named(folder: Path) -> None:
    model = load_model(folder)
    highest = model.samples[0]
    with pytest.raises(InputError, match="expected a run at node: cpu cap 60 W, gpu cap 100 W, found none"):
        model.predict({highest: measured(11)})
    with pytest.raises(InputError, match=r"runs: node: .*: power_w: expected a number, found time_s"):
        model.predict({highest: {"time_s": 1.0}})


SAMPLES = (11, 0)


def changes(surfaces: Surfaces) -> tuple[Reals, Reals, Reals]:
    """Points, and targets of baselines: logarithms over those at the sample of the same device."""
    known = TrainingRuns.of(surfaces, SAMPLES)
    values = (known.surfaces.time_s, known.surfaces.power_w)
    time, power = (np.log(each / each[:, known.scaled_from]) for each in values)
    return known.features.standardized(known.values), time, power


def test_it_predicts_what_scikit_learn_does() -> None:
    surfaces = made_surfaces(7, noise=0.05)
    out = surfaces.rows_of(["app2"])
    points, times, powers = changes(surfaces.take(~out))
    other = KNeighborsRegressor(3, weights="distance")
    fitted = NearestKernels().fit(surfaces.take(~out), SAMPLES)
    for row in np.flatnonzero(out).tolist():
        observed = surfaces.observed(row, SAMPLES)
        point = fitted.features.standardized(fitted.features.values(observed, [0, 1]))[None]
        forecast = fitted.forecast(observed)
        rest = ~forecast.measured
        time = observed.time_s[0] * np.exp(other.fit(points, times).predict(point)[0])
        power = observed.power_w[0] * np.exp(other.fit(points, powers).predict(point)[0])
        np.testing.assert_allclose(forecast.time.centre[rest], time[rest])
        np.testing.assert_allclose(forecast.power.centre[rest], power[rest])


def test_what_the_nearest_lack_comes_from_all_others_and_from_none_is_unknown() -> None:
    surfaces = made_surfaces(3).take(np.arange(4))
    alone = NearestKernels().fit(surfaces.take(np.array([3])), SAMPLES)
    expected = alone.forecast(surfaces.observed(0, SAMPLES)).time.centre
    # The three others are nearer, the kernel itself among them.
    surfaces.time_s[:3, 5] = surfaces.power_w[:3, 5] = np.nan
    surfaces.time_s[:, 6] = surfaces.power_w[:, 6] = np.nan
    forecast = NearestKernels().fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isnan([forecast.time.centre[6], forecast.power.centre[6]]).all()
    assert np.isfinite(np.delete(forecast.time.centre, 6)).all()
    assert forecast.time.centre[5] == pytest.approx(expected[5])
    # One application is enough.
    surfaces = made_surfaces(1)
    forecast = NearestKernels().fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isfinite([forecast.time.centre, forecast.power.centre]).all()
