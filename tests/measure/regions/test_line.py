"""Lines of a history's file."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from made_runs import RUNS

from crosscast.errors import InputError
from crosscast.measure.regions.file import from_line, is_begun, to_line
from crosscast.measure.regions.key import RegionRun

GOOD: dict[str, Any] = {"version": 1, "region": "a", "started_s": 1.0, "duration_s": 2.0}


@given(RUNS)
@settings(deadline=None)
def test_every_line_is_read_back_as_it_was(run: RegionRun) -> None:
    line = to_line(run)
    assert line.isascii()
    assert line.index("\n") == len(line) - 1
    assert from_line(line.encode(), "here") == run
    assert is_begun(line.encode())


@given(RUNS)
@settings(deadline=None)
def test_no_part_of_a_line_is_a_line_and_each_is_a_begin(run: RegionRun) -> None:
    whole = to_line(run).rstrip("\n").encode()
    for end in range(len(whole)):
        assert is_begun(whole[:end])
        with pytest.raises(InputError, match="expected a JSON object"):
            from_line(whole[:end], "here")


def test_what_a_run_has_not_is_left_out() -> None:
    line = '{"version":1,"region":"a","started_s":1.0,"duration_s":2.0}'
    run = from_line(line.encode(), "here")
    assert (run.metered_s, run.power_w, run.configuration, run.failure) == (None, None, None, None)
    assert not run.energy_j
    assert to_line(run) == f"{line}\n"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"version": 2}, r"version: expected 1, which this Crosscast reads, found 2"),
        ({"version": None}, "version: expected 1"),
        ({"version": True}, "version: expected a whole number"),
        ({"region": ""}, "region: expected a text"),
        ({"region": "a" * 201}, "region: expected 200 characters at most"),
        ({"region": 1}, "region: expected a text"),
        ({"arguments": "a" * 101}, "arguments: expected 64 texts of 100 characters at most"),
        ({"arguments": ["1"] * 65}, "arguments: expected 64 texts"),
        ({"site": [1]}, "site: expected a list of texts"),
        ({"duration_s": -1}, "duration_s: expected a number of at least 0, found -1"),
        ({"duration_s": None}, "duration_s: expected a number of seconds"),
        ({"duration_s": "1"}, "duration_s: expected a number"),
        ({"started_s": True}, "started_s: expected a number"),
        ({"energy_j": {"gpu": -1}}, "energy_j: gpu: expected a number of at least 0"),
        ({"energy_j": {"gpu": "1"}}, "energy_j: gpu: expected a number"),
        ({"energy_j": {"gpu": True}}, "energy_j: gpu: expected a number"),
        ({"energy_j": [1]}, "energy_j: expected a table"),
        (
            {"counters": {str(i): 1 for i in range(1001)}},
            "counters: expected 1000 numbers at most, found 1001",
        ),
        ({"power_w": []}, "power_w: expected a number"),
        ({"device": "node"}, "expected both device and settings"),
        ({"settings": {}}, "expected both device and settings"),
        ({"device": "node", "settings": {"a": []}}, "settings: configuration: a: expected a finite number"),
        ({"failure": 1}, "failure: expected a text"),
        ({"watts": 1}, "unknown key 'watts'"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=f"^here: {complaint}"):
        from_line(json.dumps(GOOD | changes).encode(), "here")


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_field_is_named(name: str) -> None:
    rest = {field: value for field, value in GOOD.items() if field != name}
    with pytest.raises(InputError, match=f"^here: {name} is missing"):
        from_line(json.dumps(rest).encode(), "here")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"\xff",
        b"null",
        b'{"version": NaN}',
        b'{"version": Infinity}',
        b'{"version": 1' + b"0" * 5000 + b"}",
        b"[" * 100_000,
        b'{"version": 1} {}',
    ],
)
def test_what_is_no_object_of_plain_numbers_is_refused(line: bytes) -> None:
    with pytest.raises(InputError, match=r"^here: expected a JSON object"):
        from_line(line, "here")


def test_a_number_too_large_is_no_number() -> None:
    with pytest.raises(InputError, match="duration_s: expected a number"):
        from_line(b'{"version":1,"region":"a","started_s":1,"duration_s":1e999}', "here")
