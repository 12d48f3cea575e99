"""A profile on a terminal: what is known, and a dash or a sentence for what is not."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from crosscast.data.corun import CoRunContents, CoRunFailure, IsolatedRun, IsolatedRunCount, MixCount
from crosscast.decide.colocation import choose_colocation
from crosscast.measure.corun.profile import Level, StressorCalibration
from crosscast.measure.corun.run import JobWork
from crosscast.measure.subjects import Stressor
from crosscast.prediction.corun import Estimate, MixForecast
from crosscast.prediction.corun.artefact import CoRunCard, TrainedCoRunModel
from crosscast.report.corun import (
    CoRunProfile,
    colocation_report,
    corun_forecast_report,
    corun_profile_report,
    corun_training_report,
    held_out_errors,
)
from crosscast.report.dataset import contents_lines, failure_lines
from crosscast.report.document import Report
from crosscast.studies.moolchandani2022_report import study_report
from support.corun_models import constant, made_jobs
from support.golden import assert_printed
from support.mixes import make_isolated_run, studied

GOLDEN = Path(__file__).with_name("golden")
LEVELS = tuple(
    Level(name, JobWork(Stressor(name, {}), 3), 0.2, rate, rate)
    for name, rate in (("low", 4e10), ("medium", 1e10), ("high", 5e9))
)
KNOWN = {
    "mix_sse": 0.0,
    "mix_mem": 0.25,
    "ipc": 1.234,
    "llc_miss": 0.5,
    "utilisation": 0.5,
    "slowdown_low": 1.5,
    "inflicted_low": 3.0,
    "fairness_low": 0.5,
    "power_low_w": 61.0,
}
PROFILE = CoRunProfile(
    IsolatedRun("gem", "tiny", "cpu-of-a-test", 0.25, "{}", 1200, 40.0, 2048, KNOWN),
    "pocl:0",
    "A CPU [x]",
    StressorCalibration("pocl:0", 1 << 25, 1 << 27, LEVELS),
    ["beside the stressor high: it hangs"],
    Path("gem-tiny.json"),
)


A, B = make_isolated_run("bfs"), make_isolated_run("cfd")


def result(quantity: str, model: str = "process", **cells: Any) -> dict[str, Any]:
    what = {"model": model, "baseline": model == "mean", "split": "leave-benchmark-out", "probes": 0}
    scores = {"rows": 1234, "mape": 0.0725, "coverage": 0.9, "worst": "cfd", "worst_coverage": 0.75}
    return {**what, "mix_size": None, "quantity": quantity, **scores, "auc": None, **cells}


ERRORS = {
    "level": 0.9,
    "results": [
        result("slowdown"),
        result("slowdown", mix_size=2, mape=0.01),
        result("speed", mape=0.99),
        result("time", mape=0.085),
        result("slowdown", "mean", mape=0.2),
        result("fits", mape=None, coverage=None, worst=None, worst_coverage=None, auc=0.9321),
    ],
}
CARD = CoRunCard(
    "process", 0, "cpu", "{}", (2, 3), ("bfs", "cfd"), None, {"dataset": "made", "mixes": 21}, ERRORS
)
FORECAST = MixForecast(
    (A, B),
    (Estimate(1.5, 1.2, 1.9, 0.9), Estimate(2.0, 1.6, 2.5, 0.9)),
    Estimate(0.3, 0.25, 0.35, 0.9),
    0.5,
    Estimate(50.0, 45.0, 55.0, 0.9),
    0.75,
    2 << 20,
    0.9,
)


UNKNOWN = replace(FORECAST, slowdown=(None, None), time_s=None, power_w=None, fits=None, memory_bytes=None)
WHERE = ("sums", "tiny", "gpu", '{"sharing": "mps"}')
CONTENTS = CoRunContents(
    (IsolatedRunCount("cpu", 1, 0), IsolatedRunCount("gpu", 1200, 3)),
    (MixCount("cpu", 2, 1, 1, 0, 0), MixCount("gpu", 3, 84000, 6, 2, 1)),
    (
        CoRunFailure(*WHERE, None, None, "no memory"),
        CoRunFailure(*WHERE[:3], "{}", "pair", 0, "it hung"),
        CoRunFailure(*WHERE[:3], "{}", "pair", 2, "it hung"),
    ),
)
PAGES: dict[str, Callable[[Path], Report]] = {
    "profile": lambda _: corun_profile_report(PROFILE),
    "profile-of-little": lambda _: corun_profile_report(
        replace(PROFILE, isolated_run=IsolatedRun("gem", "tiny", "cpu-of-a-test", 0.25))
    ),
    "profile-out-of-order": lambda _: corun_profile_report(
        replace(PROFILE, calibration=replace(PROFILE.calibration, levels=LEVELS[::-1]))
    ),
    "contents": lambda _: Report([*contents_lines(CONTENTS), *failure_lines(CONTENTS)]),
    "forecast": lambda _: corun_forecast_report(FORECAST, CARD),
    "forecast-lost": lambda _: corun_forecast_report(replace(FORECAST, serial_s=0.2), CARD),
    "forecast-hardly-saved": lambda _: corun_forecast_report(replace(FORECAST, serial_s=0.32), CARD),
    "forecast-hardly-lost": lambda _: corun_forecast_report(replace(FORECAST, serial_s=0.28), CARD),
    "forecast-of-nothing": lambda _: corun_forecast_report(UNKNOWN, CARD),
    "forecast-without-power": lambda _: corun_forecast_report(
        replace(UNKNOWN, mix=(A, replace(B, power_w=None))), CARD
    ),
    "forecast-elsewhere": lambda _: corun_forecast_report(
        replace(UNKNOWN, mix=(replace(A, device="gpu"), replace(B, device="gpu"))), CARD
    ),
    "forecast-without-errors": lambda _: corun_forecast_report(FORECAST, structs.replace(CARD, errors={})),
    "training": lambda _: corun_training_report(CARD, Path("co")),
    "pairs": lambda folder: colocation(constant(folder, 1.25, error=0.1), [10.0, 10.0]),
    "alone": lambda folder: colocation(constant(folder, 1.2), [1.0, 2.0], job_bytes=9, memory_bytes=10),
    "gain-of-none": lambda folder: colocation(constant(folder, 1.8, error=0.3), [1.0, 1.0]),
}


def colocation(
    model: TrainedCoRunModel, lengths: list[float], job_bytes: int | None = None, **options: Any
) -> Report:
    jobs = made_jobs(len(lengths))
    if job_bytes is not None:
        jobs = [replace(job, memory_bytes=job_bytes) for job in jobs]
    plan = choose_colocation(jobs, model, lengths=lengths, **options)
    return colocation_report(plan, [f"job {place}" for place in range(len(jobs))], model.card)


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_as_they_were(name: str, tmp_path: Path) -> None:
    assert_printed(PAGES[name](tmp_path / "model").to_text(), GOLDEN / f"corun-{name}.txt")


@pytest.mark.parametrize(("longer_s", "share"), [(60_000.0, "less than 1 %"), (60.0, "38 %")])
def test_a_gain_is_not_written_as_none(longer_s: float, share: str, tmp_path: Path) -> None:
    # Both run for 60 s x 1.25 = 75 s, in which they do 2 / 1.25 times the work: 45 s are gained.
    page = colocation(constant(tmp_path / "model", 1.25), [60.0, longer_s]).to_text()
    assert f"{share} of the time." in page
    assert "Gain: 45 s" in page


def test_an_error_that_is_no_number_is_not_told_and_json_has_how_a_profile_was_made() -> None:
    results = [result("slowdown"), result("time", mape=None, coverage=None)]
    lines = held_out_errors(structs.replace(CARD, errors={"level": 0.9, "results": results}))
    assert lines == [
        "On held-out applications: slowdowns: mean error 7.25 %, coverage of 90 % intervals 90 % "
        "(worst application cfd 75 %)."
    ]
    found = json.loads(json.dumps(PROFILE.to_dict(), allow_nan=False))
    assert (found["application"], found["time_s"], found["features"]) == ("gem", 0.25, KNOWN)
    assert found["microbenchmarks"]["levels"]["high"]["bandwidth_bytes_per_s"] == 5e9
    assert found["device"] == {"id": "pocl:0", "key": "cpu-of-a-test", "name": "A CPU [x]"}
    assert found["notes"] == ["beside the stressor high: it hangs"]


def test_all_studies_are_printed_and_those_that_could_not_be_made_are_said_once_a_reason() -> None:
    study = studied()
    assert study.studies is not None
    text = study_report(study).to_text()
    for part in (
        "clusters of 30 mixes by fairness, LLC misses, L1 misses: mean silhouette",
        "time of mixes of 2 by features, leave-benchmark-out: MAPE",
        "power of mixes of 2 by features, random-80-20: MAPE",
        "time: mixes with a feature on their path through a decision tree of all that is known",
        "mixes of several sizes, leave-benchmark-out: MAPE",
        "times on cpu translated to other, each of 4 applications left out: MAPE",
        "Published: 7 to 9 % (an accuracy of 91 to 93 %)",
    ):
        assert part in text
    assert "Not studied" not in text
    why = "the power of no mix is known"
    lacking: Any = replace(study, studies=replace(study.studies, power=why, power_paths=why))
    told = f"Not studied: features for power, decision paths for power, as {why}."
    assert told in study_report(lacking).to_text()
    assert lacking.to_dict()["studies"]["power"] == {"not_made": why}
    assert lacking.to_dict()["studies"]["translations"][0]["to"] == "other"
