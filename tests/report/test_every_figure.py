"""Every figure of every evaluation and study in one table: its names, and that it can be written."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from crosscast.errors import InputError
from crosscast.evaluation.relative.evaluation import evaluate_relative
from crosscast.evaluation.time.evaluation import evaluate_time
from crosscast.prediction.relative.nichols2024 import PublishedMean
from crosscast.report import configuration_figures, corun_evaluation, relative, time
from crosscast.report.figures import new_figure
from crosscast.report.pictures import heading_of, save_figure, save_figures
from crosscast.studies import johnston2018, johnston2018_report
from support.choices import chosen_study
from support.johnston2018 import SMALL, made_up
from support.mixes import studied
from support.models import MeanModel, random_grid
from support.refusals import refusal
from support.vectors import made_vectors

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
