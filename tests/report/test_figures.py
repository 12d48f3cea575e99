"""Figures: their axes, those of evaluations, studies, schedules and verdicts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast.cluster import Jobs, Machine
from crosscast.cluster.experiment import Setup, experiment_facts, run_experiment
from crosscast.cluster.placements import Workload
from crosscast.cluster.resources import Steps, queue_length
from crosscast.devices.roofline import Verdicts
from crosscast.evaluation.relative.evaluation import evaluate_relative
from crosscast.evaluation.time.evaluation import evaluate_time
from crosscast.prediction.relative.nichols2024 import PublishedMean
from crosscast.profile import Profile
from crosscast.report import configuration_evaluation, corun, relative, time
from crosscast.report import schedule_figures as timeline
from crosscast.report.document import heading_of, save_figures
from crosscast.report.figures import (
    WIDE,
    ScoredModel,
    label_beside,
    logarithmic_axis,
    new_figure,
    one_figure,
    scores_figure,
    spread_axis,
    unit_axis,
)
from crosscast.report.prediction import roofline_figures, verdicts_report
from crosscast.report.profiles import Axis, write_kiviat
from crosscast.report.schedule import experiment_report
from crosscast.report.schedule_figures import gantt, placement_figure, queue_figure
from crosscast.report.tuning import ranking_figures
from crosscast.studies import bailey2014, johnston2018, johnston2018_report
from support.choices import chosen_study
from support.cluster import schedule_of
from support.commands import Command, Output
from support.golden import assert_printed
from support.johnston2018 import SMALL, made_up
from support.mixes import studied
from support.models import MeanModel, random_grid
from support.refusals import refusal
from support.vectors import made_vectors

GOLDEN = Path(__file__).with_name("golden")


def drawn(values: np.ndarray[Any, Any], scale: Callable[..., None]) -> Any:
    figure = new_figure(6, 4)
    axes = figure.subplots()
    axes.plot(values, np.ones_like(values), "o")
    scale(axes, "x", values)
    figure.draw_without_rendering()
    return axes


def labels_of(axes: Any) -> list[str]:
    """Those inside the picture."""
    low, high = axes.get_xlim()
    ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    return [label.get_text() for place, label in ticks if low <= place <= high]


def test_very_different_values_have_a_logarithmic_axis_and_others_labels_between_decades() -> None:
    for greatest, scale in ((WIDE, "linear"), (WIDE * 1.01, "log")):
        axes = drawn(np.array([1.0, np.nan, greatest]), spread_axis)
        assert (axes.get_xscale(), axes.get_yscale()) == (scale, "linear")
    axes = drawn(np.array([0.9, 8.0]), logarithmic_axis)
    assert axes.get_xscale() == "log"
    assert labels_of(axes) == ["1", "1.5", "2", "3", "5", "7"]
    assert {each.get_text() for each in axes.get_xticklabels(minor=True)} <= {""}


def test_an_axis_with_a_unit_has_more_than_one_label() -> None:
    def scale(axes: Any, *_: object) -> None:
        axes.set_xscale("log")
        unit_axis(axes.xaxis, "B/s")

    for ends, labels in (
        ((12e9, 180e9), "20 GB/s, 50 GB/s, 100 GB/s, 200 GB/s"),
        ((2e9, 3e11), "10 GB/s, 100 GB/s"),
    ):
        assert ", ".join(labels_of(drawn(np.array(ends), scale))) == labels


def test_a_score_far_beyond_the_others_is_written_at_the_end_of_the_axis() -> None:
    values = {"a": 0.1, "b": 0.2, "c": 9.0, "none": None}
    rows = [ScoredModel(name, False, {"mape": value}, {}) for name, value in values.items()]
    (axes,) = scores_figure(rows, {"mape": "error, %"}).axes
    assert [np.asarray(line.get_xdata())[0] for line in axes.lines] == [10.0, 20.0]
    assert [text.get_text() for text in axes.texts] == ["900 →"]
    assert axes.get_xlim()[1] == 50.0


def test_a_kiviat_figure_has_its_scale(tmp_path: Path, make_profile: Callable[..., Profile]) -> None:
    import matplotlib

    path = tmp_path / "k.svg"
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        write_kiviat([make_profile(), make_profile("scan", 1, unique_read_write_ratio=None)], path)
    assert list(tmp_path.iterdir()) == [path]
    text = path.read_text(encoding="utf-8")
    assert "0 – 30" in text and "Each spoke runs from its least value" in text
    assert ".png, .svg, .pdf, found 'k.bmp'" in refusal(write_kiviat, [], tmp_path / "k.bmp")


def test_a_value_has_its_position_on_its_scale_or_at_an_end() -> None:
    linear = Axis("opcode", "opcodes", 10, 30)
    logarithmic = Axis("unique_read_write_ratio", "read/write ratio", 1e-3, 1e3, True)
    assert [linear.position(value) for value in (20, 99, 0, None)] == [0.5, 1, 0, None]
    assert [logarithmic.position(value) for value in (1, 1e9, 0)] == [pytest.approx(0.5), 1, 0]


OF_LARGE_STUDIES = ("machines", "johnston2018")
GENERIC = "methods curve repeats"
MODELS = [MeanModel(), MeanModel("worse", shift=5.0)]
CASES: Mapping[str, tuple[Callable[[], Mapping[str, Any]], str]] = {
    "time": (
        lambda: time.evaluation_figures(
            evaluate_time(random_grid(), MODELS, "leave-application-out", probes=(2,))
        ),
        " ".join(f"leave-application-out-2-probes-{n}" for n in "models predicted errors coverage".split()),
    ),
    "relative": (
        lambda: relative.evaluation_figures(
            evaluate_relative(made_vectors(applications=4), [PublishedMean()], "leave-kernel-out")
        ),
        "models",
    ),
    "configuration": (lambda: configuration_evaluation.evaluation_figures(chosen_study()), GENERIC),
    "corun": (
        lambda: corun.evaluation_figures(studied().evaluation),
        "left-out-time left-out-slowdown left-out-power",
    ),
    "machines": (
        lambda: bailey2014.study_figures(chosen_study(both=True)),
        " ".join(
            f"{machine}/{name}" for machine in ("node", "lonely") for name in (*GENERIC.split(), "frontier")
        ),
    ),
    "johnston2018": (
        lambda: johnston2018_report.study_figures(johnston2018.reproduce(made_up(), preset=SMALL)),
        " ".join(f"figure-{name}" for name in "1 2 3 4 5 5-real-time 6".split()),
    ),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(name, marks=pytest.mark.system if name in OF_LARGE_STUDIES else ()) for name in CASES],
)
def test_every_figure_has_a_name_and_a_heading_and_is_written(tmp_path: Path, case: str) -> None:
    draw, names = CASES[case]
    figures = draw()
    assert set(figures) == set(names.split())
    assert all(map(heading_of, figures.values()))
    for figure in figures.values():
        figure.set_dpi(50)
    paths = save_figures(figures, tmp_path / "new")
    assert [path.relative_to(tmp_path / "new") for path in paths] == [Path(f"{name}.png") for name in figures]
    assert all(path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5_000 for path in paths)


def test_maps_of_variants_are_of_the_two_parameters_that_matter_and_none_of_one() -> None:
    rows = np.array(list(np.ndindex(2, 3, 2)))
    scales = ([1.0, 4.0], [1.0, 2.0, 8.0], [1.0, 1.1])
    time_s = np.prod([np.array(each)[rows[:, k]] for k, each in enumerate(scales)], axis=0)
    variants: Any = SimpleNamespace(names=("a", "b", "c"), values=scales, rows=rows)
    ranking: Any = SimpleNamespace(devices=["gpu"], column_of=lambda key: 0, variants=variants)
    ranking.log_time = np.log(time_s)[:, None]
    figure: Any = ranking_figures(ranking)["variants-gpu"]
    assert (figure.axes[0].get_ylabel(), figure.axes[0].get_xlabel()) == ("a", "b")
    np.testing.assert_allclose(figure.axes[0].images[0].get_array(), np.outer(*scales[:2]))
    variants.values = ([1.0], scales[1], [1.0])
    assert ranking_figures(ranking) == {}


ROWS = [(100.0, 100.0, 140.0, 2), (100.0, 100.0, 160.0, 1), (110.0, 160.0, 200.0, 4)]


def test_a_timeline_has_a_rectangle_a_job_and_a_panel_a_machine() -> None:
    schedule = schedule_of(ROWS, machine=[0, 1, 0], sizes=(4, 2))
    figure: Any = gantt(schedule, "made up", to_s=100.0)
    panels = figure.axes[:2]
    corners = [[path.get_extents().bounds for path in axes.collections[0].get_paths()] for axes in panels]
    # Left, bottom, width, height: seconds since the first submission, and processors.
    assert corners[0] == [(0.0, 0.0, 40.0, 2.0), (60.0, 0.0, 40.0, 4.0)]
    assert corners[1] == [(0.0, 0.0, 60.0, 1.0)]
    assert [axes.get_ylim() for axes in panels] == [(0.0, 4.0), (0.0, 2.0)]
    assert panels[1].get_xlabel() == "time since the first submission, seconds"
    assert figure.get_suptitle() == "made up"


def test_users_with_the_most_work_have_colours_and_names_and_others_are_grey() -> None:
    figure: Any = gantt(schedule_of(ROWS, user=[0, 0, 2]), "made up", colour="user", to_s=100.0)
    first, second, third = figure.axes[0].collections[0].get_facecolor().tolist()
    assert first == second != third
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["user cyd", "user ada"]
    rows = [(0.0, float(place), float(place + 1), 1) for place in range(12)]
    schedule = schedule_of(rows, user=[0] * 12)
    jobs = replace(schedule.jobs, user=np.arange(12), users=tuple("abcdefghijkl"))
    figure = gantt(replace(schedule, jobs=jobs), "made up", colour="user", to_s=20.0)
    assert figure.legends[0].get_texts()[-1].get_text() == "4 others"
    assert len({tuple(face) for face in figure.axes[0].collections[0].get_facecolor().tolist()}) == 9


def test_a_window_shows_its_jobs_only_and_what_it_cannot_show_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schedule = schedule_of(ROWS)
    figure: Any = gantt(schedule, "made up", from_s=45.0, to_s=55.0)
    assert len(figure.axes[0].collections[0].get_paths()) == 1
    assert figure.axes[0].get_xlim() == (45.0, 55.0)
    late = refusal(gantt, schedule, "late", from_s=200.0, to_s=300.0)
    assert late == "timeline: expected jobs from 3.333 min to 5 min, found none"
    users = refusal(gantt, schedule, "anonymous", colour="user", to_s=100.0)
    assert users == "colour: expected jobs with users, found none"
    monkeypatch.setattr(timeline, "MOST_JOBS", 2)
    assert "jobs: expected at most 2 from " in refusal(gantt, schedule, "many", to_s=100.0)


def test_a_queue_is_a_line_of_steps_for_each_policy_with_a_colour_of_its_own() -> None:
    length = queue_length(schedule_of(ROWS))
    lines = {"easy": length, "fcfs": length}
    both, limited = (
        queue_figure(each, "made up", origin_s=100.0, from_s=0.0, to_s=100.0, limit="budget")
        for each in (lines, {"budget": length} | lines)
    )
    first, second = both.axes[0].lines
    assert first.get_drawstyle() == "steps-post"
    assert np.asarray(first.get_xdata()).tolist() == [0.0, 10.0, 60.0, 100.0]
    assert np.asarray(first.get_ydata()).tolist() == [0.0, 1.0, 0.0, 0.0]
    names = [text.get_text() for text in both.legends[0].get_texts()]
    assert names == ["easy (at most 1)", "fcfs (at most 1)"]
    # The same beside a limit as without one.
    limit, *beside = (line.get_color() for line in limited.axes[0].lines)
    assert beside == [first.get_color(), second.get_color()]
    assert limit not in beside


def test_a_very_long_queue_keeps_its_extremes_and_very_different_ones_are_both_seen() -> None:
    count = np.where(np.arange(100_000) % 2 == 0, 3, 5)
    count[54_321] = 999
    lines = {"easy": Steps(np.arange(100_000.0), count)}
    figure: Any = queue_figure(lines, "made up", origin_s=0.0, from_s=0.0, to_s=99_999.0)
    line = figure.axes[0].lines[0]
    assert len(line.get_xdata()) < 10_000
    assert (line.get_ydata().min(), line.get_ydata().max()) == (3, 999)
    at = float(line.get_xdata()[line.get_ydata().argmax()])
    assert at * 3600 == pytest.approx(54_321, abs=30)
    lines = {name: Steps(np.array([0.0]), np.array([jobs])) for name, jobs in (("short", 2), ("long", 5000))}
    figure = queue_figure(lines, "made up", origin_s=0.0, from_s=0.0, to_s=9.0)
    assert figure.axes[0].get_yscale() == "symlog"


def test_placements_have_bars_and_rows_with_intervals_and_the_least_makespan() -> None:
    run_s = np.array([[8.0, 2.0], [3.0, 6.0]])
    jobs = Jobs(np.arange(1, 3), np.zeros(2), np.ones(2, dtype=np.int64), run_s, run_s)
    machines = (Machine("a", 3), Machine("b", 2, has_gpu=True))
    types = Workload(jobs, machines, np.array([True, False]), run_s, run_s)
    found = run_experiment(types, Setup(("user", "exact"), 50, [1, 2]))
    figure: Any = placement_figure(found, "made up")
    left, right = ([bar.get_width() for bar in axes.patches] for axes in figure.axes)
    assert left == [each.makespan_s.value for each in found.results]
    assert right == [each.average_bounded_slowdown.value for each in found.results]
    assert found.least_makespan_s is not None
    *_, interval, least = sorted(figure.axes[0].lines, key=lambda line: line.get_linestyle() != "-")
    assert least.get_xdata()[0] == found.least_makespan_s.value
    assert tuple(interval.get_xdata()) == found.results[1].makespan_s.interval
    assert "95 % over 2 seeds" in figure.get_suptitle()
    table = experiment_report(found, experiment_facts(found, "made up", types, {})).to_text()
    for mean in (each.makespan_s for each in found.results):
        assert mean.interval is not None
        assert f" ± {100 * (mean.interval[1] / mean.value - 1):.1f} %" in table


BODIES = {"scale": "2.5f * a[i]", "copy": "a[i]", "square": "a[i] * a[i]"}
SIGNATURE = "(__global const float *a, __global float *b)"
SOURCE = "".join(
    f"kernel void {name}{SIGNATURE} {{ int i = get_global_id(0); b[i] = {body}; }}\n"
    for name, body in BODIES.items()
)
KERNELS = tuple(BODIES)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "several.cl").write_text(SOURCE)
    launches = "".join(f'[[launch]]\nkernel = "{name}"\n' for name in KERNELS)
    arguments = '[[arg]]\ntype = "float"\nlength = 4096\n' * 2
    path = folder / "several.toml"
    path.write_text(f'source = "several.cl"\nglobal = [4096]\nlocal = [64]\n{arguments}{launches}')
    return path


def test_verdicts_of_several_kernels_and_of_one_are_as_they_were(file: Path) -> None:
    """Sentences stand under their own kernel, tables of all under none; one verdict comes first."""
    found = crosscast.explain(file, devices=["gtx1080", "rtx4090"])
    several, one = (verdicts_report(Verdicts(found.verdicts[:count])).to_text() for count in (6, 1))
    assert_printed(f"{several}\n{one}", GOLDEN / "verdicts.txt")


def test_forecasts_of_several_kernels_are_as_they_were(capsys: Output, file: Path) -> None:
    text = Command.of("predict").text(capsys, file, "--devices", "gtx1080,titanx")
    assert_printed(text, GOLDEN / "forecasts.txt")


def test_every_kernel_is_drawn_or_said_not_to_be(file: Path) -> None:
    found = crosscast.explain(file, devices=["gtx1080"])
    figure = roofline_figures(found.verdicts)["roofline"]
    drawn = {each.get_text() for each in figure.axes[0].texts}
    without = heading_of(figure).partition("without floating-point operations: ")[2].rstrip(".").split(", ")
    assert drawn | set(without) == set(KERNELS)
    assert not drawn & set(without)


def test_labels_never_overlap() -> None:
    from matplotlib.text import Text as Drawn

    exponents: list[tuple[float, float]] = np.random.default_rng(0).uniform(-3, 3, (24, 2)).round(1).tolist()
    figure, axes = one_figure(8.0, 5.4)
    axes.set(xscale="log", yscale="log", xlim=(1e-4, 1e4), ylim=(1e-4, 1e4))
    label_beside(axes, [(f"kernel {place}", (10.0**x, 10.0**y)) for place, (x, y) in enumerate(exponents)])
    figure.draw_without_rendering()
    # Of the text alone: the extent of an annotation has its line in it.
    boxes = sorted((Drawn.get_window_extent(each) for each in axes.texts), key=lambda box: box.y0)
    assert len(boxes) == len(exponents)
    assert all(below.y1 <= above.y0 for below, above in pairwise(boxes))
    names = sorted(axes.texts, key=lambda each: -Drawn.get_window_extent(each).y0)
    heights = [10.0 ** exponents[int(each.get_text().split()[1])][1] for each in names]
    assert heights == sorted(heights, reverse=True)
