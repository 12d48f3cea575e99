"""vload, vstore and their ``half`` forms: values, rounding, addresses, and what they report."""

from __future__ import annotations

import numpy as np
import pytest
from exact import MODES, interesting, to_float
from harness import DTYPES, run

from crosscast.characterization.builtins import library
from crosscast.characterization.builtins.access import Access

WIDTHS = (2, 3, 4, 8, 16)
MANGLED = dict(zip(DTYPES, ["c", "h", "s", "t", "i", "j", "l", "m", "Dh", "f", "d"], strict=True))


@pytest.mark.parametrize("base", DTYPES)
@pytest.mark.parametrize("standard", ["1.2", "2.0"])
def test_elements_move_to_where_the_index_says(base: str, standard: str) -> None:
    """In the reverse order, from addresses aligned to one element, through all address spaces."""
    moves = "".join(
        f"""
  for (int k = 0; k < 3; k++) {{
    {base}{w} v = vload{w}(k, x + 1);
    vstore{w}(v, k, near);
    vstore{w}(vload{w}(k, near), k, own);
    vstore{w}(vload{w}(k, own), 2 - k, out + {48 * n});
  }}"""
        for n, w in enumerate(WIDTHS)
    )
    source = f"""
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
constant {base} fixed[4] = {{1, 2, 3, 4}};
kernel void k(global const {base} *x, global {base} *out, local {base} *near) {{
  {base} own[49];{moves}
  vstore3(vload3(0, fixed + 1), 0, out + {48 * len(WIDTHS)});
}}"""
    x = (np.arange(49) + 3).astype(DTYPES[base])
    out = np.zeros(48 * len(WIDTHS) + 4, DTYPES[base])
    run(source, "k", [x, out, np.zeros(49, DTYPES[base])], 1, standard)
    for n, width in enumerate(WIDTHS):
        expected = np.zeros(48, DTYPES[base])
        expected[: 3 * width] = x[1 : 1 + 3 * width].reshape(3, width)[::-1].ravel()
        assert np.array_equal(out[48 * n : 48 * n + 48], expected), width
    assert out[48 * len(WIDTHS) :].tolist() == [2, 3, 4, 0]


def test_halves_are_read_as_floats() -> None:
    h = interesting("half")
    loads = "".join(
        f"vstore{w}(vload_half{w}(1, h), 0, out + {32 * n});"
        f"vstore{w}(vloada_half{w}(1, h), 0, out + {32 * n + 16});"
        for n, w in enumerate(WIDTHS)
    )
    source = (
        f"kernel void k(global const half *h, global float *out) {{ {loads} out[160] = vload_half(5, h); }}"
    )
    out = np.zeros(161, np.float32)
    run(source, "k", [h, out], 1)
    wide = h.astype(np.float32)
    for n, width in enumerate(WIDTHS):
        aligned = 4 if width == 3 else width
        assert np.array_equal(out[32 * n :][:width], wide[width : 2 * width], equal_nan=True)
        assert np.array_equal(out[32 * n + 16 :][:width], wide[aligned : aligned + width], equal_nan=True)
    assert out[160] == wide[5]


@pytest.mark.parametrize("base", ["float", "double"])
@pytest.mark.parametrize("width", [1, 3, 4, 16])
def test_halves_are_rounded_when_stored(base: str, width: int) -> None:
    x = interesting(base)
    n = "" if width == 1 else str(width)
    modes = ("", *MODES)
    value = f"vload{width}(i, x)" if width > 1 else "x[i]"
    stores = "".join(
        f"vstore{a}_half{n}{'_' * bool(m)}{m}({value}, i, out + {(2 * k + (a == 'a')) * 128});"
        for k, m in enumerate(modes)
        for a in ("", "a")[: 2 if width > 1 else 1]  # one element has no aligned form
    )
    source = (
        f"kernel void k(global const {base} *x, global half *out) {{ size_t i = get_global_id(0); {stores} }}"
    )
    out = np.zeros((len(modes), 2, 128), np.float16)
    run(source, "k", [x, out], 96 // width)
    for k, mode in enumerate(modes):
        expected = np.array([to_float(v, "half", mode or "rte") for v in x.tolist()], np.float16)
        assert np.array_equal(out[k, 0, :96], expected, equal_nan=True), mode
        if width == 1:
            continue
        spread = out[k, 1].reshape(-1, 4)[:, :3].ravel() if width == 3 else out[k, 1]
        assert np.array_equal(spread[:96], expected, equal_nan=True), mode


@pytest.mark.parametrize("base", DTYPES)
def test_loads_and_stores_report_their_address_and_size(base: str) -> None:
    letter, size = MANGLED[base], np.dtype(DTYPES[base]).itemsize
    for width in WIDTHS:
        (read,) = library.accesses(
            f"_Z6vload{width}mPU3AS1K{letter}" if width < 10 else f"_Z7vload{width}mPU3AS1K{letter}"
        )
        assert read == Access("read", 1, 0, width * size, width * size, size)
        name = f"vstore{width}"
        (write,) = library.accesses(f"_Z{len(name)}{name}Dv{width}_{letter}mPU3AS3{letter}")
        assert write == Access("write", 2, 1, width * size, width * size, size)


def test_only_aligned_halves_of_three_take_the_room_of_four() -> None:
    assert library.accesses("_Z11vload_half3mPU3AS1KDh") == (Access("read", 1, 0, 6, 6, 2),)
    assert library.accesses("_Z12vloada_half3mPU3AS1KDh") == (Access("read", 1, 0, 8, 6, 8),)
    assert library.accesses("_Z17vstorea_half3_rtzDv3_fmPU3AS1Dh") == (Access("write", 2, 1, 8, 6, 8),)
    assert library.accesses("_Z11vstore_halffmPU3AS4Dh") == (Access("write", 2, 1, 2, 2, 2),)


def test_private_memory_reports_nothing() -> None:
    assert library.accesses("_Z6vload4mPKf") == ()


def test_a_store_of_three_leaves_the_fourth_element_alone() -> None:
    out = np.full(8, 7, np.float32)
    run("kernel void k(global float *out) { vstore3((float3)(1, 2, 3), 1, out); }", "k", [out], 1)
    assert out.tolist() == [7, 7, 7, 1, 2, 3, 7, 7]
