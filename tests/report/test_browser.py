"""Pages in a real browser: nothing fails or overflows, and all can be used by keyboard and read aloud."""

import contextlib
import io
import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosscast.cli import main
from crosscast.commands.output import page_of as page_with
from crosscast.evaluation.time.evaluation import evaluate_time
from crosscast.report.document import Text
from crosscast.report.page import Subject, page_of
from crosscast.report.time import evaluation_figures, evaluation_report
from crosscast.units import format_seconds
from support.corun_models import constant, write_jobs
from support.datasets import made_dataset
from support.models import MeanModel

driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is missing")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium here (apt-get install chromium)"),
]

OPTIONS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
EXAMPLES = Path(__file__).parents[2] / "examples"
PAGES = ("predict", "choose", "colocate", "simulate", "evaluate", "report", "characterize")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium with a new profile."""
    with driver.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield found
        found.close()


def answer_of(*words: str) -> Any:
    """What a command prints as JSON."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        assert main([*words, "--json"]) == 0
    return json.loads(printed.getvalue())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of each kind."""
    made = tmp_path_factory.mktemp("pages")
    runs = made / "runs.csv"
    runs.write_text("device,cluster,cores,scheduling,time_s,power_w\npi3,,4,,12,5\nxeon,,1,,3,40\n")
    constant(made / "co", 1.25, error=0.05)
    commands = {
        "choose": ["choose", "configuration", str(runs), "--power-cap", "40,60"],
        "colocate": ["colocate", *write_jobs(made), "--model", str(made / "co")],
        "simulate": ["simulate", "policies", str(EXAMPLES / "made-cluster.swf"), "--users"],
    }
    for name, words in commands.items():
        found = answer_of(*words, "--html", str(made / f"{name}.html"))
        (made / f"{name}.answer").write_text(json.dumps(found))
    words = ["characterize", str(EXAMPLES / "vecadd.toml"), "--html", str(made / "characterize.html")]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(words) == 0
    study = evaluate_time(made_dataset(), [MeanModel(), MeanModel("shifted", shift=0.1)])
    warned = Text(["What to look out for."], "warnings")
    report = page_with(evaluation_report(study), evaluation_figures(study))
    replace(report, parts=[*report.parts, warned]).write_html(made / "evaluate.html")
    page_of(Subject.of(made_dataset(), study)).write_html(made / "report.html")
    return made


@pytest.fixture(scope="module")
def forecast(folder: Path) -> dict[str, Any]:
    """What `predict` prints, beside the page that it writes."""
    words = ["predict", str(EXAMPLES / "saxpy.toml"), "--html", str(folder / "predict.html")]
    found: dict[str, Any] = answer_of(*words)
    return found


@contextlib.contextmanager
def opened(browser: Any, path: Path, width: int = 1100, **how: Any) -> Iterator[Any]:
    """A page in a new window, which must say nothing on the console."""
    context = browser.new_context(viewport={"width": width, "height": 800}, **how)
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if request.url.startswith("http") else None)
    page.goto(path.as_uri())
    yield page
    context.close()
    assert said == []


@pytest.mark.parametrize("name", PAGES)
def test_pages_have_no_serious_findings_and_are_never_wider_than_the_screen(
    browser: Any, folder: Path, forecast: object, name: str
) -> None:
    for scheme in ("light", "dark"):
        with opened(browser, folder / f"{name}.html", color_scheme=scheme) as page:
            found = axe.Axe().run(page).response["violations"]
            serious = [each for each in found if each["impact"] in ("serious", "critical")]
            assert [(each["id"], each["nodes"][0]["html"][:300]) for each in serious] == [], scheme
    for width in (360, 800, 2560):
        with opened(browser, folder / f"{name}.html", width) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_numbers_on_the_page_are_those_of_json(browser: Any, folder: Path, forecast: dict[str, Any]) -> None:
    with opened(browser, folder / "predict.html") as page:
        rows = {row.locator("th").inner_text(): row for row in page.locator("tbody tr").all()}
        assert len(rows) == len(forecast["devices"])
        for each in forecast["devices"]:
            time = rows[each["device"]].locator("td").nth(0)
            assert float(time.get_attribute("data-v")) == each["time_s"]
            assert time.inner_text() == format_seconds(each["time_s"])
            ends = rows[each["device"]].locator(".track").get_attribute("data-at").split()
            assert [float(end) for end in ends] == [each["low_s"], each["time_s"], each["high_s"]]
        warning = page.locator(".warnings").inner_text()
        assert all(each in warning for each in forecast["warnings"])
        assert "crosscast predict" in page.locator("footer").inner_text()


def values_in(page: Any) -> list[list[float]]:
    """Values of the numbers of the first table, row by row."""
    rows = page.locator("table").first.locator("tbody tr").all()
    return [[float(each.get_attribute("data-v")) for each in row.locator("td[data-v]").all()] for row in rows]


def test_schedules_slowdowns_and_choices_are_those_of_json(browser: Any, folder: Path) -> None:
    simulated, colocated, chosen = (
        json.loads((folder / f"{name}.answer").read_text()) for name in ("simulate", "colocate", "choose")
    )
    with opened(browser, folder / "simulate.html") as page:
        (found,) = simulated["results"]
        names = "makespan_s average_bounded_slowdown mean_wait_s median_wait_s wait_p95_s utilisation".split()
        assert values_in(page)[0][:6] == [found[name] for name in names]
    with opened(browser, folder / "colocate.html") as page:
        (mix,) = colocated["shared"]
        assert values_in(page) == [[each["slowdown"]["value"]] for each in mix["jobs"]]
    with opened(browser, folder / "choose.html") as page:
        rows = page.locator("tbody tr.bold").all()
        shown = [[cell.inner_text() for cell in row.locator("th, td").all()] for row in rows]
        assert [(row[0], row[4]) for row in shown] == [
            (each["configuration"]["device"], f"{each['power_w']:.1f}") for each in chosen["choices"]
        ]


def names_in(page: Any) -> list[str]:
    """Names of the rows that are shown, in their order."""
    found: list[str] = page.locator("tbody tr:visible th").all_inner_texts()
    return found


def tab_to(page: Any, text: str) -> None:
    """Press Tab until what has this text, or this name, has the focus."""
    said = "(each => each.textContent.trim() || each.getAttribute('aria-label'))(document.activeElement)"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(said) == text:
            return
    raise AssertionError(f"{text!r} cannot be reached")


def test_tables_are_sorted_and_filtered_by_key(browser: Any, folder: Path, forecast: dict[str, Any]) -> None:
    by_time = [each["device"] for each in sorted(forecast["devices"], key=lambda each: each["time_s"])]
    with opened(browser, folder / "predict.html") as page:
        tab_to(page, "Skip to the content")
        page.keyboard.press("Enter")
        tab_to(page, "Choose devices")
        tab_to(page, f"Show rows of {forecast['kernel']} with")
        page.keyboard.type("gtx, knl")
        few = [name for name in by_time if "gtx" in name or "knl" in name]
        assert names_in(page) == few
        assert page.locator("p[role=status]").inner_text() == f"{len(few)} of {len(by_time)} rows"
        for _ in range(8):
            page.keyboard.press("Backspace")
        assert names_in(page) == by_time
        tab_to(page, "time")
        heading = page.locator("th", has_text="time").first
        for order, wanted in (("ascending", by_time), ("descending", by_time[::-1])):
            page.keyboard.press("Enter")
            assert heading.get_attribute("aria-sort") == order
            assert names_in(page) == wanted
        page.get_by_role("button", name="device").press("Enter")
        assert heading.get_attribute("aria-sort") is None
        assert names_in(page)[0] == min(by_time)


def test_devices_and_scales_are_chosen_by_key(browser: Any, folder: Path, forecast: dict[str, Any]) -> None:
    slowest = max(forecast["devices"], key=lambda each: each["time_s"])
    with opened(browser, folder / "predict.html") as page:
        page.locator("summary").press("Enter")
        page.get_by_role("button", name="None").press("Enter")
        page.get_by_label(slowest["device"], exact=True).press("Space")
        assert names_in(page) == [slowest["device"]]
        assert page.locator("summary").inner_text() == f"Choose devices (1 of {len(forecast['devices'])})"
        dot = page.locator(".track b:visible")
        low = min(each["low_s"] for each in forecast["devices"])
        high = max(each["high_s"] for each in forecast["devices"])
        place = float(dot.evaluate("each => parseFloat(each.style.left)"))
        of_range = math.log(slowest["time_s"] / low) / math.log(high / low)
        assert place == pytest.approx(100 * of_range, abs=0.01)
        page.get_by_role("button", name="Linear scale").press("Space")
        place = float(dot.evaluate("each => parseFloat(each.style.left)"))
        assert place == pytest.approx(100 * slowest["time_s"] / high, abs=0.01)


def test_a_figure_tells_its_values_to_pointer_and_keyboard(browser: Any, folder: Path) -> None:
    with opened(browser, folder / "report.html") as page:
        image = page.locator("img[data-marks*='predicted time']").first
        x, y, text = json.loads(image.get_attribute("data-marks"))[0]
        box = image.bounding_box()
        image.scroll_into_view_if_needed()
        image.hover(position={"x": x / 1e4 * box["width"], "y": y / 1e4 * box["height"]})
        tip = page.locator(".tip")
        assert "measured time" in tip.inner_text() and "predicted time" in text
        region = page.locator(".wide", has=image).first
        region.focus()
        before = tip.inner_text()
        page.keyboard.press("ArrowRight")
        assert tip.inner_text() != before
        page.keyboard.press("Escape")
        assert not tip.is_visible()


def test_without_a_script_all_rows_are_there(browser: Any, folder: Path, forecast: dict[str, Any]) -> None:
    with opened(browser, folder / "predict.html", java_script_enabled=False) as page:
        assert page.locator("tbody tr:visible").count() == len(forecast["devices"])
        assert page.locator(".track b:visible").count() == len(forecast["devices"])
        assert page.locator("button").count() == 0
