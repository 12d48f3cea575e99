"""The configurations on a frontier, as a table for people and in files."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from crosscast.data.configuration import Configuration
from crosscast.decide.samples import SampledKernel
from crosscast.errors import InputError
from crosscast.evaluation.configuration.evaluation import MachineChoices
from crosscast.evaluation.configuration.scores import ChoiceResult
from crosscast.prediction.configuration.choice import choice_of
from crosscast.prediction.configuration.data import (
    ConfigurationSpace,
    Quantity,
    SurfaceForecast,
    pareto_frontier,
)
from crosscast.report.configuration import chosen_report, training_report
from crosscast.report.configuration_evaluation import (
    evaluation_report,
    frontier_of,
    longest_frontier,
    write_frontier,
)
from crosscast.report.configuration_figures import (
    alone,
    choice_figure,
    curve_figure,
    frontier_figure,
    method_styles,
    methods_figure,
    write_frontiers,
)
from crosscast.report.document import Report
from crosscast.report.numbers import three_digits
from support.choices import chosen_study, named_surfaces
from support.golden import assert_printed
from support.models import chooser_card, fitted_chooser
from support.surfaces import made_surfaces


def test_the_longest_frontier_is_the_longest_of_all_kernels() -> None:
    (machine,) = chosen_study().machines
    found = longest_frontier(machine)
    surfaces = machine.surfaces
    lengths = [
        len(pareto_frontier(surfaces.time_s[row], surfaces.power_w[row]))
        for row in range(len(surfaces.kernels))
    ]
    assert len(found.frontier) == max(lengths)
    assert found.row == lengths.index(max(lengths))
    assert found.kernel == surfaces.kernels[found.row]


def test_performance_is_relative_to_the_fastest_configuration_that_ran() -> None:
    surfaces = named_surfaces()
    time_s = surfaces.time_s.copy()
    time_s[0, 11] = np.nan
    found = frontier_of(replace(surfaces, time_s=time_s), 0)
    assert np.nanmax(found.performance) == 1
    assert np.isnan(found.performance[11])
    assert found.performance[3] == pytest.approx(np.nanmin(time_s[0]) / time_s[0, 3])


def test_a_file_has_the_numbers(tmp_path: Path) -> None:
    found = frontier_of(named_surfaces(), 2)
    path = write_frontier(found, tmp_path / "frontier.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["power_w"]) for row in rows] == found.power_w[found.frontier].tolist()
    assert [float(row["performance"]) for row in rows] == found.performance[found.frontier].tolist()
    settings = [dict(found.surfaces.space.configurations[number].settings) for number in found.frontier]
    assert [{name: float(row[name]) for name in ("cpu_cap_w", "gpu_cap_w")} for row in rows] == settings


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"figures: cannot write .*frontier\.csv"):
        write_frontier(frontier_of(named_surfaces(), 2), tmp_path / "nowhere" / "frontier.csv")


SURFACES = made_surfaces()


def forecast(*, sure: bool = True, power_w: Any = None) -> SurfaceForecast:
    measured = np.isin(np.arange(12), (11, 0))
    spread = np.where(measured, 0.0, 0.1)
    errors = np.linspace(-2, 2, 401) if sure else np.empty(0)
    power = SURFACES.power_w[3] if power_w is None else power_w
    return SurfaceForecast(
        Quantity(SURFACES.time_s[3], spread, errors), Quantity(power, spread, errors), measured
    )


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
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("power, W", "time, s")
    assert axes.get_yscale() == "log"
    chosen = choice_of(made, SURFACES.space, 250.0).recommended
    assert chosen is not None
    assert axes.get_title(loc="left").startswith("a kernel under 250 W: node: cpu cap ")
    (star,) = [each for each in axes.collections if each.get_label() == "chosen"]
    np.testing.assert_allclose(star.get_offsets(), [[chosen.power_w, chosen.time_s]])


def test_each_device_has_a_colour_and_far_powers_a_logarithmic_axis() -> None:
    space = ConfigurationSpace(tuple(Configuration(f"d{number % 3}", {"x": number}) for number in range(12)))
    made = forecast(power_w=np.geomspace(1, 500, 12))
    axes = drawn(made, space, 20.0, 100.0)
    assert labels(axes)[:3] == ["d0", "d1", "d2"]
    colours = {tuple(each.get_facecolor()[0][:3]) for each in axes.collections[:3]}
    assert len(colours) == 3
    assert axes.get_xscale() == "log"
    assert axes.get_title(loc="left") == "a kernel under 20, 100 W"


def test_without_errors_or_a_choice_there_is_less_to_show() -> None:
    axes = drawn(forecast(sure=False), SURFACES.space, 20.0)
    assert labels(axes) == ["node", "predicted frontier", "measured", "power cap"]
    assert axes.get_title(loc="left") == "a kernel under 20 W: nothing is chosen"


def test_tables_of_two_machines_and_their_programs_are_as_they_were() -> None:
    """The second machine has nothing to cluster."""
    page = evaluation_report(chosen_study(both=True), programs=True).to_text()
    assert_printed(page, Path(__file__).with_name("golden") / "configuration.txt")


CARD = chooser_card()
CHOICES = [
    {
        "method": "published",
        "under_limit_share": 0.61,
        "under_performance": 0.8,
        "over_power": 1.12,
        "score": 0.48,
        "extra_runs": 0.0,
    },
    {"method": "published+fl", "under_limit_share": 1.0, "over_power": None, "extra_runs": 1.64},
]


KERNEL = SampledKernel("a kernel", ("a kernel",), SURFACES.observed(3, CARD.numbers), (2, 1))


def forecast_choosing(time_scale: float = 1.0, row: int = 3) -> SurfaceForecast:
    measured = np.isin(np.arange(12), CARD.numbers)
    spread = np.where(measured, 0.0, 0.1)
    errors = np.linspace(-2, 2, 401)
    return SurfaceForecast(
        Quantity(SURFACES.time_s[row] * time_scale, spread, errors),
        Quantity(SURFACES.power_w[row], spread, errors),
        measured,
    )


def training(**errors: Any) -> Report:
    fitted = fitted_chooser()[0].fitted
    card = msgspec.structs.replace(CARD, errors=errors)
    return training_report(card, Path("capmodel"), (fitted.clusters.note, fitted.tree.text()))


def chosen(made: SurfaceForecast, cap: float, **wishes: Any) -> Report:
    return chosen_report([(KERNEL, [choice_of(made, SURFACES.space, cap, **wishes)])], CARD)


def chosen_off_the_frontier() -> Report:
    """The fastest that surely keeps to the cap was measured, and is slower than others at its power."""
    made = forecast_choosing()
    made.time.centre[CARD.numbers[0]] *= 1.05
    made.power.centre[CARD.numbers[0]] *= 1.2
    made.power.spread[:] = np.where(made.measured, 0, 3.0)
    return chosen(made, float(made.power.centre[CARD.numbers[0]]), confidence=0.99)


PAGES: dict[str, Callable[[], Report]] = {
    "training": lambda: training(**CARD.errors, choices=CHOICES),
    "training-of-power-alone": lambda: training(rmse_log_power=0.1, coverage_power=0.91),
    "training-without-errors": training,
    "chosen": lambda: chosen(forecast_choosing(), 250.0),
    "chosen-for-certain": lambda: chosen(forecast_choosing(), 1e6),
    "chosen-off-the-frontier": chosen_off_the_frontier,
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_as_they_were(name: str) -> None:
    assert_printed(PAGES[name]().to_text(), Path(__file__).with_name("golden") / f"choice-{name}.txt")


def test_without_a_cap_nothing_is_said_of_keeping_to_it() -> None:
    made = forecast_choosing()
    page = chosen(made, float("inf"), objective="energy", confidence=0.9).to_text()
    assert "For the least energy: node: " in page
    assert "keeps to" not in page
    least = (made.time.centre * made.power.centre).min()
    assert f", energy {three_digits(least)} J." in page


def machine() -> MachineChoices:
    return chosen_study().machines[0]


def results() -> list[ChoiceResult]:
    return alone(machine().results)


def of_choice_figures(method: str) -> ChoiceResult:
    return next(each for each in results() if each.method == method)


def test_each_of_several_machines_has_its_frontier_in_a_folder(tmp_path: Path) -> None:
    for name in ("lonely", "node"):
        (tmp_path / name).mkdir()
    paths = write_frontiers(chosen_study(both=True), tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in paths} == {
        "node/frontier.csv",
        "lonely/frontier.csv",
    }


def test_the_frontier_has_a_point_for_each_configuration() -> None:
    found = longest_frontier(machine())
    figure: Any = frontier_figure(found, "node")
    (dots,) = figure.axes[0].collections
    assert dots.get_offsets().tolist() == np.stack([found.power_w, found.performance], 1).tolist()
    (line,) = figure.axes[0].lines
    assert line.get_xdata().tolist() == found.power_w[found.frontier].tolist()
    assert str(found.kernel) in figure.get_suptitle()


def test_several_devices_have_marks_of_their_own() -> None:
    found = longest_frontier(machine())
    space = found.surfaces.space
    halves = tuple(
        type(each)("cpu" if number % 2 else "gpu", each.settings)
        for number, each in enumerate(space.configurations)
    )
    figure: Any = frontier_figure(
        replace(found, surfaces=replace(found.surfaces, space=type(space)(halves))), "two"
    )
    own = [line for line in figure.axes[0].lines if line.get_label() in ("cpu", "gpu")]
    assert sum(len(line.get_xdata()) for line in own) == 12
    assert len({(line.get_marker(), line.get_color()) for line in own}) == 2


def test_methods_are_where_their_metrics_are() -> None:
    figure: Any = methods_figure(results(), "node")
    marks = {line.get_label(): line for line in figure.axes[0].lines if not line.get_label().startswith("_")}
    assert set(marks) == {"hopeful 90 %", *(each.method for each in results())} - {"hopeful"}
    limiter = of_choice_figures("limiter").metrics
    assert limiter.under_limit_share is not None
    assert limiter.under_performance is not None
    assert marks["limiter"].get_xdata() == [100 * limiter.under_limit_share]
    assert marks["limiter"].get_ydata() == [100 * limiter.under_performance]


def test_no_two_methods_look_the_same() -> None:
    styles = method_styles(results())
    names = ("color", "marker", "markerfacecolor", "markeredgecolor")
    looks = {tuple(each[name] for name in names) for each in styles.values()}
    assert len(looks) == len(styles) == len(results())


def test_the_curve_has_the_scores() -> None:
    figure: Any = curve_figure(results(), "node")
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    curve = of_choice_figures("limiter").curve
    assert lines["limiter"].get_ydata().tolist() == [100 * (each.score or 0.0) for each in curve.values()]
    assert lines["limiter"].get_linewidth() > lines["fixed"].get_linewidth()


FIGURES: dict[str, Callable[[str], Any]] = {
    "frontier": lambda title: frontier_figure(longest_frontier(machine()), title),
    "methods": lambda title: methods_figure(results(), title),
    "curve": lambda title: curve_figure(results(), title),
}


@pytest.mark.parametrize("name", FIGURES)
def test_headings_and_legends_stay_inside_the_picture_and_outside_the_data(name: str) -> None:
    figure = FIGURES[name](" + ".join(["a rather long name of a device"] * 6))
    figure.draw_without_rendering()
    heading = figure._suptitle.get_window_extent()
    assert 0 <= heading.x0 < heading.x1 <= figure.bbox.x1
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)
