"""The document of the experiment has the options that write jobs, and commands that are understood."""

import re
from pathlib import Path

import pytest
from crosscast.cli.evaluate_jobs import JobOptions

from crosscast.cluster.placements.registry import PLACEMENTS

_DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def document() -> str:
    if not _DOCS.exists():
        pytest.skip("no checkout")
    return (_DOCS / "scheduling-experiment.md").read_text(encoding="utf-8")


def test_every_option_that_writes_jobs_is_there(document: str) -> None:
    options = JobOptions(Path("jobs.parquet"), 600.0, "1,1,2", "gpu", "a,b").given()
    assert len(options) == 5
    for option in options:
        assert f"`{option} " in document


def test_every_placement_has_a_line_in_both_tables(document: str) -> None:
    lines = [line.split(" ")[0] for line in document.splitlines()]
    for name in PLACEMENTS:
        assert lines.count(name) == 2


def test_files_that_it_names_are_there(document: str) -> None:
    named = re.findall(r"\]\(([^)#]+)", document)
    assert "img/placements.png" in named
    for name in named:
        assert (_DOCS / name).exists(), name
