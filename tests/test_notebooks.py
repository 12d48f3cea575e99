"""Notebooks: what results look like in one, and that the examples run."""

from pathlib import Path

import pytest

import crosscast
from crosscast.profile import METRICS, Profile
from support.cluster import jobs_of

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
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    assert any("text/html" in output.get("data", {}) for output in outputs)


def test_there_are_two_notebooks_that_the_documentation_names() -> None:
    text = "".join(path.read_text() for path in (NOTEBOOKS[0].parents[2] / "docs" / "tutorials").glob("*.md"))
    assert len(NOTEBOOKS) == 2
    assert all(f"examples/notebooks/{path.name}" in text for path in NOTEBOOKS)


def test_results_show_themselves_in_a_notebook() -> None:
    text = Profile("k<int>", 2, {"work_items": 64, "opcode": None}, {}, {}, {}, {})._repr_html_()
    assert "<caption>Profile of k&lt;int&gt;, launch 2</caption>" in text
    assert text.count("<tr>") == 1 + len(METRICS)
    assert '<td>work_items</td><td style="text-align: right">64</td>' in text
    forecast = crosscast.predict("bundled", devices=["gtx1080", "knl"])
    assert "<caption>Predicted times in seconds, with 90 % intervals</caption>" in forecast._repr_html_()
    one = crosscast.predict(EXAMPLES / "vecadd.toml", devices=["gtx1080", "knl"])
    assert "90 % intervals; recommended: gtx1080 for vecadd</caption>" in one._repr_html_()
    dataset = crosscast.bundled_dataset()
    text = dataset._repr_html_()
    assert f"<caption>Dataset {dataset.label}</caption>" in text
    assert f'<td>records</td><td style="text-align: right">{dataset.records.num_rows}</td>' in text
    assert "isolated_runs" not in text


def test_a_schedule_shows_its_jobs() -> None:
    schedule = crosscast.simulate(jobs_of((0, 1, 30), (5, 1, 30)), [crosscast.Machine("here", 1)])
    columns = [[1, 2], [0.0, 5.0], [0.0, 30.0], [30.0, 60.0], ["here", "here"], [1, 1]]
    names = ("job", "submit_s", "start_s", "end_s", "machine", "procs")
    assert schedule.to_dict() == dict(zip(names, columns, strict=True))
    assert "<caption>Schedule of 2 jobs on here</caption>" in schedule._repr_html_()
