"""Binary heaps of (key, item): the least key first, of equal keys the least item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosscast.cluster.jobs import Integers, Reals
from crosscast.cluster.simulator.compiled import compiled

__all__ = ["Heap", "pop", "push", "start_heap"]


class Heap(NamedTuple):
    """A heap.

    Parameters
    ----------
    keys, items
        Its entries; the first is ``items[0]``.
    size
        How many there are, of shape ``(1,)``.
    """

    keys: Reals
    items: Integers
    size: Integers


def start_heap(most: int) -> Heap:
    """An empty heap for so many items."""
    return Heap(np.empty(most), np.empty(most, np.int64), np.zeros(1, np.int64))


@compiled
def push(heap: Heap, key: float, item: int) -> None:
    """Put an item in."""
    keys, items, size = heap
    hole = size[0]
    size[0] += 1
    while hole > 0:
        above = (hole - 1) >> 1
        if keys[above] < key or (keys[above] == key and items[above] <= item):
            break
        keys[hole] = keys[above]
        items[hole] = items[above]
        hole = above
    keys[hole] = key
    items[hole] = item


@compiled
def pop(heap: Heap) -> int:
    """Take the first item out, and return it."""
    keys, items, size = heap
    first: int = items[0]
    size[0] -= 1
    last = size[0]
    key = keys[last]
    item = items[last]
    hole = 0
    while True:
        below = 2 * hole + 1
        if below >= last:
            break
        right = below + 1
        if right < last and (
            keys[right] < keys[below] or (keys[right] == keys[below] and items[right] < items[below])
        ):
            below = right
        if key < keys[below] or (key == keys[below] and item <= items[below]):
            break
        keys[hole] = keys[below]
        items[hole] = items[below]
        hole = below
    keys[hole] = key
    items[hole] = item
    return first
