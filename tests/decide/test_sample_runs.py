"""Runs at samples: averaged, read from files and histories, and at which configurations they tell most."""

import csv
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Reals
from crosscast.data.configuration import Configuration
from crosscast.decide.samples import (
    _RIDGE,
    Aggregate,
    SettingColumns,
    _error,
    read_samples,
    two_samples,
    write_template,
)
from crosscast.errors import InputError
from crosscast.measure.regions import History, RegionKey, RegionRun
from crosscast.prediction.configuration import ConfigurationSpace, KernelAt, Surfaces
from support.csv_tables import write_samples
from support.models import chooser_card
from support.refusals import refusal, refusals
from support.surfaces import made_surfaces


def test_runs_are_averaged_by_time_and_powers_by_energy() -> None:
    aggregate = Aggregate()
    aggregate.add(1.0, 100.0, {"cpu": 60.0}, {"stalls": 1.0})
    aggregate.add(3.0, 200.0, {}, {"stalls": 2.0})
    assert (aggregate.runs, aggregate.time_s, aggregate.power_w) == (2, 2.0, (100 * 1 + 200 * 3) / 4)
    assert (aggregate.powers["cpu"], aggregate.counters["stalls"]) == (60.0, 1.5)
    lacking, powers = Aggregate(), list[float | None]()
    for time_s, power_w in ((1.0, None), (2.0, 50.0)):
        lacking.add(time_s, power_w, {}, {})
        powers.append(lacking.power_w)
    assert (lacking.time_s, powers) == (1.5, [None, 50.0])


NODE = SettingColumns(
    ConfigurationSpace(tuple(Configuration("node", {"cap_w": cap, "governor": "fast"}) for cap in (60, 80.5)))
)
BOTH = SettingColumns(
    ConfigurationSpace(
        (
            Configuration("card", {"clock_hz": 1e9}),
            Configuration("card", {"clock_hz": 2e9}),
            Configuration("host", {"threads": 1, "governor": "fast"}),
            Configuration("host", {"threads": 1, "governor": "slow"}),
        )
    )
)


def test_settings_lead_to_their_configuration_however_numbers_are_written() -> None:
    # Of one that lacks a knob, its cell is empty.
    lacking = ConfigurationSpace((NODE.space.configurations[0], Configuration("node", {"cap_w": 60})))
    for columns in (NODE, BOTH, SettingColumns(lacking)):
        for number in range(len(columns.space)):
            assert columns.number(columns.cells(number), "x") == number
    assert [NODE.number({"cap_w": cap}, "x") for cap in ("6e1", "60.0", "80.50000001", 80.5)] == [0, 0, 1, 1]
    with pytest.raises(InputError, match=r"line 2: expected one of the 2 configurations .*governor slow"):
        NODE.number({"cap_w": "60", "governor": "slow"}, "line 2")


@refusals("cells reason")
def test_cells_of_no_configuration_are_refused(cells: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        BOTH.number(cells, "x")


ONE = made_surfaces(3)


def named(surfaces: Surfaces) -> list[str]:
    return [str(surfaces.space.configurations[each]) for each in two_samples(surfaces)]


def holes(surfaces: Surfaces, rows: list[int], columns: list[int]) -> Surfaces:
    time_s, power_w = surfaces.time_s.copy(), surfaces.power_w.copy()
    time_s[np.ix_(rows, columns)] = power_w[np.ix_(rows, columns)] = np.nan
    return replace(surfaces, time_s=time_s, power_w=power_w)


def several(seed: int = 0, devices: str = "abc") -> Surfaces:
    """Eight kernels: what they do on b and on c are two things, and on a they hardly differ."""
    rng = np.random.default_rng(seed)
    space = ConfigurationSpace(
        tuple(Configuration(key, {"clock_hz": clock}) for key in devices for clock in (1e9, 2e9, 3e9))
    )
    clock = space.matrix[:, 0] / 1e9
    slope = np.hstack([np.zeros((8, 1)), rng.normal(size=(8, 2))])[:, space.device_numbers]
    noise = 0.05 * rng.normal(size=(8, 9))
    return Surfaces(
        "several",
        tuple(KernelAt(f"app{row}", f"app{row}", "only") for row in range(8)),
        space,
        np.exp(slope + noise) / clock,
        np.exp(4 + 0.3 * slope * clock + noise),
    )


def test_corners_on_one_device_are_samples_where_most_kernels_ran() -> None:
    assert named(ONE) == ["node: cpu cap 100 W, gpu cap 250 W", "node: cpu cap 60 W, gpu cap 100 W"]
    assert named(holes(ONE, [0, 1], [11]))[0] == "node: cpu cap 100 W, gpu cap 200 W"


def test_of_several_devices_those_are_taken_that_tell_most_where_kernels_ran() -> None:
    surfaces = several()
    assert [surfaces.space.configurations[each].device for each in two_samples(surfaces)] == ["b", "c"]
    # On c only two kernels ran, so that they would be told best by any of them.
    surfaces = holes(several(), [0, 1, 2, 3, 4, 5], [6, 7, 8])
    assert [surfaces.space.configurations[each].device for each in two_samples(surfaces)] == ["a", "b"]
    surfaces = several()
    single = holes(surfaces, list(range(8)), [0, 1, 2, 3, 4, 6, 7])
    assert two_samples(single) == (5, 8)


def test_one_kernel_is_enough_and_two_configurations_are_needed() -> None:
    surfaces = several()
    found = two_samples(surfaces.take(np.array([0])))
    assert len(set(surfaces.space.device_numbers[list(found)])) == 2
    # No kernel ran on two devices.
    apart = holes(holes(surfaces, [0, 1, 2, 3], [3, 4, 5, 6, 7, 8]), [4, 5, 6, 7], [0, 1, 2, 6, 7, 8])
    for few in (holes(surfaces, list(range(8)), list(range(8))), apart):
        with pytest.raises(InputError, match="several: expected two configurations at which kernels ran"):
            two_samples(few)


def refitted(inputs: Reals, values: Reals) -> Reals:
    """Squared errors of ridge regressions with an intercept, each fitted to all rows but one."""
    rows = len(inputs)
    spread = inputs.std(axis=0)
    design = np.column_stack([np.ones(rows), inputs / np.where(spread > 0, spread, 1)])
    penalty = _RIDGE * rows * np.diag([0.0, *np.ones(inputs.shape[1])])
    errors = np.empty(rows)
    for row in range(rows):
        others = np.arange(rows) != row
        inner = design[others].T @ design[others] + penalty
        errors[row] = values[row] - design[row] @ np.linalg.solve(inner, design[others].T @ values[others])
    return errors**2


def test_every_pair_is_considered() -> None:
    # The winner is that of a plain search over corners of two devices.
    surfaces = several(5)
    corners = [0, 2, 3, 5, 6, 8]
    numbers = surfaces.space.device_numbers

    def error(pair: tuple[int, int]) -> float:
        time, power = np.log(surfaces.time_s), np.log(surfaces.power_w)
        inputs = np.hstack([time[:, pair], power[:, pair]])
        columns = [*(time - time[:, [pair[0]]]).T, *power.T]
        return float(np.mean([refitted(inputs, column) for column in columns]))

    pairs = [pair for pair in combinations(corners, 2) if numbers[pair[0]] != numbers[pair[1]]]
    assert two_samples(surfaces) == min(pairs, key=error)
    assert [_error(surfaces, pair) for pair in pairs[::5]] == pytest.approx(list(map(error, pairs[::5])))


CARD = chooser_card()
HIGH = {"cpu_cap_w": 100, "gpu_cap_w": 250}
LOW = {"cpu_cap_w": 60, "gpu_cap_w": 100}


def written(path: Path, *rows: dict[str, Any]) -> Path:
    """A CSV file with the columns of all rows."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.csv"


def refusal_of(path: Path) -> str:
    text = refusal(read_samples, path, CARD)
    assert text.startswith(str(path))
    return text


rows = st.lists(
    st.tuples(
        st.sampled_from(range(len(CARD.space))),
        st.floats(1e-9, 1e6),
        st.floats(0.1, 1e4),
        st.floats(0.1, 1e4),
        st.floats(-1e6, 1e6),
    ),
    unique_by=lambda row: row[0],
    max_size=8,
)


@given(rows)
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, drawn: Any) -> None:
    values = {0: (0, 1.0, 2.0, 3.0, 4.0), len(CARD.space) - 1: (len(CARD.space) - 1, 1.0, 2.0, 3.0, 4.0)}
    values |= {row[0]: row for row in drawn}
    lines = []
    for number, time_s, cpu_w, gpu_w, stalls in values.values():
        settings = CARD.space.configurations[number].settings
        lines.append({**settings, "runtime_s": time_s, "cpu_w": cpu_w, "gpu_w": gpu_w, "stalls": stalls})
    path = written(tmp_path_factory.getbasetemp() / "drawn.csv", *lines)
    (kernel,) = read_samples(path, CARD).kernels
    expected = [values[number] for number in sorted(values)]
    assert kernel.observed.numbers.tolist() == sorted(values)
    np.testing.assert_array_equal(kernel.observed.time_s, [row[1] for row in expected])
    np.testing.assert_allclose(kernel.observed.power_w, [row[2] + row[3] for row in expected], rtol=1e-12)
    np.testing.assert_array_equal(kernel.observed.domains["cpu"], [row[2] for row in expected])
    np.testing.assert_array_equal(kernel.observed.counters["stalls"], [row[4] for row in expected])


@given(st.text(st.sampled_from('6012,.x"\n-e'), max_size=80))
def test_no_cells_bring_anything_but_a_sentence(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    path.write_text(f"cpu_cap_w,gpu_cap_w,time_s,power_w\n{text}")
    with pytest.raises(InputError):
        read_samples(path, CARD)


def test_several_kernels_are_told_apart(path: Path) -> None:
    names = [
        {"application": "cfd", "kernel": "flux", "size": "big"},
        {"application": "cfd", "kernel": "step", "size": "big"},
    ]
    rows = [{**name, **at, "time_s": 1, "power_w": 90} for name in names for at in (HIGH, LOW)]
    found = read_samples(written(path, *rows), CARD)
    assert [each.name for each in found.kernels] == ["cfd/flux big", "cfd/step big"]
    assert found.kernels[0].names == ("cfd/flux big", "flux", "cfd")
    assert "cfd/step big: expected a run at node: cpu cap 60 W" in refusal_of(written(path, *rows[:3]))


def test_unknown_columns_and_missing_powers_are_noted_once(path: Path) -> None:
    extra = {"time_s": 1, "power_w": 90, "host": "a", "room_c": 20}
    found = read_samples(written(path, {**HIGH, **extra}, {**LOW, **extra}), CARD)
    assert found.notes == (
        f"{path}: columns that the model does not know: host, room_c",
        f"{path}: powers that the model has learned from are not in every row, so it is less sure: cpu, gpu",
        f"{path}: counters that the model has learned from are not in every row, so it is less sure: stalls",
    )
    assert np.isnan(found.kernels[0].observed.domains["cpu"]).all()


RUN = {"time_s": 1.0, "power_w": 90.0}


@refusals("first second reason")
def test_a_bad_line_is_refused(
    path: Path, first: dict[str, Any], second: dict[str, Any], reason: str
) -> None:
    """What is changed of two sound lines."""
    found = refusal_of(written(path, HIGH | RUN | first, LOW | RUN | second))
    assert all(part in found for part in reason.split(" .* "))


@refusals("content reason")
def test_what_is_no_table_of_runs_is_refused(path: Path, content: str, reason: str) -> None:
    path.write_bytes(content.encode("latin-1"))
    assert reason in refusal_of(path)


def test_a_file_that_is_absent_or_too_large_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cannot read the samples (No such file or directory)" in refusal_of(path)
    written(path, {**HIGH, **RUN}, {**LOW, **RUN})
    monkeypatch.setattr("crosscast.decide.samples._MOST_BYTES", 20)
    assert "expected a file of at most 0 MiB, found a larger one" in refusal_of(path)
    for template, reason in (
        (path.with_name("no") / "runs.csv", "cannot write the template"),
        (Path(), "expected a file to write the template to, found a folder"),
        (path, "expected no such file, as it may have been filled in; found one"),
    ):
        with pytest.raises(InputError, match=reason):
            write_template(template, CARD)


def test_the_template_has_a_row_for_each_sample_and_is_read_when_filled_in(path: Path) -> None:
    write_template(path, CARD)
    head, *lines = path.read_text().splitlines()
    assert head == "device,cpu_cap_w,gpu_cap_w,time_s,power_w,cpu_w,gpu_w,stalls"
    assert lines == ["node,100,250,,,,,", "node,60,100,,,,,"]
    assert "line 2: time_s: expected seconds above 0, found nothing" in refusal_of(path)
    path.write_text("\n".join([head, *(line.rstrip(",") + ",2,150,60,90,0.5" for line in lines)]))
    found = read_samples(path, CARD)
    assert found.notes == ()
    assert found.kernels[0].observed.power_w.tolist() == [150, 150]


def runs(key: RegionKey) -> list[RegionRun]:
    powers = {"cpu": 60.0, "gpu": 90.0}
    return [
        RegionRun(key, Configuration("node", settings), 0.0, 2.0, 2.0, {}, powers, 150.0)
        for settings in (HIGH, LOW, LOW)
    ]


def test_a_history_of_a_program_is_read_as_well(path: Path, tmp_path: Path) -> None:
    keys = [RegionKey("step", ("8",)), RegionKey("step", ("9",))]
    file = tmp_path / "runs.jsonl"
    history = History(file)
    for key in keys:
        for run in runs(key):
            history.record(run)
    found = read_samples(file, CARD)
    assert [each.name for each in found.kernels] == ["step(8)", "step(9)"]
    write_samples(runs(keys[0]), path)
    for kernel in (*found.kernels, *read_samples(path, CARD).kernels):
        assert kernel.runs == (2, 1)
        assert kernel.observed.power_w.tolist() == [150, 150]
        assert kernel.observed.domains["cpu"].tolist() == [60, 60]
