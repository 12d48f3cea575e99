"""The runtime's own functions, called from Python as instrumented code would call them."""

import ctypes
import math
import random
import shutil
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization import toolchain
from crosscast.characterization.engine import layout, runtime_objects
from crosscast.characterization.engine.messages import render
from crosscast.errors import EnvironmentFault

WINDOW = layout.WINDOW
LOW, FLAGS = (1 << 30) - 1, 3 << 30
READ, WRITE = 1, 2

COLLECTIVES = {"cc_collective"}
HARNESS = Path(__file__).with_name("runtime_harness.c")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("runtime")
    made, library = folder / "harness.o", folder / "harness.so"
    made.write_bytes(toolchain.clang(runtime_objects.arguments("-O1"), HARNESS.read_bytes(), HARNESS.name))
    toolchain.link_shared([made, *runtime_objects.objects(COLLECTIVES)], library)
    loaded = ctypes.CDLL(str(library))
    for name in ("new_context", "table_of", "exchange_of"):
        getattr(loaded, name).restype = ctypes.c_void_p
    for name in ("history_bytes", "guard", "reduced", "logged"):
        getattr(loaded, name).restype = ctypes.c_uint64
    return loaded


class Thread:
    """One thread's context, with a buffer of 1024 bytes and its counters."""

    def __init__(self, runtime: ctypes.CDLL) -> None:
        self.runtime = runtime
        self.data = 0x2000_0000_0000
        self.space = np.zeros(2048, np.uint32)
        offset = -(self.space.ctypes.data // 4) % 256
        self.counters = self.space[offset : offset + 256]
        self.context = runtime.new_context(
            *map(ctypes.c_uint64, (self.data, 1024, self.counters.ctypes.data))
        )

    def call(self, name: str, *values: Any) -> int:
        arguments = [ctypes.c_uint64(v) if isinstance(v, int) else v for v in values]
        return int(getattr(self.runtime, name)(ctypes.c_void_p(self.context), *arguments) or 0)

    def words(self, name: str, count: int) -> npt.NDArray[np.uint64]:
        address = self.call(name)
        return np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(address))

    def histories(self) -> dict[int, int]:
        table = self.words("table_of", layout.TABLE_BYTES // 8)
        return {int(i): int(table[i]) for i in np.flatnonzero(table)}


@pytest.fixture
def thread(runtime: ctypes.CDLL) -> Thread:
    return Thread(runtime)


def traced(outcomes: Sequence[int]) -> Counter[int]:
    """How often each sequence of outcomes, behind a leading 1, ends at each outcome."""
    counts: Counter[int] = Counter()
    for end in range(len(outcomes)):
        pattern = 1
        for bit in outcomes[max(end - WINDOW, 0) : end + 1]:
            pattern = pattern << 1 | bit
        counts[pattern] += 1
    return counts


def test_layout_is_that_of_generated_code(runtime: ctypes.CDLL) -> None:
    assert runtime.history_bytes() == layout.HISTORY_BYTES
    assert runtime.job_bytes() == 8 * len(layout.words("job"))
    assert runtime.region_bytes() == 8 * len(layout.MemoryRegion._fields)
    assert runtime.strided_offset() == layout.slot("strided")
    assert layout.MemoryRegion._fields == tuple(layout.words("region"))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("length", [1, 3, 15, 40, 1500])
def test_outcomes_of_a_segment_that_ran_once_are_those_of_every_work_item(
    thread: Thread, seed: int, length: int
) -> None:
    chance = random.Random(seed)
    trace = []
    for _ in range(3):  # three segments: the room for outcomes is used again
        bits = chance.choices((0, 1), (1, 1 + seed), k=length)
        items = chance.choice((1, 2, 7, 33))
        thread.call("lead", bytes(bits), length)
        thread.call("fold_lead", items)
        trace += bits * items
    assert thread.histories() == traced(trace)


@pytest.mark.parametrize("stay", [0, 1])
def test_loops_that_repeat_are_counted_like_any_others(thread: Thread, stay: int) -> None:
    chance = random.Random(stay)
    trace = []
    for _ in range(40):
        length = chance.choice((0, 1, 2, 16, 17, 30))
        for _ in range(chance.choice((1, 2, 9))):
            thread.call("leave_loop", length, stay)
            trace += [stay] * length + [1 - stay]
    assert thread.histories() == traced(trace)


def test_a_row_leaves_out_work_items_that_did_not_come_by(thread: Thread) -> None:
    chance = random.Random(1)
    row = [bit for _ in range(60) for bit in [chance.choice((0, 1, 2, 255))] * chance.randrange(1, 40)]
    thread.call("fold_row", bytes(row), len(row))
    assert thread.histories() == traced([bit for bit in row if bit < 2])


def test_values_are_logged_however_many_differ(thread: Thread) -> None:
    chance = random.Random(2)
    values = [chance.randrange(5000) for _ in range(4000)] + [7] * 100 + [2**40] * 33
    array = np.array(values, np.uint64)
    for key in (7, 2**40, values[0], 10**6):
        found = thread.call("logged", ctypes.c_void_p(array.ctypes.data), len(values), key)
        assert found == values.count(key)


def add(thread: Thread, amount: int) -> int:
    """Count reads as code does that knows the memory: without a look at the counter."""
    counter = int(thread.counters[0])
    assert (counter & LOW) + amount <= LOW
    thread.counters[0] = counter + amount | 1 << 30
    return thread.call("guard", amount)


def test_a_counter_filled_by_known_and_unknown_accesses_does_not_overflow(thread: Thread) -> None:
    total = 0
    for amount in (1 << 20, (1 << 29) - 9, (1 << 29) - 9, 3, 1 << 28, (1 << 29) + 5):
        overflow = add(thread, amount)
        assert not overflow
        total += amount
        for _ in range(5):
            thread.call("count_dynamic", thread.data + 1, READ)
            thread.call("count_dynamic", thread.data + 3, WRITE)
            total += 2
            assert int(thread.counters[0]) & LOW < 1 << 30
    assert thread.call("reduced", 11 + 2, total) == 1  # as one granule of 4 bytes
    assert thread.call("reduced", 10, total) == 1  # and as one block of 1024
    assert int(thread.counters[0]) & FLAGS == FLAGS


def test_known_accesses_leave_room_for_unknown_ones(thread: Thread) -> None:
    # As many as a work-group may make between two looks at the counters.
    thread.counters[0] = 1 << 20 | 1 << 30
    thread.call("count_dynamic", thread.data, READ)
    thread.call("count_dynamic", thread.data, READ)
    assert add(thread, LOW - (1 << 20)) == 0
    assert thread.call("reduced", 11 + 2, LOW + 2) == 1


def test_more_accesses_than_a_counter_holds_are_told(thread: Thread) -> None:
    assert thread.call("guard", LOW - (1 << 20)) == 0
    assert thread.call("guard", LOW) == 1


@pytest.mark.parametrize("most", range(16, 40))
def test_a_sampled_line_is_touched_once_by_each_row_even_if_room_is_made_meanwhile(
    thread: Thread, most: int
) -> None:
    lines = np.random.default_rng(most).integers(0, 30, (40, 64), np.uint32)
    kept = thread.call("touch_rows", lines.ctypes.data, len(lines), most)
    unsampled = thread.call("unsampled") & 0xFFFFFFFF
    sampled = (lines + 1) * np.uint32(0x9E3779B1) & np.uint32(unsampled) == 0
    assert kept == sum(len(set(row[chosen])) for row, chosen in zip(lines, sampled, strict=True))


INTEGERS = [np.int32, np.uint32, np.int64, np.uint64]
REDUCE, SCAN_EXCLUSIVE, SCAN_INCLUSIVE = 3, 4, 5


@pytest.mark.parametrize("type_", INTEGERS)
def test_sums_of_a_work_group_wrap_around(thread: Thread, type_: type[np.integer[Any]]) -> None:
    values = np.random.default_rng(3).integers(np.iinfo(type_).max // 2, np.iinfo(type_).max, 50, type_)
    sums = np.cumsum(values, dtype=type_)
    exchange = thread.words("exchange_of", 100).view(type_).reshape(50, -1)
    for what, expected in (
        (REDUCE, np.full(50, sums[-1])),
        (SCAN_INCLUSIVE, sums),
        (SCAN_EXCLUSIVE, np.concatenate([np.zeros(1, type_), sums[:-1]])),
    ):
        exchange[:, 0] = values
        thread.call("collective", what, INTEGERS.index(type_), 50)
        assert (exchange[:, 0] == expected).all()


FOLDER = Path(runtime_objects.__file__).with_name("runtime")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(toolchain, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(runtime_objects, "_BUILT", tmp_path / "built")
    runtime_objects.start.cache_clear()
    yield tmp_path
    runtime_objects.start.cache_clear()


def test_every_unit_is_compiled() -> None:
    assert len(set(runtime_objects.objects(COLLECTIVES))) == len(list(FOLDER.glob("*.c")))


def test_what_only_collectives_need_is_compiled_for_them() -> None:
    assert len(runtime_objects.objects(COLLECTIVES)) == len(runtime_objects.objects()) + 1


def test_numpy_is_not_imported_beside_the_compiler() -> None:
    module = runtime_objects.__name__
    subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; assert 'numpy' not in sys.modules"], check=True
    )


def test_what_is_in_the_cache_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    there = runtime_objects.objects()
    monkeypatch.setattr(toolchain, "clang", pytest.fail)
    assert runtime_objects.objects() == there


def test_only_what_did_not_come_with_the_package_is_compiled(
    empty_cache: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "clang", lambda *_: b"object")
    runtime_objects.build(for_others=True)
    came = set(runtime_objects.objects(COLLECTIVES))
    assert {path.parent for path in came} == {empty_cache / "built"}
    changed = shutil.copytree(FOLDER, tmp_path_factory.mktemp("runtime"), dirs_exist_ok=True)
    (changed / "walks.c").write_text("int changed;")
    monkeypatch.setattr(runtime_objects, "_FOLDER", changed)
    (compiled,) = set(runtime_objects.objects(COLLECTIVES)) - came
    assert compiled.parent == empty_cache
    monkeypatch.setattr(runtime_objects, "_instructions", lambda: ("-mtune=generic",))
    assert {path.parent for path in runtime_objects.objects()} == {empty_cache}
    runtime_objects.build(for_others=False)
    assert set((empty_cache / "built").iterdir()) == set(runtime_objects.objects(COLLECTIVES))


def test_what_fails_at_the_start_fails_where_it_is_needed(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> bytes:
        raise EnvironmentFault("no compiler today")

    monkeypatch.setattr(toolchain, "clang", refuse)
    runtime_objects.start()
    assert capfd.readouterr() == ("", "")
    with pytest.raises(EnvironmentFault, match="no compiler today"):
        runtime_objects.objects()
    assert not list(empty_cache.iterdir())


_LIBC = ctypes.CDLL(None)
FLAGS_PRINTF = st.lists(st.sampled_from("-+ #0"), max_size=3).map("".join)
WIDTH = st.one_of(st.just(""), st.integers(1, 40).map(str))
PRECISION = st.one_of(st.just(""), st.just("."), st.integers(0, 30).map(".{}".format))


def c_printf(format_string: str, value: object) -> str:
    buffer = ctypes.create_string_buffer(1024)
    _LIBC.snprintf(buffer, ctypes.c_size_t(1024), format_string.encode(), value)
    return buffer.value.decode()


def double(value: float) -> tuple[str, bytes]:
    return "double", struct.pack("<d", value)


def int32(value: int) -> tuple[str, bytes]:
    return "i32", struct.pack("<i", value)


@given(FLAGS_PRINTF, WIDTH, PRECISION, st.sampled_from("fFeEgGaA"), st.floats(-1e200, 1e200) | st.floats())
def test_floats_are_as_in_c(flags: str, width: str, precision: str, conversion: str, value: float) -> None:
    specification = f"%{flags}{width}{precision}{conversion}"
    assert render(specification.encode(), [double(value)]) == c_printf(specification, ctypes.c_double(value))


@given(FLAGS_PRINTF, WIDTH, PRECISION, st.sampled_from("diouxX"), st.integers(-(2**31), 2**31 - 1))
def test_integers_are_as_in_c(flags: str, width: str, precision: str, conversion: str, value: int) -> None:
    specification = f"%{flags}{width}{precision}{conversion}"
    assert render(specification.encode(), [int32(value)]) == c_printf(specification, ctypes.c_int(value))


@given(st.sampled_from(["hh", "h", "l"]), st.sampled_from("diouxX"), st.integers(-(2**63), 2**63 - 1))
def test_length_modifiers_are_those_of_c(length: str, conversion: str, value: int) -> None:
    specification = f"%{length}{conversion}"
    kind, argument, layout = (
        ("i64", ctypes.c_int64(value), "<q") if length == "l" else ("i32", ctypes.c_int32(value), "<i")
    )
    data = struct.pack(layout, argument.value)
    assert render(specification.encode(), [(kind, data)]) == c_printf(specification, argument)


@given(FLAGS_PRINTF.filter(lambda flags: "0" not in flags), WIDTH, PRECISION, st.binary(max_size=20))
def test_strings_end_at_zero_and_the_precision(flags: str, width: str, precision: str, data: bytes) -> None:
    specification = f"%{flags}{width}{precision}s"
    text = bytes(byte & 0x7F for byte in data)
    assert render(specification.encode(), [("ptr", text)]) == c_printf(specification, ctypes.c_char_p(text))


def test_the_examples_of_the_specification() -> None:
    f4 = ("<4 x float>", struct.pack("<4f", 1, 2, 3, 4))
    uc4 = ("<4 x i8>", bytes([0xFA, 0xFB, 0xFC, 0xFD]))
    s3 = ("<3 x i32>", struct.pack("<3I", 0x400, 0x401, 0x402))
    assert render(b"f4 = %2.2v4hlf\n", [f4]) == "f4 = 1.00,2.00,3.00,4.00\n"
    assert render(b"uc4 = %#v4hhx\n", [uc4]) == "uc4 = 0xfa,0xfb,0xfc,0xfd\n"
    assert render(b"unsigned int3 = %#v3hlx\n", [s3]) == "unsigned int3 = 0x400,0x401,0x402\n"


@pytest.mark.parametrize(
    ("specification", "value", "text"),
    [
        ("%v2hd", ("<2 x i16>", struct.pack("<2h", -1, 7)), "-1,7"),
        ("%v2ld", ("<2 x i64>", struct.pack("<2q", -1, 1 << 40)), "-1,1099511627776"),
        ("%v4hhd", ("<4 x i8>", bytes([255, 0, 1, 128])), "-1,0,1,-128"),
        ("%v2lf", ("<2 x double>", struct.pack("<2d", 0.5, -2)), "0.500000,-2.000000"),
        ("%v2hg", ("<2 x half>", struct.pack("<2e", 0.5, -2)), "0.5,-2"),
        ("%v8hle", ("<8 x float>", struct.pack("<8f", *[2] * 8)), ",".join(["2.000000e+00"] * 8)),
        ("%v16hlu", ("<16 x i32>", struct.pack("<16I", *range(16))), ",".join(map(str, range(16)))),
        ("%-5v2hhu|", ("<2 x i8>", b"\1\2"), "1    ,2    |"),
        ("%05.1v2hlf", ("<2 x float>", struct.pack("<2f", 1, -1)), "001.0,-01.0"),
        ("%v3hlf", ("<4 x float>", struct.pack("<4f", 1, 2, 3, 4)), "1.000000,2.000000,3.000000"),
        (f"%v{5000 * '9'}d", ("<2 x i32>", struct.pack("<2i", 3, 4)), "3,4"),
    ],
)
def test_vectors_are_printed_by_element(specification: str, value: tuple[str, bytes], text: str) -> None:
    assert render(specification.encode(), [value]) == text


def test_characters_pointers_and_percent_signs() -> None:
    address = ("ptr addrspace(1)", struct.pack("<Q", 0xBEEF))
    assert (
        render(b"%c%-3c|%3c 100%% %p", [int32(65), int32(66), int32(67), address]) == "AB  |  C 100% 0xbeef"
    )


def test_characters_that_make_up_one_code_point_are_joined() -> None:
    assert render(b"%c%c", [int32(0xC3), int32(0xA9)]) == "é"


def test_signed_zeros_infinities_and_nans() -> None:
    values = [double(-0.0), double(-math.inf), double(math.nan)]
    assert render(b"%g %05f %5F", values) == "-0  -inf   NAN"


@pytest.mark.parametrize(
    ("specification", "values", "text"),
    [
        ("%d %d", [int32(1)], "1 %d"),
        ("%y %d", [int32(1)], "%y 1"),
        ("%", [], "%"),
        ("%f", [int32(-3)], "-3.000000"),
        ("%d", [double(3.75)], "3"),
        ("%d", [double(math.inf)], "inf"),
        ("%x", [double(-1.0)], "ffffffffffffffff"),
        ("%d", [("i64", struct.pack("<q", -(1 << 40)))], str(-(1 << 40))),
        ("%d", [("<2 x i32>", struct.pack("<2i", 1, -2))], "1,-2"),
        ("%v4hld", [int32(5)], "5"),
        ("%s", [int32(5)], "5"),
        ("%c", [double(2.5)], "2"),
        ("%*d", [int32(-4), int32(5)], "5   "),
        ("%.*f", [int32(1), double(0.25)], "0.2"),
        ("%*d", [], "%*d"),
        ("none", [int32(5)], "none"),
        ("%d", [("i32", b"")], ""),
    ],
)
def test_undefined_calls_are_printed(specification: str, values: list[tuple[str, bytes]], text: str) -> None:
    assert render(specification.encode(), values) == text


def test_a_field_cannot_grow_without_bound() -> None:
    assert len(render(b"%99999999999d", [int32(1)])) == 4095
    assert len(render(b"%.9999999f", [double(1)])) == 4097


@given(
    st.binary(max_size=40) | st.text("%0123456789v4hl*.#-+ dfsxcpg", max_size=30).map(str.encode),
    st.lists(
        st.tuples(
            st.sampled_from(["i1", "i8", "i32", "i64", "double", "half", "<4 x float>", "<3 x i8>", "ptr"]),
            st.binary(max_size=20),
        ),
        max_size=4,
    ),
)
def test_no_call_fails(format_string: bytes, values: list[tuple[str, bytes]]) -> None:
    assert isinstance(render(format_string, values), str)
