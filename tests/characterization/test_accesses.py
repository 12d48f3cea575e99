"""Accesses that `test_sub_groups` does not interpret, against lists written down in Python.

Reads just outside of a buffer, which devices do not mind, end no run, and the profile says how far they are.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast import Kernel
from crosscast.characterization import run
from crosscast.characterization.engine.arguments import shared_empty
from crosscast.characterization.instrumentation import strided_code
from crosscast.characterization.run import Options, characterize_launch
from crosscast.errors import KernelFault
from crosscast.kernel import Launch
from crosscast.profile import Profile, doubts
from support.examples import one_in
from support.launching import kernels, launch, zeros
from support.reference import Address, memory_metrics, same_metrics
from support.refusals import refusals


def _check(profile: Profile, reads: Sequence[Address], writes: Sequence[Address], **others: Any) -> None:
    assert same_metrics(profile.metrics, {**memory_metrics(reads, writes), **others}) == {}


def test_halves_stored_as_vectors_are_one_event() -> None:
    source = """kernel void k(global half *o, global const half *a) {
      int i = get_global_id(0);
      vstore_half4(vload_half4(i, a), i, o);
      vstorea_half3(vloada_half3(i, a), i, o);
    }"""
    profile = launch(source, 4, 2, zeros(16, np.float16), zeros(16, np.float16))
    addresses = [8 * i for i in range(4)] * 2
    _check(profile, [("a", b) for b in addresses], [("o", b) for b in addresses])


# -- copies


@pytest.mark.parametrize(("type_", "nbytes"), [("uchar", 1), ("int", 4), ("float3", 16), ("double2", 16)])
def test_an_async_copy_is_an_event_an_element_a_side(type_: str, nbytes: int) -> None:
    source = f"""kernel void k(global {type_} *o, global const {type_} *a) {{
      local {type_} t[8];
      event_t e = async_work_group_strided_copy(t, a + get_group_id(0), 8, 2, 0);
      wait_group_events(1, &e);
      e = async_work_group_copy(o + 8 * get_group_id(0), t, 8, 0);
      wait_group_events(1, &e);
    }}"""
    out, a = zeros(32 * nbytes, np.uint8), np.arange(20 * nbytes).astype(np.uint8)
    dtype = {"uchar": np.uint8, "int": np.int32, "float3": np.float32, "double2": np.float64}[type_]
    profile = launch(source, 16, 4, out.view(dtype), a.view(dtype))
    each, local = [*product(range(4), range(8))], [("t", nbytes * n) for n in range(8)] * 4
    reads: list[Address] = [*(("a", nbytes * (group + 2 * n)) for group, n in each), *local]
    writes: list[Address] = [*(("o", nbytes * (8 * group + n)) for group, n in each), *local]
    _check(profile, reads, writes, global_accesses=0, local_accesses=0)
    elements = a.reshape(20, nbytes)
    expected = np.concatenate([elements[group : group + 16 : 2] for group in range(4)])
    np.testing.assert_array_equal(out.reshape(32, nbytes), expected)


# -- counters


def test_counters_do_not_overflow() -> None:
    source = "kernel void k(volatile global uchar *b, int n) { for (int i = 0; i < n; i++) b[i % 3] = b[5]; }"
    profile = launch(source, 10, 2, zeros(8, np.uint8), np.int32(1000), threads=2)
    writes: list[Address] = [("b", i % 3) for i in range(1000)]
    _check(profile, [("b", 5)] * 10_000, writes * 10, local_memory_address_entropy_3=0)
    source = "kernel void k(volatile global short *b, int n) { for (int i = 0; i < n; i++) b[0] += 1; }"
    profile = launch(source, 4, 1, zeros(4, np.int16), np.int32(20_000))
    _check(profile, [("b", 0)] * 80_000, [("b", 0)] * 80_000)


_MANY = 1 << 12
_DOES = [*product(("read", "write"), ("float", "double", "int4")), ("add", "float")]
_SPANS = [(0, 1500), (700, 1500), (_MANY, 1), (_MANY, 2), (1000, 40000)]


@pytest.mark.parametrize(("does", "hot_span", "threads"), one_in(9, product(_DOES, _SPANS, [1, 3])))
def test_accesses_that_data_scatter(does: tuple[str, str], hot_span: tuple[int, int], threads: int) -> None:
    (verb, type_), (hot, span) = does, hot_span
    # Some addresses far more often than a byte counts, others rarely, most never.
    x = np.random.default_rng(hot + span).integers(0, span, _MANY).astype(np.int32)
    x[:hot] %= 2
    body = {
        "read": "o[i] = a[x[i]];",
        "write": "a[x[i]] = o[0];",
        "add": "atomic_add((global int *)a + x[i], 1);",
    }[verb]
    parameters = f"global {type_} *o, global {type_} *a, global const int *x"
    source = f"kernel void k({parameters}) {{ int i = get_global_id(0); {body} }}"
    dtype, width = {"float": (np.float32, 1), "double": (np.float64, 1), "int4": (np.int32, 4)}[type_]
    nbytes = width * np.dtype(dtype).itemsize
    out, a = zeros(_MANY * width, dtype), zeros(span * width, dtype)
    profile = launch(source, _MANY, 64, out, a, x, threads=threads)
    index: list[Address] = [("x", 4 * i) for i in range(_MANY)]
    scattered: list[Address] = [("a", nbytes * int(i)) for i in x]
    given: list[Address] = [("o", nbytes * i) for i in range(_MANY)]
    reads = [("o", 0)] * _MANY if verb == "write" else scattered
    _check(profile, [*reads, *index], given if verb == "read" else scattered)


# -- reads beside a buffer

N = 256
_READING = """kernel void k(global const int *a, global int *o, global const int *x, int n) {{
  int i = get_global_id(0);
  {body}
}}"""


def reading(body: str, index: int = 0) -> Launch:
    kernel = Kernel.from_source(_READING.format(body=body), "k")
    x = np.zeros(N, np.int32)
    x[77] = index
    return Launch(kernel, (N,), (32,), (np.ones(N, np.int32), np.zeros(N, np.int32), x, np.int32(N)))


def beyond(profile: Profile) -> dict[str, tuple[int, int]]:
    found = profile.launch.get("read_beyond", {})
    return {name: (far["before"], far["behind"]) for name, far in found.items()}


_BESIDE = {
    "the next one": ("o[i] = a[i + 1];", 0, (0, 4)),
    "the one before": ("o[i] = a[i - 1];", 0, (4, 0)),
    "both neighbours": ("o[i] = a[i - 2] + a[i] + a[i + 3];", 0, (8, 12)),
    "a loop": ("for (int k = 0; k <= n; k++) o[i] += a[k];", 0, (0, 4)),
    "an index": ("o[i] = a[x[i]];", N + 9, (0, 40)),
    "an index before": ("o[i] = a[x[i]];", -9, (36, 0)),
    "another page": ("o[i] = a[i + 1024 * 9];", 0, (0, 4 * 1024 * 9)),
    "a last row": ("o[i] = a[i + (i / 32 == n / 32 - 1 ? 32 : 0)];", 0, (0, 128)),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", _BESIDE)
def test_reads_beside_a_buffer_are_told_and_zeros_and_checks_refuse_them(name: str, threads: int) -> None:
    body, index, far = _BESIDE[name]
    asked = reading(body, index)
    with pytest.raises(KernelFault, match=r"k: out-of-bounds read of 4 bytes by work-item \d+ in line 3"):
        crosscast.characterize(reading(body, index), threads=threads, check_bounds=True)
    profile = crosscast.characterize(asked, threads=threads)
    assert beyond(profile) == {"a": far}
    (said, *_) = doubts(profile.launch)
    assert " of a, where a device may have anything: zeros were read" in said
    if name == "the next one":
        assert np.asarray(asked.args[1]).tolist() == [1] * (N - 1) + [0]


def test_counts_are_those_of_a_larger_buffer() -> None:
    read, whole = reading("o[i] = a[i + 1];"), reading("o[i] = a[i + 1];")
    whole = Launch(whole.kernel, (N,), (32,), (np.ones(N + 1, np.int32), *whole.args[1:]))
    found, larger = crosscast.characterize(read), crosscast.characterize(whole)
    for count in ("total_instruction_count", "total_reads", "global_accesses", "total_writes"):
        assert found.metrics[count] == larger.metrics[count]
    assert found.launch["sub_groups"] == larger.launch["sub_groups"]
    assert "read_beyond" not in larger.launch
    assert doubts(larger.launch) == []


def test_a_pointer_to_any_memory_is_told_too() -> None:
    source = """kernel void k(global const int *a, global int *o, int own_one) {
      private int own[2] = {1, 2};
      const int *p = a;
      if (own_one) p = own;
      o[get_global_id(0)] = p[get_global_id(0) + 2];
    }"""
    kernel = Kernel.from_source(source, "k", standard="2.0")
    profile = crosscast.characterize(kernel, 8, 8, [np.ones(8, np.int32), np.zeros(8, np.int32), np.int32(0)])
    assert set(beyond(profile)) == {"a"}


@refusals("body index")
def test_writes_and_what_is_far_are_refused(body: str, index: int) -> None:
    with pytest.raises(KernelFault, match=r"k: .*accessed memory that is not its own: .*--check-bounds"):
        crosscast.characterize(reading(body, index))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("kernel void k(global float *a) { int i = get_global_id(0); vstore4((float4)(1 + i), i, a); }", 14),
        ("kernel void k(global float *a) { *(global double *)(a + 4 * get_global_id(0)) = 0.1; }", 13),
    ],
)
def test_a_write_over_the_end_of_a_buffer_is_refused(source: str, count: int, threads: int) -> None:
    asked = Launch(Kernel.from_source(source, "k"), (4,), (2,), (np.zeros(count, np.float32),))
    for _ in range(2):
        with pytest.raises(KernelFault, match=r"k: .*accessed memory that is not its own: .*--check-bounds"):
            crosscast.characterize(asked, threads=threads)
    enough = Launch(asked.kernel, (4,), (2,), (np.zeros(16, np.float32),))
    crosscast.characterize(enough, threads=threads)


def test_a_buffer_that_was_overrun_can_be_used_again() -> None:
    array = shared_empty(14, np.float32)
    source = "kernel void k(global float *a, float v) { vstore4((float4)(v), get_global_id(0), a); }"
    kernel = Kernel.from_source(source, "k")
    with pytest.raises(KernelFault):
        crosscast.characterize(Launch(kernel, (4,), (2,), (array, np.float32(1))))
    crosscast.characterize(Launch(kernel, (3,), (3,), (array, np.float32(2))))
    assert array.tolist() == [2] * 12 + [1] * 2


def test_a_part_of_an_array_is_written_and_what_follows_it_stays() -> None:
    whole = shared_empty(16, np.float32)
    whole[:] = 7
    source = "kernel void k(global float *a) { a[get_global_id(0)] = 1; }"
    crosscast.characterize(Launch(Kernel.from_source(source, "k"), (14,), (2,), (whole[:14],)))
    assert whole.tolist() == [1] * 14 + [7] * 2


def test_some_work_groups_say_it_too() -> None:
    source = (
        "kernel void k(global const int *a, global int *o) { int i = get_global_id(0); o[i] = a[i + 5]; }"
    )
    args = (np.ones(1 << 14, np.int32), np.zeros(1 << 14, np.int32))
    asked = Launch(Kernel.from_source(source, "k"), (1 << 14,), (32,), args)
    assert beyond(characterize_launch(asked, options=Options(sample_groups=60))) == {"a": (0, 20)}


# -- accesses that are recorded as rows: as if each were counted, however rows are cut or wrap around

_ROW_N = 4096
_BODIES = {
    "a stream": "o[x] = a[x] + a[x + 1];",
    "backwards": "o[n - 1 - x] = a[n - x];",
    "strided": "o[3 * x] = a[5 * x + 2];",
    "all the same": "o[7] = a[9];",
    "a guard": "if (x < n - 1000) o[x] = a[x];",
    "a guard inside of the range": "if (x > 100 && x <= 777) o[x] = a[2 * x];",
    "borders": "if (x == 0 || x == 511) o[x] = 1; else o[x] = a[x - 1] + a[x + 1];",
    "one in the middle": "if (x == 300) o[x] = a[x]; else o[x] = a[0];",
    "all but one": "if (x != 123) o[x] = a[x];",
    "a triangle": "if (x >= 40 * y) o[x] = a[x + y];",
    "planes": "o[y * 512 + x] = a[x * 8 + y];",
    "unsigned, below zero": "uint i = (uint)x - 10u; if (i < 500u) o[i] = a[i];",
    "unsigned differences that wrap twice": "uint i = x - 10u, k = x - 20u; o[(i - k) + (x & 7)] = a[i - k];",
    "wrapping in 32 bits": "uint i = (uint)x * 0x00800000u; o[i >> 23] = a[(i + 5u) >> 24];",
    "wrapping in 16 bits": "ushort i = (ushort)(x * 100); o[x] = a[i & 1023]; "
    "o[(ushort)(x + 65500) / 65 & 1023] = 1;",
    "a short index": "short i = (short)(x + 32700); if (i >= 0) o[i - 32700] = a[x];",
    "a char index": "o[(uchar)(x * 3)] = a[(char)(x) + 128];",
    "a choice": "int i = y & 1 ? x : n - 1 - x; o[i] = a[i];",
    "local and global ids": "o[get_group_id(0) * 64 + get_local_id(0)] = a[get_local_id(0) * 2];",
    "more accesses than a slice has room for": "if (x < n - 1000) { "
    + " ".join(f"s += a[x + {7 * k}];" for k in range(70))
    + " o[x] = s; }",
    "a linear id": "o[get_global_linear_id() & 1023] = a[get_global_linear_id()];",
    "a loop": "for (int k = 0; k < 9; k++) s += a[x + 4 * k]; o[x] = s;",
    "a loop down": "for (int k = x & 31; k > 0; k--) s += a[x + k]; o[x] = s;",
    "a loop that is left": "for (int k = 0; k < 20; k++) { s += a[x + k]; if (k == (x & 15)) break; "
    "} o[x] = s;",
    "a loop with a branch": "for (int k = 0; k < 9; k++) { if (k & x) s += a[x + k]; s += a[k]; } o[x] = s;",
    "a loop with a join": "for (int k = 0; k < 9; k++) { int j; if (a[x + k] & 1) { j = n & 7; "
    "atomic_inc(o + x); } else { j = y & 3; atomic_dec(o + x); } o[x + j] += a[k]; }",
    "a loop that wraps": "for (uint k = x; k != (uint)x + 600u; k += 40u) s += a[(k + 0xffffff00u) & 2047u]; "
    "o[x] = s;",
    "a loop of 8 bits": "for (uchar k = 250; k != 9; k++) s += a[k + x]; o[x] = s;",
    "a nest": "for (int j = 0; j < 3; j++) for (int k = 0; k < j + 2; k++) s += a[x + 16 * j + k]; o[x] = s;",
    "a pointer": "global int *p = a + x; while (p < a + n - 1 && s < 3) { s += (*p & 1) + 1; p += 3; "
    "} o[x] = s;",
    "rows of unlike lengths": "for (int k = x * (x & 3); k < (x + 1) * (x & 3); k++) s += a[k & 4095]; "
    "o[x] = s;",
    "behind a loop": "for (int k = 0; k < (a[x] & 7); k++) s += k; if (x < 400) o[x + (n & 1)] = s;",
    "local memory": "local int t[64]; int l = get_local_id(0); t[l] = a[x]; barrier(CLK_LOCAL_MEM_FENCE); "
    "for (int k = 0; k < 16; k++) s += t[k]; if (l < 5) t[63 - l] = s; o[x] = s;",
    "characters": "global char *c = (global char *)a; c[x] = 1; o[x] = ((global char *)o)[4 * x + 1];",
    "vectors": "((global int4 *)o)[x / 2] = ((global int4 *)a)[x];",
    "what other work-items use": "o[x] = x; if (x > 0) a[x] = o[x - 1];",
}  # fmt: skip
_SHAPES: list[dict[str, Any]] = [
    {"global_size": (512, 4), "local_size": (64, 1)},
    {"global_size": (512, 4), "local_size": (16, 4)},
    {"global_size": (500, 3), "local_size": (64, 2)},
    {"global_size": (512, 4, 2), "local_size": (64, 2, 2)},
]


_KERNELS = kernels(
    "kernel void k(global int *a, global int *o, int n) {"
    " int x = get_global_id(0), y = get_global_id(1), s = 0;",
    _BODIES.values(),
    standard="2.0",
)


def _run(name: str, shape: dict[str, Any], **options: Any) -> tuple[Profile, list[Any]]:
    a = (np.arange(2 * _ROW_N, dtype=np.int32) * 7919) % 1009
    out = np.zeros(_ROW_N, np.int32)
    sizes = shape["global_size"], shape["local_size"]
    launch = Launch(_KERNELS[_BODIES[name]], *sizes, (a, out, np.int32(512)))
    profile = run.characterize_launch(launch, options=run.Options(**options))
    return profile, [a, out]


@pytest.mark.parametrize(("name", "shape"), one_in(5, product(_BODIES, _SHAPES)))
def test_rows_are_what_counting_each_access_gives(name: str, shape: dict[str, Any]) -> None:
    counted, expected = _run(name, shape, check_bounds=True, threads=1)
    for threads in (1, 3):
        profile, found = _run(name, shape, threads=threads)
        assert profile.metrics == counted.metrics
        assert profile.launch["distinct_bytes"] == counted.launch["distinct_bytes"]
        assert all((x == y).all() for x, y in zip(found, expected, strict=True))


_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_TYPES: dict[str, type[np.signedinteger[Any] | np.unsignedinteger[Any]]] = {
    "int": np.int32, "uint": np.uint32, "ulong": np.uint64, "char": np.int8
}  # fmt: skip


@pytest.mark.parametrize("type_", one_in(4, _TYPES))
def test_loops_over_items_are_divided_at_bounds_of_ids(type_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    conditions = [
        c for sign in _COMPARISONS for c in (f"l {sign} n", f"n {sign} l", f"l {sign} 0", f"l {sign} n / 2")
    ]
    steps = " ".join(
        f"if ({c}) {{ o[x] += {1 << k % 24}; t[l & 63] = k; }} k += o[x] & 1; barrier(1);"
        for k, c in enumerate(conditions)
    )
    source = (
        f"kernel void k(global int *o, {type_} n) {{ local int t[64]; int k = 0; int x = get_global_id(0); "
        f"{type_} l = get_local_id(0); {steps} o[x] += t[l & 63]; }}"
    )
    limits = np.iinfo(_TYPES[type_])
    for n in (limits.min, -1, 0, 1, 31, 63, 64, 127, limits.max):
        if not limits.min <= n <= limits.max:
            continue
        found = []
        for smallest in (32, 1 << 20):
            monkeypatch.setattr(strided_code, "SMALLEST_SPLIT", smallest)
            kernel = Kernel.from_source(f"// {smallest}\n{source}", "k", standard="3.0")
            output = np.zeros(200, np.int32)
            args = (output, _TYPES[type_](n))
            profile = run.characterize_launch(
                Launch(kernel, (200,), (64,), args), options=run.Options(threads=1)
            )
            found.append((output.tolist(), profile.metrics))
        assert found[0] == found[1]
