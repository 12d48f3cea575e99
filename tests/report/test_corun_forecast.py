"""What a person sees of a forecast of a bag, and of a model that was trained."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_co_runs import made_solo

from crosscast.predict.corun.artefact import CoRunCard
from crosscast.predict.corun.forecast import CoRunForecast, Ranged
from crosscast.report.corun_forecast import print_corun_forecast
from crosscast.report.corun_training import honest_corun_errors, print_corun_training

A, B = made_solo("bfs"), made_solo("cfd")


def result(quantity: str, model: str = "process", **cells: Any) -> dict[str, Any]:
    return {
        "model": model, "baseline": model == "mean", "split": "leave-benchmark-out", "probes": 0,
        "bag_size": None, "quantity": quantity, "rows": 1234, "mape": 7.25, "coverage": 0.9, "worst": "cfd",
        "worst_coverage": 0.75, "auc": None, **cells,
    }  # fmt: skip


ERRORS = {
    "level": 0.9,
    "results": [
        result("slowdown"),
        result("slowdown", bag_size=2, mape=1.0),
        result("speed", mape=99.0),
        result("time", mape=8.5),
        result("slowdown", "mean", mape=20.0),
        result("fits", mape=None, coverage=None, worst=None, worst_coverage=None, auc=0.9321),
    ],
}
CARD = CoRunCard(
    "process", 0, "cpu", "{}", (2, 3), ("bfs", "cfd"), None, {"dataset": "made", "bags": 21}, ERRORS
)
FORECAST = CoRunForecast(
    (A, B),
    (Ranged(1.5, 1.2, 1.9, 0.9), Ranged(2.0, 1.6, 2.5, 0.9)),
    Ranged(0.3, 0.25, 0.35, 0.9),
    0.5,
    Ranged(50.0, 45.0, 55.0, 0.9),
    0.75,
    2 << 20,
    0.9,
)


def shown(forecast: CoRunForecast, card: CoRunCard = CARD) -> str:
    stream = io.StringIO()
    print_corun_forecast(forecast, card, stream)
    return stream.getvalue()


def test_times_slowdowns_power_and_how_sure_they_are() -> None:
    text = shown(FORECAST)
    assert "bfs small + cfd small on cpu" in text
    assert (
        "All together: 300 ms (250 ms to 350 ms, 90 % interval); one after another 500 ms: 40 % saved."
        in text
    )
    assert "Power while all run: 50 W (45 to 55 W, 90 % interval)." in text
    assert "They fit on the device together with a probability of 75 %." in text
    assert "Memory of all: 2 MiB." in text
    assert (
        "Mean absolute error on applications that it had not seen: slowdowns 7.25 %, times of bags 8.5 %."
        in text
    )
    assert "90 % intervals held 90 % of its times; of cfd 75 %." in text


@pytest.mark.parametrize(
    ("serial_s", "said"),
    [
        (0.2, "50 % lost."),
        (0.32, "6 % saved, but the interval holds both."),
        (0.28, "7 % lost, but the interval holds both."),
    ],
)
def test_a_gain_that_is_not_sure_is_said_not_to_be(serial_s: float, said: str) -> None:
    assert said in shown(replace(FORECAST, serial_s=serial_s))


def test_what_is_not_known_is_said_not_to_be() -> None:
    nothing = replace(
        FORECAST, slowdown=(None, None), time_s=None, power_w=None, fits=None, memory_bytes=None
    )
    text = shown(nothing)
    assert "Power: not known, as the model was trained on bags without." in text
    for absent in ("All together", "They fit", "Memory", "nan", "None"):
        assert absent not in text
    unpowered = replace(nothing, bag=(A, replace(B, power_w=None)))
    assert "Power: not known, as that of cfd small alone is not." in shown(unpowered)
    elsewhere = replace(nothing, bag=(replace(A, device="gpu"), replace(B, device="gpu")))
    assert "Power: not known, as it is not translated." in shown(elsewhere)


def test_a_card_without_errors_tells_none() -> None:
    assert honest_corun_errors(replace(CARD, errors={})) == []
    text = shown(FORECAST, replace(CARD, errors={}))
    assert "trained on made: 21 bags of 2 and 3 of 2 applications (bfs, cfd) on cpu." in text
    assert "Mean absolute error" not in text


def test_a_trained_model_shows_its_errors_beside_those_of_baselines() -> None:
    stream = io.StringIO()
    print_corun_training(CARD, Path("co"), stream)
    text = stream.getvalue()
    assert text.startswith(
        "co: process, trained on made: 21 bags of 2 and 3 of 2 applications (bfs, cfd) on cpu."
    )
    for words in ("mean (baseline)", "7.25 %", "cfd 75 %", "0.932", "1,234", "90 % intervals held what"):
        assert words in text
    # Speeds say what slowdowns say, and sizes are for the evaluation.
    assert "99 %" not in text
    assert "speed" not in text


def test_an_error_that_is_no_number_is_not_told() -> None:
    results = [result("slowdown"), result("time", mape=None, coverage=None)]
    lines = honest_corun_errors(replace(CARD, errors={"level": 0.9, "results": results}))
    assert lines == ["Mean absolute error on applications that it had not seen: slowdowns 7.25 %."]
