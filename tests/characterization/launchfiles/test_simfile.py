"""Numbers as C++ streams read them; the expected behaviour is that of libstdc++."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.characterization.launchfiles import simfile
from crosscast.characterization.launchfiles.simfile import NumberReader, SimFile, render_dumps
from crosscast.kernel import Local, Parameter, Program
from support.refusals import refusal, refusals

A = Parameter("a", "float*", "global", 8)
N = Parameter("n", "int", "value", 4)
BYTES = Parameter("bytes", "uchar*", "global", 8)
CONSTANT = Parameter("table", "float*", "constant", 8)
LOCAL = Parameter("scratch", "float*", "local", 8)
STRUCT = Parameter("config", "struct config", "value", 12)
VOID = Parameter("raw", "void*", "global", 8)
IMAGE = Parameter("picture", "image2d_t", "image", 8)

Reader = Callable[..., SimFile]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Reader of a simulator file with a head of five lines, and the given rest."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.cl").write_text("kernel void k() {}")

    def read_text(rest: str, *parameters: Parameter) -> SimFile:
        Path("k.sim").write_text(f"# a file\nk.cl\nk\n8 1 1\n4 1 1\n{rest}")
        monkeypatch.setattr(simfile, "frontend_parameters", lambda program, kernel: parameters)
        return simfile.read("k.sim")

    return read_text


def only_argument(sim: SimFile) -> Any:
    (argument,) = sim.launch.args
    return argument


def test_the_head_says_program_kernel_and_sizes(tmp_path: Path, read: Reader) -> None:
    launch = read("").launch
    assert launch.kernel.name == "k"
    assert (launch.global_size, launch.local_size) == ((8, 1, 1), (4, 1, 1))
    assert launch.kernel.program.form == "opencl-c"
    (tmp_path / "k.sim").write_text("k.cl k 8 1 1 4 1 # sizes go on\n 1")
    assert simfile.read("k.sim").launch.local_size == (4, 1, 1)
    (tmp_path / "k.cl").write_bytes(b"BC\xc0\xde....")
    assert read("").launch.kernel.program.form == "bitcode"


def test_options_and_standard_come_from_outside(read: Reader) -> None:
    read("")
    given = simfile.read("k.sim", options=["-DN=1"], standard="2.0")
    program: Program = given.launch.kernel.program
    assert (program.options, program.standard) == (("-DN=1",), "2.0")


UINTS = Parameter("x", "uint*", "global", 8)


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("text", "parameter", "expected"),
    [
        ("<size=16>\n1 2 # two\n\n 3.5\n-4e1\n", A, floats(1, 2, 3.5, -40)),
        ("<size=4> 42", N, np.int32(42)),
        ("<size=4>\n7 8 9\n", N, np.int32(7)),  # the rest of the last line is left unread
        ("<size=16 fill=2.5>\n", A, floats(2.5, 2.5, 2.5, 2.5)),
        ("<range=0:1:3 size=16>\n", A, floats(0, 1, 2, 3)),
        ("<size=40 range=0:0.25:2.25>\n", A, floats(*(0.25 * i for i in range(10)))),
        ("<size=16 noinit>\n", A, floats(0, 0, 0, 0)),
        ("<   size=16   fill=-1   >\n", A, floats(-1, -1, -1, -1)),
        ("<size=4 hex>\n0x01 0a FF 10\n", BYTES, np.array([1, 10, 255, 16], np.uint8)),
        ("<size=2 fill=1F hex>\n", BYTES, np.array([31, 31], np.uint8)),
        ("<size=2 hex range=f:1:10>\n", BYTES, np.array([15, 16], np.uint8)),
        ("<size=8>\n-1 -2\n", UINTS, np.array([4294967295, 4294967294], np.uint32)),
        ("<size=4 uchar>\n1 2 3 4\n", N, np.int32(0x04030201)),
        ("<size=4 uchar>\n0 0 128 63\n", A, floats(1.0)),
        ("<size=5 uchar fill=7>\n", A, np.full(5, 7, np.uint8).view([("byte", "u1")])),
        ("<size=12 float>\n42\n3\n18\n", STRUCT, floats(42, 3, 18).tobytes()),
        ("<size=16>\n", LOCAL, Local(16)),
        ("<null>\n", A, None),
    ],
)
def test_an_argument_is_what_its_header_and_values_say(
    read: Reader, text: str, parameter: Parameter, expected: Any
) -> None:
    found = only_argument(read(text, parameter))
    if isinstance(expected, np.ndarray | np.generic):
        np.testing.assert_array_equal(found, expected, strict=True)
    else:
        assert found == expected


def test_hexadecimal_ends_with_its_argument(read: Reader) -> None:
    first, second = read("<size=1 hex>\n10\n<size=4>\n10\n", BYTES, N).launch.args
    assert (np.asarray(first).tolist(), second) == ([16], np.int32(10))


TYPES: dict[str, type] = {
    "uchar": np.uint8,
    "short2*": np.int16,
    "ushort": np.uint16,
    "int*": np.int32,
    "ulong*": np.uint64,
    "float16*": np.float32,
    "void*": np.uint8,
}


@pytest.mark.parametrize("name", TYPES)
def test_the_type_follows_from_the_parameter(read: Reader, name: str) -> None:
    parameter = Parameter("x", name, "global", 8)
    assert only_argument(read("<size=64 fill=0>\n", parameter)).dtype == TYPES[name]


def test_ro_buffers_are_read_only(read: Reader) -> None:
    sim = read("<size=4 ro fill=0>\n<size=4 wo fill=0>\n", A, A)
    assert sim.launch.read_only == {0}


def test_dumps_look_as_the_original_prints_them(read: Reader) -> None:
    sim = read("<size=8 dump>\n1.5 1234567\n<size=2 char dump>\n-1 65\n", A, VOID)
    assert render_dumps(sim) == (
        "\nArgument 'a': 8 bytes\n  a[0] = 1.5\n  a[1] = 1.23457e+06\n\n"
        "\nArgument 'raw': 2 bytes\n  raw[0] = -1\n  raw[1] = 65\n\n"
    )


@pytest.mark.parametrize(
    ("header", "size", "values", "shown"),
    [
        ("uint", 4, "1 10000000", ["0x00000001", "0x10000000"]),
        ("char", 1, "-1 7f", ["0xffffffff", "0x7f"]),
        ("ulong", 8, "8000000000000000", ["0x8000000000000000"]),
        ("float", 4, "1.5 -1.5", ["0x000001.5", "0x0000-1.5"]),
    ],
)
def test_hexadecimal_dumps_have_all_digits(
    read: Reader, header: str, size: int, values: str, shown: list[str]
) -> None:
    text = render_dumps(read(f"<size={size * len(shown)} {header} hex dump>\n{values}\n", VOID))
    assert re.findall(" = (.*)", text) == shown


def test_dumps_show_what_the_kernel_left_or_that_there_is_none(read: Reader) -> None:
    sim = read("<size=20 fill=0 dump>\n<size=0 dump>\n<size=4>\n3\n", A, A, N)
    array, empty, number = (np.asarray(each) for each in sim.launch.args)
    assert [empty.size, int(number)] == [0, 3]
    array[:] = [np.inf, -np.inf, np.nan, -0.0, 1e-5]
    text = render_dumps(sim)
    assert re.findall(" = (.*)", text) == ["inf", "-inf", "nan", "-0", "1e-05"]
    assert text.endswith("\nArgument 'a': 0 bytes\n\n")


def test_big_files_are_read_in_time(read: Reader) -> None:
    text = "\n".join(" ".join(str(i % 100) for i in range(100)) for _ in range(1000))
    assert only_argument(read(f"<size=400000>\n{text}\n", A)).sum() == 4950 * 1000


PARAMETERS = {
    "A": A,
    "N": N,
    "BYTES": BYTES,
    "CONSTANT": CONSTANT,
    "LOCAL": LOCAL,
    "STRUCT": STRUCT,
    "IMAGE": IMAGE,
}


@refusals("rest parameters message")
def test_each_mistake_is_one_sentence_with_its_line(
    read: Reader, rest: str, parameters: str, message: str
) -> None:
    assert re.search(message, refusal(read, rest, *map(PARAMETERS.__getitem__, parameters.split())))


def test_numbers_of_thousands_of_digits_are_refused(read: Reader) -> None:
    assert "Invalid value for 'size'" in refusal(read, f"<size={'9' * 5000}>\n", A)
    assert "k.sim:7: " in refusal(read, f"<size=4>\n{'9' * 5000}\n", N)


@refusals("content message")
def test_files_that_are_no_simulator_files_are_refused(
    tmp_path: Path, read: Reader, content: str, message: str
) -> None:
    read("")
    assert "cannot read the simulator file" in refusal(simfile.read, tmp_path / "none.sim")
    (tmp_path / "k.sim").write_bytes(content.encode("latin-1"))
    assert re.search(message, refusal(simfile.read, "k.sim"))


def reader(dtype: str, hexadecimal: bool = False) -> NumberReader:
    return NumberReader(np.dtype(dtype), hexadecimal)


@pytest.mark.parametrize(
    ("dtype", "text", "value", "rest"),
    [
        ("int32", "12", 12, ""),
        ("int32", "-3,", -3, ","),
        ("int32", "010", 10, ""),
        ("int32", "0x10", 0, "x10"),
        ("uint16", "-1", 65535, ""),
        ("uint64", "18446744073709551615", 18446744073709551615, ""),
        ("float32", "1.0f", 1.0, "f"),
        ("float32", ".5", 0.5, ""),
        ("float64", "-1e-3x", -0.001, "x"),
        ("float32", "1.5.5", 1.5, ".5"),
        # In hexadecimal, integers may have a prefix, and reals stay as they are.
        *(
            ("hex int32", text, value, "")
            for text, value in (("ff", 255), ("0xFF", 255), ("-0x1", -1), ("10", 16))
        ),
        ("hex float32", "10", 10.0, ""),
    ],
)
def test_the_longest_start_that_is_a_number_is_read(dtype: str, text: str, value: float, rest: str) -> None:
    found, end = reader(dtype.removeprefix("hex "), dtype.startswith("hex")).match(text, 0)
    assert (found, text[end:]) == (value, rest)


@refusals("dtype text")
def test_what_a_stream_fails_on_is_a_sentence(dtype: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        reader(dtype).match(text, 0)
