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
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization import engine, toolchain
from crosscast.characterization.engine import layout
from crosscast.characterization.engine.messages import render
from crosscast.errors import EnvironmentFault
from support.examples import examples

LOW, FLAGS = (1 << 30) - 1, 3 << 30
READ, WRITE = 1, 2

COLLECTIVES = {"cc_collective"}
HARNESS = Path(__file__).with_name("runtime_harness.c")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("runtime")
    made, library = folder / "harness.o", folder / "harness.so"
    made.write_bytes(toolchain.clang(engine.compile_arguments("-O1"), HARNESS.read_bytes(), HARNESS.name))
    toolchain.link_shared([made, *engine.objects(COLLECTIVES)], library)
    loaded = ctypes.CDLL(str(library))
    for name in ("new_context", "table_of"):
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

    def histories(self) -> dict[int, int]:
        table = (ctypes.c_uint64 * (layout.TABLE_BYTES // 8)).from_address(self.call("table_of"))
        return {pattern: n for pattern, n in enumerate(table) if n}


@pytest.fixture
def thread(runtime: ctypes.CDLL) -> Thread:
    return Thread(runtime)


def test_layout_is_that_of_generated_code(runtime: ctypes.CDLL) -> None:
    assert runtime.history_bytes() == layout.HISTORY_BYTES
    assert runtime.job_bytes() == 8 * len(layout.words("job"))
    assert runtime.region_bytes() == 8 * len(layout.MemoryRegion._fields)
    assert runtime.strided_offset() == layout.slot("strided")
    assert layout.MemoryRegion._fields == tuple(layout.words("region"))


def traced(outcomes: Sequence[int]) -> Counter[int]:
    """How often each sequence of outcomes, behind a leading 1, ends at each outcome."""
    counts: Counter[int] = Counter()
    for end in range(len(outcomes)):
        pattern = 1
        for bit in outcomes[max(end - layout.WINDOW, 0) : end + 1]:
            pattern = pattern << 1 | bit
        counts[pattern] += 1
    return counts


@pytest.mark.parametrize("seed", range(16))
def test_outcomes_are_counted_one_by_one_in_whatever_form_they_come(thread: Thread, seed: int) -> None:
    chance, trace, stay = random.Random(seed), [], seed % 2
    rows = [[bit for _ in range(20) for bit in [chance.choice((0, 1, 2))] * chance.randrange(1, 20)]]
    rows += [chance.choices((0, 1, 2, 255), k=n) for n in (3, 40, 61)]
    rows += [[bit] * n for bit in (0, 1, 2) for n in (2, 33)]
    for _ in range(80):
        length, times = chance.choice((0, 1, 2, 3, 15, 16, 17, 30, 300)), chance.choice((1, 2, 7, 33))
        match chance.randrange(3):
            case 0:  # Those of a segment that ran once are those of every work-item
                bits = chance.choices((0, 1), (1, 1 + seed), k=length) or [1]
                thread.call("lead", bytes(bits), len(bits))
                thread.call("fold_lead", times)
                trace += bits * times
            case 1:
                for _ in range(times):
                    thread.call("leave_loop", length, stay)
                trace += ([stay] * length + [1 - stay]) * times
            case 2:  # Those of a row's work-items that came by
                first = chance.randrange(len(rows))
                for row in (rows * 2)[first : first + times % 4 + 1]:
                    thread.call("fold_row", bytes(row), len(row))
                    trace += [bit for bit in row if bit < 2]
    assert thread.histories() == traced(trace)


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
    # At first as many as a work-group may make between two looks at the counters.
    for amount in (LOW - (1 << 20), 1 << 20, (1 << 29) - 9, (1 << 29) - 9, 3, 1 << 28, (1 << 29) + 5):
        assert not add(thread, amount)
        total += amount
        for _ in range(5):
            thread.call("count_dynamic", thread.data + 1, READ)
            thread.call("count_dynamic", thread.data + 3, WRITE)
            total += 2
            assert int(thread.counters[0]) & LOW < 1 << 30
    assert thread.call("reduced", 11 + 2, total) == 1  # as one granule of 4 bytes
    assert thread.call("reduced", 10, total) == 1  # and as one block of 1024
    assert int(thread.counters[0]) & FLAGS == FLAGS
    assert thread.call("guard", LOW) == 1  # More than a counter holds are told


@pytest.mark.parametrize("most", range(16, 40, 3))
def test_a_sampled_line_is_touched_once_by_each_row_even_if_room_is_made_meanwhile(
    thread: Thread, most: int
) -> None:
    lines = np.random.default_rng(most).integers(0, 30, (40, 64), np.uint32)
    kept = thread.call("touch_rows", lines.ctypes.data, len(lines), most)
    unsampled = thread.call("unsampled") & 0xFFFFFFFF
    sampled = (lines + 1) * np.uint32(0x9E3779B1) & np.uint32(unsampled) == 0
    assert kept == sum(len(set(row[chosen])) for row, chosen in zip(lines, sampled, strict=True))


FOLDER = Path(engine.__file__).with_name("runtime")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(toolchain, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(engine, "_BUILT", tmp_path / "built")
    engine.start.cache_clear()
    yield tmp_path
    engine.start.cache_clear()


def test_every_unit_is_compiled_that_of_collectives_where_they_are_used() -> None:
    assert len(set(engine.objects(COLLECTIVES))) == len(list(FOLDER.glob("*.c")))
    assert len(engine.objects(COLLECTIVES)) == len(engine.objects()) + 1


def test_numpy_is_not_imported_beside_the_compiler() -> None:
    module = engine.__name__
    subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; assert 'numpy' not in sys.modules"], check=True
    )


def test_only_what_did_not_come_with_the_package_is_compiled(
    empty_cache: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "clang", lambda *_: b"object")
    engine.build(for_others=True)
    came = set(engine.objects(COLLECTIVES))
    assert {path.parent for path in came} == {empty_cache / "built"}
    changed = shutil.copytree(FOLDER, tmp_path_factory.mktemp("runtime"), dirs_exist_ok=True)
    (changed / "walks.c").write_text("int changed;")
    monkeypatch.setattr(engine, "_FOLDER", changed)
    (compiled,) = set(engine.objects(COLLECTIVES)) - came
    assert compiled.parent == empty_cache
    monkeypatch.setattr(engine, "_instructions", lambda: ("-mtune=generic",))
    assert {path.parent for path in engine.objects()} == {empty_cache}
    engine.build(for_others=False)
    monkeypatch.setattr(toolchain, "clang", pytest.fail)
    assert set((empty_cache / "built").iterdir()) == set(engine.objects(COLLECTIVES))


def test_what_fails_at_the_start_fails_where_it_is_needed(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> bytes:
        raise EnvironmentFault("no compiler today")

    monkeypatch.setattr(toolchain, "clang", refuse)
    engine.start()
    assert capfd.readouterr() == ("", "")
    with pytest.raises(EnvironmentFault, match="no compiler today"):
        engine.objects()
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


Printed = tuple[str, tuple[str, bytes], object]
"""A conversion, its argument in a kernel, and in C."""
REALS = st.builds(
    lambda conversion, value: (conversion, double(value), ctypes.c_double(value)),
    st.sampled_from("fFeEgGaA"),
    st.floats(-1e200, 1e200) | st.floats(),
)
WHOLE = st.builds(
    lambda conversion, value: (conversion, int32(value), ctypes.c_int32(value)),
    st.builds(str.__add__, st.sampled_from(["", "h", "hh"]), st.sampled_from("diouxX")),
    st.integers(-(2**31), 2**31 - 1),
)
LONG = st.builds(
    lambda conversion, value: (f"l{conversion}", ("i64", struct.pack("<q", value)), ctypes.c_int64(value)),
    st.sampled_from("diouxX"),
    st.integers(-(2**63), 2**63 - 1),
)
TEXTS = st.binary(max_size=20).map(lambda data: bytes(byte & 0x7F for byte in data))
PRINTED = REALS | WHOLE | LONG | TEXTS.map(lambda text: ("s", ("ptr", text), ctypes.c_char_p(text)))


@examples(400, fast=100)
@given(FLAGS_PRINTF, WIDTH, PRECISION, PRINTED)
def test_numbers_and_texts_are_printed_as_in_c(flags: str, width: str, precision: str, what: Printed) -> None:
    conversion, argument, native = what
    flags = flags.replace("0", "") if conversion == "s" else flags
    specification = f"%{flags}{width}{precision}{conversion}"
    assert render(specification.encode(), [argument]) == c_printf(specification, native)


@pytest.mark.parametrize(
    ("specification", "value", "text"),
    [
        # Examples of the specification
        ("%2.2v4hlf", ("<4 x float>", struct.pack("<4f", 1, 2, 3, 4)), "1.00,2.00,3.00,4.00"),
        ("%#v4hhx", ("<4 x i8>", bytes([0xFA, 0xFB, 0xFC, 0xFD])), "0xfa,0xfb,0xfc,0xfd"),
        ("%v2ld", ("<2 x i64>", struct.pack("<2q", -1, 1 << 40)), "-1,1099511627776"),
        ("%v4hhd", ("<4 x i8>", bytes([255, 0, 1, 128])), "-1,0,1,-128"),
        ("%v2hg", ("<2 x half>", struct.pack("<2e", 0.5, -2)), "0.5,-2"),
        ("%v16hlu", ("<16 x i32>", struct.pack("<16I", *range(16))), ",".join(map(str, range(16)))),
        ("%-5v2hhu|", ("<2 x i8>", b"\1\2"), "1    ,2    |"),
        ("%05.1v2hlf", ("<2 x float>", struct.pack("<2f", 1, -1)), "001.0,-01.0"),
        ("%v3hlf", ("<4 x float>", struct.pack("<4f", 1, 2, 3, 4)), "1.000000,2.000000,3.000000"),
        (f"%v{5000 * '9'}d", ("<2 x i32>", struct.pack("<2i", 3, 4)), "3,4"),
    ],
)
def test_vectors_are_printed_by_element(specification: str, value: tuple[str, bytes], text: str) -> None:
    assert render(specification.encode(), [value]) == text


@pytest.mark.parametrize(
    ("specification", "values", "text"),
    [
        (
            "%c%-3c|%3c 100%% %p",
            [*map(int32, (65, 66, 67)), ("ptr addrspace(1)", struct.pack("<Q", 0xBEEF))],
            "AB  |  C 100% 0xbeef",
        ),
        ("%c%c", [int32(0xC3), int32(0xA9)], "é"),
        ("%g %05f %5F", [*map(double, (-0.0, -math.inf, math.nan))], "-0  -inf   NAN"),
        # Undefined calls
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
        ("%c", [double(2.5)], "2"),
        ("%*d", [int32(-4), int32(5)], "5   "),
        ("%.*f", [int32(1), double(0.25)], "0.2"),
        ("%*d", [], "%*d"),
        ("none", [int32(5)], "none"),
        ("%d", [("i32", b"")], ""),
    ],
)
def test_every_call_is_printed(specification: str, values: list[tuple[str, bytes]], text: str) -> None:
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
