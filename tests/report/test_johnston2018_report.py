"""The published study as it is printed and drawn."""

from dataclasses import replace

import pytest

from crosscast.studies.johnston2018 import Johnston2018, reproduce
from crosscast.studies.johnston2018_report import study_figures, study_report
from support.johnston2018 import SMALL, made_up


@pytest.fixture(scope="module")
def study() -> Johnston2018:
    return reproduce(made_up(), preset=SMALL)


def printed(study: Johnston2018) -> str:
    return study_report(study).to_text()


def row(text: str, start: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return line.removeprefix(start).split()


def test_the_papers_value_stands_beside_ours(study: Johnston2018) -> None:
    text = printed(study)
    found = study.headline
    percents = [f"{100 * each.relative_log_cells:.1f}" for each in (found.forest, found.lookup)]
    assert row(text, "relative error of ln(µs), over points") == [
        "1.2",
        "%",
        percents[0],
        "%",
        percents[1],
        "%",
    ]
    assert row(text, "mean absolute error of ln(time)")[0] == "~0.11"
    assert row(text, "median  ")[:3] == ["507", "30", "4.3"]


def test_each_omitted_kernel_has_its_own_error(study: Johnston2018) -> None:
    text = printed(study)
    for each in study.omitted:
        assert row(text, f"{each.kernel} ")[-1] == f"{each.rmse_log:.2f}"
    assert row(text, "lud_diagonal ")[:3] == ["527", "29", "4.4"]
    assert row(text, "crc32 ")[0] == str(study.omitted[1].trees)


def test_it_says_how_much_work_it_is_of(study: Johnston2018) -> None:
    text = printed(study)
    for words in (
        "2 samples for each number (paper: 500)",
        "4 steps of annealing",
        "Forest: 20 trees",
        "Seed 0",
    ):
        assert words in text


def test_what_a_dataset_does_not_have_is_said(study: Johnston2018) -> None:
    text = printed(replace(study, honest=None, energy=None))
    assert "one application only" in text
    assert "energy of too few applications" in text


def test_figures_need_no_second_application(study: Johnston2018) -> None:
    assert len(study_figures(replace(study, honest=None))) == len(study_figures(study))
