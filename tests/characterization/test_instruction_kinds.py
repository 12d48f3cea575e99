"""Every executed instruction has one kind, by operation and type.

Operations and bytes of a launch are counted exactly, in cases that are small enough to count by hand.
"""

from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast import Kernel, Local
from support.launching import kernels, launch, zeros

ITEMS = 32
PARAMETERS = (
    "global float *a, global int *b, global double *d, global float4 *v, local float *l, constant float *c"
)
HEAD = f"kernel void k({PARAMETERS}) {{ size_t i = get_global_id(0);"


def instructions(body: str) -> dict[str, Any]:
    """Those of `ITEMS` work-items."""
    kernel = KERNELS.get(body) or kernels(HEAD, [body], standard="2.0")[body]
    args: list[Any] = [np.ones(ITEMS, dtype) for dtype in ("f4", "i4", "f8")]
    args += [np.ones(4 * ITEMS, np.float32), Local(4 * ITEMS), np.ones(ITEMS, np.float32)]
    return dict(crosscast.characterize(kernel, ITEMS, 8, args).launch["instructions"])


OPERATIONS = [
    ("a[i] = a[i] + 3;", "fp32", "add", 1),
    ("a[i] = -a[i];", "fp32", "add", 1),
    ("a[i] = a[i] * 3;", "fp32", "mul", 1),
    ("a[i] = a[i] * a[i] + 2;", "fp32", "fused", 1),
    ("a[i] = fma(a[i], 2.0f, 1.0f);", "fp32", "fused", 1),
    ("a[i] = 3 / a[i];", "fp32", "div", 1),
    ("a[i] = sqrt(a[i]);", "fp32", "sqrt", 1),
    ("a[i] = rsqrt(a[i]);", "fp32", "rsqrt", 1),
    ("a[i] = exp2(a[i]);", "fp32", "exp", 1),
    ("a[i] = native_exp(a[i]);", "fp32", "native_exp", 1),
    ("a[i] = half_sin(a[i]);", "fp32", "half_sin", 1),
    ("a[i] = native_recip(a[i]);", "fp32", "native_recip", 1),
    ("a[i] = native_divide(a[i], 3.0f);", "fp32", "native_div", 1),
    ("a[i] = powr(a[i], 1.5f);", "fp32", "pow", 1),
    ("a[i] = fmax(a[i], 2.0f);", "fp32", "other", 1),
    ("a[i] = floor(a[i]);", "fp32", "other", 1),
    ("b[i] = isnan(a[i]);", "fp32", "compare", 1),
    ("b[i] = a[i] > 2;", "fp32", "compare", 1),
    ("d[i] = tanh(d[i]);", "fp64", "tanh", 1),
    ("d[i] = d[i] * 2;", "fp64", "mul", 1),
    ("v[i] = v[i] * 2;", "fp32", "mul", 4),
    ("v[i] = exp(v[i]);", "fp32", "exp", 4),
    ("a[i] = dot(v[i], v[i]);", "fp32", "other", 4),
    ("b[i] = b[i] ^ 5;", "int32", "add", 1),
    ("b[i] = b[i] << (int)a[i];", "int32", "shift", 1),
    ("b[i] = rotate(b[i], 7);", "int32", "shift", 1),
    ("b[i] = b[i] * b[i];", "int32", "mul", 1),
    ("b[i] = b[i] * b[i] + (int)a[i];", "int32", "fused", 1),
    ("b[i] = mul24(b[i], b[i]);", "int32", "mul24", 1),
    ("b[i] = mad24(b[i], b[i], 5);", "int32", "fused24", 1),
    ("b[i] = ((global uchar *)a)[i] * ((global short *)v)[i];", "int32", "mul24", 1),
    ("b[i] = (b[i] & 0xfff) * 77;", "int32", "mul24", 1),
    ("b[i] = ((uint)b[i] >> 9) * (int)get_local_id(0);", "int32", "mul24", 1),
    ("b[i] = ((uint)b[i] >> 8) * 77;", "int32", "mul", 1),
    ("b[i] = (b[i] & 0xffffff) * 77;", "int32", "mul", 1),
    ("b[i] = (b[i] & 0xff) * 0x800001;", "int32", "mul", 1),
    ("b[i] = b[i] / 7;", "int32", "div", 1),
    ("b[i] = b[i] % 7;", "int32", "div", 1),
    ("b[i] = 7 / b[i];", "int32", "div_by_variable", 1),
    ("((global long *)d)[i] /= b[i];", "int64", "div_by_variable", 1),
    ("((global uint4 *)v)[i] /= 7;", "int32", "div", 4),
    ("((global uint4 *)v)[i] %= (uint)b[i];", "int32", "div_by_variable", 4),
    ("b[i] = popcount(b[i]);", "int32", "add", 1),
    ("((global long *)d)[i] *= 3;", "int64", "mul", 1),
    ("((global short *)b)[i] *= 5;", "int16", "mul", 1),
    ("d[i] = a[i];", "conversions", "fp64", 1),
    ("a[i] = b[i];", "conversions", "fp32", 1),
    ("b[i] = convert_int_rte(a[i]);", "conversions", "fp32", 1),
]


@pytest.mark.parametrize(("body", "group", "kind", "times"), OPERATIONS)
def test_an_operation_counts_by_type_once_an_element(body: str, group: str, kind: str, times: int) -> None:
    assert instructions(body)[group][kind] == times * ITEMS


INVARIANT = {"div_by_invariant": 81}
LOOP = "for (int j = 0; j < 9; j++) { %s }"


DIVISIONS: list[tuple[str, dict[str, int]]] = [
    ("int x = b[i]; b[i] = 7 / x + 7 % x;", {"div_by_variable": 1}),
    ("uint x = b[i]; b[i] = 7 / x + 7 / (int)x;", {"div_by_variable": 2}),
    ("int x = b[i], y = a[i]; b[i] = 7 / x + 8 % x + 7 % y;", {"div_by_variable": 3}),
    ("int x = b[i], y = 0; " + LOOP % "y += (y + j) / x;" + "b[i] = y;", {"div_by_invariant": 9}),
    ("int y = 0; " + LOOP % "y += 9 / (j + b[y]);" + "b[i] = y;", {"div_by_variable": 9}),
    (f"int x = b[i], y = 0; {LOOP % ('x++; ' + LOOP % 'y += (y + j) / x;')} b[i] = y;", INVARIANT),
    # What is the same each time is computed once.
    ("int n = b[i], y = 0; " + LOOP % "y += b[(int)get_group_id(0) % n + j];" + "b[i] = y;", {}),
]


@pytest.mark.parametrize(("body", "expected"), DIVISIONS)
def test_divisions_are_by_what_the_divisor_is(body: str, expected: dict[str, int]) -> None:
    divisions = {kind: n for kind, n in instructions(body)["int32"].items() if kind.startswith("div")}
    assert divisions == {kind: n * ITEMS for kind, n in expected.items()}


X, Y, Z, U = (f"{array}[i]" for array in ("b", "(int)a", "(int)d", "(int)c"))
FEW = "if (i < 8) b[i] = {};"
JOINED: list[tuple[str, dict[str, int]]] = [
    (f"{X} + {Y} + {Z}", {"add": 1, "joined": 1}),
    (f"{X} - {Y} + {Z} - {U}", {"add": 2, "joined": 1}),
    (f"({X} & {Y}) | (~{X} & {Z})", {"add": 1, "joined": 3}),
    (f"{X} ^ {Y} ^ {Z} ^ {U}", {"add": 2, "joined": 1}),
    (f"({X} ^ {Y}) + {Z}", {"add": 2}),
    (f"({X} << 3) + {Y}", {"add": 1, "joined": 1}),
    (f"{X} * {Y} + {Z} + {U}", {"fused": 1, "add": 1}),
    (f"(b[i + 1] = {X} + {Y}) + {Z}", {"add": 2}),
]


@pytest.mark.parametrize(("value", "expected"), JOINED)
def test_what_one_instruction_does_with_the_next_is_joined(value: str, expected: dict[str, int]) -> None:
    found = instructions(FEW.format(value))["int32"]
    assert {kind: n // 8 for kind, n in found.items() if kind != "compare"} == expected


def test_loads_and_stores_are_by_space_and_width() -> None:
    found = instructions("l[i % 8] = c[i]; barrier(1); float4 x = v[i]; vstore4(x + l[0], i, a - 4 * i);")
    loads = {"global": {"16": ITEMS}, "local": {"4": ITEMS}, "constant": {"4": ITEMS}}
    assert found["loads"] == loads
    assert found["stores"] == {"local": {"4": ITEMS}, "global": {"16": ITEMS}}
    assert found["barriers"] == ITEMS


def test_private_arrays_are_a_space_of_their_own() -> None:
    found = instructions("float t[9]; for (int j = 0; j < 9; j++) t[(j * b[i]) % 9] = j; a[i] = t[b[i]];")
    assert found["stores"]["private"] == {"4": 9 * ITEMS}
    assert found["loads"]["private"] == {"4": ITEMS}


ATOMICS = [
    ("atomic_add(&b[7], i);", "global_uniform"),
    ("atomic_add(&b[get_group_id(0)], i);", "global_uniform"),
    ("for (int j = 0; j < 2; j++) atomic_max(&b[j], i);", "global_uniform"),
    ("atomic_add(&b[i & 1], 1);", "global"),
    ("atomic_add(&b[b[i]], 1);", "global"),  # Though all are 1
    ("atomic_add((local int *)l, 1);", "local"),
    ("atomic_xchg(&a[0], 1.0f);", "global_fp"),
    ("atomic_cmpxchg(&b[i], 1, 2);", "global_compare"),
    ("atomic_cmpxchg(&b[i], 7, 2);", "global"),  # Fails, and is not repeated
]


@pytest.mark.parametrize(("statement", "kind"), ATOMICS)
def test_atomics_on_integers_at_an_address_of_a_group_are_counted_apart(statement: str, kind: str) -> None:
    found = instructions(statement)
    assert set(found["atomics"]) == {kind}
    assert "loads" not in found or "b[b[i]]" in statement


def test_functions_of_the_program_are_calls() -> None:
    source = """__attribute__((noinline)) float f(float x) { return x * 2; }
      kernel void k(global float *a) { a[get_global_id(0)] = f(a[get_global_id(0)]); }"""
    found = crosscast.characterize(Kernel.from_source(source, "k"), 8, 8, [np.ones(8, np.float32)])
    assert found.launch["instructions"]["calls"] == 2 * 8  # and returns


def test_integers_that_serve_addresses_and_loops_alone_are_indexing() -> None:
    found = instructions("float s = 0; for (int k = 0; k < 8; k++) s += a[(i + k) & 31]; a[i] = s;")
    # The exit is tested before each of eight iterations, and once more.
    assert found["indexing"]["branches"]["conditional"] == 9 * ITEMS
    assert found["indexing"]["int32"]["compare"] == 9 * ITEMS
    assert found["branches"].get("conditional", 0) == 0


OF_VALUES = (
    "a[b[i] ^ 5] = 1;",  # Computed from what was loaded
    "b[i] = (int)i ^ 5;",
    "a[i] = (float)((int)i ^ 5);",
    "if (((int)i ^ 5) > 7) a[i] = 1;",  # Decides which way is taken, not how often
)


@pytest.mark.parametrize("body", OF_VALUES)
def test_integers_that_serve_anything_else_are_operations(body: str) -> None:
    assert instructions(body)["int32"]["add"] >= ITEMS


def test_addresses_stay_indexing_where_their_index_is_also_a_value() -> None:
    loop = "float s = 0; for (int k = 0; k < 8; k++) s += a[(i * 3 + k * 5) & 31] {}; a[i] = s;"
    alone, valued = (instructions(loop.format(use)) for use in ("", "* (float)k"))
    # The index's own sum is of a value now; its product and the sum and the mask of the address are not.
    assert valued["int32"] == {"add": 8 * ITEMS}
    assert alone["indexing"]["int32"].pop("add") == 8 * ITEMS
    assert valued["indexing"] == alone["indexing"]


_BODIES = [*OF_VALUES, *(FEW.format(value) for value, _ in JOINED)]
_BODIES += [row[0] for row in OPERATIONS] + [row[0] for row in DIVISIONS] + [row[0] for row in ATOMICS]
KERNELS = kernels(HEAD, _BODIES, standard="2.0")


FAST = """__global__ void k(float *a) {
  float x = a[threadIdx.x];
  a[threadIdx.x] = sinf(x) + expf(x) + x / a[1] + sqrtf(x) + powf(x, a[2]) + rsqrtf(x + 2) + tanhf(x);
}"""
ACCURATE = frozenset(("sin", "exp", "div", "sqrt", "pow", "rsqrt", "tanh"))


@pytest.mark.parametrize(
    ("option", "fast"),
    [
        ("-use_fast_math", ACCURATE - {"tanh"}),
        ("-ftz=true", {"rsqrt"}),
        ("-prec-div=false", {"div"}),
        ("--prec-sqrt=false", {"sqrt"}),
        ("-ftz=false", set()),
    ],
)
def test_options_choose_functions_that_approximate(option: str, fast: set[str]) -> None:
    kernel = Kernel.from_source(FAST, "k", form="cuda", options=(option,))
    launch = crosscast.Launch.on_grid(kernel, 1, ITEMS, (np.ones(ITEMS, np.float32),))
    counted = crosscast.characterize(launch).launch["instructions"]["fp32"]
    expected = {f"native_{name}" for name in fast} | (ACCURATE - fast)
    assert counted.keys() - {"add", "mul", "fused"} == expected


# -- operations and bytes, by hand

WORK: list[tuple[str, str, dict[str, int]]] = [
    ("a[i] = a[i] - 3;", "float", {"flops_single": 1, "global_bytes": 8}),
    ("a[i] = 3 / a[i];", "float", {"flops_single": 1, "global_bytes": 8}),
    ("a[i] = a[i] * a[i] + 2;", "float", {"flops_single": 2, "global_bytes": 8}),
    ("a[i] = fma(a[i], 2.0f, 3.0f);", "float", {"flops_single": 2, "global_bytes": 8}),
    ("a[i] = -a[i];", "float", {"global_bytes": 8}),
    ("a[i] = exp(a[i]);", "float", {"function_elements": 1, "global_bytes": 8}),
    ("a[i] = a[i] + a[i];", "float4", {"flops_single": 4, "global_bytes": 32}),
    ("a[i] = a[i] * 2;", "double", {"flops_double": 1, "global_bytes": 16}),
    ("a[i] = 3 * a[i] + 1;", "int", {"global_bytes": 8}),
    ("atomic_add(a, 1);", "int", {"global_bytes": 8}),
    (
        "local float t[16]; t[get_local_id(0)] = c[i % 4]; barrier(1); a[i] = t[15 - get_local_id(0)];",
        "float",
        {"global_bytes": 4, "constant_bytes": 4, "local_bytes": 8},
    ),
]


@pytest.mark.parametrize(("body", "type_", "each"), WORK)
def test_operations_and_bytes_of_a_work_item(body: str, type_: str, each: dict[str, int]) -> None:
    source = f"kernel void k(global {type_} *a, constant float *c) {{ size_t i = get_global_id(0); {body} }}"
    dtype = {"double": np.float64, "int": np.int32}.get(type_, np.float32)
    found = launch(source, ITEMS, 16, np.ones((ITEMS, 4), dtype), np.ones(4, np.float32))
    counted = dict(found.launch["work"])
    assert sum(counted.pop("instructions").values()) == found.metrics["total_instruction_count"]
    assert counted == {name: ITEMS * count for name, count in each.items()}


def test_a_collective_ends_no_piece() -> None:
    source = "kernel void k(global int *o) { o[get_global_id(0)] = work_group_reduce_add(2); }"
    found = launch(source, 8, 4, zeros(8), standard="2.0").metrics
    assert found["total_barriers_hit"] == 0
    assert found["min_itb"] == found["max_itb"] == found["max_ipt"]


def test_a_crowded_loop_is_counted_exactly() -> None:
    source = """kernel void k(global int *o, int n) {
      int s = 0;
      for (int i = 0; i < n; i++) s ^= s * 3 + i;
      o[0] = s;
    }"""
    few, many, more = (
        launch(source, 2, 1, zeros(1), np.int32(n)).metrics["total_instruction_count"] or 0
        for n in (10, 110, 3_000_010)
    )
    assert more == few + (many - few) * 30_000
