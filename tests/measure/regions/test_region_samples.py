"""Samples out of histories."""

import csv
from pathlib import Path

import pytest
from made_runs import run_of

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.measure.regions.key import RegionKey, Runs
from crosscast.measure.regions.samples import samples_of, write_samples

KEY = RegionKey("a", ("3",))
NODE = Configuration("node", {"cpu_cap_w": 65, "governor": "fast"})
CARD = Configuration("card", {"core_clock_hz": 1e9})


def test_a_sample_has_a_column_for_everything_known() -> None:
    runs = Runs()
    powers_w = {"package-0": 30.0, "package-0/dram": 5.0}
    runs.add(run_of(KEY, 2.0, configuration=NODE, power_w=30.0, powers_w=powers_w, counters={"cycles": 7}))
    runs.add(run_of(KEY, 9.0, configuration=NODE, failure="ValueError"))
    runs.add(run_of(KEY, 9.0))
    runs.add(run_of(RegionKey("b"), 9.0, configuration=NODE))
    assert samples_of(runs, KEY) == [
        {
            "device": "node",
            "cpu_cap_w": 65.0,
            "governor": "fast",
            "time_s": 2.0,
            "power_w": 30.0,
            "package-0_w": 30.0,
            "package-0/dram_w": 5.0,
            "cycles": 7,
        }
    ]


def test_samples_are_written_as_csv_with_nothing_where_nothing_is_known(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    runs = [
        run_of(KEY, 0.1, configuration=NODE, power_w=30.0),
        run_of(KEY, 9.0, configuration=NODE, failure="ValueError"),
        run_of(KEY, 0.25, configuration=CARD),
    ]
    write_samples(runs, path)
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["device", "cpu_cap_w", "governor", "time_s", "power_w", "core_clock_hz"],
            ["node", "65.0", "fast", "0.1", "30.0", ""],
            ["card", "", "", "0.25", "", "1000000000.0"],
        ]


def test_nothing_to_write_or_several_keys_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    with pytest.raises(InputError, match=r"runs.csv: expected runs with a configuration .*, found none"):
        write_samples([run_of(KEY)], path)
    other = run_of(RegionKey("b"), configuration=NODE)
    with pytest.raises(InputError, match=r"expected runs of one key, found a\(3\) and b\(\)"):
        write_samples([run_of(KEY, configuration=NODE), other], path)
    assert not path.exists()


def test_two_columns_of_one_name_are_refused() -> None:
    runs = Runs()
    runs.add(run_of(KEY, configuration=Configuration("node", {"time_s": 1})))
    with pytest.raises(InputError, match=r"a\(3\): two columns of its samples would be time_s"):
        samples_of(runs, KEY)
