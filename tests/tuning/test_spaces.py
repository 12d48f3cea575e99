"""Spaces of variants: which are valid, how they are launched, and what is refused."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization.launchfiles.launchfile import read_launches
from crosscast.devices.device_files import read_device
from crosscast.errors import InputError
from crosscast.tuning.expressions import Expression, plain
from crosscast.tuning.space_files import read_space
from crosscast.tuning.tune import t1_of
from support.refusals import refusal, refusals

KERNEL = """
kernel void scale(global float *x, float by) {
    for (int k = 0; k < TILE; ++k) x[get_global_id(0) * TILE + k] *= by;
}
"""
SPACE = """
kernel = "scale"
constraints = ["GROUP * TILE <= 128", "TILE != 3 or GROUP == 32"]
[parameters]
GROUP = [32, 64]
TILE = "range(1, 5)"
UNUSED = [0, 1]
[launch]
global = "4096 // (GROUP * TILE) * GROUP"
local = ["GROUP"]
[[arg]]
type = "float"
length = "4096"
[[arg]]
type = "float"
value = 2.0
"""
T1: dict[str, Any] = {
    "General": {"BenchmarkName": "scale"},
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "block_size_x", "Type": "int", "Values": "[2**i for i in range(5, 8)]", "Default": 32},
            {"Name": "TILE", "Type": "int", "Values": "[1] + list(range(2, 5, 2))", "Default": 1},
        ],
        "Conditions": [
            {"Expression": "32 <= block_size_x*TILE <= 128", "Parameters": ["block_size_x", "TILE"]}
        ],
    },
    "KernelSpecification": {
        "Language": "OpenCL",
        "KernelName": "scale",
        "KernelFile": "scale.cl",
        "ProblemSize": [4096],
        "GridDivX": ["block_size_x", "TILE"],
        "GlobalSize": {"X": "4096"},
        "LocalSize": {"X": "block_size_x"},
        "Arguments": [
            {
                "Name": "x",
                "Type": "float",
                "MemoryType": "Vector",
                "Size": "ProblemSize[0]",
                "FillType": "Random",
            },
            {"Name": "by", "Type": "float", "MemoryType": "Scalar", "FillValue": 2.0},
        ],
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scale.cl").write_text(KERNEL)
    (tmp_path / "space.toml").write_text(SPACE)
    return tmp_path


def test_variants_are_those_that_fulfil_all_constraints(folder: Path) -> None:
    variants = read_space(folder / "space.toml").variants()
    expected = [
        {"GROUP": group, "TILE": tile, "UNUSED": unused}
        for group, tile, unused in itertools.product((32, 64), (1, 2, 3, 4), (0, 1))
        if group * tile <= 128 and (tile != 3 or group == 32)
    ]
    assert [dict(variants[row]) for row in range(len(variants))] == expected
    assert not variants.drawn


def test_a_variant_is_launched_by_its_parameters(folder: Path) -> None:
    rule = read_space(folder / "space.toml", folder / "scale.cl").rule
    launch = rule.launch({"GROUP": 32, "TILE": 4, "UNUSED": 1})
    assert (launch.global_size, launch.local_size) == ((1024,), (32,))
    assert isinstance(launch.args[0], np.ndarray) and launch.args[0].shape == (4096,)


def test_parameters_that_the_source_does_not_name_share_its_compilation(folder: Path) -> None:
    rule = read_space(folder / "space.toml", folder / "scale.cl").rule
    first, second = (rule.kernel_of({"GROUP": g, "TILE": 2, "UNUSED": u}) for g, u in ((32, 0), (64, 1)))
    assert first == second
    assert first.program.options == ("-DTILE=2",)


def test_launches_do_not_share_what_kernels_write(folder: Path) -> None:
    rule = read_space(folder / "space.toml", folder / "scale.cl").rule
    one, other = (rule.launch({"GROUP": 32, "TILE": 1, "UNUSED": 0}).args[0] for _ in range(2))
    assert isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    one[0] = 7
    assert other[0] == 0


def test_t1_files_are_read_as_they_are(folder: Path) -> None:
    path = folder / "scale.json"
    path.write_text(json.dumps(T1))
    space = read_space(path)
    variants = space.variants()
    assert [tuple(variants[row].values()) for row in range(len(variants))] == [
        (32, 1), (32, 2), (32, 4), (64, 1), (64, 2), (128, 1)
    ]  # fmt: skip
    launch = space.rule.launch(variants[2])
    assert (launch.global_size, launch.local_size) == ((1024,), (32,))
    assert isinstance(launch.args[0], np.ndarray) and launch.args[0].size == 4096


ARGUMENTS = """
[[arg]]
local = "4 * GROUP"
[[arg]]
type = "char"
length = 64
fill = "constant"
value = 3
[[arg]]
type = "ulong"
value = "TILE"
"""
CUDA_SPACE = SPACE.replace("global =", "shared = '4 * GROUP'\ngrid =").replace('local = ["', 'block = [8, "')
ON_PROBLEM = {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": "ProblemSize[0] // TILE"}


@pytest.mark.parametrize(
    ("name", "text", "source"),
    [
        ("a.toml", SPACE + ARGUMENTS, "scale.cl"),
        ("a.toml", SPACE.replace("[param", "standard = '2.0'\n[param"), "scale.cl"),
        ("a.toml", CUDA_SPACE + ARGUMENTS, "scale.cu"),
        ("a.json", json.dumps(T1).replace('{"Name": "by"', json.dumps(ON_PROBLEM) + ', {"Name": "by"'), None),
    ],
)
def test_a_space_written_as_t1_is_the_same_space(
    folder: Path, name: str, text: str, source: str | None
) -> None:
    (folder / "scale.cu").write_text("__global__ void scale(float *x, float by) {}")
    (folder / name).write_text(text)
    space = read_space(folder / name, source and folder / source)
    path = folder / "written" / "again.json"
    path.parent.mkdir()
    path.write_text(json.dumps(t1_of(space, "scale")))
    again = read_space(path)
    assert again.variants().labels == space.variants().labels
    assert again.rule.program == space.rule.program
    variant = space.variants()[3]
    assert again.rule.groups(variant) == space.rule.groups(variant)
    one, other = space.rule.launch(variant), again.rule.launch(variant)
    assert one.shared == other.shared
    for a, b in zip(map(np.asarray, one.args), map(np.asarray, other.args), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)


@refusals("old new sentence")
def test_what_t1_has_no_words_for_is_not_written(folder: Path, old: str, new: str, sentence: str) -> None:
    path = folder / "odd.toml"
    path.write_text(SPACE.replace(old, new))
    with pytest.raises(InputError, match=sentence):
        t1_of(read_space(path, folder / "scale.cl"), "scale")


def test_more_variants_than_are_taken_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_text(
        "constraints = ['(a + b) % 2 == 0']\n[parameters]\n"
        + "".join(f"{name} = 'range(1, 41)'\n" for name in "abcd")
    )
    space = read_space(path)
    variants = space.variants(most=1000)
    assert variants.drawn and len(set(variants.labels)) == len(variants) == 1000
    assert all((int(variants[row]["a"]) + int(variants[row]["b"])) % 2 == 0 for row in range(1000))
    assert space.variants(most=1000).labels == variants.labels


NUMBERS = st.integers(-20, 20)
ARITHMETIC = st.recursive(
    st.one_of(st.sampled_from(["x", "y"]), NUMBERS.map(str)),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%", "/"]), inner)
        .map(" ".join)
        .map("({})".format),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
        inner.map("abs({})".format),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} > 2 else {p[2]})"),
    ),
    max_leaves=8,
)


@given(ARITHMETIC, NUMBERS, NUMBERS)
def test_arithmetic_is_that_of_python(text: str, x: int, y: int) -> None:
    try:
        expected = eval(text, {}, {"x": x, "y": y})
    except ZeroDivisionError:
        return
    value = Expression.parse(text, "here", frozenset("xy")).value({"x": x, "y": y})
    assert plain(value) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(ARITHMETIC, ARITHMETIC, st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_constraints_of_many_are_those_of_each(left: str, right: str, pairs: list[tuple[int, int]]) -> None:
    constraint = Expression.parse(f"{left} <= {right}", "here", frozenset("xy"))
    x, y = (np.array(column) for column in zip(*pairs, strict=True))
    together = constraint.holds({"x": x, "y": y}, len(pairs))
    assert together.tolist() == [bool(constraint.holds({"x": a, "y": b}, 1)[0]) for a, b in pairs]


@refusals("text")
def test_what_is_not_arithmetic_is_refused(text: str) -> None:
    assert "here: expected arithmetic" in refusal(Expression.parse, text, "here", frozenset("x"))


def test_arithmetic_may_be_nested_sixty_deep_and_no_deeper() -> None:
    assert Expression.parse("-" * 60 + "x", "here", frozenset("x")).value({"x": 3}) == 3
    for text in ("(" * 300 + "x" + ")" * 300, "-" * 61 + "x", "x + " * 3000 + "x"):
        assert "here: expected arithmetic" in refusal(Expression.parse, text, "here", frozenset("x"))


@refusals("text")
def test_arithmetic_without_a_sensible_value_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="here: expected arithmetic"):
        Expression.parse(text, "here", frozenset("x")).value({"x": [1, 2]})


@refusals("text sentence")
def test_bad_spaces_are_refused_in_a_sentence(folder: Path, text: str, sentence: str) -> None:
    path = folder / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_space(path, folder / "scale.cl", "scale").variants()


@pytest.mark.parametrize("read", [read_space, read_launches, read_device])
@pytest.mark.parametrize("value", ["[" * 5000, "1" * 5000])
def test_toml_beyond_the_reader_is_refused(folder: Path, read: Callable[[Path], object], value: str) -> None:
    path = folder / "deep.toml"
    path.write_text(f"a = {value}")
    assert "TOML" in refusal(read, path)


@refusals("section changed sentence")
def test_bad_t1_files_are_refused_in_a_sentence(
    folder: Path, section: str, changed: dict[str, Any], sentence: str
) -> None:
    path = folder / "bad.json"
    path.write_text(json.dumps(T1 | {section: T1[section] | changed} if changed else {}))
    with pytest.raises(InputError, match=sentence):
        read_space(path)


@pytest.mark.parametrize("items", ["range(TILE)", "[x for x in [1, 2] if x < TILE]"])
def test_what_is_not_computed_for_all_variants_at_once_is_no_coordinate(folder: Path, items: str) -> None:
    path = folder / "lists.toml"
    path.write_text(SPACE.replace("4096 // (GROUP * TILE)", f"sum({items}) // 1"))
    space = read_space(path, folder / "scale.cl")
    variants = space.variants()
    assert space.rule.coordinates(variants).tolist() == variants.coordinates.tolist()


def test_sizes_that_do_not_fit_are_refused(folder: Path) -> None:
    path = folder / "uneven.toml"
    path.write_text(SPACE.replace("4096 // (GROUP * TILE) * GROUP", "GROUP + 1"))
    rule = read_space(path, folder / "scale.cl").rule
    assert "launch: global: expected a global size that is a multiple" in refusal(
        rule.groups, {"GROUP": 32, "TILE": 1, "UNUSED": 0}
    )
