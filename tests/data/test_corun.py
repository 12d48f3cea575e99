"""Isolated runs and mixes: their views, counts and checks.

Files of isolated runs.
"""

import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.corun import (
    CoRuns,
    IsolatedRun,
    MeasuredMix,
    Member,
    co_runs,
    read_profile,
    write_profile,
)
from crosscast.data.dataset import Dataset, validate
from crosscast.data.description import CoRunContents, CoRunFailure, MixCount, contents_of
from crosscast.data.fields import STRICT_JSON
from crosscast.data.schema import DEVICES, ISOLATED_RUNS, MIXES
from crosscast.data.table import table_of
from crosscast.errors import InputError
from support import tables as rows
from support.examples import examples
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


@pytest.mark.parametrize(
    "features", ["[]", "3", *(f'{{"ipc": {n}}}' for n in ('"1"', "null", "true", "9" * 400))]
)
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


ISOLATED = IsolatedRun(
    "sums",
    "tiny",
    "cpu",
    0.25,
    '{"cores": 2, "scheduling": "static"}',
    runs=20,
    power_w=12.5,
    memory_bytes=4096,
    features={"ipc": 1.5, "mix_mem": 0.25},
)
DEVICE = {"device": "cpu", "name": "the cpu", "type": "cpu", "cores": 4, "clock_hz": 2e9, "tdp_w": None}


def written(folder: Path, **fields: Any) -> Path:
    """A file with other fields; those that are ``...`` are left out."""
    path = folder / "a.json"
    write_profile(ISOLATED, DEVICE, path)
    content = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not ...}))
    return path


def refused(path: Path) -> str:
    message = refusal(read_profile, path)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@examples(50)
@given(
    name=texts,
    time_s=st.none() | st.floats(1e-300, 1e300),
    features=st.dictionaries(texts, numbers, max_size=5),
    memory=st.none() | st.integers(0, 10**15),
)
def test_any_isolated_run_comes_back_and_has_one_file(
    name: str, time_s: float | None, features: dict[str, float], memory: int | None
) -> None:
    isolated_run = IsolatedRun(name, "tiny", "cpu", time_s, memory_bytes=memory, features=features)
    backward = IsolatedRun(
        name, "tiny", "cpu", time_s, memory_bytes=memory, features=dict(reversed(list(features.items())))
    )
    with tempfile.TemporaryDirectory() as folder:
        a, b = Path(folder) / "a.json", Path(folder) / "b.json"
        write_profile(isolated_run, DEVICE, a)
        write_profile(backward, dict(reversed(list(DEVICE.items()))), b)
        assert a.read_bytes() == b.read_bytes()
        assert read_profile(a).isolated_run == isolated_run


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"application": ...}, "application: expected a value, found none"),
        ({"size": ""}, 'size: expected a text of length >= 1, found ""'),
        ({"device": {"name": "x"}}, "device.device: expected a value, found none"),
        ({"device": {"device": "x", "cores": 0}}, "device.cores: expected a whole number >= 1, found 0"),
        ({"device": {"device": "x", "tdp_w": -1}}, "device.tdp_w: expected a number >= 0.0, found -1"),
        ({"device": {"device": "x", "colour": "red"}}, "device.colour: expected no such field, found"),
        ({"configuration": {"cores": [2]}}, "configuration: cores: expected a finite number or a word,"),
        ({"runs": 0}, "runs: expected a whole number >= 1, found 0"),
        ({"time_s": 0}, "time_s: expected a number > 0.0, found 0"),
        ({"times": [1]}, "times: expected no such field, found [1]"),
        ({"power_w": -1.0}, "power_w: expected a number >= 0.0, found -1.0"),
        ({"memory_bytes": 1.5}, "memory_bytes: expected a whole number or null, found 1.5"),
        ({"features": {"ipc": None}}, "features.ipc: expected a number, found null"),
        ({"features": {"slowdown_low": -3}}, "features.slowdown_low: expected a number above 0, found -3"),
        ({"features": {str(n): n for n in range(513)}}, "features: expected an object of length <= 512,"),
        ({"features": {"x" * 201: 1}}, "features: expected a text of length <= 200, found"),
        ({"version": 0}, "version: expected a whole number >= 1, found 0"),
        ({"version": 2}, "expected an isolated run of version 1 or older, found version 2: a newer"),
        ({"format": "crosscast model"}, "expected an isolated run, as crosscast corun profile writes it,"),
    ],
    ids=str,
)
def test_what_must_not_be_there_is_named(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    assert refused(written(tmp_path, **fields)).startswith(message)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Expecting value"),
        (b'{"format": "crosscast isolated', "Unterminated string"),
        (b"\xff\xfe", "'utf-8' codec can't decode"),
        (b"[" * 100_000, "recursion"),
        (b'{"time_s": NaN}', "NaN is no number"),
        (b'{"time_s": ' + b"9" * 19 + b"}", "a number of 19 digits"),
    ],
    ids=["empty", "cut off", "no text", "deep", "not a number", "long"],
)
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert refused(path).startswith("expected an isolated run in JSON (")
    assert reason in refused(path)


def test_an_integer_of_eighteen_digits_is_read() -> None:
    assert STRICT_JSON.decode("9" * 18) == 10**18 - 1


def test_a_number_beyond_all_others_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_profile(ISOLATED, DEVICE, path)
    path.write_text(path.read_text().replace("0.25", "1e999"))
    assert "features.mix_mem: expected a number <= 1.79" in refused(path)


def test_a_folder_no_file_and_a_file_of_any_length_are_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == "cannot read the isolated run (Is a directory)"
    assert refused(tmp_path / "none.json") == "cannot read the isolated run (No such file or directory)"
    (tmp_path / "long.json").write_bytes(b" " * ((1 << 20) + 1))
    assert refused(tmp_path / "long.json") == "expected a file of at most 1 MiB, found a larger one"


@pytest.mark.parametrize(
    ("isolated_run", "device", "message"),
    [
        (IsolatedRun("sums", "tiny", "gpu", 1.0), DEVICE, "device: expected 'gpu', found 'cpu'"),
        (IsolatedRun("sums", "tiny", "cpu", math.nan), DEVICE, "time_s: expected a number > 0.0, found NaN"),
        (
            IsolatedRun("sums", "tiny", "cpu", 1.0, features={"ipc": math.inf}),
            {},
            "features.ipc: expected a number",
        ),
        (IsolatedRun("sums", "tiny", "cpu", 1.0, "[]"), {}, "configuration: expected an object of settings"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, isolated_run: IsolatedRun, device: dict[str, Any], message: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text("before")
    assert refusal(write_profile, isolated_run, device, path).startswith(f"{path}: {message}")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"folder: cannot write the isolated run \(Is a directory\)"):
        write_profile(ISOLATED, DEVICE, tmp_path / "folder")
    with pytest.raises(InputError, match="cannot write the isolated run"):
        write_profile(ISOLATED, DEVICE, tmp_path / "none" / "a.json")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
