"""Atomic functions: returned values, what memory holds afterwards, and the accesses they report."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crosscast.characterization.builtins import llvm_ir
from crosscast.errors import UnsupportedError
from support.harness import DTYPES, run
from support.refusals import refusals

Array = npt.NDArray[Any]
START = {
    "int": [5, -1, 2**31 - 1, -(2**31), 12],
    "uint": [5, 0, 2**32 - 1, 2**31, 12],
    "long": [5, -1, 2**63 - 1, -(2**63), 12],
    "ulong": [5, 0, 2**64 - 1, 2**63, 12],
    "float": [5, -0.0, np.inf, 1e-40, 12],
    "double": [5, -0.0, np.inf, 1e-310, 12],
}
WITH = [3, 7, 1, 9, 12]
RESULTS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
    "xchg": lambda old, value: value,
    "exchange": lambda old, value: value,
    "inc": lambda old, value: np.add(old, old.dtype.type(1)),
    "dec": lambda old, value: np.subtract(old, old.dtype.type(1)),
}
LEGACY = [name for name in RESULTS if name != "exchange"]
C11 = ["exchange", *[f"fetch_{name}" for name in ("add", "sub", "and", "or", "xor", "min", "max")]]
PRAGMAS = """
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
"""


def through_memory(space: str, pointer: str, base: str, statement: str) -> str:
    """A kernel's body that runs `statement` on `object`, a pointer to global or local memory."""
    if space == "global":
        return f"global {pointer} *object = (global {pointer} *)(memory + k); {statement}"
    return (
        f"local {base} scratch[1]; local {pointer} *object = (local {pointer} *)scratch; "
        f"scratch[0] = memory[k]; {statement} memory[k] = scratch[0];"
    )


@pytest.mark.parametrize("space", ["global", "local"])
@pytest.mark.parametrize("base", ["int", "uint", "long", "ulong", "float"])
def test_functions_of_opencl_1_combine_and_return_the_old_value(space: str, base: str) -> None:
    prefix = "atom" if "long" in base else "atomic"
    calls = {
        name: f"{prefix}_{name}(object{'' if name in ('inc', 'dec') else ', value'})"
        for name in (LEGACY if base != "float" else ["xchg"])
    }
    check_updates(space, base, base, calls, "1.2")


@pytest.mark.parametrize("space", ["global", "local"])
@pytest.mark.parametrize(("base", "standard"), [("int", "2.0"), ("ulong", "3.0"), ("float", "3.0")])
def test_c11_functions_combine_and_return_the_old_value(space: str, base: str, standard: str) -> None:
    names = C11 if base != "float" else ["exchange", "fetch_add", "fetch_min", "fetch_max"]
    calls = {name: f"atomic_{name}(object, value)" for name in names}
    check_updates(space, base, f"atomic_{base}", calls, standard)
    orders = "memory_order_relaxed, memory_scope_device"
    calls = {name: f"atomic_{name}_explicit(object, value, {orders})" for name in names}
    check_updates(space, base, f"atomic_{base}", calls, standard)


def check_updates(space: str, base: str, pointer: str, calls: dict[str, str], standard: str) -> None:
    """Run each call on its own copy of the start values and compare with NumPy."""
    start = np.array(START[base], DTYPES[base])
    value = np.array(WITH, DTYPES[base])
    cases = "".join(f"case {number}: old[k] = {call}; break;\n" for number, call in enumerate(calls.values()))
    body = through_memory(space, pointer, base, f"switch (k / {len(start)}) {{\n{cases}}}")
    source = f"""{PRAGMAS}
    kernel void k(global {base} *memory, global const {base} *values, global {base} *old) {{
      size_t k = get_global_id(0); {base} value = values[k % {len(start)}];
      {body}
    }}"""
    memory = np.tile(start, len(calls))
    old = np.zeros_like(memory)
    run(source, "k", [memory, value, old], len(memory), standard)
    assert old.tobytes() == np.tile(start, len(calls)).tobytes()
    with np.errstate(over="ignore"):
        expected = [RESULTS[name.removeprefix("fetch_")](start, value) for name in calls]
    np.testing.assert_array_equal(memory.reshape(len(calls), -1), np.stack(expected))


def test_compare_exchange_of_opencl_1_swaps_only_what_it_expected() -> None:
    source = f"""{PRAGMAS}
    kernel void k(global int *i, global ulong *u, global int *old_i, global ulong *old_u,
                  global int *shared) {{
      size_t k = get_global_id(0); local uint scratch[1]; scratch[0] = (uint)k;
      old_i[k] = atomic_cmpxchg(i + k, 2, 100); old_u[k] = atom_cmpxchg(u + k, 3ul, 200ul);
      shared[k] = (int)atomic_cmpxchg(scratch, 1u, 50u) * 1000 + (int)scratch[0];
    }}"""
    i, u = np.arange(5, dtype=np.int32), np.arange(5, dtype=np.uint64)
    old_i, old_u, shared = np.zeros_like(i), np.zeros_like(u), np.zeros_like(i)
    run(source, "k", [i, u, old_i, old_u, shared], 5)
    assert i.tolist() == [0, 1, 100, 3, 4]
    assert u.tolist() == [0, 1, 2, 200, 4]
    assert old_i.tolist() == old_u.tolist() == [0, 1, 2, 3, 4]
    assert shared.tolist() == [0, 1050, 2002, 3003, 4004]


@pytest.mark.parametrize("base", ["int", "uint", "long", "ulong", "float", "double"])
def test_objects_of_every_type_are_initialized_stored_loaded_and_exchanged(base: str) -> None:
    source = f"""{PRAGMAS}
    kernel void k(global {base} *memory, global {base} *seen) {{
      global atomic_{base} *object = (global atomic_{base} *)memory;
      local atomic_{base} scratch[1];
      atomic_init(object, 1); atomic_init(scratch, 2);
      seen[0] = atomic_load(object) + atomic_load_explicit(scratch, memory_order_acquire);
      atomic_store(object, 4);
      atomic_store_explicit(scratch, 5, memory_order_release, memory_scope_work_group);
      seen[1] = atomic_exchange(object, atomic_exchange(scratch, 7));
      seen[2] = atomic_load(scratch);
    }}"""
    memory, seen = np.zeros(1, DTYPES[base]), np.zeros(3, DTYPES[base])
    run(source, "k", [memory, seen], 1, "3.0")
    assert (memory.tolist(), seen.tolist()) == ([5], [3, 4, 7])


@pytest.mark.parametrize("strength", ["strong", "weak"])
@pytest.mark.parametrize("space", ["global", "local"])
@pytest.mark.parametrize("base", ["int", "long", "float", "double"])
def test_c11_compare_exchange_tells_what_it_found(strength: str, space: str, base: str) -> None:
    call = f"atomic_compare_exchange_{strength}(object, &expected, 9)"
    explicit = (
        f"atomic_compare_exchange_{strength}_explicit(object, expectation, 8, "
        "memory_order_acq_rel, memory_order_acquire, memory_scope_device)"
    )
    statement = f"""
      {base} expected = values[0]; swapped[2 * k] = {call}; found[2 * k] = expected;
      global {base} *expectation = found + 2 * k + 1; *expectation = 9;
      swapped[2 * k + 1] = {explicit};"""
    source = f"""{PRAGMAS}
    kernel void k(global {base} *memory, global const {base} *values, global {base} *found,
                  global int *swapped) {{
      size_t k = get_global_id(0);
      {through_memory(space, f"atomic_{base}", base, statement)}
    }}"""
    memory = np.array([1, 2], DTYPES[base])
    found, swapped = np.zeros(4, DTYPES[base]), np.zeros(4, np.int32)
    run(source, "k", [memory, np.array([1], DTYPES[base]), found, swapped], 2, "3.0")
    assert memory.tolist() == [8, 2]
    assert swapped.tolist() == [1, 1, 0, 0]
    assert found.tolist() == [1, 9, 2, 2]


def test_pointer_sized_objects_take_differences() -> None:
    source = f"""{PRAGMAS}
    kernel void k(global ulong *memory, global ulong *old) {{
      old[0] = atomic_fetch_add((global atomic_uintptr_t *)memory, (ptrdiff_t)-3);
      old[1] = (ulong)atomic_fetch_max((global atomic_intptr_t *)(memory + 1), (intptr_t)-5);
      old[2] = atomic_fetch_or((global atomic_size_t *)(memory + 2), (size_t)6);
      old[3] = (ulong)atomic_exchange((global atomic_ptrdiff_t *)(memory + 3), (ptrdiff_t)-1);
    }}"""
    memory, old = np.array([10, 2**64 - 9, 1, 4], np.uint64), np.zeros(4, np.uint64)
    start = memory.copy()
    run(source, "k", [memory, old], 1, "2.0")
    assert memory.tolist() == [7, 2**64 - 5, 7, 2**64 - 1]
    assert old.tolist() == start.tolist()


def test_a_flag_is_set_once() -> None:
    source = """
    kernel void k(global int *flag, global int *was) {
      global atomic_flag *object = (global atomic_flag *)flag; local atomic_flag scratch[1];
      atomic_flag_clear(scratch);
      was[0] = atomic_flag_test_and_set(object); was[1] = atomic_flag_test_and_set(object);
      was[2] = atomic_flag_test_and_set_explicit(scratch, memory_order_acquire, memory_scope_work_group);
      was[3] = atomic_flag_test_and_set(scratch);
      atomic_flag_clear_explicit(object, memory_order_release); was[4] = atomic_flag_test_and_set(object);
    }"""
    flag, was = np.zeros(1, np.int32), np.full(5, 7, np.int32)
    run(source, "k", [flag, was], 1, "3.0")
    assert (flag.tolist(), was.tolist()) == ([1], [0, 1, 0, 1, 0])


@refusals("symbol")
def test_what_is_no_atomic_function_is_refused(symbol: str) -> None:
    with pytest.raises(UnsupportedError, match="neither defined"):
        llvm_ir([symbol])
