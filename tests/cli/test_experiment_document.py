"""The document of the experiment has the options that write jobs, and commands that are understood."""

import re
from pathlib import Path

import pytest

from crosscast.cli.app import app_for
from crosscast.cluster.placements import PLACEMENTS

_DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def document() -> str:
    if not _DOCS.exists():
        pytest.skip("no checkout")
    return (_DOCS / "scheduling-experiment.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--job-seconds", "--job-procs", "--job-source", "--gpu-applications"])
def test_every_option_that_shapes_jobs_is_there(document: str, option: str) -> None:
    assert f"`{option} " in document
    assert option in {each.name for each in app_for([])["evaluate"]["jobs"].assemble_argument_collection()}


def test_every_placement_has_a_line_in_both_tables(document: str) -> None:
    lines = [line.split(" ")[0] for line in document.splitlines()]
    for name in PLACEMENTS:
        assert lines.count(name) == 2


def test_files_that_it_names_are_there(document: str) -> None:
    named = re.findall(r"\]\(([^)#]+)", document)
    assert "img/placements.png" in named
    for name in named:
        assert (_DOCS / name).exists(), name
