"""The page: well-formed, safe with any name, the same bytes always, and true to the evaluation."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from crosscast.data.dataset import Dataset
from crosscast.data.schema import size_order
from crosscast.evaluation.time.evaluation import evaluate_time
from crosscast.evaluation.time.scores import TimeEvaluation
from crosscast.prediction.time.forecast import Model
from crosscast.report import document
from crosscast.report.document import Drawing, as_drawing, save_figure
from crosscast.report.fields import factor, percent
from crosscast.report.figures import new_figure, plain_text, time_axis
from crosscast.report.page import ApplicationDetails, Subject, page_of, write_report
from crosscast.report.time import evaluation_report
from crosscast.studies.johnston2018 import reproduce
from crosscast.studies.johnston2018_report import study_figures, study_report
from crosscast.units import format_seconds
from support.datasets import made_dataset
from support.golden import assert_printed
from support.johnston2018 import SMALL, made_up
from support.mixes import studied
from support.models import MeanModel, Oracle, random_grid
from support.refusals import refusal

GOLDEN = Path(__file__).with_name("golden")
HOSTILE = (
    "--></svg><script>alert(1)</script>",
    "\"'><img src=x onerror=y>",
    "a&amp;b$\\frac{$\x00\u202e",
    "k" * 300,
)
VOID = {"br", "img", "meta"}


@dataclass
class Page(HTMLParser):
    """Tags of a page with their attributes; ends must match their starts."""

    open: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


def subject_of(dataset: Dataset, models: Sequence[str] = ("shifted",), **chosen: Any) -> Subject:
    made = [MeanModel(), *(MeanModel(name, shift=0.1 * place) for place, name in enumerate(models, 1))]
    return Subject.of(dataset, evaluate_time(dataset, made), **chosen)


@pytest.fixture(scope="module")
def subject() -> Subject:
    return subject_of(made_dataset())


@pytest.fixture(scope="module")
def text(subject: Subject) -> str:
    return page_of(subject).to_html()


@pytest.fixture(scope="module")
def hostile() -> str:
    names = made_dataset(
        HOSTILE, kernels=("<script>alert(2)</script>", "$x"), sizes=("<b>",), devices=("<i>cpu", "$gpu$")
    )
    return page_of(subject_of(names, title="<script>alert(3)</script>")).to_html()


def cells(text: str, caption: str) -> list[list[str]]:
    """Texts of the cells of a table, row by row."""
    body = text.split(f"<caption><span>{caption}</span></caption>")[1].split("</table>")[0]
    rows = re.findall(r"<tr.*?>(.*?)</tr>", body)
    return [[re.sub("<.*?>", "", each) for each in re.findall(r"<t[hd][ >].*?</t[hd]>", row)] for row in rows]


def test_the_page_is_well_formed_needs_nothing_else_and_is_the_same_each_time(text: str) -> None:
    page = parsed(text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert {"link", "iframe", "object"}.isdisjoint(tag for tag, _ in page.tags)
    assert page.all("script") == [{}]
    images = page.all("img")
    assert len(images) == 4
    assert all(
        image["alt"] and (image["src"] or "").startswith("data:image/svg+xml;base64,") for image in images
    )
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert sorted(str(link["href"]) for link in page.all("a")) == sorted(f"#{name}" for name in names)
    assert len(set(names)) == len(names)
    assert len(text.encode()) < 500_000
    assert page_of(subject_of(made_dataset())).to_html() == text


def test_names_that_are_code_are_text_and_only_the_script_of_the_page_may_run(hostile: str) -> None:
    page = parsed(hostile)
    (policy,) = [str(each["content"]) for each in page.all("meta") if "http-equiv" in each]
    script = hostile.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert policy.endswith(f"; script-src 'sha256-{digest}'")
    assert hostile.count("<script") == 1
    allowed = "html head meta title style body header h1 nav ul li a main section h2 h3 p div table caption "
    allowed += "thead tbody tr th td span figure img figcaption details summary script i b"
    assert {tag for tag, _ in page.tags} <= set(allowed.split())
    # Lines and dots of ranges, which have a place
    assert all("style" in attributes for attributes in (*page.all("i"), *page.all("b")))
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert "&lt;script&gt;alert(2)&lt;/script&gt;" in hostile
    assert "<title>&lt;script&gt;alert(3)&lt;/script&gt;</title>" in hostile
    assert not {"\x00", "\u202e"} & set(hostile)
    for image in page.all("img"):
        ElementTree.fromstring(base64.b64decode((image["src"] or "").partition(",")[2]))


@pytest.fixture(scope="module")
def details(subject: Subject) -> ApplicationDetails:
    assert subject.details is not None
    return subject.details


def test_every_point_of_the_application_is_there_with_its_forecast(
    details: ApplicationDetails, text: str
) -> None:
    rows = cells(text, f"All measurement points of {details.application}")[1:]
    points = [each for each in details.points if each.application == details.application]
    points.sort(key=lambda each: (each.kernel, size_order(each.size)))
    assert len(rows) == len(points) == 8
    for cell, point in zip(rows, points, strict=True):
        assert cell[:3] == [point.kernel, point.size, point.device]
        assert cell[3:5] == [format_seconds(point.measured_s), format_seconds(point.predicted_s)]
        held = point.low_s <= point.measured_s <= point.high_s
        assert cell[6:8] == ["yes" if held else "no", factor(point.predicted_s / point.measured_s)]
        assert cell[8] == ("—" if np.isnan(point.slowdown) else factor(point.slowdown))


def test_the_application_in_the_middle_or_another_one_that_is_there_is_looked_at(
    details: ApplicationDetails,
) -> None:
    errors = {name: each.median_ape for name, each in details.result.applications.items()}
    assert sorted(errors, key=lambda name: errors[name] or 0.0)[1] == details.application
    told = refusal(subject_of, made_dataset(), application="gem")
    assert told == "application: expected one of bfs, crc, fft, lud, found 'gem'"


@pytest.mark.usefixtures("undrawn")
def test_the_first_lines_and_the_limits_say_how_sure_it_is(
    subject: Subject, details: ApplicationDetails, text: str
) -> None:
    median = percent(details.result.scores.median_ape)
    assert subject.headline.startswith(f"Half of the predicted times are within {median} of the measured")
    assert all(words in text for words in (subject.headline, "4 applications are few.", "device-mean"))
    assert "selection bias" not in text
    two = page_of(subject_of(made_dataset(), ("shifted", "further"))).to_text()
    assert "has the least error of 2 models on these same applications" in two
    alone = evaluate_time(made_dataset(), [MeanModel("alone")])
    assert "No baseline stands beside this model" in page_of(Subject.of(made_dataset(), alone)).to_text()


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages with empty pictures, where their text is what a test reads."""
    monkeypatch.setattr(document, "as_drawing", lambda draw: Drawing(b"<svg/>"))


@pytest.mark.usefixtures("undrawn")
def test_one_device_is_no_choice_and_many_are_folded() -> None:
    text = page_of(subject_of(made_dataset(devices=("cpu",)))).to_html()
    assert "The recommended device" not in text
    assert "All measurement points of" in text
    devices, kernels = [f"device-{n}" for n in range(9)], [f"kernel{n:02}" for n in range(22)]
    many = made_dataset(("a", "b"), kernels=kernels, devices=devices, sizes=("tiny",))
    assert '<details open="open">' not in page_of(subject_of(many)).to_html()


@pytest.mark.usefixtures("undrawn")
def test_cells_that_were_not_measured_are_left_out_of_the_application_that_was_asked_for() -> None:
    subject = subject_of(made_dataset(without=[("first", "gpu")]), application="bfs")
    rows = cells(page_of(subject).to_html(), "All measurement points of bfs")[1:]
    assert len(rows) == 6
    # Where a kernel was measured on one device only there is no choice.
    assert {row[0] for row in rows if row[8] != "—"} == {"second"}
    every: Any = subject.to_dict()["cells"]
    unknown = [cell for cell in every if cell["measured_s"] is None]
    assert {(cell["kernel"], cell["device"]) for cell in unknown} == {("first", "gpu")}
    assert not [cell for cell in unknown if cell["recommended"]]


def test_a_page_is_of_any_question() -> None:
    subject = Subject.of(made_dataset(), studied().evaluation, question="corun", title="Co-runs")
    text = page_of(subject).to_html()
    assert len(parsed(text).all("img")) == 3
    assert "<h1>Co-runs</h1>" in text and "Scores on held-out data" in text
    assert "cells" not in subject.to_dict()


def test_json_has_what_the_page_shows(subject: Subject, details: ApplicationDetails) -> None:
    found = json.loads(json.dumps(subject.to_dict(), allow_nan=False))
    assert (found["title"], found["model"]) == ("Predicted kernel times: made up", "shifted")
    assert found["contents"]["applications"] == ["bfs", "crc", "fft", "lud"]
    assert [each["device"] for each in found["contents"]["devices"]] == ["cpu", "gpu"]
    assert len(found["cells"]) == 32
    assert found["evaluation"]["results"][1]["median_ape"] == details.result.scores.median_ape
    first, second = found["cells"][:2]
    assert first["low_s"] <= first["predicted_s"] <= first["high_s"]
    taken = first if first["recommended"] else second
    least = min(first["measured_s"], second["measured_s"])
    assert taken["slowdown"] == pytest.approx(taken["measured_s"] / least)


def test_a_dataset_without_times_is_refused_with_what_it_holds() -> None:
    whole = made_dataset()
    told = refusal(write_report, replace(whole, records=whole.records.slice(0, 0)), "page.html")
    assert "expected records of kernels' times, " in told and "found 16 profiles" in told


def figure(title: str = "title") -> Any:
    made = new_figure(3, 2)
    axes = made.subplots()
    axes.plot([1, 2], [1, 2], "o", label="line")
    axes.set_title(plain_text(title, 32))
    axes.legend()
    return made


def test_a_picture_has_the_same_bytes_each_time_whatever_the_settings_are(tmp_path: Path) -> None:
    first, again = as_drawing(figure()).svg, figure()
    with matplotlib.rc_context({"svg.hashsalt": "other", "font.size": 20, "axes.facecolor": "red"}):
        assert as_drawing(again).svg == first
    low, high = as_drawing(figure()).marks
    # From the left, and from the top.
    assert low[0] < high[0] and low[1] > high[1] and low[2] == "title, line, 1, 1"
    for suffix in (".png", ".svg", ".pdf"):
        one, two = (save_figure(figure(), tmp_path / f"{name}{suffix}").read_bytes() for name in "ab")
        assert one == two


def test_times_are_marked_as_people_write_them() -> None:
    for low, high, labels in (
        (2e-6, 1.9e-5, "2 µs, 5 µs, 10 µs"),
        (2e-6, 9e-5, "3 µs, 10 µs, 30 µs"),
        (1e-6, 1e-2, "1 µs, 10 µs, 100 µs, 1 ms, 10 ms"),
    ):
        axes = new_figure(4, 2).subplots()
        axes.set(xscale="log", xlim=(low, high))
        time_axis(axes.xaxis, low, high, most=7)
        shown = [tick for tick in axes.get_xticks() if 0.999 * low <= tick <= 1.001 * high]
        assert ", ".join(axes.xaxis.get_major_formatter()(tick, 0) for tick in shown) == labels


GRID = random_grid()


def study_of(
    *names: str, split: str = "leave-application-out", probes: Sequence[int] = (0,)
) -> TimeEvaluation:
    """Twelve kernels of four applications on four devices; a perfect model stands for the noise floor."""
    known: list[Model] = [MeanModel(), Oracle(GRID), MeanModel("worse", shift=5.0)]
    models = [model for name in names for model in known if model.name == name]
    noise = evaluate_time(GRID, [Oracle(GRID)]).results[0]
    return replace(evaluate_time(GRID, models, split, probes=probes), label="here", noise=noise)


def test_tables_are_as_they_were() -> None:
    """Models come first, then baselines, then what needs no model; what nothing defines is a dash."""
    study = study_of("worse", "device-mean", "oracle", probes=(0, 1, 2))
    assert_printed(evaluation_report(study).to_text(), GOLDEN / "time.txt")
    left_out = evaluation_report(study_of("device-mean", split="leave-device-out")).to_text()
    assert "Each device unseen, with each kernel's times on the 3 other devices known" in left_out
    assert "\nalways" not in left_out


def test_the_best_model_is_no_baseline_if_there_is_another() -> None:
    best = study_of("device-mean", "worse").best(0)
    only = study_of("device-mean").best(0)
    assert best is not None and only is not None
    assert (best.model, only.model) == ("worse", "device-mean")


def test_a_printed_study_is_as_it_was_and_says_what_a_dataset_does_not_have() -> None:
    study = reproduce(made_up(), preset=SMALL)
    assert_printed(study_report(study).to_text(), GOLDEN / "johnston2018.txt")
    one = replace(study, honest=None)
    assert "one application only" in study_report(one).to_text()
    assert len(study_figures(one)) == len(study_figures(study))
