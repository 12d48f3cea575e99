"""Artefacts of models of co-running: what was kept forecasts the same, and wrong input is one sentence."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from crosscast.data.corun import CoRuns, IsolatedRun
from crosscast.errors import InputError
from crosscast.prediction.corun.artefact import KNOWN, NEW, CoRunCard, FittedCoRun, TrainedCoRunModel
from crosscast.prediction.corun.forecast import CoRunPredictor, CoRunResiduals
from crosscast.prediction.corun.moolchandani2022 import Published
from crosscast.prediction.corun.process import Process
from crosscast.prediction.named_models import load_model
from support.mixes import NAMES, made_co_runs, make_isolated_run

BOTH = made_co_runs(NAMES[:4], mixes=(2, 3))
A, B, C, _ = BOTH.isolated_runs
X, Y = make_isolated_run("x"), make_isolated_run("y")
GROUPS = np.array([0, 0, 1, 1, 2, 2])


def left_out(size: float) -> CoRunResiduals:
    return CoRunResiduals(size * np.array([1, -1, 1, 1, -1, 1.0]), GROUPS, ("a", "b", "c"))


QUANTITIES = {"slowdown": 0.1, "time": 0.2, "power": 0.05}


def kept(
    folder: Path, predictor: CoRunPredictor, quantities: Mapping[str, float] = QUANTITIES, runs: CoRuns = BOTH
) -> TrainedCoRunModel:
    """A model with errors of new applications that are twice those of known ones."""
    errors = {
        whose: {name: left_out(factor * size) for name, size in quantities.items()}
        for whose, factor in ((NEW, 2.0), (KNOWN, 1.0))
    }
    sizes = tuple(sorted({len(mix.members) for mix in runs.mixes}))
    card = CoRunCard(
        "process", 0, "cpu", "{}", sizes, runs.applications, 1 << 30, {"mixes": 9}, {"level": 0.9}
    )
    TrainedCoRunModel(card, FittedCoRun(predictor, errors)).save(folder)
    model: TrainedCoRunModel = load_model(folder, "corun")
    return model


@pytest.fixture(scope="module")
def predictor() -> CoRunPredictor:
    return Process(trees=False).fit(BOTH, 0)


@pytest.fixture(scope="module")
def model(predictor: CoRunPredictor, tmp_path_factory: pytest.TempPathFactory) -> TrainedCoRunModel:
    return kept(tmp_path_factory.mktemp("kept") / "co", predictor)


def test_intervals_are_those_of_new_or_of_known_applications(model: TrainedCoRunModel) -> None:
    known, new = model.predict([(A, B), (A, X)])
    for forecast, factor in ((known, 1.0), (new, 2.0)):
        for quantity, result in (
            ("slowdown", forecast.slowdown[0]),
            ("time", forecast.time_s),
            ("power", forecast.power_w),
        ):
            assert result is not None
            assert result.high / result.value == pytest.approx(np.exp(factor * QUANTITIES[quantity]))
            assert result.low * result.high == pytest.approx(result.value**2)


def test_a_forecast_says_what_belongs_beside_it(model: TrainedCoRunModel) -> None:
    (predicted,) = model.predict([(A, B)], level=0.5)
    assert predicted.level == 0.5
    assert predicted.serial_s == pytest.approx((A.time_s or 0) + (B.time_s or 0))
    assert predicted.memory_bytes == 2 << 20
    assert predicted.warnings == ()
    document: dict[str, Any] = predicted.to_dict()
    assert list(document["slowdown"]) == [A.application, B.application]
    for value in (document["time_s"], document["power_w"], *document["slowdown"].values()):
        assert value["low"] < value["value"] < value["high"]
    json.dumps(document, allow_nan=False)


def test_an_application_that_is_there_twice_is_named_twice(model: TrainedCoRunModel) -> None:
    (same,) = model.predict([(A, B, A)])
    assert same.labels() == ["bfs small (1)", "cfd small", "bfs small (2)"]
    first, _, last = same.slowdown
    assert first == last
    (sizes,) = model.predict([(A, make_isolated_run("bfs", "tiny"))])
    assert sizes.labels() == ["bfs small", "bfs tiny"]


def test_a_mix_larger_than_those_of_training_is_predicted_with_a_warning(model: TrainedCoRunModel) -> None:
    (predicted,) = model.predict([(A, B, C, A)])
    assert predicted.time_s is not None
    assert predicted.warnings == (
        "4 applications at once, and the model was trained on mixes of 2 and 3: it is asked beyond what it "
        "was tested on, and its intervals are those of these",
    )


def test_applications_that_are_all_new_are_doubted(model: TrainedCoRunModel) -> None:
    both, one = model.predict([(X, Y), (A, X)])
    assert both.warnings == (
        "x, y are all new to the model, and its intervals come from mixes with one new application",
    )
    assert one.warnings == ()


def test_what_is_outside_of_the_training_is_warned_of(model: TrainedCoRunModel) -> None:
    assert model.ranges == {}
    known = replace(model, card=structs.replace(model.card, runs=(A, B, C)))
    name = "utilisation"
    low, high = known.ranges[name]
    assert {low, high} <= {run.features[name] for run in (A, B, C)}
    (inside,) = known.predict([(A, replace(X, features=B.features))])
    assert inside.warnings == ()
    (predicted,) = known.predict([(A, replace(X, features={**B.features, name: high + 0.1}))])
    assert predicted.warnings == (
        f"outside of what the model was trained on in: {name} of {X.name} {high + 0.1:.4g} "
        f"({low:.4g} to {high:.4g})",
    )


def test_without_a_time_alone_no_time_is_told_and_said_so(model: TrainedCoRunModel) -> None:
    (predicted,) = model.predict([(A, replace(B, time_s=None, memory_bytes=None, power_w=None))])
    assert (predicted.time_s, predicted.serial_s, predicted.power_w, predicted.memory_bytes) == (None,) * 4
    assert all(predicted.slowdown)
    assert predicted.warnings == (
        "no isolated time is known of cfd small, so that no time of the mix is told",
    )


@pytest.mark.parametrize(
    ("errors", "reach"),
    [({"slowdown": 0.1}, 0.1), (dict.fromkeys(QUANTITIES, 1e9), 100)],
    ids=["as sure as slowdowns", "never beyond numbers"],
)
def test_limits_of_times_are_those_of_their_errors_or_of_slowdowns(
    predictor: CoRunPredictor, tmp_path: Path, errors: dict[str, float], reach: float
) -> None:
    (model,) = kept(tmp_path / "co", predictor, errors).predict([(A, B)])
    assert model.time_s is not None
    assert model.time_s.high / model.time_s.value == pytest.approx(np.exp(reach))
    assert (model.power_w is None) == ("power" not in errors)
    json.dumps(model.to_dict(), allow_nan=False)


@pytest.mark.parametrize("times", [True, False], ids=["times", "no times"])
def test_a_published_model_of_triples_alone_forecasts_triples(times: bool, tmp_path: Path) -> None:
    runs = made_co_runs(NAMES[:4], mixes=(3,))
    if not times:
        runs = replace(runs, mixes=tuple(replace(mix, time_s=None) for mix in runs.mixes))
    quantities = QUANTITIES if times else {"slowdown": 0.1}
    trained = kept(tmp_path / "co", Published("decision-tree").fit(runs, 0), quantities, runs)
    (predicted,) = trained.predict([(A, B, C)])
    assert predicted.time_s is not None
    assert predicted.time_s.value == pytest.approx(trained.predictor.predict([(A, B, C)]).time_s[0])
    with pytest.raises(InputError, match=r"^mix: expected as many applications .* \(3\), found 2$"):
        trained.predict([(A, B)])


@pytest.mark.parametrize(
    ("mix", "level", "message"),
    [
        ((A,), 0.9, r"^mix: expected at least 2 applications, found 1$"),
        ((A, replace(B, device="gpu")), 0.9, r"^cfd small: device: expected the profile to be of cpu, .*"),
        ((A, replace(B, time_s=1e200)), 0.9, r"^cfd small: time_s: expected a number of seconds that a job"),
        ((A, B), 0.0, r"^level: expected a probability between 0 and 1, found 0$"),
        ((A, B), 1.0, r"^level: expected"),
    ],
)
def test_wrong_mixes_are_refused(
    model: TrainedCoRunModel, mix: tuple[IsolatedRun, ...], level: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        model.predict([mix], level=level)


def test_mixes_may_be_named_by_isolated_runs_of_the_training(predictor: CoRunPredictor) -> None:
    card = CoRunCard("process", 0, "cpu", "{}", (2,), ("bfs", "cfd"), None, {}, {}, None, (A, B))
    model = TrainedCoRunModel(card, FittedCoRun(predictor, {NEW: {"slowdown": left_out(0.1)}}))
    named = model.predict([["bfs/small", "cfd/small"], ["cfd/small", X]])
    assert named.mixes == model.predict([(A, B), (B, X)]).mixes
    with pytest.raises(InputError, match=r"^mix: expected .*\(bfs/small, cfd/small\), found 'bfs/huge'$"):
        model.predict([["bfs/huge", "cfd/small"]])


def test_a_forecast_is_a_table_of_co_runners(model: TrainedCoRunModel) -> None:
    predicted = model.predict([(A, B), (A, B, X)])
    table = predicted.plain_columns()
    assert table["co_runner"] == ["bfs small", "cfd small", "bfs small", "cfd small", "x small"]
    assert table["mix"][:2] == ["bfs small + cfd small"] * 2
    assert predicted[0].time_s is not None
    assert table["time_s"][:2] == [predicted[0].time_s.value] * 2
    assert all(
        low < value < high
        for low, value, high in zip(*(table[name] for name in ("low", "slowdown", "high")), strict=True)
    )
    assert table["fits"] == [None] * 5
