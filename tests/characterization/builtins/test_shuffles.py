"""``shuffle`` and ``shuffle2``: masks that are known only while running."""

from __future__ import annotations

import numpy as np
import pytest
from harness import DTYPES, run

MASKS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}


@pytest.mark.parametrize("base", DTYPES)
@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_masks_pick_elements_modulo_the_size(base: str, size: int) -> None:
    dtype = np.dtype(DTYPES[base])
    mask_base = MASKS[dtype.itemsize]
    widths = (2, 4, 8, 16)
    stores = "".join(
        f"vstore{w}(shuffle(a, vload{w}(0, m)), 0, out + {16 * k});"
        f"vstore{w}(shuffle2(a, b, vload{w}(0, m)), 0, out + {64 + 16 * k});"
        for k, w in enumerate(widths)
    )
    source = f"""
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
kernel void k(global const {base} *x, global const {mask_base} *m, global {base} *out) {{
  {base}{size} a = vload{size}(0, x), b = vload{size}(1, x);
  {stores}
}}"""
    x = np.arange(2 * size).astype(dtype)
    mask = np.random.default_rng(13).integers(0, 127, 16).astype(DTYPES[mask_base])
    out = np.zeros(128, dtype)
    run(source, "k", [x, mask, out], 1)
    for k, width in enumerate(widths):
        assert np.array_equal(out[16 * k :][:width], x[mask[:width] % size])
        assert np.array_equal(out[64 + 16 * k :][:width], x[mask[:width] % (2 * size)])
