"""Accesses that are recorded as rows: as if each were counted, however rows are cut or wrap around.

With checked bounds each access is counted where it stands.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import run
from crosscast.characterization.instrumentation import strided_code
from crosscast.kernel import Kernel, Launch
from crosscast.profile import Profile
from support.examples import one_in

_N = 4096
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


_HEAD = "int x = get_global_id(0), y = get_global_id(1), s = 0;"
_SOURCE = "".join(
    f"kernel void k{number}(global int *a, global int *o, int n) {{ {_HEAD} {body} }}\n"
    for number, body in enumerate(_BODIES.values())
)


def _run(name: str, shape: dict[str, Any], **options: Any) -> tuple[Profile, list[Any]]:
    a = (np.arange(2 * _N, dtype=np.int32) * 7919) % 1009
    out, number = np.zeros(_N, np.int32), [*_BODIES].index(name)
    kernel = Kernel.from_source(_SOURCE, f"k{number}", standard="2.0")
    launch = Launch(kernel, shape["global_size"], shape["local_size"], (a, out, np.int32(512)))
    profile = run.characterize_launch(launch, options=run.Options(**options))
    return profile, [a, out]


@pytest.mark.parametrize(("name", "shape"), one_in(5, product(_BODIES, _SHAPES)))
def test_rows_are_what_counting_each_access_gives(name: str, shape: dict[str, Any]) -> None:
    counted, expected = _run(name, shape, check_bounds=True, threads=1)
    for threads in (1, 3):
        profile, found = _run(name, shape, threads=threads)
        assert profile.metrics == counted.metrics
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
