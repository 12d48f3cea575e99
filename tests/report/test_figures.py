"""Figures: their axes, Kiviat figures, and a table of every figure of every evaluation and study."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.evaluation.relative.evaluation import evaluate_relative
from crosscast.evaluation.time.evaluation import evaluate_time
from crosscast.prediction.relative.nichols2024 import PublishedMean
from crosscast.profile import CATEGORIES, METRICS, Profile
from crosscast.report import capture, configuration_figures, corun_evaluation, relative, time
from crosscast.report.figures import WIDE, logarithmic_axis, new_figure, spread_axis, unit_axis
from crosscast.report.pictures import heading_of, save_figure, save_figures
from crosscast.report.profiles import AXES, Axis, profiles_report, write_kiviat
from crosscast.studies import johnston2018, johnston2018_report
from support.choices import chosen_study
from support.johnston2018 import SMALL, made_up
from support.mixes import studied
from support.models import MeanModel, random_grid
from support.refusals import refusal
from support.vectors import made_vectors


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


@pytest.mark.parametrize(("greatest", "scale"), [(WIDE, "linear"), (WIDE * 1.01, "log")])
def test_very_different_values_have_a_logarithmic_axis(greatest: float, scale: str) -> None:
    axes = drawn(np.array([1.0, np.nan, greatest]), spread_axis)
    assert (axes.get_xscale(), axes.get_yscale()) == (scale, "linear")


def test_values_that_are_alike_have_labels_between_decades() -> None:
    axes = drawn(np.array([0.9, 8.0]), logarithmic_axis)
    assert axes.get_xscale() == "log"
    assert labels_of(axes) == ["1", "1.5", "2", "3", "5", "7"]
    assert {each.get_text() for each in axes.get_xticklabels(minor=True)} <= {""}


ProfileMaker = Callable[..., Profile]

LINEAR = Axis("opcode", "opcodes", "compute", 10, 30)
LOGARITHMIC = Axis("unique_read_write_ratio", "read/write ratio", "memory", 1e-3, 1e3, True)


@pytest.mark.parametrize(
    ("least", "greatest", "labels"),
    [
        (12e9, 180e9, ["20 GB/s", "50 GB/s", "100 GB/s", "200 GB/s"]),
        (2e9, 3e11, ["10 GB/s", "100 GB/s"]),
    ],
)
def test_an_axis_with_a_unit_has_more_than_one_label(
    least: float, greatest: float, labels: list[str]
) -> None:
    def scale(axes: Any, *_: object) -> None:
        axes.set_xscale("log")
        unit_axis(axes.xaxis, "B/s")

    assert labels_of(drawn(np.array([least, greatest]), scale)) == labels


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_is_written(tmp_path: Path, make_profile: ProfileMaker, suffix: str) -> None:
    path = tmp_path / f"kiviat.{suffix}"
    write_kiviat([make_profile(), make_profile("scan", 1, unique_read_write_ratio=None)], path)
    assert path.stat().st_size > 10_000
    assert list(tmp_path.iterdir()) == [path]


def test_every_spoke_is_a_metric_of_its_category() -> None:
    categories = {metric.name: metric.category for metric in METRICS}
    assert [axis.category for axis in AXES] == [categories[axis.metric] for axis in AXES]


def test_the_scale_is_written_in_the_picture(tmp_path: Path, make_profile: ProfileMaker) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        write_kiviat([make_profile()], tmp_path / "k.svg")
    text = (tmp_path / "k.svg").read_text(encoding="utf-8")
    assert "0 – 30" in text
    assert "Each spoke runs from its least value" in text


@pytest.mark.parametrize(
    ("axis", "value", "position"),
    [
        *((LINEAR, 20, 0.5), (LINEAR, 99, 1), (LINEAR, 0, 0), (LINEAR, None, None)),
        *((LOGARITHMIC, 1, 0.5), (LOGARITHMIC, 1e9, 1), (LOGARITHMIC, 0, 0)),
    ],
)
def test_a_value_has_its_position_on_its_scale_or_at_an_end(
    axis: Axis, value: float | None, position: float | None
) -> None:
    assert axis.position(value) == (position if position is None else pytest.approx(position))


def test_an_unknown_suffix_is_refused(tmp_path: Path, make_profile: ProfileMaker) -> None:
    assert ".png, .svg, .pdf, found 'k.bmp'" in refusal(write_kiviat, [make_profile()], tmp_path / "k.bmp")


def shown(*profiles: Profile) -> str:
    return profiles_report(profiles, everything=True).to_text()


def test_the_table_has_every_metric_in_its_category(make_profile: ProfileMaker) -> None:
    text = shown(make_profile())
    places = [text.index(f" {metric.name} ") for metric in METRICS]
    assert places == sorted(places)
    assert all(f"\n{category}\n" in text for category in CATEGORIES)


def test_the_table_says_what_was_measured_and_how(make_profile: ProfileMaker) -> None:
    text = shown(make_profile())
    for fact in ("256 work-items in work-groups of 64", "in: float* 4 KiB", "reduce.cl", "clang 22 -DN=3"):
        assert fact in text
    assert "compile 11 ms, instrument 50 ms, run 1.5 s, CPU of the run 2.5 s, metrics 400 µs" in text


def test_arguments_are_told_by_type_name_and_size(make_profile: ProfileMaker) -> None:
    arguments = [
        {"name": "a", "type": "float*", "kind": "global", "nbytes": 4096, "shape": [1024]},
        {"name": "t", "type": "float*", "kind": "local", "nbytes": 64},
        {"name": "n", "type": "int", "kind": "value", "value": 5},
    ]
    profile = make_profile()
    text = shown(replace(profile, launch={**profile.launch, "arguments": arguments}))
    assert "float* a (4 KiB), float* t (local, 64 B), int n = 5" in text


def test_several_profiles_stand_side_by_side(make_profile: ProfileMaker) -> None:
    text = shown(make_profile(opcode=11), make_profile("scan", 1, opcode=12))
    row = next(line for line in text.splitlines() if " opcode " in line)
    assert row.index("11") < row.index("12")
    assert "scan 1" in text


def test_a_timeline_of_microseconds_has_them_at_its_axis() -> None:
    starts, seconds = np.array([0.0, 1e-4]), np.array([5e-5, 1e-4])
    process: Any = SimpleNamespace(starts=starts, seconds=seconds, kernel_name=lambda row: "k")
    figure = capture._timeline(process)
    figure.canvas.draw()
    assert "100 µs" in [text.get_text() for text in figure.axes[0].get_xticklabels()]


Drawn = Mapping[str, Any]

OF_LARGE_STUDIES = ("machines", "johnston2018")

GENERIC = "frontier methods curve repeats"
LEFT_OUT = "left-out-time left-out-slowdown left-out-power"


def of_times() -> Drawn:
    models = [MeanModel(), MeanModel("worse", shift=5.0)]
    return time.evaluation_figures(evaluate_time(random_grid(), models, "leave-application-out", probes=(2,)))


def of_relative() -> Drawn:
    vectors = made_vectors(applications=4)
    return relative.evaluation_figures(evaluate_relative(vectors, [PublishedMean()], "leave-kernel-out"))


def of_johnston() -> Drawn:
    return johnston2018_report.study_figures(johnston2018.reproduce(made_up(), preset=SMALL))


CASES: Mapping[str, tuple[Callable[[], Drawn], str]] = {
    "time": (
        of_times,
        " ".join(
            f"leave-application-out-2-probes-{name}" for name in "models predicted errors coverage".split()
        ),
    ),
    "relative": (of_relative, "models"),
    "configuration": (lambda: configuration_figures.evaluation_figures(chosen_study()), GENERIC),
    "corun": (lambda: corun_evaluation.evaluation_figures(studied().evaluation), LEFT_OUT),
    "machines": (
        lambda: configuration_figures.evaluation_figures(chosen_study(both=True)),
        " ".join(f"{machine}/{name}" for machine in ("node", "lonely") for name in GENERIC.split()),
    ),
    "johnston2018": (of_johnston, " ".join(f"figure-{name}" for name in "1 2 3 4 5 5-real-time 6".split())),
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


def test_figures_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    figure = new_figure(1, 1)
    assert "figures: cannot write" in refusal(save_figure, figure, tmp_path / "missing" / "a.png")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"^figures: cannot make the folder"):
        save_figures({"a": figure}, tmp_path / "file" / "below")
