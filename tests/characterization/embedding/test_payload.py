"""The text that is embedded: what it is made of, and what is refused when it is read."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from embedding_examples import NASTY, profile, profiles
from hypothesis import given

from crosscast.characterization.embedding.payload import Payload, decode, digest, encode
from crosscast.errors import InputError
from crosscast.profile import METRICS, Profile


def rewritten(change: Callable[[dict[str, Any]], object]) -> str:
    """The text of a profile after a change to its JSON, with a right checksum."""
    header, body = encode(Payload((profile(),), "ab")).split("\n")
    value = json.loads(body)
    change(value)
    body = json.dumps(value)
    return f"{' '.join(header.split()[:2])} {digest(body.encode())}\n{body}"


@given(profiles)
def test_profiles_come_back_as_they_were(found: list[Profile]) -> None:
    payload = Payload(tuple(found), "cd", 2)
    assert decode(encode(payload), "x") == payload


@given(profiles)
def test_the_text_is_two_lines_of_printable_ascii_without_an_asterisk(found: list[Profile]) -> None:
    lines = encode(Payload(tuple(found), "")).split("\n")
    assert len(lines) == 2
    assert all(" " <= character <= "~" and character != "*" for line in lines for character in line)


def test_package_compiler_and_hash_are_named() -> None:
    value = json.loads(encode(Payload((profile(),), "cd" * 32)).split("\n")[1])
    assert value["made_by"].startswith("crosscast ")
    assert value["compiler"] == "clang 22"
    assert value["sha256"] == "cd" * 32


def test_times_printed_text_and_folders_stay_out() -> None:
    made = profile(note=NASTY)
    made = replace(
        made, timing_s={"run": 1.0}, printed="x", program={**made.program, "path": "/home/someone/k.cl"}
    )
    (back,) = decode(encode(Payload((made,), "")), "x").profiles
    assert (back.timing_s, back.printed, back.program["path"]) == ({}, "", "k.cl")
    assert back.launch == made.launch


def test_order_and_type_of_metrics_stay() -> None:
    (back,) = decode(encode(Payload((profile(),), "")), "x").profiles
    assert list(back.metrics) == [metric.name for metric in METRICS]
    assert isinstance(back.metrics["opcode"], int)
    assert isinstance(back.metrics["median_itb"], float)


def test_a_number_that_is_not_finite_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(Payload((profile(share=float("nan")),), ""))


def test_any_changed_character_is_found() -> None:
    text = encode(Payload((profile(),), "ab"))
    for place in range(text.index("\n") + 1, len(text), 97):
        changed = text[:place] + ("1" if text[place] != "1" else "2") + text[place + 1 :]
        with pytest.raises(InputError, match="checksum does not match"):
            decode(changed, "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("crosscast-profile 2 abc\n{}", "version 1 or older, found version 2: a newer Crosscast wrote it"),
        ("crosscast-profile 999999999 abc\n{}", "a newer Crosscast wrote it"),
        (f"crosscast-profile {'9' * 5000} abc\n{{}}", "is damaged"),
        ("crosscast-profile one abc\n{}", "it begins with 'crosscast-profile one abc'"),
        ("crosscast-profile 1\n{}", "is damaged"),
        ("", "is damaged"),
        ("crosscast-profile 1 abc\n{}", "checksum"),
    ],
)
def test_another_header_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=r"^k\.cl: ") as caught:
        decode(text, "k.cl")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(sha256=3), "sha256: expected a hash, found 3"),
        (lambda v: v.update(newlines=-5), "newlines: expected 0, 1 or 2, found -5"),
        (lambda v: v.update(profiles=[]), "profiles: expected a list of one or more"),
        (lambda v: v.update(profiles="none"), "profiles: expected a list of one or more"),
        (lambda v: v["profiles"].append(3), "profiles[1]: expected an object"),
        (lambda v: v["profiles"][0].pop("kernel"), "profiles[0].kernel: expected a name, found None"),
        (lambda v: v["profiles"][0].update(kernel=""), "kernel: expected a name"),
        (lambda v: v["profiles"][0].update(invocation=-1), "invocation: expected a whole number"),
        (lambda v: v["profiles"][0].update(invocation=True), "found True"),
        (lambda v: v["profiles"][0].update(size=4), "profiles[0].size: expected a text, found 4"),
        (lambda v: v["profiles"][0].pop("launch"), "profiles[0].launch: expected an object"),
        (lambda v: v["profiles"][0].update(program=[]), "profiles[0].program: expected an object"),
        (lambda v: v["profiles"][0]["metrics"].pop("opcode"), "found none called 'opcode'"),
        (lambda v: v["profiles"][0]["metrics"].update(speed=1), "found one more called 'speed'"),
        (lambda v: v["profiles"][0]["metrics"].update(opcode=1.5), "opcode: expected a whole number"),
        (lambda v: v["profiles"][0]["metrics"].update(opcode=1 << 63), "expected a whole number"),
        (lambda v: v["profiles"][0]["metrics"].update(granularity=-0.5), "of at least 0, found -0.5"),
        (lambda v: v["profiles"][0]["metrics"].update(granularity="1"), "expected a number"),
        (lambda v: v["profiles"][0]["launch"].update(share=float("inf")), "JSON"),
    ],
)
def test_other_fields_than_ours_are_refused(change: Callable[[dict[str, Any]], object], message: str) -> None:
    with pytest.raises(InputError, match="the embedded profile is damaged") as caught:
        decode(rewritten(change), "k.cl")
    assert message in str(caught.value)


@pytest.mark.parametrize("body", ["[1]", "3", "{", "[" * 100_000, '{"sha256": 1e999}', "9" * 5000])
def test_json_of_other_shapes_is_refused(body: str) -> None:
    with pytest.raises(InputError, match="the embedded profile is damaged"):
        decode(f"crosscast-profile 1 {digest(body.encode())}\n{body}", "k.cl")


def test_fields_of_later_writers_are_passed_over() -> None:
    assert decode(rewritten(lambda value: value.update(note="new")), "x").profiles == (profile(),)
