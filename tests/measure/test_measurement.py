"""Measurements: the summary of each kernel."""

import pytest

from crosscast.data.schema import RECORDS
from crosscast.data.table import Table, table_of
from crosscast.measure.measurement import summaries


def records(times: dict[str, list[list[float]]]) -> Table:
    cell = {"application": "a", "size": "tiny", "device": "d", "configuration": "{}", "repeat": 0}
    rows = [
        {**cell, "kernel": kernel, "run": number, "invocations": len(run), "time_s": run}
        for kernel, runs in times.items()
        for number, run in enumerate(runs)
    ]
    return table_of(RECORDS, rows)


def test_statistics_are_over_runs_of_the_mean_of_their_invocations() -> None:
    (found,) = summaries(records({"k": [[1.0, 3.0], [5.0], [2.0, 2.0, 2.0]]}))
    assert (found.kernel, found.runs, found.invocations) == ("k", 3, 6)
    assert (found.min_s, found.median_s, found.mean_s, found.max_s) == (2.0, 2.0, 3.0, 5.0)
    assert found.sd_s == pytest.approx(3**0.5)
    assert found.spread == pytest.approx(3**0.5 / 3)


@pytest.mark.parametrize(("runs", "sd_s"), [([[1.0]], None), ([[0.0], [0.0]], 0.0)])
def test_one_run_and_times_of_zero_have_no_spread(runs: list[list[float]], sd_s: float | None) -> None:
    (found,) = summaries(records({"k": runs}))
    assert (found.sd_s, found.spread, found.to_dict()["sd_s"]) == (sd_s, None, sd_s)


def test_each_kernel_has_its_own_summary() -> None:
    found = summaries(records({"one": [[1.0], [2.0]], "two": [[4.0], [4.0]]}))
    assert {summary.kernel: summary.mean_s for summary in found} == {"one": 1.5, "two": 4.0}
