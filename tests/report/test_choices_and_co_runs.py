"""Reports on choices and on co-running: what is known, and a dash or a sentence for what is not."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs

from crosscast.data.configuration import Configuration
from crosscast.data.corun import CoRunContents, CoRunFailure, IsolatedRun, IsolatedRunCount, MixCount
from crosscast.decide.colocation import choose_colocation
from crosscast.decide.samples import SampledKernel
from crosscast.evaluation.configuration.evaluation import MachineChoices
from crosscast.measure.corun import JobWork
from crosscast.measure.corun.profile import Level, StressorCalibration
from crosscast.measure.subjects import Stressor
from crosscast.prediction.configuration import (
    ConfigurationSpace,
    Quantity,
    SurfaceForecast,
    pareto_frontier,
)
from crosscast.prediction.configuration.choice import choice_of
from crosscast.prediction.corun import Estimate, MixForecast
from crosscast.prediction.corun.artefact import CoRunCard, TrainedCoRunModel
from crosscast.report import corun
from crosscast.report.configuration import choice_figure, chosen_report, training_report
from crosscast.report.configuration_evaluation import evaluation_figures, evaluation_report
from crosscast.report.corun import (
    colocation_report,
    corun_forecast_report,
    held_out_errors,
)
from crosscast.report.dataset import contents_lines, failure_lines
from crosscast.report.document import Report
from crosscast.report.measured import CoRunProfile, corun_profile_report
from crosscast.studies.bailey2014 import KernelFrontier, frontier_figure, machine_parts, study_figures
from crosscast.studies.moolchandani2022_report import study_report
from support.choices import chosen_study, named_surfaces
from support.corun_models import constant, made_jobs
from support.golden import assert_printed
from support.mixes import make_isolated_run, studied
from support.models import chooser_card, fitted_chooser
from support.surfaces import made_surfaces

GOLDEN = Path(__file__).with_name("golden")
SCORES = ("method", "under_limit_share", "under_performance", "over_power", "score", "extra_runs")


def machine() -> MachineChoices:
    return chosen_study().machines[0]


def test_performance_is_relative_to_the_fastest_configuration_that_ran() -> None:
    surfaces = named_surfaces()
    time_s = surfaces.time_s.copy()
    time_s[0, 11] = np.nan
    found = KernelFrontier.of(replace(surfaces, time_s=time_s), 0)
    assert np.nanmax(found.performance) == 1
    assert np.isnan(found.performance[11])
    assert found.performance[3] == pytest.approx(np.nanmin(time_s[0]) / time_s[0, 3])
    both = zip(surfaces.time_s, surfaces.power_w, strict=True)
    lengths = [len(pareto_frontier(times, powers)) for times, powers in both]
    longest = KernelFrontier.longest(machine())
    assert (len(longest.frontier), longest.row) == (max(lengths), lengths.index(max(lengths)))


SURFACES, CHOOSER = made_surfaces(), chooser_card()


def forecast(*, sure: bool = True, power_w: Any = None) -> SurfaceForecast:
    measured = np.isin(np.arange(12), CHOOSER.numbers)
    spread = np.where(measured, 0.0, 0.1)
    errors = np.linspace(-2, 2, 401) if sure else np.empty(0)
    power = SURFACES.power_w[3] if power_w is None else power_w
    times, powers = (Quantity(each.copy(), spread, errors) for each in (SURFACES.time_s[3], power))
    return SurfaceForecast(times, powers, measured)


def drawn(made: SurfaceForecast, space: ConfigurationSpace, *caps: float) -> Any:
    """Axes of the figure."""
    (axes,) = choice_figure("a kernel", made, space, [choice_of(made, space, cap) for cap in caps]).axes
    return axes


def labels(axes: Any) -> list[str]:
    return list(axes.get_legend_handles_labels()[1])


def test_it_shows_configurations_frontier_intervals_runs_cap_and_choice() -> None:
    made = forecast()
    axes = drawn(made, SURFACES.space, 250.0)
    assert labels(axes) == ["node", "predicted frontier", "measured", "power cap", "chosen", "90 % intervals"]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("power, W", "time, s", "log")
    chosen = choice_of(made, SURFACES.space, 250.0).recommended
    assert chosen is not None
    assert axes.get_title(loc="left").startswith("a kernel under 250 W: node: cpu cap ")
    (star,) = [each for each in axes.collections if each.get_label() == "chosen"]
    np.testing.assert_allclose(star.get_offsets(), [[chosen.power_w, chosen.time_s]])
    # Without errors or a choice there is less to show.
    axes = drawn(forecast(sure=False), SURFACES.space, 20.0)
    assert labels(axes) == ["node", "predicted frontier", "measured", "power cap"]
    assert axes.get_title(loc="left") == "a kernel under 20 W: nothing is chosen"


def test_each_device_has_a_colour_and_far_powers_a_logarithmic_axis() -> None:
    space = ConfigurationSpace(tuple(Configuration(f"d{number % 3}", {"x": number}) for number in range(12)))
    made = forecast(power_w=np.geomspace(1, 500, 12))
    axes = drawn(made, space, 20.0, 100.0)
    assert labels(axes)[:3] == ["d0", "d1", "d2"]
    colours = {tuple(each.get_facecolor()[0][:3]) for each in axes.collections[:3]}
    assert len(colours) == 3
    assert axes.get_xscale() == "log"
    assert axes.get_title(loc="left") == "a kernel under 20, 100 W"


def test_tables_of_two_machines_and_their_programs_are_as_they_were() -> None:
    """The second machine has nothing to cluster."""
    study = chosen_study(both=True)
    published = [part for each in study.machines for part in machine_parts(each)]
    page = Report([*evaluation_report(study, programs=True).parts, *published]).to_text()
    assert_printed(page, GOLDEN / "configuration.txt")


CHOICES = [
    dict(zip(SCORES, scores, strict=True))
    for scores in (("published", 0.61, 0.8, 1.12, 0.48, 0.0), ("published+fl", 1.0, None, None, None, 1.64))
]


def training(**errors: Any) -> Report:
    fitted = fitted_chooser()[0].fitted
    card = msgspec.structs.replace(CHOOSER, errors=errors)
    return training_report(card, Path("capmodel"), (fitted.clusters.note, fitted.tree.text()))


def chosen(made: SurfaceForecast, cap: float, **wishes: Any) -> Report:
    kernel = SampledKernel("a kernel", ("a kernel",), SURFACES.observed(3, CHOOSER.numbers), (2, 1))
    return chosen_report([(kernel, [choice_of(made, SURFACES.space, cap, **wishes)])], CHOOSER)


def chosen_off_the_frontier() -> Report:
    """The fastest that surely keeps to the cap was measured, and is slower than others at its power."""
    made = forecast()
    made.time.centre[CHOOSER.numbers[0]] *= 1.05
    made.power.centre[CHOOSER.numbers[0]] *= 1.2
    made.power.spread[:] = np.where(made.measured, 0, 3.0)
    return chosen(made, float(made.power.centre[CHOOSER.numbers[0]]), confidence=0.99)


def test_the_frontier_has_a_point_for_each_configuration_and_marks_for_each_device() -> None:
    found = KernelFrontier.longest(machine())
    figure: Any = frontier_figure(found, "node")
    (dots,) = figure.axes[0].collections
    assert dots.get_offsets().tolist() == np.stack([found.power_w, found.performance], 1).tolist()
    (line,) = figure.axes[0].lines
    assert line.get_xdata().tolist() == found.power_w[found.frontier].tolist()
    assert str(found.kernel) in figure.get_suptitle()
    halves = ConfigurationSpace(
        tuple(
            replace(each, device="cpu" if number % 2 else "gpu")
            for number, each in enumerate(found.surfaces.space.configurations)
        )
    )
    figure = frontier_figure(replace(found, surfaces=replace(found.surfaces, space=halves)), "two")
    own = [line for line in figure.axes[0].lines if line.get_label() in ("cpu", "gpu")]
    assert sum(len(line.get_xdata()) for line in own) == 12
    assert len({(line.get_marker(), line.get_color()) for line in own}) == 2


def test_the_curve_has_the_scores() -> None:
    figure: Any = evaluation_figures(chosen_study())["curve"]
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    curve = next(each.curve for each in machine().results if each.method == "limiter")
    scores = [100 * (each.score or 0.0) for each in curve.values()]
    assert lines["limiter (baseline)"].get_ydata().tolist() == scores
    looks = {(line.get_color(), line.get_marker(), line.get_markerfacecolor()) for line in lines.values()}
    assert len(looks) == len(lines)


@pytest.mark.parametrize("name", ["frontier", "curve"])
def test_headings_and_legends_stay_inside_the_picture_and_outside_the_data(name: str) -> None:
    figure: Any = study_figures(chosen_study())[name]
    figure.draw_without_rendering()
    heading = figure._suptitle.get_window_extent()
    assert 0 <= heading.x0 < heading.x1 <= figure.bbox.x1
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)


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
    what = {"model": model, "baseline": model == "mean", "folds": "leave-benchmark-out", "probes": 0}
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
    "corun-profile": lambda _: corun_profile_report(PROFILE),
    "corun-profile-of-little": lambda _: corun_profile_report(
        replace(PROFILE, isolated_run=IsolatedRun("gem", "tiny", "cpu-of-a-test", 0.25))
    ),
    "corun-profile-out-of-order": lambda _: corun_profile_report(
        replace(PROFILE, calibration=replace(PROFILE.calibration, levels=LEVELS[::-1]))
    ),
    "corun-contents": lambda _: Report([*contents_lines(CONTENTS), *failure_lines(CONTENTS)]),
    "corun-forecast": lambda _: corun_forecast_report(FORECAST, CARD),
    "corun-forecast-lost": lambda _: corun_forecast_report(replace(FORECAST, serial_s=0.2), CARD),
    "corun-forecast-hardly-saved": lambda _: corun_forecast_report(replace(FORECAST, serial_s=0.32), CARD),
    "corun-forecast-hardly-lost": lambda _: corun_forecast_report(replace(FORECAST, serial_s=0.28), CARD),
    "corun-forecast-of-nothing": lambda _: corun_forecast_report(UNKNOWN, CARD),
    "corun-forecast-without-power": lambda _: corun_forecast_report(
        replace(UNKNOWN, mix=(A, replace(B, power_w=None))), CARD
    ),
    "corun-forecast-elsewhere": lambda _: corun_forecast_report(
        replace(UNKNOWN, mix=(replace(A, device="gpu"), replace(B, device="gpu"))), CARD
    ),
    "corun-forecast-without-errors": lambda _: corun_forecast_report(
        FORECAST, structs.replace(CARD, errors={})
    ),
    "corun-training": lambda _: corun.training_report(CARD, Path("co")),
    "corun-pairs": lambda folder: colocation(constant(folder, 1.25, error=0.1), [10.0, 10.0]),
    "corun-alone": lambda folder: colocation(constant(folder, 1.2), [1.0, 2.0], job_bytes=9, memory_bytes=10),
    "corun-gain-of-none": lambda folder: colocation(constant(folder, 1.8, error=0.3), [1.0, 1.0]),
    "choice-training": lambda _: training(**CHOOSER.errors, choices=CHOICES),
    "choice-training-of-power-alone": lambda _: training(rmse_log_power=0.1, coverage_power=0.91),
    "choice-training-without-errors": lambda _: training(),
    "choice-chosen": lambda _: chosen(forecast(), 250.0),
    "choice-chosen-for-certain": lambda _: chosen(forecast(), 1e6),
    "choice-chosen-off-the-frontier": lambda _: chosen_off_the_frontier(),
    "choice-chosen-without-a-cap": lambda _: chosen(
        forecast(), float("inf"), objective="energy", confidence=0.9
    ),
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
    assert_printed(PAGES[name](tmp_path / "model").to_text(), GOLDEN / f"{name}.txt")


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


def test_studies_that_could_not_be_made_are_said_once_a_reason() -> None:
    study = studied()
    assert study.studies is not None and "Not studied" not in study_report(study).to_text()
    why = "the power of no mix is known"
    lacking: Any = replace(study, studies=replace(study.studies, power=why, power_paths=why))
    told = f"Not studied: features for power, decision paths for power, as {why}."
    assert told in study_report(lacking).to_text()
    assert lacking.to_dict()["studies"]["power"] == {"not_made": why}
    assert lacking.to_dict()["studies"]["translations"][0]["to"] == "other"
