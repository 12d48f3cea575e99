"""Isolated runs and mixes: their views, counts and checks."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix, Member, co_runs
from crosscast.data.dataset import Dataset, validate
from crosscast.data.description import CoRunContents, CoRunFailure, MixCount, contents_of
from crosscast.data.schema import DEVICES, ISOLATED_RUNS, MIXES
from crosscast.data.table import table_of
from crosscast.errors import InputError
from support import tables as rows
from support.refusals import refusal

SUMS, LUD = IsolatedRun("sums", "tiny", "cpu", 0.5), IsolatedRun("lud", "tiny", "cpu", 0.25)


def test_a_mix_may_have_an_application_twice_and_has_failed_if_a_member_has() -> None:
    mix = MeasuredMix("b", "cpu", (Member(SUMS, 1.5), Member(LUD, 1.1), Member(SUMS, 1.4)))
    assert (mix.isolated_runs, mix.applications, mix.failed) == (
        (SUMS, LUD, SUMS),
        frozenset({"sums", "lud"}),
        False,
    )
    assert MeasuredMix("b", "cpu", (Member(SUMS), Member(LUD, failure="it hung"))).failed
    assert (SUMS.name, SUMS.key) == ("sums tiny", ("sums", "tiny", "cpu", "{}"))


def contents(isolated_runs: list[rows.Row], mixes: list[rows.Row]) -> CoRunContents:
    return contents_of(table_of(ISOLATED_RUNS, isolated_runs), table_of(MIXES, mixes))


def test_mixes_are_counted_by_device_and_size_with_repeats_and_configurations() -> None:
    mixes = [
        *rows.mix(1.1, 1.2, 1.3),
        *rows.mix(1.1, 1.2, name="other"),
        *rows.mix(1.1, 1.2, name="other", repeat=1),
        *rows.mix(1.1, 1.2, name="other", configuration='{"sharing": "mps"}'),
        *rows.mix(None, None, name="large", fits=0),
        *rows.mix(1.1, 1.2, device="gpu"),
    ]
    # Rows of a mix need not stand together.
    assert contents([], mixes[::2] + mixes[1::2]).mixes == (
        MixCount("cpu", 2, mixes=4, configurations=2, not_fitting=1, failed=0),
        MixCount("cpu", 3, mixes=1, configurations=1, not_fitting=0, failed=0),
        MixCount("gpu", 2, mixes=1, configurations=1, not_fitting=0, failed=0),
    )


def test_a_mix_has_failed_once_however_many_of_its_applications_have() -> None:
    mix = rows.mix(None, None, None, failure="it hung")
    found = contents([rows.isolated_run("lud", failure="no memory")], mix)
    assert found.mixes == (MixCount("cpu", 3, mixes=1, configurations=1, not_fitting=0, failed=1),)
    assert found.failed[0] == CoRunFailure("lud", "tiny", "cpu", "{}", None, None, "no memory")
    assert found.failed[1:] == (CoRunFailure("sums", "tiny", "cpu", "{}", "pair", 0, "it hung"),) * 3


SHARED = '{"sharing": "mps"}'


def view(**tables: Any) -> CoRuns:
    return co_runs(rows.dataset(**tables))


def test_a_member_names_its_application_alone() -> None:
    mix = [
        {**row, "application": name}
        for row, name in zip(rows.mix(1.2, 1.5, fits=1, mix_time_s=3.0), ["sums", "lud"], strict=True)
    ]
    found = view(
        isolated_runs=[rows.isolated_run(power_w=5.0, memory_bytes=64), rows.isolated_run("lud")], mixes=mix
    )
    lud, sums = found.isolated_runs
    assert sums == IsolatedRun(
        "sums", "tiny", "cpu", 0.5, runs=4, power_w=5.0, memory_bytes=64, features={"ipc": 1.5}
    )
    (pair,) = found.mixes
    assert (pair.name, pair.device, pair.fits, pair.time_s, pair.overlap) == ("pair", "cpu", True, 3.0, None)
    assert [member.slowdown for member in pair.members] == [1.2, 1.5]
    assert pair.members[0].isolated_run is sums
    assert pair.members[1].isolated_run is lud
    assert not pair.failed
    assert found.applications == ("lud", "sums")


def test_the_isolated_run_of_a_member_is_that_of_its_configuration_or_else_of_the_defaults() -> None:
    mixes = [*rows.mix(1.1, 1.2, configuration=SHARED), *rows.mix(1.1, 1.2, application="lud")]
    isolated_runs = [
        rows.isolated_run(),
        rows.isolated_run(configuration=SHARED, time_s=0.75),
        rows.isolated_run("lud"),
    ]
    times = {
        mix.configuration: mix.members[0].isolated_run.time_s
        for mix in view(isolated_runs=isolated_runs, mixes=mixes[:2]).mixes
    }
    assert times == {SHARED: 0.75}
    (mix,) = view(isolated_runs=isolated_runs[::2], mixes=mixes[:2]).mixes
    assert mix.members[0].isolated_run.time_s == 0.5
    assert mix.members[0].isolated_run.configuration == "{}"


@pytest.mark.parametrize("features", ["[]", "3", '{"ipc": "1"}', '{"ipc": null}', '{"ipc": true}'])
def test_features_are_finite_numbers_by_name(features: str) -> None:
    with pytest.raises(InputError) as caught:
        view(isolated_runs=[rows.isolated_run("lud"), rows.isolated_run(features=features)])
    message = (
        "made up: isolated_runs: row 2: column 'features': expected finite numbers by name, found others"
    )
    assert str(caught.value) == message


def check(isolated_runs: list[rows.Row], mixes: list[rows.Row]) -> None:
    devices = table_of(DEVICES, [rows.device(key) for key in ("cpu", "gpu")])
    validate(
        Dataset(
            "made up",
            devices=devices,
            isolated_runs=table_of(ISOLATED_RUNS, isolated_runs),
            mixes=table_of(MIXES, mixes),
        )
    )


def refusal_corun_rows(isolated_runs: list[rows.Row], mixes: list[rows.Row]) -> str:
    return refusal(check, isolated_runs, mixes).removeprefix("made up: ")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"slowdown": 0.0}, "column 'slowdown', row 4: expected more than 0, found 0.0"),
        ({"time_s": 0.0}, "column 'time_s', row 4: expected more than 0, found 0.0"),
        ({"failure": ""}, "column 'failure', row 4: expected why it failed, or an empty cell, found a text"),
        ({"fits": 2}, "column 'fits', row 4: expected at most 1, found 2"),
        ({"overlap": 1.5}, "column 'overlap', row 4: expected at most 1, found 1.5"),
        ({"position": 2}, "column 'position', row 4: expected less than the 2 rows of its mix, found 2"),
        ({"fits": 0}, "column 'fits', row 4: expected 1, as in row 2 of the same mix, found 0"),
        ({"fits": None}, "column 'fits', row 4: expected 1, as in row 2 of the same mix, found nothing"),
        ({"overlap": 0.5}, "column 'overlap', row 4: expected nothing, as in row 2 of the same mix, found"),
        ({"mix_time_s": 3.0}, "column 'mix_time_s', row 4: expected 2.0, as in row 2 of the same mix, found"),
        ({"power_w": 9.0}, "column 'power_w', row 4: expected 5.0, as in row 2 of the same mix, found 9.0"),
    ],
    ids=str,
)
def test_the_row_that_is_wrong_is_named(cells: Mapping[str, Any], message: str) -> None:
    first, second = rows.mix(1.0, 1.1, fits=1, mix_time_s=2.0, power_w=5.0)
    # Rows of a mix need not stand together.
    other = rows.mix(1.0, 1.2, name="other")
    assert refusal_corun_rows([], [other[0], first, other[1], {**second, **cells}]).startswith(
        f"mixes: {message}"
    )


@given(st.sets(st.integers(0, 6), min_size=1))
def test_positions_are_from_0_without_a_gap(places: set[int]) -> None:
    mix = [{**rows.mix(1.0)[0], "position": place} for place in places]
    if places == set(range(len(places))):
        check([], mix)
    else:
        assert f"expected less than the {len(places)} rows of its mix" in refusal_corun_rows([], mix)
