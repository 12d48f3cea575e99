"""The runtime's own functions, called from Python as instrumented code would call them."""

import ctypes
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crosscast.characterization import toolchain
from crosscast.characterization.engine import runtime_objects
from crosscast.characterization.instrumentation import context

WINDOW = context.WINDOW
LOW, FLAGS = (1 << 30) - 1, 3 << 30
READ, WRITE = 1, 2

HARNESS = Path(__file__).with_name("runtime_harness.c")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("runtime")
    made, library = folder / "harness.o", folder / "harness.so"
    made.write_bytes(toolchain.clang(runtime_objects.arguments("-O1"), HARNESS.read_bytes(), HARNESS.name))
    toolchain.link_shared([made, *runtime_objects.objects()], library)
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
        table = self.words("table_of", context.TABLE_BYTES // 8)
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
    assert runtime.history_bytes() == context.HISTORY_BYTES


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
