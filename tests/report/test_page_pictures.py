"""Pictures of the page: the same bytes always, and any name can be drawn."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest

from crosscast.report.figures import new_figure
from crosscast.report.page.markup import drawn, picture, plain, scale_times, written


def figure(title: str = "title") -> Any:
    made = new_figure(3, 2)
    axes = made.subplots()
    axes.plot([1, 2], [1, 2], "o", label="line")
    axes.set_title(plain(title))
    axes.legend()
    return made


def test_a_picture_has_the_same_bytes_whatever_the_settings_are() -> None:
    first = drawn(figure)
    with matplotlib.rc_context({"svg.hashsalt": "other", "font.size": 20, "axes.facecolor": "red"}):
        assert drawn(figure) == first


def test_drawing_leaves_the_settings_alone() -> None:
    with matplotlib.rc_context({"font.size": 20}):
        drawn(figure)
        assert matplotlib.rcParams["font.size"] == 20


def test_a_written_picture_has_no_date() -> None:
    def write(path: Path) -> None:
        figure().savefig(path)

    assert written(write) == written(write)
    assert b"<metadata>" not in written(write)
    assert b"date" not in drawn(figure)


@pytest.mark.parametrize(
    "name", ["$\\frac{$", "a$b$c", "</svg><script>", "--> <!--", "\x00\x1b", "k" * 500, "_^{}\\"]
)
def test_any_name_can_be_drawn(name: str) -> None:
    ElementTree.fromstring(drawn(lambda: figure(name)))


def test_long_names_are_cut() -> None:
    assert plain("k" * 33) == "k" * 31 + "…"
    assert plain("kernel") == "kernel"


def test_a_picture_has_words_for_those_who_do_not_see_it() -> None:
    found = picture(b"<svg/>", 'what "it" shows', "how to read it")
    assert 'src="data:image/svg+xml;base64,PHN2Zy8+"' in found
    assert 'alt="what &quot;it&quot; shows"' in found
    assert "<figcaption>how to read it</figcaption>" in found


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (2e-6, 1.9e-5, ["2 µs", "5 µs", "10 µs"]),
        (2e-6, 9e-5, ["3 µs", "10 µs", "30 µs"]),
        (1e-6, 1e-2, ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]),
    ],
)
def test_times_are_marked_as_people_write_them(low: float, high: float, labels: list[str]) -> None:
    axes = new_figure(4, 2).subplots()
    axes.set(xscale="log", xlim=(low, high))
    scale_times(axes.xaxis, low, high, most=7)
    shown = [tick for tick in axes.get_xticks() if 0.999 * low <= tick <= 1.001 * high]
    assert [axes.xaxis.get_major_formatter()(tick, 0) for tick in shown] == labels
