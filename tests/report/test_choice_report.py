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
from crosscast.evaluation.configuration.evaluation import MachineChoices
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
from support.choices import chosen_study, named_surfaces
from support.golden import assert_printed
from support.models import chooser_card, fitted_chooser
from support.refusals import refusal
from support.surfaces import made_surfaces

GOLDEN = Path(__file__).with_name("golden")
SCORES = ("method", "under_limit_share", "under_performance", "over_power", "score", "extra_runs")


def machine() -> MachineChoices:
    return chosen_study().machines[0]


def test_performance_is_relative_to_the_fastest_configuration_that_ran() -> None:
    surfaces = named_surfaces()
    time_s = surfaces.time_s.copy()
    time_s[0, 11] = np.nan
    found = frontier_of(replace(surfaces, time_s=time_s), 0)
    assert np.nanmax(found.performance) == 1
    assert np.isnan(found.performance[11])
    assert found.performance[3] == pytest.approx(np.nanmin(time_s[0]) / time_s[0, 3])
    both = zip(surfaces.time_s, surfaces.power_w, strict=True)
    lengths = [len(pareto_frontier(times, powers)) for times, powers in both]
    longest = longest_frontier(machine())
    assert (len(longest.frontier), longest.row) == (max(lengths), lengths.index(max(lengths)))


def test_a_file_has_the_numbers(tmp_path: Path) -> None:
    found = frontier_of(named_surfaces(), 2)
    path = write_frontier(found, tmp_path / "frontier.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = {"power_w": found.power_w, "performance": found.performance}
    numbers |= dict(zip(("cpu_cap_w", "gpu_cap_w"), found.surfaces.space.matrix.T, strict=True))
    for name, values in numbers.items():
        assert [float(row[name]) for row in rows] == values[found.frontier].tolist()
    told = refusal(write_frontier, found, tmp_path / "nowhere" / "frontier.csv")
    assert told.startswith(f"figures: cannot write {tmp_path / 'nowhere' / 'frontier.csv'}")
    for name in ("lonely", "node"):
        (tmp_path / name).mkdir()
    paths = write_frontiers(chosen_study(both=True), tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in paths} == {
        "node/frontier.csv",
        "lonely/frontier.csv",
    }


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
    page = evaluation_report(chosen_study(both=True), programs=True).to_text()
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
    found = longest_frontier(machine())
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


def test_methods_are_where_their_metrics_and_scores_are_and_none_look_the_same() -> None:
    results = alone(machine().results)
    limiter = next(each for each in results if each.method == "limiter")
    figure: Any = methods_figure(results, "node")
    marks = {line.get_label(): line for line in figure.axes[0].lines if not line.get_label().startswith("_")}
    assert set(marks) == {"hopeful 90 %", *(each.method for each in results)} - {"hopeful"}
    metrics = limiter.metrics
    place = [[100 * (share or 0)] for share in (metrics.under_limit_share, metrics.under_performance)]
    assert [marks["limiter"].get_xdata(), marks["limiter"].get_ydata()] == place != [[0], [0]]
    figure = curve_figure(results, "node")
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert lines["limiter"].get_ydata().tolist() == [100 * (s.score or 0.0) for s in limiter.curve.values()]
    assert lines["limiter"].get_linewidth() > lines["fixed"].get_linewidth()
    names = ("color", "marker", "markerfacecolor", "markeredgecolor")
    looks = {tuple(each[name] for name in names) for each in method_styles(results).values()}
    assert len(looks) == len(results)


def test_headings_and_legends_stay_inside_the_picture_and_outside_the_data() -> None:
    title, results = " + ".join(["a rather long name of a device"] * 6), alone(machine().results)
    frontier = frontier_figure(longest_frontier(machine()), title)
    for made in (frontier, methods_figure(results, title), curve_figure(results, title)):
        figure: Any = made
        figure.draw_without_rendering()
        heading = figure._suptitle.get_window_extent()
        assert 0 <= heading.x0 < heading.x1 <= figure.bbox.x1
        for legend in figure.legends:
            box = legend.get_window_extent()
            assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
            assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)
