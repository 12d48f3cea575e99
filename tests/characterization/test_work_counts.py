"""Operations and bytes of a launch, counted exactly, in cases that are small enough to count by hand."""

import numpy as np
import pytest

import crosscast

ITEMS = 64
_CASES = {
    "a[i] = a[i] - 3;": ("float", {"flops_single": 1, "global_bytes": 8}),
    "a[i] = a[i] * 3;": ("float", {"flops_single": 1, "global_bytes": 8}),
    "a[i] = 3 / a[i];": ("float", {"flops_single": 1, "global_bytes": 8}),
    "a[i] = a[i] * a[i] + 2;": ("float", {"flops_single": 2, "global_bytes": 8}),
    "a[i] = fma(a[i], 2.0f, 3.0f);": ("float", {"flops_single": 2, "global_bytes": 8}),
    "a[i] = mad(a[i], 2.0f, 3.0f);": ("float", {"flops_single": 2, "global_bytes": 8}),
    "a[i] = -a[i];": ("float", {"global_bytes": 8}),
    "a[i] = a[i] > 2 ? 1 : 3;": ("float", {"global_bytes": 8}),
    "a[i] = exp(a[i]);": ("float", {"function_elements": 1, "global_bytes": 8}),
    "a[i] = a[i] + a[i];": ("float4", {"flops_single": 4, "global_bytes": 32}),
    "a[i] = a[i] * 2;": ("double", {"flops_double": 1, "global_bytes": 16}),
    "a[i] = 3 * a[i] + 1;": ("int", {"global_bytes": 8}),
    "atomic_add(a, 1);": ("int", {"global_bytes": 8}),
    "local float t[16]; t[get_local_id(0)] = c[i % 4]; barrier(1); a[i] = t[15 - get_local_id(0)];": (
        "float",
        {"global_bytes": 4, "constant_bytes": 4, "local_bytes": 8},
    ),
}


@pytest.mark.parametrize(("body", "type_", "each"), [(body, *case) for body, case in _CASES.items()])
def test_operations_and_bytes_of_a_work_item(body: str, type_: str, each: dict[str, int]) -> None:
    source = f"kernel void k(global {type_} *a, constant float *c) {{ size_t i = get_global_id(0); {body} }}"
    dtype = {"double": np.float64, "int": np.int32}.get(type_, np.float32)
    args = [np.ones((ITEMS, 4) if type_ == "float4" else ITEMS, dtype), np.ones(4, np.float32)]
    kernel = crosscast.Kernel.from_source(source, "k")
    found = crosscast.characterize(kernel, global_size=ITEMS, local_size=16, args=args)
    counted = dict(found.launch["work"])
    assert sum(counted.pop("instructions").values()) == found.metrics["total_instruction_count"]
    assert counted == {name: ITEMS * count for name, count in each.items()}
