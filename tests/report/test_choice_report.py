"""The configurations on a frontier, as a table for people and in files."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from crosscast.data.configuration import Configuration
from crosscast.decide.samples import SampledKernel
from crosscast.evaluation.configuration.evaluation import MachineChoices
from crosscast.prediction.configuration import (
    ConfigurationSpace,
    Quantity,
    SurfaceForecast,
    pareto_frontier,
)
from crosscast.prediction.configuration.choice import choice_of
from crosscast.report.configuration import choice_figure, chosen_report, training_report
from crosscast.report.configuration_evaluation import evaluation_figures, evaluation_report
from crosscast.report.document import Report
from crosscast.studies.bailey2014 import KernelFrontier, frontier_figure, machine_parts, study_figures
from support.choices import chosen_study, named_surfaces
from support.golden import assert_printed
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


SURFACES, CARD = made_surfaces(), chooser_card()


def forecast(*, sure: bool = True, power_w: Any = None) -> SurfaceForecast:
    measured = np.isin(np.arange(12), CARD.numbers)
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
    assert_printed(page, Path(__file__).with_name("golden") / "configuration.txt")


CARD = chooser_card()
CHOICES = [
    dict(zip(SCORES, scores, strict=True))
    for scores in (("published", 0.61, 0.8, 1.12, 0.48, 0.0), ("published+fl", 1.0, None, None, None, 1.64))
]


def training(**errors: Any) -> Report:
    fitted = fitted_chooser()[0].fitted
    card = msgspec.structs.replace(CARD, errors=errors)
    return training_report(card, Path("capmodel"), (fitted.clusters.note, fitted.tree.text()))


def chosen(made: SurfaceForecast, cap: float, **wishes: Any) -> Report:
    kernel = SampledKernel("a kernel", ("a kernel",), SURFACES.observed(3, CARD.numbers), (2, 1))
    return chosen_report([(kernel, [choice_of(made, SURFACES.space, cap, **wishes)])], CARD)


def chosen_off_the_frontier() -> Report:
    """The fastest that surely keeps to the cap was measured, and is slower than others at its power."""
    made = forecast()
    made.time.centre[CARD.numbers[0]] *= 1.05
    made.power.centre[CARD.numbers[0]] *= 1.2
    made.power.spread[:] = np.where(made.measured, 0, 3.0)
    return chosen(made, float(made.power.centre[CARD.numbers[0]]), confidence=0.99)


PAGES: dict[str, Callable[[], Report]] = {
    "training": lambda: training(**CARD.errors, choices=CHOICES),
    "training-of-power-alone": lambda: training(rmse_log_power=0.1, coverage_power=0.91),
    "training-without-errors": training,
    "chosen": lambda: chosen(forecast(), 250.0),
    "chosen-for-certain": lambda: chosen(forecast(), 1e6),
    "chosen-off-the-frontier": chosen_off_the_frontier,
    "chosen-without-a-cap": lambda: chosen(forecast(), float("inf"), objective="energy", confidence=0.9),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_as_they_were(name: str) -> None:
    assert_printed(PAGES[name]().to_text(), Path(__file__).with_name("golden") / f"choice-{name}.txt")


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
    assert lines["limiter (baseline)"].get_ydata().tolist() == [
        100 * (each.score or 0.0) for each in curve.values()
    ]
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
