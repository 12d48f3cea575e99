"""The document of ``crosscast schedule`` has its options, its names and what it gives."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

from crosscast.cli.schedule import schedule
from crosscast.cluster.jobs import ORDERS
from crosscast.cluster.placements import PLACEMENTS

_DOCUMENT = Path(__file__).parents[2] / "docs" / "scheduling.md"


@pytest.fixture(scope="module")
def document() -> str:
    if not _DOCUMENT.exists():
        pytest.skip("no checkout")
    return _DOCUMENT.read_text(encoding="utf-8")


def test_every_option_is_there_and_no_other(document: str) -> None:
    names = {f"--{name.strip('_').replace('_', '-')}" for name in inspect.signature(schedule).parameters}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", document)) == names - {"--file"}


def test_every_order_and_placement_is_there(document: str) -> None:
    for name in (*ORDERS, *PLACEMENTS):
        assert f"`{name}`" in document


def test_every_name_in_json_is_there(document: str) -> None:
    for name in (
        "policy queue backfill jobs makespan_s average_bounded_slowdown mean_wait_s median_wait_s wait_p95_s "
        "utilisation simulation_s jobs_per_s machines users trace placement makespan_interval on_fastest "
        "average_bounded_slowdown_interval work_over_least makespan_against runs workload least_makespan_s"
    ).split():
        assert f"`{name}`" in document, name


def test_its_example_in_python_does_what_it_says(document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_DOCUMENT.parents[1])
    done = doctest.testfile(str(_DOCUMENT), module_relative=False)
    assert document and done.attempted > 0 and done.failed == 0
