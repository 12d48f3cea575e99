"""What a campaign has to do, and what it must not mix."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.dataset import Dataset
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, SESSIONS
from crosscast.data.table import table_of
from crosscast.errors import InputError
from crosscast.measure.campaign import CharacterizePiece, DescribePiece, MeasurePiece, Plan, missing, pieces
from crosscast.measure.opencl import devices
from crosscast.measure.subjects import Settings, identity
from crosscast.suite.application import TYPICAL, Caches
from crosscast.suite.registry import selected

Row = dict[str, Any]
Folder = Callable[..., Path]


@pytest.fixture
def plan() -> Plan:
    """One application at one size on one device, in two processes."""
    return Plan(selected(["crc"]), ("tiny",), (devices()[0],), TYPICAL, Settings(), repeats=2)


def rows(plan: Plan) -> tuple[Row, Row, list[Row]]:
    """What a finished build of the plan holds: device, profile, sessions."""
    subject, device = identity(plan.problem("crc", "tiny")), plan.devices[0]
    where = {"application": "crc", "size": "tiny"}
    origin = {"parameters": dict(subject.parameters), "seed": subject.seed}
    described = {
        "device": device.key,
        "name": device.name,
        "type": device.type,
        "platform": device.platform,
        "driver": device.driver,
        "launch_overhead_s": 1e-5,
        "sources": "{}",
    }
    profile = {
        **where,
        "kernel": "crc32_slice8",
        "invocation": 0,
        "launch": json.dumps({"problem": origin}),
        "program": json.dumps({"sha256": subject.program.sha256}),
    }
    session = {
        **where,
        "device": device.key,
        "configuration": "{}",
        "kernels": "[]",
        "parameters": json.dumps(origin["parameters"]),
        "seed": 0,
        "source_sha256": subject.program.sha256,
    }
    return described, profile, [{**session, "repeat": repeat} for repeat in range(2)]


def dataset(described: Row, profile: Row, sessions: list[Row]) -> Dataset:
    return Dataset(
        "mine",
        devices=table_of(DEVICES, [described]),
        profiles=table_of(PROFILES, [profile]),
        sessions=table_of(SESSIONS, sessions),
    )


def test_pieces_are_devices_then_profiles_then_sessions(plan: Plan) -> None:
    plan = replace(plan, applications=selected(["crc", "gem"]), sizes=("tiny", "small"))
    found = pieces(plan)
    assert [type(piece) for piece in found] == [
        DescribePiece,
        *[CharacterizePiece] * 4,
        *[MeasurePiece] * 8,
    ]
    assert [piece.label for piece in found[:2]] == [
        f"describe {plan.devices[0].id}",
        "characterize crc tiny",
    ]
    assert found[5].label == f"measure crc tiny on {plan.devices[0].id}"
    assert len({repr(piece) for piece in found}) == len(found)


def test_nothing_is_missing_after_a_whole_build(plan: Plan) -> None:
    assert missing(plan, dataset(*rows(plan))) == []


def test_everything_is_missing_before(plan: Plan) -> None:
    assert missing(plan, Dataset("new")) == pieces(plan)


def test_what_failed_is_tried_again(plan: Plan) -> None:
    described, profile, sessions = rows(plan)
    sessions[1]["failure"] = "wrong"
    described["launch_overhead_s"] = None
    assert missing(plan, dataset(described, profile, sessions)) == [
        DescribePiece(plan.devices[0]),
        MeasurePiece("crc", "crc", "tiny", plan.devices[0], 1),
    ]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"seed": 3}, r"mine: crc tiny was measured with the seed 3, and now has 0: choose another folder"),
        ({"parameters": '{"bytes": 1}'}, r'the parameters {"bytes": 1}, and now has {"bytes": \d+}'),
        ({"source_sha256": "ab"}, "the source of hash ab, and now has [0-9a-f]{64}"),
    ],
)
def test_sessions_of_other_problems_are_not_mixed(plan: Plan, cells: Row, message: str) -> None:
    described, profile, sessions = rows(plan)
    # On another device too: the profiles are for all.
    sessions[0] |= {"device": "elsewhere", **cells}
    with pytest.raises(InputError, match=message):
        missing(plan, dataset(described, profile, sessions))


def test_failed_sessions_of_other_problems_are_done_again(plan: Plan) -> None:
    described, profile, sessions = rows(plan)
    sessions[0] |= {"failure": "wrong", "source_sha256": "ab"}
    assert len(missing(plan, dataset(described, profile, sessions))) == 1


@pytest.mark.parametrize("column", ["driver", "platform"])
def test_devices_with_another_driver_are_not_mixed(plan: Plan, column: str) -> None:
    described, profile, sessions = rows(plan)
    described[column] = "old"
    with pytest.raises(InputError, match=f"was measured with the OpenCL {column} 'old'"):
        missing(plan, dataset(described, profile, sessions))


def test_profiles_of_another_source_are_made_again(plan: Plan) -> None:
    described, profile, sessions = rows(plan)
    for session in sessions:
        session["failure"] = "wrong"
    profile["program"] = '{"sha256": "ab"}'
    todo = missing(plan, dataset(described, profile, sessions))
    assert CharacterizePiece("crc", "crc", "tiny") in todo


def test_profiles_from_elsewhere_are_not_mixed(plan: Plan) -> None:
    described, profile, sessions = rows(plan)
    profile["launch"] = "{}"
    with pytest.raises(InputError, match="mine: the profiles of crc tiny come from elsewhere"):
        missing(plan, dataset(described, profile, sessions))


def test_what_is_not_in_the_plan_does_not_matter(plan: Plan) -> None:
    described, profile, sessions = rows(plan)
    assert missing(replace(plan, sizes=("small",)), dataset(described, profile, sessions))[0] == (
        CharacterizePiece("crc", "crc", "small")
    )


def test_sizes_are_measured_by_the_caches_of_the_plan(plan: Plan) -> None:
    larger = replace(plan, caches=Caches(64 << 10, 1 << 20, 1 << 24))
    assert larger.problem("crc", "tiny").parameters["bytes"] > plan.problem("crc", "tiny").parameters["bytes"]


def test_a_driver_that_does_not_fit_is_named(plan: Plan, make_application: Folder) -> None:
    unfit = replace(plan, applications=selected([str(make_application("unfit", fit="1 / 0"))]))
    with pytest.raises(InputError, match="unfit: expected its driver to fit a problem into 32768 bytes"):
        missing(unfit, Dataset("new"))


def test_a_plan_measures_once_at_least(plan: Plan) -> None:
    with pytest.raises(InputError, match="repeats: expected at least 1, found 0"):
        replace(plan, repeats=0)
    for seed in (-1, 1 << 63):
        with pytest.raises(InputError, match=f"seed: expected a number from 0 to .*, found {seed}"):
            replace(plan, seed=seed)
