"""A profile on a terminal: what is known, and a dash or a sentence for what is not."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from crosscast.data.corun import IsolatedRun
from crosscast.data.description import CoRunContents, CoRunFailure, IsolatedRunCount, MixCount
from crosscast.decide.colocation import ColocationPlan, choose_colocation
from crosscast.measure.corun.profile import Level, StressorCalibration
from crosscast.measure.corun.run import JobWork
from crosscast.measure.subjects import Stressor
from crosscast.prediction.corun.artefact import CoRunCard, TrainedCoRunModel
from crosscast.prediction.corun.forecast import Estimate, MixForecast
from crosscast.report.corun import (
    CoRunProfile,
    colocation_report,
    corun_forecast_report,
    corun_profile_report,
    corun_training_report,
    held_out_corun_errors,
)
from crosscast.report.dataset import contents_lines, failure_lines
from crosscast.report.figures import new_figure
from crosscast.studies.moolchandani2022_figures import error_scale
from crosscast.studies.moolchandani2022_report import study_report
from support.corun_models import constant, made_jobs
from support.mixes import make_isolated_run, studied

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
ISOLATED = IsolatedRun(
    "gem", "tiny", "cpu-of-a-test", 0.25, runs=1200, power_w=40.0, memory_bytes=2048, features=KNOWN
)
PROFILE = CoRunProfile(
    ISOLATED,
    "pocl:0",
    "A CPU [x]",
    StressorCalibration("pocl:0", 1 << 25, 1 << 27, LEVELS),
    ["beside the stressor high: it hangs"],
    Path("gem-tiny.json"),
)


def printed(profile: CoRunProfile) -> list[str]:
    return corun_profile_report(profile).to_text().splitlines()


def test_what_was_measured_is_shown_for_people() -> None:
    assert printed(PROFILE) == [
        "gem tiny on pocl:0 (A CPU [x])",
        "a job of 1,200 runs: 250 ms alone",
        "power 40 W",
        "memory 2 KiB",
        "cores used 50 %",
        "instructions: memory 25 %",
        "CPU counters: 1.23 instructions a cycle, misses of the last-level cache 50 %",
        "",
        "beside each stressor",
        "beside  slowdown  slowdown of the other  fairness  power",
        "low        1.500                  3.000     0.500   61 W",
        "medium         —                      —         —      —",
        "high           —                      —         —      —",
        "stressors on pocl:0: low 40 GB/s, medium 10 GB/s, high 5 GB/s; 4 images of 32 MiB "
        "(no counters of misses here: bandwidths)",
        "warning: beside the stressor high: it hangs",
    ]


def test_what_is_not_known_is_said_to_be_so() -> None:
    bare = replace(PROFILE, isolated_run=IsolatedRun("gem", "tiny", "cpu-of-a-test", 0.25))
    assert printed(bare)[1:5] == [
        "a job of 1 run: 250 ms alone",
        "power: no sensor (crosscast devices says why)",
        "instructions: not characterized",
        "CPU counters: none that work here (crosscast devices says why)",
    ]


def test_stressors_out_of_order_are_a_warning() -> None:
    turned = replace(PROFILE, calibration=replace(PROFILE.calibration, levels=LEVELS[::-1]))
    assert any(line.startswith("warning: stressors on pocl:0: expected") for line in printed(turned))


def test_json_has_what_the_file_has_and_how_it_was_made() -> None:
    found = json.loads(json.dumps(PROFILE.to_dict(), allow_nan=False))
    assert (found["application"], found["time_s"], found["features"]) == ("gem", 0.25, KNOWN)
    assert found["microbenchmarks"]["levels"]["high"]["bandwidth_bytes_per_s"] == 5e9
    assert found["device"] == {"id": "pocl:0", "key": "cpu-of-a-test", "name": "A CPU [x]"}
    assert found["notes"] == ["beside the stressor high: it hangs"]


def test_each_device_and_size_of_mixes_has_a_line() -> None:
    contents = CoRunContents(
        (IsolatedRunCount("cpu", 1, 0), IsolatedRunCount("gpu", 1200, 3)),
        (MixCount("cpu", 2, 1, 1, 0, 0), MixCount("gpu", 3, 84000, 6, 2, 1)),
        (),
    )
    assert contents_lines(contents) == [
        "cpu: 1 isolated run",
        "gpu: 1,200 isolated runs, of which 3 failed",
        "cpu: 1 mix of 2",
        "gpu: 84,000 mixes of 3 in 6 configurations, of which 2 did not fit and 1 failed",
    ]
    assert contents_lines(CoRunContents((), (), ())) == []


def test_what_failed_says_where_and_why() -> None:
    place = ("sums", "tiny", "gpu", '{"sharing": "mps"}')
    failed = (
        CoRunFailure(*place, None, None, "no memory"),
        CoRunFailure(*place[:3], "{}", "pair", 0, "it hung"),
        CoRunFailure(*place[:3], "{}", "pair", 2, "it hung"),
    )
    assert failure_lines(CoRunContents((), (), failed)) == [
        'sums tiny on gpu {"sharing": "mps"}, alone: no memory',
        "sums tiny on gpu, in the mix pair: it hung",
        "sums tiny on gpu, in the mix pair, repeat 2: it hung",
    ]


A, B = make_isolated_run("bfs"), make_isolated_run("cfd")


def result(quantity: str, model: str = "process", **cells: Any) -> dict[str, Any]:
    return {
        "model": model, "baseline": model == "mean", "split": "leave-benchmark-out", "probes": 0,
        "mix_size": None, "quantity": quantity, "rows": 1234, "mape": 0.0725, "coverage": 0.9, "worst": "cfd",
        "worst_coverage": 0.75, "auc": None, **cells,
    }  # fmt: skip


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


def shown(forecast: MixForecast, card: CoRunCard = CARD) -> str:
    return corun_forecast_report(forecast, card).to_text()


def test_times_slowdowns_power_and_how_sure_they_are() -> None:
    text = shown(FORECAST)
    assert "bfs small + cfd small on cpu" in text
    assert (
        "Time of the mix: 300 ms (250 ms to 350 ms, 90 % interval); one after another 500 ms: 40 % saved."
        in text
    )
    assert "Power while all run: 50 W (45 to 55 W, 90 % interval)." in text
    assert "Probability that they fit on the device together: 75 %." in text
    assert "Memory of all: 2 MiB." in text
    assert "Mean absolute error on held-out applications: slowdowns 7.25 %, times of mixes 8.5 %." in text
    assert "Coverage of 90 % intervals of times: 90 % (worst application cfd 75 %)." in text


@pytest.mark.parametrize(
    ("serial_s", "said"),
    [
        (0.2, "50 % lost."),
        (0.32, "6 % saved, but the interval includes no change."),
        (0.28, "7 % lost, but the interval includes no change."),
    ],
)
def test_a_gain_that_is_not_sure_is_said_not_to_be(serial_s: float, said: str) -> None:
    assert said in shown(replace(FORECAST, serial_s=serial_s))


def test_what_is_not_known_is_said_not_to_be() -> None:
    nothing = replace(
        FORECAST, slowdown=(None, None), time_s=None, power_w=None, fits=None, memory_bytes=None
    )
    text = shown(nothing)
    assert "Power: n/a (the model was trained on mixes without power)." in text
    for absent in ("Time of the mix", "fit on", "Memory", "nan", "None"):
        assert absent not in text
    unpowered = replace(nothing, mix=(A, replace(B, power_w=None)))
    assert "Power: n/a (no isolated power measurement of cfd small)." in shown(unpowered)
    elsewhere = replace(nothing, mix=(replace(A, device="gpu"), replace(B, device="gpu")))
    assert "Power: n/a (power is not translated to other devices)." in shown(elsewhere)


def test_a_card_without_errors_tells_none() -> None:
    assert held_out_corun_errors(structs.replace(CARD, errors={})) == []
    text = shown(FORECAST, structs.replace(CARD, errors={}))
    assert "trained on made: 21 mixes of 2 and 3 of 2 applications (bfs, cfd) on cpu." in text
    assert "Mean absolute error" not in text


def test_a_trained_model_shows_its_errors_beside_those_of_baselines() -> None:
    text = corun_training_report(CARD, Path("co")).to_text()
    assert text.startswith(
        "co: process, trained on made: 21 mixes of 2 and 3 of 2 applications (bfs, cfd) on cpu."
    )
    for words in ("mean (baseline)", "7.25 %", "cfd 75 %", "0.932", "1,234", "within their 90 % intervals"):
        assert words in text
    # Speeds say what slowdowns say, and sizes are for the evaluation.
    assert "99 %" not in text
    assert "speed" not in text


def test_an_error_that_is_no_number_is_not_told() -> None:
    results = [result("slowdown"), result("time", mape=None, coverage=None)]
    lines = held_out_corun_errors(structs.replace(CARD, errors={"level": 0.9, "results": results}))
    assert lines == ["Mean absolute error on held-out applications: slowdowns 7.25 %."]


def printed_corun_report(plan: ColocationPlan, model: TrainedCoRunModel) -> str:
    jobs = sum(len(mix.jobs) for mix in plan.shared) + len(plan.alone)
    return colocation_report(plan, [f"job {place}" for place in range(jobs)], model.card).to_text()


def lines_of(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_pairs_are_shown_with_slowdowns_times_and_gains(tmp_path: Path) -> None:
    model = constant(tmp_path / "m", 1.25, error=0.1)
    plan = choose_colocation(made_jobs(2), model, lengths=[10.0, 10.0])
    lines = lines_of(printed_corun_report(plan, model))
    gain = plan.shared[0].gain_s
    assert "jobs slowdown interval together one by one fit gain" in lines
    (first,) = [line for line in lines if line.startswith("job 0")]
    # 1.25 times and divided by exp(0.1).
    assert first.startswith("job 0 1.25× 1.13× to 1.38×") and "20 s 100 %" in first
    assert f"+ job 1 1.25× 1.13× to 1.38× {gain.low:.3g} s to {gain.high:.3g} s" in lines
    assert any(
        line.startswith("All 2 jobs: ") and "instead of 20 s one after another" in line for line in lines
    )
    assert "Gains are weighted by the probability that the jobs fit on the device together." in lines
    assert not any("alone on" in line for line in lines)


def test_who_runs_alone_is_shown_with_the_reason(tmp_path: Path) -> None:
    model = constant(tmp_path / "m", 1.2)
    jobs = [replace(job, memory_bytes=9) for job in made_jobs(2)]
    lines = lines_of(
        printed_corun_report(choose_colocation(jobs, model, lengths=[1.0, 2.0], memory_bytes=10), model)
    )
    assert "alone on cpu" in lines
    assert "job 1 (2 s): with the only other job there is not the memory for both" in lines
    assert "All 2 jobs one after another: 3 s; nothing is gained by sharing." in lines


def test_a_gain_that_may_be_none_says_so(tmp_path: Path) -> None:
    model = constant(tmp_path / "m", 1.8, error=0.3)
    plan = choose_colocation(made_jobs(2), model, lengths=[1.0, 1.0])
    text = printed_corun_report(plan, model)
    assert plan.gain_s.low < 0
    assert "The interval includes 0: sharing may gain nothing." in lines_of(text)
    assert "−" in text


@pytest.mark.parametrize("errors", [[5.0], [8.1, 8.4], [3.0, 30.0], [0.0, 0.5, 4000.0], [math.nan, 7.0]])
def test_ticks_are_enough_and_true(errors: list[float]) -> None:
    axes = new_figure(4, 4).subplots()
    error_scale(axes, errors)
    ticks = [float(label.get_text()) for label in axes.get_yticklabels()]
    assert 1 <= len(ticks) <= 12
    assert [10**place for place in axes.get_yticks()] == pytest.approx(ticks, rel=1e-3)
    low, high = axes.get_ylim()
    assert all(low <= math.log10(max(error, 0.1)) <= high for error in errors if error == error)


def printed_corun_studies(**changes: str) -> str:
    study = studied()
    assert study.studies is not None
    return study_report(replace(study, studies=replace(study.studies, **changes))).to_text()


def test_all_studies_are_printed() -> None:
    text = printed_corun_studies()
    for part in (
        "clusters of 30 mixes by fairness, LLC misses, L1 misses: mean silhouette",
        "time of mixes of 2 by features, leave-benchmark-out: MAPE",
        "power of mixes of 2 by features, random-80-20: MAPE",
        "published combinations (",
        "time: mixes with a feature on their path through a decision tree of all that is known",
        "mixes of several sizes, leave-benchmark-out: MAPE",
        "One predictor a size, as published: published-linear.",
        "times on cpu translated to other, each of 4 applications left out: MAPE",
        "Published: 7 to 9 % (an accuracy of 91 to 93 %)",
    ):
        assert part in text
    assert "Not studied" not in text


def test_what_could_not_be_studied_is_said_once_a_reason() -> None:
    why = "the power of no mix is known"
    text = printed_corun_studies(power=why, power_paths=why)
    assert (
        "Not studied: features for power, decision paths for power, as the power of no mix is known." in text
    )


def test_studies_are_in_json() -> None:
    study = studied()
    assert study.studies is not None
    told: Any = replace(study, studies=replace(study.studies, sizes="of why")).to_dict()["studies"]
    assert told["sizes"] == {"not_made": "of why"}
    assert told["translations"][0]["to"] == "other"
