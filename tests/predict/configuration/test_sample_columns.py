"""Powers and times become logarithms, events shares of the instructions, and what is not known NaN."""

import numpy as np

from crosscast.predict.configuration.features import SampleColumns, counts_in, total_in

NONE = frozenset[str]()


def test_sources_are_told_in_their_order() -> None:
    columns = SampleColumns(("time", "power", "domain:cpu"), NONE, "")
    found = columns.matrix(np.array([2.0, 6.0]), np.array([80.0, 40.0]), {"cpu": np.array([30.0, 0.0])}, {})
    np.testing.assert_allclose(
        found, [[0, np.log(3)], [np.log(80), np.log(40)], [np.log(30), np.nan]], rtol=1e-14
    )


def test_events_are_divided_and_rates_and_the_total_are_logarithms() -> None:
    sources = ("time", *(f"counter:{name}" for name in ("busy", "instructions", "misses", "read_throughput")))
    columns = SampleColumns(sources, frozenset({"instructions", "misses", "read_throughput"}), "instructions")
    counters = {
        "busy": np.array([0.5]),
        "instructions": np.array([1e6]),
        "misses": np.array([2e3]),
        "read_throughput": np.array([300.0]),
    }
    found = columns.matrix(np.array([1.0]), np.array([1.0]), {}, counters)
    np.testing.assert_allclose(found[1:, 0], [0.5, np.log1p(1e6), 2e-3, np.log1p(300)])
    assert (columns.divided.tolist(), columns.counted.tolist()) == ([3], [2, 4])


def test_without_instructions_in_a_run_its_events_are_not_known() -> None:
    columns = SampleColumns(
        ("time", "counter:misses", "counter:instructions"), frozenset({"misses"}), "instructions"
    )
    counters = {"misses": np.array([5e3])}
    found = columns.matrix(np.array([1.0]), np.array([1.0]), {}, counters)
    assert np.isnan(found[1, 0])
    counters["instructions"] = np.array([0.0])
    assert np.isnan(columns.matrix(np.array([1.0]), np.array([1.0]), {}, counters)[1, 0])


def test_many_kernels_are_told_as_one_is() -> None:
    columns = SampleColumns(("time", "power", "counter:a"), frozenset({"a"}), "")
    rng = np.random.default_rng(0)
    time, power, counter = rng.random((3, 5, 2)) + 1
    together = columns.matrix(time, power, {}, {"a": counter})
    alone = [columns.matrix(time[row], power[row], {}, {"a": counter[row]}) for row in range(5)]
    np.testing.assert_allclose(together, alone, rtol=1e-14)


def test_counters_that_reach_above_a_hundred_are_counts() -> None:
    counters = {
        "share": np.array([0.1, np.nan]),
        "percent": np.array([3.0, 100.0]),
        "events": np.array([np.nan, 1e5]),
        "change": np.array([-1e5, 1e5]),
        "unknown": np.array([np.nan, np.nan]),
    }
    assert counts_in(counters) == {"events"}


def test_instructions_are_found_by_name() -> None:
    one = np.ones(1)
    assert total_in({"inst_executed": one, "instructions": one}) == "instructions"
    assert total_in({"misses": one}) == ""
