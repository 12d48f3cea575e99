"""Every picture of an evaluation of choices is written, shows its numbers, and keeps its text inside."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chosen_study import chosen_study
from crosscast.decide.evaluation import MachineChoices
from crosscast.decide.power_cap import within_cap
from crosscast.decide.scores import ChoiceResult, Metrics
from crosscast.errors import InputError
from crosscast.predict.configuration.bailey2014 import TreeNode
from crosscast.report.choice_figures import all_figures
from crosscast.report.choice_figures.all_figures import write_choice_figures
from crosscast.report.choice_figures.curve_figure import curve_figure
from crosscast.report.choice_figures.frontier_figure import frontier_figure
from crosscast.report.choice_figures.hardest_figure import hardest_figure, hardest_kernel
from crosscast.report.choice_figures.methods_figure import methods_figure
from crosscast.report.choice_figures.programs_figure import programs_figure
from crosscast.report.choice_figures.repeats_figure import repeats_figure
from crosscast.report.choice_figures.styles import alone, method_styles
from crosscast.report.choice_figures.tree_figure import tree_figure
from crosscast.report.choice_frontier import longest_frontier

PICTURES = {
    "frontier",
    "tree",
    "methods",
    "under-performance",
    "under-share",
    "over-power",
    "over-performance",
    "hardest",
    "curve",
    "repeats",
}


def machine() -> MachineChoices:
    return chosen_study()[0].machines[0]


def results() -> list[ChoiceResult]:
    return alone(machine().results)


def of(method: str) -> ChoiceResult:
    return next(each for each in results() if each.method == method)


def texts(figure: Any) -> list[str]:
    return [each.get_text() for axes in figure.axes for each in axes.texts]


def test_every_picture_and_table_is_written(tmp_path: Path) -> None:
    study, stages = chosen_study()
    paths = write_choice_figures(study, stages, tmp_path)
    assert {path.stem for path in paths if path.suffix == ".png"} == PICTURES
    assert {path.name for path in paths if path.suffix != ".png"} == {"frontier.csv", "frontier.md"}
    assert sorted(paths) == sorted(tmp_path.iterdir())
    assert all(path.stat().st_size > (5_000 if path.suffix == ".png" else 100) for path in paths)


def test_each_of_several_machines_has_a_folder_and_no_tree_without_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, stages = chosen_study(both=True)
    # That pictures are written is tested above; writing takes seconds.
    monkeypatch.setattr(all_figures, "save_figure", lambda figure, path: path)
    paths = write_choice_figures(study, stages, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lonely", "node"]
    of_lonely = {path.stem for path in paths if path.parent.name == "lonely" and path.suffix == ".png"}
    assert of_lonely == PICTURES - {"tree"}


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    study, stages = chosen_study()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="figures: cannot make the folder"):
        write_choice_figures(study, stages, tmp_path / "file")


def test_the_frontier_has_a_point_for_each_configuration() -> None:
    found = longest_frontier(machine())
    figure = frontier_figure(found, "node")
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
    figure = frontier_figure(
        replace(found, surfaces=replace(found.surfaces, space=type(space)(halves))), "two"
    )
    own = [line for line in figure.axes[0].lines if line.get_label() in ("cpu", "gpu")]
    assert sum(len(line.get_xdata()) for line in own) == 12
    assert len({(line.get_marker(), line.get_color()) for line in own}) == 2


def test_the_tree_has_a_box_a_node() -> None:
    nodes = (
        TreeNode("power_w at sample 1", 99.5, 1, 4, 0, (3, 2, 1)),
        TreeNode("stalls", 0.25, 2, 3, 0, (3, 2, 0)),
        TreeNode(None, None, None, None, 0, (3, 0, 0)),
        TreeNode(None, None, None, None, 1, (0, 2, 0)),
        TreeNode(None, None, None, None, 2, (0, 0, 1)),
    )
    figure = tree_figure(nodes, "tree")
    found = texts(figure)
    for text in (
        "power_w\nat sample 1\n≤ 99.5?",
        "stalls\n≤ 0.25?",
        "cluster 0\n3 kernels",
        "cluster 2\n1 kernel",
    ):
        assert text in found
    assert found.count("yes") == found.count("no") == 2
    boxes = [each.get_position() for each in figure.axes[0].texts if each.get_text() not in ("yes", "no")]
    assert len(set(boxes)) == len(nodes)


def test_methods_are_where_their_metrics_are() -> None:
    figure = methods_figure(results(), "node")
    marks = {line.get_label(): line for line in figure.axes[0].lines if not line.get_label().startswith("_")}
    assert set(marks) == {"hopeful 90 %", *(each.method for each in results())} - {"hopeful"}
    limiter = of("limiter").metrics
    assert limiter.under_limit_share is not None
    assert limiter.under_performance is not None
    assert marks["limiter"].get_xdata() == [100 * limiter.under_limit_share]
    assert marks["limiter"].get_ydata() == [100 * limiter.under_performance]


def test_no_two_methods_look_the_same() -> None:
    styles = method_styles(results())
    looks = {(each.colour, each.mark, each.face, each.edge) for each in styles.values()}
    assert len(looks) == len(styles) == len(results())


@pytest.mark.parametrize("metric", ["under_performance", "under_limit_share", "over_power"])
def test_programs_have_their_numbers_in_cells(metric: str) -> None:
    figure = programs_figure(results(), metric, "%", "node")
    known = [
        getattr(metrics, metric)
        for result in results()
        for metrics in (*result.programs.values(), result.metrics)
        if getattr(metrics, metric) is not None
    ]
    assert sorted(texts(figure)) == sorted(f"{100 * each:.0f}" for each in known)
    labels = [each.get_text() for each in figure.axes[0].get_yticklabels()]
    assert labels == [*results()[0].programs, "all programs"]


def test_a_metric_that_nothing_defines_is_an_empty_map() -> None:
    nothing = replace(
        of("oracle"), metrics=Metrics(), programs={name: Metrics() for name in of("oracle").programs}
    )
    assert texts(programs_figure([nothing], "over_power", "%", "node")) == []


def test_performances_far_above_the_oracles_end_the_colours_but_not_the_numbers() -> None:
    many = Metrics(over_performance=92.97)
    result = replace(of("oracle"), metrics=many, programs={"lu": many, "smc": Metrics(over_performance=1.1)})
    figure = programs_figure([result], "over_performance", "%", "node")
    assert texts(figure) == ["9,297", "110", "9,297"]
    assert figure.axes[0].images[0].get_clim() == (110.00000000000001, 200.0)


def test_the_hardest_kernel_is_where_the_fewest_caps_are_kept() -> None:
    row, judge = hardest_kernel(machine())
    assert judge.method == "published+fl"
    cases = machine().cases
    under = within_cap(machine().surfaces.power_w[cases.kernel, judge.chosen], cases.power_cap)
    least = min(each.under_limit_share or 0.0 for each in judge.programs.values())
    program = machine().surfaces.kernels[row].application
    assert judge.programs[program].under_limit_share == least
    figure = hardest_figure(machine(), "node")
    count = int((cases.kernel == row).sum())
    own = under[cases.kernel == row].sum()
    titles = [axes.get_title() for axes in figure.axes]
    assert f"published+fl: {own} of {count} within" in titles
    assert not any(title.startswith("oracle") for title in titles)


def test_of_kernels_whose_caps_are_all_kept_the_one_with_the_least_score_is_the_hardest() -> None:
    limiter = of("limiter")
    shares = [each.under_limit_share for each in limiter.programs.values()]
    kept = {name: replace(each, under_limit_share=1.0) for name, each in limiter.programs.items()}
    assert shares == pytest.approx([1.0] * len(shares))
    limiter = replace(limiter, programs=kept)
    row, judge = hardest_kernel(replace(machine(), results=(limiter,)))
    assert judge is limiter
    program = machine().surfaces.kernels[row].application
    assert limiter.programs[program].score == min(each.score or 0.0 for each in limiter.programs.values())


def test_powers_of_small_and_large_devices_are_on_a_logarithmic_axis() -> None:
    found = longest_frontier(machine())
    assert frontier_figure(found, "node").axes[0].get_xscale() == "linear"
    power = found.power_w.copy()
    power[0] /= 100
    axes = frontier_figure(replace(found, power_w=power), "node").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")


def test_the_curve_has_the_scores() -> None:
    figure = curve_figure(results(), "node")
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    curve = of("limiter").curve
    assert lines["limiter"].get_ydata().tolist() == [100 * (each.score or 0.0) for each in curve.metrics]
    assert lines["limiter"].get_linewidth() > lines["fixed"].get_linewidth()


def test_repeats_have_a_row_for_the_split_half_oracle() -> None:
    split_half = machine().split_half
    assert split_half is not None
    figure = repeats_figure(results(), split_half, "node")
    labels = [each.get_text() for each in figure.axes[0].get_yticklabels()]
    assert labels[0] == "split-half oracle"
    assert len(labels) == 1 + len(results())


FIGURES: dict[str, Callable[[str], Any]] = {
    "frontier": lambda title: frontier_figure(longest_frontier(machine()), title),
    "methods": lambda title: methods_figure(results(), title),
    "curve": lambda title: curve_figure(results(), title),
    "hardest": lambda title: hardest_figure(machine(), title),
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
