"""Operations and bytes of a launch, counted exactly, in cases that are small enough to count by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import crosscast

ITEMS = 64


def work(body: str, *buffers: np.ndarray[Any, Any], declared: str = "global float *a") -> dict[str, Any]:
    source = f"kernel void k({declared}) {{ size_t i = get_global_id(0); {body} }}"
    kernel = crosscast.Kernel.from_source(source, "k")
    args = list(buffers) or [np.ones(ITEMS, np.float32)]
    found = crosscast.characterize(kernel, global_size=ITEMS, local_size=16, args=args)
    counted: dict[str, Any] = found.launch["work"]
    assert sum(counted["instructions"].values()) == found.metrics["total_instruction_count"]
    return {name: value for name, value in counted.items() if name != "instructions"}


@pytest.mark.parametrize(
    ("body", "flops"),
    [
        ("a[i] = a[i] + 3;", 1),
        ("a[i] = a[i] - 3;", 1),
        ("a[i] = a[i] * 3;", 1),
        ("a[i] = 3 / a[i];", 1),
        ("a[i] = a[i] * a[i] + 2;", 2),
        ("a[i] = fma(a[i], 2.0f, 3.0f);", 2),
        ("a[i] = mad(a[i], 2.0f, 3.0f);", 2),
        ("a[i] = -a[i];", 0),
        ("a[i] = a[i] > 2 ? 1 : 3;", 0),
    ],
)
def test_an_operation_is_one_and_a_multiply_add_two(body: str, flops: int) -> None:
    found = work(body)
    assert found.get("flops_single", 0) == flops * ITEMS
    assert found["global_bytes"] == 2 * 4 * ITEMS


def test_vectors_count_each_element() -> None:
    found = work("a[i] = a[i] * 2;", np.ones(4 * ITEMS, np.float32), declared="global float4 *a")
    assert found == {"flops_single": 4 * ITEMS, "global_bytes": 2 * 16 * ITEMS}


def test_precisions_are_apart() -> None:
    found = work("a[i] = a[i] * 2;", np.ones(ITEMS), declared="global double *a")
    assert found == {"flops_double": ITEMS, "global_bytes": 2 * 8 * ITEMS}


def test_functions_are_counted_apart() -> None:
    assert work("a[i] = exp(a[i]);")["function_elements"] == ITEMS


def test_integers_are_no_floating_point_operations() -> None:
    found = work("a[i] = 3 * a[i] + 1;", np.ones(ITEMS, np.int32), declared="global int *a")
    assert found == {"global_bytes": 2 * 4 * ITEMS}


def test_local_and_constant_memory_are_apart() -> None:
    body = (
        "local float t[16]; t[get_local_id(0)] = c[i % 4]; barrier(CLK_LOCAL_MEM_FENCE);"
        "a[i] = t[15 - get_local_id(0)];"
    )
    found = work(
        body,
        np.ones(ITEMS, np.float32),
        np.ones(4, np.float32),
        declared="global float *a, constant float *c",
    )
    assert found["global_bytes"] == found["constant_bytes"] == 4 * ITEMS
    assert found["local_bytes"] == 2 * 4 * ITEMS


def test_an_atomic_reads_and_writes() -> None:
    found = work("atomic_add(a, 1);", np.ones(1, np.int32), declared="global int *a")
    assert found == {"global_bytes": 2 * 4 * ITEMS}
