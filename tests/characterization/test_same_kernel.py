"""A kernel has the same profile in OpenCL C, as drivers compile it, and in CUDA."""

import re
from typing import Any, Literal

import numpy as np
import pytest

from crosscast.characterization import run
from crosscast.kernel import Kernel, Launch
from crosscast.profile import Profile

_WORDS = {
    "KERNEL": ("kernel void", "__global__ void"),
    "GLOBAL": ("global", ""),
    "LOCAL": ("local", "__shared__"),
    "BARRIER": ("barrier(CLK_LOCAL_MEM_FENCE)", "__syncthreads()"),
    "FLOAT4": ("(float4)", "make_float4"),
    "ADD": ("atomic_add", "atomicAdd"),
    "RSQRT": ("rsqrt", "rsqrtf"),
    "RESTRICT": ("restrict", "__restrict__"),
    "ITEM": ("(int)get_local_id(0)", "(int)threadIdx.x"),
    "GROUP": ("(int)get_group_id(0)", "(int)blockIdx.x"),
    "SIZE": ("(int)get_local_size(0)", "(int)blockDim.x"),
}
_GROUP, _GROUPS = 64, 4
# Type of the two arrays, and the body of a kernel of `n` elements
_KERNELS = {
    "components": ("float4", "float4 v = a[i]; b[i] = FLOAT4(v.x * 2, v.y + 1, v.z * v.w, v.w);"),
    "bytes": ("uchar4", "uchar4 v = a[i]; v.x = 255 - v.x; v.y = (v.x + v.y) / 2; b[i] = v;"),
    "bodies": (
        "float4",
        """
        float4 own = a[i];
        float x = 0, y = 0;
        for (int k = 0; k < n; k++) {
          float4 other = a[k];
          float u = other.x - own.x, v = other.y - own.y, w = other.z - own.z;
          float r = RSQRT(u * u + v * v + w * w + 0.01f) * other.w;
          x += u * r;
          y += v * r + w;
        }
        b[i] = FLOAT4(x, y, 0, 0);""",
    ),
    "tile": (
        "float",
        """
        LOCAL float tile[64 * 9];
        for (int k = 0; k < 8; k++) tile[ITEM * 9 + k] = a[k * n + i];
        BARRIER;
        for (int k = 0; k < 8; k++) b[i * 8 + k] = tile[ITEM * 9 + k];""",
    ),
    "product": (
        "float",
        """
        LOCAL float left[16 * 16], right[16 * 16];
        int x = ITEM % 16, y = ITEM / 16;
        for (int k = y; k < 16; k += 4) {
          left[k * 16 + x] = a[k * 16 + x];
          right[k * 16 + x] = a[x * 16 + k];
        }
        BARRIER;
        float sum = 0;
        for (int k = 0; k < 16; k++) sum += left[y * 16 + k] * right[k * 16 + x];
        b[i] = sum;""",
    ),
    "sum": (
        "float",
        """
        LOCAL float sums[64];
        sums[ITEM] = a[i];
        BARRIER;
        for (int k = 32; k > 0; k >>= 1) {
          if (ITEM < k) sums[ITEM] += sums[ITEM + k];
          BARRIER;
        }
        if (ITEM == 0) b[GROUP] = sums[0];""",
    ),
    "histogram": (
        "int",
        """
        LOCAL int bins[64];
        bins[ITEM] = 0;
        BARRIER;
        ADD(&bins[a[i] & 63], 1);
        BARRIER;
        ADD(&b[ITEM], bins[ITEM]);""",
    ),
    "escape": (
        "float",
        """
        float x = 0, y = 0, c = a[i];
        int k = 0;
        while (k < 50 && x * x + y * y < 4) {
          float t = x * x - y * y + c;
          y = 2 * x * y + 0.3f;
          x = t;
          k++;
        }
        b[i] = k;""",
    ),
}


def _launch(name: str, form: Literal["opencl-c", "cuda"]) -> Launch:
    type_, body = _KERNELS[name]
    kind = re.sub(r"4$", "", type_)
    source = (
        f"KERNEL same(const GLOBAL {type_} *RESTRICT a, GLOBAL {type_} *RESTRICT b, int n) {{"
        f" int i = GROUP * SIZE + ITEM; {body} }}"
    )
    for word, spellings in _WORDS.items():
        source = re.sub(rf"\b{word}\b", spellings[form == "cuda"], source)
    dtype = {"uchar": np.uint8, "float": np.float32, "int": np.int32}[kind]
    items = _GROUP * _GROUPS
    arrays = np.arange(8 * items).astype(dtype), np.zeros(8 * items, dtype)
    kernel = Kernel.from_source(source, "same", form=form)
    return Launch.on_grid(kernel, _GROUPS, _GROUP, (*arrays, np.int32(items)))


_ADDRESSES = ("addresses", "free", "ids", "indexing")
"""Kinds of instructions that compute addresses, in integers of other sizes in CUDA."""
_INSTRUCTIONS = ("instructions_without_phi", "sub_group_instructions_without_phi")


def _counts(profile: Profile) -> dict[str, Any]:
    """Counts that are the kernel's, whatever its language."""
    launch = profile.launch
    kinds = {kind: n for kind, n in launch["instructions"].items() if kind not in _ADDRESSES}
    kinds["branches"] = kinds["branches"].get("conditional")
    return {
        "instructions": kinds,
        "sub_groups": {
            width: {key: n for key, n in counts.items() if key not in _INSTRUCTIONS}
            for width, counts in launch["sub_groups"].items()
        },
        "work": {key: n for key, n in launch["work"].items() if key != "instructions"},
        **{key: launch[key] for key in ("access_patterns", "distinct_bytes", "reuse", "work_item")},
    }


@pytest.mark.parametrize("name", _KERNELS)
def test_what_a_kernel_does_is_not_a_matter_of_language(name: str) -> None:
    launches = [_launch(name, "opencl-c"), _launch(name, "cuda")]
    options = run.Options(optimize=True, host_time=False)
    opencl, cuda = (run.characterize_launch(launch, options=options) for launch in launches)
    np.testing.assert_array_equal(launches[0].args[1], launches[1].args[1])
    assert _counts(opencl) == _counts(cuda)
    registers, paths = (
        [profile.launch[group][key] for profile in (opencl, cuda)]
        for group, key in (("geometry", "registers"), ("path", "instructions"))
    )
    assert abs(registers[0] - registers[1]) <= 4
    assert paths[0] == pytest.approx(paths[1], abs=3)
