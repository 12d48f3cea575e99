from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.characterization.launchfiles import launchfile
from crosscast.errors import InputError
from crosscast.kernel import Image, Launch, Local, Parameter, Program, Sampler
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
def read(tmp_path: Path) -> Reader:
    """Reader of a launch file with a head, and the given rest."""

    def read_text(rest: str) -> list[Launch]:
        (tmp_path / "k.cl").write_text("kernel void k() {}")
        path = tmp_path / "k.toml"
        path.write_text(f'source = "k.cl"\nkernel = "k"\n{rest}')
        return launchfile.read(path, parameters=parameters)

    return read_text


def only_argument(launches: list[Launch]) -> Any:
    (launch,) = launches
    (argument,) = launch.args
    return argument


def test_the_head_says_program_and_sizes(read: Reader) -> None:
    (launch,) = read(
        'global = [64, 4]\nlocal = [8, 2]\noffset = [1, 0]\noptions = ["-DN=3"]\nstandard = "2.0"'
    )
    assert (launch.global_size, launch.local_size, launch.global_offset) == ((64, 4), (8, 2), (1, 0))
    assert (launch.kernel.name, launch.kernel.program.options) == ("k", ("-DN=3",))
    assert launch.kernel.program.standard == "2.0"


def test_the_local_size_has_a_default(read: Reader) -> None:
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


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ('fill = "constant"\nvalue = 7', [7, 7, 7, 7]),
        ('fill = "arange"', [0, 1, 2, 3]),
        ('fill = "arange"\nstart = 9\nstep = -3', [9, 6, 3, 0]),
    ],
)
@pytest.mark.parametrize("kind", ["uchar", "long", "half", "double"])
def test_rules_without_chance_are_exact(read: Reader, kind: str, rule: str, expected: list[int]) -> None:
    array = only_argument(read(f'global = 4\n[[arg]]\ntype = "{kind}"\nlength = 4\n{rule}'))
    assert array.tolist() == expected


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("float", -2, 2), ("char", -128, 127), ("ulong", 3, 5), ("half", 0, 1)]
)
def test_uniform_stays_within_its_ends(read: Reader, kind: str, low: int, high: int) -> None:
    text = f'global = 4\n[[arg]]\ntype = "{kind}"\nlength = 500\nfill = "uniform"\nlow = {low}\nhigh = {high}'
    array = only_argument(read(text))
    assert low <= array.min() < array.max() <= high


def test_normal_has_its_mean_and_deviation(read: Reader) -> None:
    text = 'global = 4\n[[arg]]\ntype = "{}"\nlength = 20000\nfill = "normal"\nmean = 50\nsd = 10'
    for kind in ("float", "int", "uchar"):
        array = only_argument(read(text.format(kind))).astype(float)
        assert array.mean() == pytest.approx(50, abs=0.5)
        assert array.std() == pytest.approx(10, abs=0.5)


def test_normal_is_cut_where_the_type_ends(read: Reader) -> None:
    text = 'global = 4\n[[arg]]\ntype = "{}"\nlength = 99\nfill = "normal"\nsd = 1e30'
    assert set(only_argument(read(text.format("char")))) == {-128, 127}
    assert only_argument(read(text.format("ulong"))).max() > 1 << 63


def test_the_seed_decides_the_content(read: Reader) -> None:
    text = 'global = 4\nseed = {}\n[[arg]]\ntype = "float"\nlength = 9\nfill = "normal"\n'
    first, again, other = (only_argument(read(text.format(seed))) for seed in (1, 1, 2))
    own = only_argument(read(text.format(2) + "seed = 5"))
    also_own = only_argument(read(text.format(1) + "seed = 5"))
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
    text = f"global = 4\n[[arg]]\nimage = {{ {table} }}"
    image = only_argument(read(text))
    assert isinstance(image, Image)
    assert image.array.shape == (3, 5, 2)
    assert image.array.dtype == np.uint8


def test_read_only_buffers_are_noted(read: Reader) -> None:
    argument = '[[arg]]\ntype = "float"\nlength = 1\n'
    (launch,) = read(f"global = 4\n{argument}{argument}read_only = true")
    assert launch.read_only == {1}


SHARED = """global = 64
[[arg]]
name = "a"
type = "float"
length = 4
[[arg]]
name = "b"
type = "uchar"
length = 4
[[arg]]
name = "n"
type = "int"
value = 4
"""


def test_launches_share_their_buffers(read: Reader) -> None:
    first, second = read(SHARED + "[[launch]]\n[[launch]]\nglobal = [8, 8]\nset = { n = 5 }")
    assert first.args[0] is second.args[0]
    assert [int(launch.args[2]) for launch in (first, second)] == [4, 5]  # type: ignore[arg-type]
    assert isinstance(second.args[2], np.int32)
    assert second.global_size == second.local_size == (8, 8)


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
    with pytest.raises(InputError, match=message) as caught:
        read(text)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_type_is_refused(tmp_path: Path, read: Reader) -> None:
    np.save(tmp_path / "a.npy", np.arange(4))
    with pytest.raises(InputError, match=r"expected float32 for float in .* found int64"):
        read('global = 4\n[[arg]]\ntype = "float"\nfile = "a.npy"')
    (tmp_path / "a.npy").write_bytes(b"garbage")
    assert "not a readable .npy file" in refusal(read, 'global = 4\n[[arg]]\ntype = "float"\nfile = "a.npy"')


def test_files_that_are_no_launch_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    assert "cannot read the launch file" in refusal(launchfile.read, path)
    for content, message in (
        (b"", "is empty"),
        (b"\xff\xfe\x00", "found binary"),
        (b"kernel = 3", "source is"),
    ):
        path.write_bytes(content)
        assert message in refusal(launchfile.read, path)
