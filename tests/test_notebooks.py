"""Notebooks: what results look like in one, and that the examples run."""

from pathlib import Path

import numpy as np
import pytest

import crosscast
from crosscast.cluster.jobs import Jobs
from crosscast.profile import METRICS, Profile

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))


@pytest.mark.system
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_end_to_end(path: Path, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "outputs are not kept: they would be stale"
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [
        output
        for cell in book.cells
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    assert len(shown) >= 1


def test_there_are_two_notebooks_that_the_documentation_names() -> None:
    text = "".join(path.read_text() for path in (NOTEBOOKS[0].parents[2] / "docs" / "tutorials").glob("*.md"))
    assert len(NOTEBOOKS) == 2
    assert all(f"examples/notebooks/{path.name}" in text for path in NOTEBOOKS)


def test_a_profile_shows_every_metric() -> None:
    profile = Profile("k<int>", 2, {"work_items": 64, "opcode": None}, {}, {}, {}, {})
    text = profile._repr_html_()
    assert "<caption>Profile of k&lt;int&gt;, launch 2</caption>" in text
    assert text.count("<tr>") == 1 + len(METRICS)
    assert '<td>work_items</td><td style="text-align: right">64</td>' in text


def test_a_forecast_says_what_it_recommends() -> None:
    forecast = crosscast.predict("bundled", devices=["gtx1080", "knl"])
    assert "<caption>Predicted times in seconds, with 90 % intervals</caption>" in forecast._repr_html_()
    one = crosscast.predict(EXAMPLES / "vecadd.toml", devices=["gtx1080", "knl"])
    assert "90 % intervals; recommended: gtx1080 for vecadd</caption>" in one._repr_html_()


def test_a_dataset_shows_its_tables() -> None:
    dataset = crosscast.bundled_dataset()
    text = dataset._repr_html_()
    assert f"<caption>Dataset {dataset.label}</caption>" in text
    assert f'<td>records</td><td style="text-align: right">{dataset.records.num_rows}</td>' in text
    assert "isolated_runs" not in text


def test_a_schedule_shows_its_jobs() -> None:
    ones = np.ones((2, 1))
    jobs = Jobs(np.array([7, 8]), np.array([0.0, 5.0]), np.array([1, 1]), 30 * ones, 60 * ones)
    schedule = crosscast.simulate(jobs, [crosscast.Machine("here", 1)])
    assert schedule.to_dict() == {
        "job": [7, 8],
        "submit_s": [0.0, 5.0],
        "start_s": [0.0, 30.0],
        "end_s": [30.0, 60.0],
        "machine": ["here", "here"],
        "procs": [1, 1],
    }
    assert "<caption>Schedule of 2 jobs on here</caption>" in schedule._repr_html_()
