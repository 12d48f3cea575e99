"""The configurations on a frontier, as a table for people and in files."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chosen_study import chosen_study, named_surfaces
from crosscast.errors import InputError
from crosscast.predict.configuration.data import pareto_frontier
from crosscast.report.choice_frontier import frontier_of, longest_frontier, write_frontier


def test_the_longest_frontier_is_the_longest_of_all_kernels() -> None:
    (machine,) = chosen_study()[0].machines
    found = longest_frontier(machine)
    surfaces = machine.surfaces
    lengths = [
        len(pareto_frontier(surfaces.time_s[row], surfaces.power_w[row]))
        for row in range(len(surfaces.kernels))
    ]
    assert len(found.frontier) == max(lengths)
    assert found.row == lengths.index(max(lengths))
    assert found.kernel == surfaces.kernels[found.row]


def test_performance_is_relative_to_the_fastest_configuration_that_ran() -> None:
    surfaces = named_surfaces()
    time_s = surfaces.time_s.copy()
    time_s[0, 11] = np.nan
    found = frontier_of(replace(surfaces, time_s=time_s), 0)
    assert np.nanmax(found.performance) == 1
    assert np.isnan(found.performance[11])
    assert found.performance[3] == pytest.approx(np.nanmin(time_s[0]) / time_s[0, 3])


def test_files_have_the_numbers(tmp_path: Path) -> None:
    found = frontier_of(named_surfaces(), 2)
    assert write_frontier(found, tmp_path) == [tmp_path / "frontier.csv", tmp_path / "frontier.md"]
    with (tmp_path / "frontier.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["power_w"]) for row in rows] == found.power_w[found.frontier].tolist()
    assert [float(row["performance"]) for row in rows] == found.performance[found.frontier].tolist()
    settings = [dict(found.surfaces.space.configurations[number].settings) for number in found.frontier]
    assert [{name: float(row[name]) for name in ("cpu_cap_w", "gpu_cap_w")} for row in rows] == settings
    lines = (tmp_path / "frontier.md").read_text(encoding="utf-8").splitlines()
    assert lines[2] == "| device | cpu cap, W | gpu cap, W | power, W | performance |"
    assert len(lines) == 4 + len(rows)
    assert f"| {float(rows[0]['power_w']):.1f} |" in lines[4]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"figures: cannot write .*frontier\.csv"):
        write_frontier(frontier_of(named_surfaces(), 2), tmp_path / "nowhere")
