"""A launch that is written as a launch file is read as the same launch.

A source with its includes inside is what the compiler's own preprocessor makes of it and its files.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import crosscast
from crosscast.characterization import launchfiles
from crosscast.characterization.launchfiles import self_contained, write_launch
from crosscast.errors import InputError, UnsupportedError
from crosscast.kernel import Image, Kernel, Launch, Local, Parameter, Program, Sampler
from support.examples import examples
from support.refusals import refusal, refusals

PARAMETERS = (
    Parameter("a", "float*", "global", 8),
    Parameter("b", "uchar*", "global", 8),
    Parameter("n", "int", "value", 4),
)

Reader = Callable[[str], list[Launch]]


def parameters(program: Program, kernel: str) -> tuple[Parameter, ...]:
    del program, kernel
    return PARAMETERS


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Reader of a launch file with a head, and the given rest."""
    monkeypatch.setattr(launchfiles, "frontend_parameters", parameters)

    def read_text(rest: str) -> list[Launch]:
        (tmp_path / "k.cl").write_text("kernel void k() {}")
        path = tmp_path / "k.toml"
        path.write_text(f'source = "k.cl"\nkernel = "k"\n{rest}')
        return launchfiles.read(path)

    return read_text


def only_argument(launches: list[Launch]) -> Any:
    (launch,) = launches
    (argument,) = launch.args
    return argument


def test_the_head_says_program_and_sizes(read: Reader) -> None:
    sizes = "global = [64, 4]\nlocal = [8, 2]\noffset = [1, 0]\n"
    (launch,) = read(f'{sizes}options = ["-DN=3"]\nstandard = "2.0"')
    assert (launch.global_size, launch.local_size, launch.global_offset) == ((64, 4), (8, 2), (1, 0))
    assert (launch.kernel.name, launch.kernel.program.options) == ("k", ("-DN=3",))
    assert launch.kernel.program.standard == "2.0"
    assert read("global = 1000")[0].local_size == (50,)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('type = "float4"\nlength = 3', np.zeros((3, 4), np.float32)),
        ("length = 2", np.zeros(2, np.float32)),  # of the type of the kernel's parameter
        ('type = "ushort"\nvalue = 65535', np.uint16(65535)),
        ('type = "float2"\nvalue = 3', np.full(2, 3, np.float32)),
        ('type = "int3"\nvalue = [1, 2, 3]', np.array([1, 2, 3, 0], np.int32)),
        ('type = "int"\nvalue = [1, 2, 3]', np.array([1, 2, 3], np.int32)),  # a structure
        ('type = "bool"\nvalue = true', np.uint8(1)),
        ('type = "bfloat16"\nvalue = -2.5', np.uint16(0xC020)),
        ('type = "bfloat16"\nvalues = [1, 1.00390625]', np.array([0x3F80, 0x3F80], np.uint16)),
        ('type = "bfloat16"\nlength = 2\nfill = "constant"\nvalue = 0.5', np.full(2, 0x3F00, np.uint16)),
        ('type = "bfloat16"\nfile = "b.bin"\nlength = 4', np.arange(8, dtype=np.uint8).view(np.uint16)),
        ('type = "int"\nvalues = [3, 1]', np.array([3, 1], np.int32)),
        ('type = "float"\nfile = "a.npy"', np.arange(4, dtype=np.float32)),
        ('type = "uchar4"\nfile = "b.bin"\nlength = 2', np.arange(8, dtype=np.uint8)),
    ],
)
def test_an_argument_is_what_its_table_says(tmp_path: Path, read: Reader, table: str, expected: Any) -> None:
    np.save(tmp_path / "a.npy", np.arange(4, dtype=np.float32))
    (tmp_path / "b.bin").write_bytes(bytes(range(8)))
    found = only_argument(read(f"global = 4\n[[arg]]\n{table}"))
    np.testing.assert_array_equal(found, expected, strict=True)
    assert "value " in table or found.flags.writeable or found.shape == ()


def filled(read: Reader, kind: str, rule: str, length: int = 4, seed: int = 0) -> Any:
    return only_argument(
        read(f'global = 4\nseed = {seed}\n[[arg]]\ntype = "{kind}"\nlength = {length}\nfill = {rule}')
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ('"constant"\nvalue = 7', [7, 7, 7, 7]),
        ('"arange"', [0, 1, 2, 3]),
        ('"arange"\nstart = 9\nstep = -3', [9, 6, 3, 0]),
    ],
)
@pytest.mark.parametrize("kind", ["uchar", "long", "half", "double"])
def test_rules_without_chance_are_exact(read: Reader, kind: str, rule: str, expected: list[int]) -> None:
    assert filled(read, kind, rule).tolist() == expected


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("float", -2, 2), ("char", -128, 127), ("ulong", 3, 5), ("half", 0, 1)]
)
def test_uniform_stays_within_its_ends(read: Reader, kind: str, low: int, high: int) -> None:
    array = filled(read, kind, f'"uniform"\nlow = {low}\nhigh = {high}', 500)
    assert low <= array.min() < array.max() <= high


@pytest.mark.parametrize("kind", ["float", "int", "uchar"])
def test_normal_has_its_mean_and_deviation(read: Reader, kind: str) -> None:
    array = filled(read, kind, '"normal"\nmean = 50\nsd = 10', 20000).astype(float)
    assert (array.mean(), array.std()) == pytest.approx((50, 10), abs=0.5)


def test_normal_is_cut_where_the_type_ends(read: Reader) -> None:
    assert set(filled(read, "char", '"normal"\nsd = 1e30', 99)) == {-128, 127}
    assert filled(read, "ulong", '"normal"\nsd = 1e30', 99).max() > 1 << 63


def test_the_seed_decides_the_content(read: Reader) -> None:
    first, again, other = (filled(read, "float", '"normal"', 9, seed) for seed in (1, 1, 2))
    own, also_own = (filled(read, "float", '"normal"\nseed = 5', 9, seed) for seed in (2, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.array_equal(own, also_own)


def test_arguments_with_the_same_rule_differ(read: Reader) -> None:
    argument = '[[arg]]\ntype = "float"\nlength = 9\nfill = "uniform"\n'
    (launch,) = read(f"global = 4\n{argument}{argument}")
    first, second = launch.args
    assert not np.array_equal(first, second)  # type: ignore[arg-type]


def test_local_null_and_samplers_are_known(read: Reader) -> None:
    assert only_argument(read("global = 4\n[[arg]]\nlocal = 64")) == Local(64)
    assert only_argument(read("global = 4\n[[arg]]\nnull = true")) is None
    sampler = only_argument(read('global = 4\n[[arg]]\nsampler = { addressing = "repeat", linear = true }'))
    assert sampler == Sampler("repeat", linear=True)


def test_images_have_shape_order_and_type(read: Reader) -> None:
    table = 'shape = [3, 5], type = "uchar", channel_order = "RG", fill = "uniform"'
    image = only_argument(read(f"global = 4\n[[arg]]\nimage = {{ {table} }}"))
    assert isinstance(image, Image)
    assert image.array.shape == (3, 5, 2)
    assert image.array.dtype == np.uint8


def test_read_only_buffers_are_noted(read: Reader) -> None:
    argument = '[[arg]]\ntype = "float"\nlength = 1\n'
    (launch,) = read(f"global = 4\n{argument}{argument}read_only = true")
    assert launch.read_only == {1}


SHARED = "global = 64\n" + "".join(
    f'[[arg]]\nname = "{name}"\ntype = "{type_}"\n{content} = 4\n'
    for name, type_, content in (("a", "float", "length"), ("b", "uchar", "length"), ("n", "int", "value"))
)


def test_launches_share_their_buffers(read: Reader) -> None:
    first, second = read(SHARED + "[[launch]]\n[[launch]]\nglobal = [8, 8]\nset = { n = 5 }")
    assert first.args[0] is second.args[0]
    assert [int(launch.args[2]) for launch in (first, second)] == [4, 5]  # type: ignore[arg-type]
    assert isinstance(second.args[2], np.int32)
    assert second.global_size == second.local_size == (8, 8)
    # A local size of other dimensions does not apply.
    (other,) = read("global = 64\nlocal = 4\n[[launch]]\nglobal = [8, 8]")
    assert other.local_size == (8, 8)


def test_a_launch_may_choose_and_reorder_arguments(read: Reader) -> None:
    (launch,) = read(SHARED + '[[launch]]\nkernel = "other"\nuse = ["n", "a"]')
    assert launch.kernel.name == "other"
    assert launch.args[0] == 4
    assert len(launch.args) == 2


HEADS = {
    "BUFFER ": 'global = 4\n[[arg]]\ntype = "float"\nlength = 4\n',
    "SCALAR ": 'global = 4\n[[arg]]\ntype = "int"\n',
    "SHARED ": SHARED,
}
"""Words at the beginning of texts that are refused, and what they stand for."""


@refusals("text message")
def test_each_mistake_is_one_sentence_with_its_place(read: Reader, text: str, message: str) -> None:
    for word, head in HEADS.items():
        text = text.replace(word, head)
    assert re.search(message, refusal(read, text))


def test_a_file_of_another_type_is_refused(tmp_path: Path, read: Reader) -> None:
    np.save(tmp_path / "a.npy", np.arange(4))
    text = 'global = 4\n[[arg]]\ntype = "float"\nfile = "a.npy"'
    assert re.search("expected float32 for float in .* found int64", refusal(read, text))
    np.savez(tmp_path / "a.npz", np.arange(4))
    for content in (b"garbage", (tmp_path / "a.npz").read_bytes()):
        (tmp_path / "a.npy").write_bytes(content)
        assert "not a readable .npy file" in refusal(read, text)


def test_files_that_are_no_launch_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    assert "cannot read the launch file" in refusal(launchfiles.read, path)
    for content, message in ((b"", "is empty"), (b"\xff\0", "found binary"), (b"kernel = 3", "source is")):
        path.write_bytes(content)
        assert message in refusal(launchfiles.read, path)


NUMBERS = [f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)]
NUMBERS.remove("float8")
SOURCE = "kernel void k(global {kind} *a, global {kind} *b, {kind} c, local int *d, global int *e) {{ }}"


def read_back(launch: Launch, folder: Path) -> Launch:
    write_launch(launch, folder / "one.toml")
    (found,) = crosscast.read_launches(folder / "one.toml")
    return found


def same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray | np.generic):
        return left.dtype == right.dtype and np.asarray(left).tobytes() == np.asarray(right).tobytes()
    return bool(left == right)


@given(kind=st.sampled_from(NUMBERS), data=st.data())
def test_numbers_come_back(kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    array = data.draw(arrays.arrays(kind, st.integers(1, 8)))
    scalar = np.dtype(kind).type(data.draw(arrays.arrays(kind, 1))[0])
    kernel = Kernel.from_source(SOURCE.format(kind="int"), "k", options=["-DX=1"], standard="2.0")
    launch = Launch(kernel, (8, 2), (4, 1), (array, array, scalar, Local(16), None), (1, 0))
    found = read_back(launch, tmp_path_factory.mktemp("launch"))
    assert found.args[0] is found.args[1]
    if np.isnan(float(scalar)):
        launch, found = (Launch(kernel, (8, 2), (4, 1), each.args[:2]) for each in (launch, found))
    assert all(map(same, launch.args, found.args))
    assert (found.global_size, found.local_size) == (launch.global_size, launch.local_size)
    assert found.global_offset == launch.global_offset
    assert (found.kernel.program.options, found.kernel.program.standard) == (("-DX=1",), "2.0")


def test_images_samplers_structures_and_grids_come_back(tmp_path: Path) -> None:
    image = Image(np.arange(48, dtype=np.uint8).reshape(3, 4, 4), normalized=True)
    sampler = Sampler("repeat", linear=True, normalized_coords=True)
    kernel = Kernel.from_source("kernel void k(image2d_t i) {}", "k")
    first, second, third = read_back(Launch(kernel, (4,), (4,), (image, sampler, b"\1\2")), tmp_path).args
    assert isinstance(first, Image)
    assert same(first.array, image.array)
    assert (first.normalized, first.layers, first.channel_order) == (True, False, "RGBA")
    assert second == sampler
    assert np.asarray(third).tobytes() == b"\1\2"
    kernel = Kernel.from_source("__global__ void k(float *a) {}", "k", form="cuda")
    launch = Launch.on_grid(kernel, (4, 2), 32, [np.ones(4, np.float32)], shared=64)
    found = read_back(launch, tmp_path)
    assert (found.global_size, found.local_size, found.shared) == (launch.global_size, launch.local_size, 64)


def test_what_opencl_has_not_is_refused(tmp_path: Path) -> None:
    launch = Launch(Kernel.from_source("kernel void k() {}", "k"), (4,), (4,), (np.ones(4, complex),))
    assert "found complex128" in refusal(write_launch, launch, tmp_path / "one.toml")
    with pytest.raises(InputError, match="cannot be written"):
        write_launch(Launch(launch.kernel, (4,), (4,)), tmp_path / "none" / "one.toml")


NAMES = ("a.h", "b.h", "in/c.h", "in/d.h", "far/e.h")


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Includes of any of the files, in quotes or not, in comments or texts or not, among other lines."""
    name = draw(st.sampled_from([*NAMES, "c.h", "e.h", "none.h"]))
    include = f"# include <{name}> // {name}" if draw(st.booleans()) else f'#include "{name}"'
    if name == "none.h":
        return f"#ifdef NEVER\n{include}\n#endif"
    forms = ("{}", "{}", "/* {}\n{} */", "// {}", 'char *s = "/*";\n{}\nchar *t = "*/";')
    return draw(st.sampled_from(forms)).replace("{}", include)


@st.composite
def files(draw: st.DrawFn) -> dict[str, str]:
    found = {}
    for number, name in enumerate((*NAMES, "k.cl")):
        body = "\n".join([f"int v{number};", *draw(st.lists(lines(), max_size=3)), f"int w{number};"])
        guard = draw(st.sampled_from(("#pragma once\n{}", "#ifndef G{n}\n#define G{n}\n{}\n#endif")))
        found[name] = guard.replace("{n}", str(number)).replace("{}", body)
    return found


def preprocessed(path: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "ziglang", "cc", "-x", "c", "-E", "-P", *options, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@settings(examples(15, fast=5), derandomize=True)
@given(files())
def test_it_is_what_the_preprocessor_sees(
    tmp_path_factory: pytest.TempPathFactory, contents: dict[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    options = tuple(f"-I{folder / each}" for each in ("in", "far"))
    whole = self_contained(Program.from_file(folder / "k.cl", options=("-DX=1", *options)))
    assert whole.options == ("-DX=1",)
    alone = tmp_path_factory.mktemp("alone") / "k.cl"
    alone.write_bytes(whole.content)
    assert preprocessed(alone) == preprocessed(folder / "k.cl", f"-I{folder}", *options)


def test_a_launch_file_needs_no_folder_of_where_it_was_made(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "inc").mkdir(parents=True)
    there.mkdir()
    (here / "inc" / "scale.h").write_text('#include "near.h"\n')
    (here / "inc" / "near.h").write_text("#define SCALE 3.0f\n")
    (here / "k.cl").write_text("#include <scale.h>\nkernel void k(global float *x) { *x *= SCALE; }")
    program = Program.from_file(here / "k.cl", options=[f"-I{here / 'inc'}"])
    write_launch(Launch(Kernel(program, "k"), (1,), (1,), (np.ones(1, np.float32),)), there / "k.toml")
    shutil.rmtree(here)
    (read,) = crosscast.read_launches(there / "k.toml")
    crosscast.characterize(read)
    assert np.asarray(read.args[0]).tolist() == [3.0]


@refusals("source header sentence")
def test_what_cannot_be_inside_is_refused(tmp_path: Path, source: str, header: str, sentence: str) -> None:
    (tmp_path / "h.h").write_text(header)
    (tmp_path / "k.cl").write_text(source)
    with pytest.raises(UnsupportedError, match=sentence):
        self_contained(Program.from_file(tmp_path / "k.cl", options=[f"-I{tmp_path}"]))
