"""Launches that are made up: of which size, what they fall back to, and what is kept of them."""

from pathlib import Path
from typing import Any

import pytest

from crosscast.characterization.synthesis import (
    MOST_ITEMS,
    Shape,
    characterize_synthesized,
    profiles_of,
    synthesize,
)
from crosscast.errors import InputError, KernelFault
from crosscast.kernel import Kernel

ADD = "kernel void A(global float2 *a, int n) { int i = get_global_id(0); if (i < n) a[i] += 1; }"
PLANE = "kernel void A(global int *a) { a[get_global_id(1) * get_global_size(0) + get_global_id(0)] = 1; }"
FAR = "kernel void A(global int *a, int n) { a[get_global_id(0) + n * n * n * 4096] = n; }"


def profile_of(source: str, group: int, nbytes: int) -> Any:
    (found,) = profiles_of([(source, group, nbytes)])
    return found


@pytest.mark.parametrize(
    ("source", "group", "nbytes", "items"),
    [
        (ADD, 64, 0, 64),
        (ADD, 0, 0, 64),  # A group that is not known has 64
        (ADD, 64, 8 * 64, 64),
        (ADD, 64, 8 * 256, 256),
        (ADD, 64, 1 << 40, MOST_ITEMS),
        (PLANE, 64, 4 * 1024, 1024),
    ],
)
def test_there_are_as_many_work_items_as_the_buffers_have_elements(
    source: str, group: int, nbytes: int, items: int
) -> None:
    cells = profile_of(source, group, nbytes)
    assert (cells["work_items"], cells["work_groups"]) == (items, items // 64)


def test_numbers_are_smaller_where_the_kernel_leaves_its_memory() -> None:
    kernel = Kernel.from_source(FAR, "A")
    shapes = [Shape(number, 1 << 16, 64) for number in (32, 8, 2, 1)]
    shape, profile = characterize_synthesized(kernel, shapes, 20)
    assert (shape.number, profile.metrics["work_items"]) == (2, 128)
    with pytest.raises(KernelFault, match="out-of-bounds write"):
        characterize_synthesized(kernel, shapes[:2], 20)


def test_what_cannot_be_made_up_or_compiled_is_a_sentence() -> None:
    image = "kernel void A(read_only image2d_t i, global int *o) { o[0] = get_image_width(i); }"
    assert profile_of(image, 64, 0) == "i: no image can be made up"
    assert profile_of("kernel void A(global int *o) { o[0] = B(); }", 64, 0).endswith("refused the program")
    kernel = Kernel.from_source(image, "A")
    with pytest.raises(InputError, match="can be made up"):
        synthesize(kernel, Shape(1, 16, 4))


def test_finished_launches_are_kept_those_before_an_interrupt_too(tmp_path: Path) -> None:
    keep, works = tmp_path / "kept.jsonl", [(ADD, 64, 0), (PLANE, 64, 0), (ADD, 64, 0)]
    left: list[int] = []

    def watch(total: int) -> Any:
        left.append(total)
        return lambda: None

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        profiles_of(works, keep, lambda _: interrupted)
    first = profiles_of(works, keep, watch)
    keep.write_text(keep.read_text()[:-20])  # A line that was cut off
    assert profiles_of(works, keep, watch) == first
    assert left == [1, 1]
    assert first[0] == first[2]
