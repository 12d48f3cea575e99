"""Isolated runs and mixes: their views, counts and checks.

Files of isolated runs.
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.corun import (
    CoRunContents,
    CoRunFailure,
    CoRuns,
    IsolatedRun,
    MixCount,
    co_runs,
    contents_of,
    read_profile,
    write_profile,
)
from crosscast.data.dataset import validate
from crosscast.data.fields import STRICT_JSON
from crosscast.data.schema import ISOLATED_RUNS, MIXES
from crosscast.data.table import table_of
from support import tables as rows
from support.examples import examples
from support.refusals import refusal, refusals

SUMS = IsolatedRun("sums", "tiny", "cpu", 0.5)


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


def view(**tables: Any) -> CoRuns:
    return co_runs(rows.dataset(**tables))


def test_a_member_names_its_application_alone() -> None:
    mix = rows.mix(1.2, 1.5, fits=1, mix_time_s=3.0)
    mix[1]["application"] = "lud"
    runs = [rows.isolated_run(power_w=5.0, memory_bytes=64), rows.isolated_run("lud")]
    found = view(isolated_runs=runs, mixes=mix)
    lud, sums = found.isolated_runs
    assert sums == replace(SUMS, runs=4, power_w=5.0, memory_bytes=64, features={"ipc": 1.5})
    (pair,) = found.mixes
    assert (pair.name, pair.device, pair.fits, pair.time_s, pair.overlap) == ("pair", "cpu", True, 3.0, None)
    assert [member.slowdown for member in pair.members] == [1.2, 1.5]
    assert pair.members[0].isolated_run is sums
    assert pair.members[1].isolated_run is lud
    assert not pair.failed
    assert found.applications == ("lud", "sums")


def test_the_isolated_run_of_a_member_is_that_of_its_configuration_or_else_of_the_defaults() -> None:
    shared = '{"sharing": "mps"}'
    runs = [rows.isolated_run(), rows.isolated_run(configuration=shared, time_s=0.75)]
    for known, expected in ((runs, (0.75, shared)), (runs[:1], (0.5, "{}"))):
        (mix,) = view(isolated_runs=known, mixes=rows.mix(1.1, 1.2, configuration=shared)).mixes
        run = mix.members[0].isolated_run
        assert (mix.configuration, run.time_s, run.configuration) == (shared, *expected)


def test_features_are_finite_numbers_by_name() -> None:
    where = "made up: isolated_runs: row 2: column 'features'"
    for features in ("[]", "3", *(f'{{"ipc": {n}}}' for n in ('"1"', "null", "true", "9" * 400))):
        runs = [rows.isolated_run("lud"), rows.isolated_run(features=features)]
        assert refusal(view, isolated_runs=runs) == f"{where}: expected finite numbers by name, found others"


def check(*mixes: rows.Row) -> None:
    validate(rows.dataset(devices=[rows.device(), rows.device("gpu")], mixes=mixes))


@refusals("column cell message")
def test_the_row_that_is_wrong_is_named(column: str, cell: Any, message: str) -> None:
    first, second = rows.mix(1.0, 1.1, fits=1, mix_time_s=2.0, power_w=5.0)
    # Rows of a mix need not stand together.
    other = rows.mix(1.0, 1.2, name="other")
    wrong = refusal(check, other[0], first, other[1], second | {column: None if cell == "nothing" else cell})
    assert f"mixes: column {column!r}, row 4: expected {message}" in wrong


@given(st.sets(st.integers(0, 6), min_size=1))
def test_positions_are_from_0_without_a_gap(places: set[int]) -> None:
    mix = [{**rows.mix(1.0)[0], "position": place} for place in places]
    if places == set(range(len(places))):
        check(*mix)
    else:
        assert f"expected less than the {len(places)} rows of its mix" in refusal(check, *mix)


FEATURES = {"ipc": 1.5, "mix_mem": 0.25}
ISOLATED = IsolatedRun("sums", "tiny", "cpu", 0.5, '{"cores": 2}', 20, 12.5, 4096, FEATURES)
DEVICE = {"device": "cpu", "name": "the cpu", "type": "cpu", "cores": 4, "clock_hz": 2e9, "tdp_w": None}


def written(folder: Path, **fields: Any) -> Path:
    """A file with other fields; those that are "left out" are."""
    path = folder / "a.json"
    write_profile(ISOLATED, DEVICE, path)
    content = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({name: value for name, value in content.items() if value != "left out"}))
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
    run = IsolatedRun(name, "tiny", "cpu", time_s, memory_bytes=memory, features=features)
    backward = replace(run, features=dict(reversed(list(features.items()))))
    with tempfile.TemporaryDirectory() as folder:
        a, b = Path(folder) / "a.json", Path(folder) / "b.json"
        write_profile(run, DEVICE, a)
        write_profile(backward, dict(reversed(list(DEVICE.items()))), b)
        assert a.read_bytes() == b.read_bytes()
        assert read_profile(a).isolated_run == run


@refusals("fields message")
def test_what_must_not_be_there_is_named(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    assert refused(written(tmp_path, **fields)).startswith(message)


def test_too_many_or_too_long_names_and_too_large_numbers_are_named(tmp_path: Path) -> None:
    many = refused(written(tmp_path, features={str(n): n for n in range(513)}))
    assert many.startswith("features: expected an object of length <= 512,")
    long = refused(written(tmp_path, features={"x" * 201: 1}))
    assert long.startswith("features: expected a text of length <= 200, found")
    path = written(tmp_path)
    path.write_text(path.read_text().replace("0.25", "1e999"))
    assert "features.mix_mem: expected a number <= 1.79" in refused(path)


def test_a_damaged_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for content, reason in {
        b"": "Expecting value",
        b'{"format": "crosscast isolated': "Unterminated string",
        b"\xff\xfe": "'utf-8' codec can't decode",
        b"[" * 100_000: "recursion",
        b'{"time_s": NaN}': "NaN is no number",
        b'{"time_s": ' + b"9" * 19 + b"}": "a number of 19 digits",
    }.items():
        path.write_bytes(content)
        message = refused(path)
        assert message.startswith("expected an isolated run in JSON (") and reason in message
    assert STRICT_JSON.decode("9" * 18) == 10**18 - 1


def test_a_folder_no_file_and_a_file_of_any_length_are_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == "cannot read the isolated run (Is a directory)"
    (tmp_path / "long.json").write_bytes(b" " * ((1 << 20) + 1))
    assert refused(tmp_path / "long.json") == "expected a file of at most 1 MiB, found a larger one"
    for path in (tmp_path, tmp_path / "none" / "a.json"):
        assert "cannot write the isolated run" in refusal(write_profile, ISOLATED, DEVICE, path)
    assert [path.name for path in tmp_path.iterdir()] == ["long.json"]


@refusals("changed message")
def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text("before")
    assert refusal(write_profile, replace(SUMS, **changed), DEVICE, path).startswith(f"{path}: {message}")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
