"""Waiting jobs that may pass the head, so that the first one with room is found without looking at all.

Jobs of one width and one set of machines make a tree in the order R2, with the shortest estimate below every
job in it (a treap, Seidel and Aragon 1996: a random number of each job, here a hash of its place, keeps it
balanced). Where one job of a tree fits, all do; which of them end before the shadow time, the estimates say.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosscast.cluster.jobs import Integers, Reals
from crosscast.cluster.simulator.compiled import compiled

__all__ = ["Trees", "comes_before", "first_of", "first_until", "insert", "remove", "start_trees"]


class Trees(NamedTuple):
    """Trees of ``n`` jobs.

    Parameters
    ----------
    key
        Key of each job in the order R2: the less, the earlier; of equal ones the job that was submitted
        first. Of shape ``(n,)``.
    estimate
        Estimated times, of shape ``(n, m)`` for ``m`` machines, or ``(n, 1)`` if only one matters.
    tree
        Place of each job's tree in `roots`, of shape ``(n,)``.
    roots
        First job of each tree; −1 if it is empty.
    left, right
        Jobs below each job, −1 where there is none.
    low
        Shortest estimate of each job and those below, of the shape of `estimate`.
    path
        Room for the way down a tree.
    """

    key: Reals
    estimate: Reals
    tree: Integers
    roots: Integers
    left: Integers
    right: Integers
    low: Reals
    path: Integers


def start_trees(key: Reals, estimate: Reals, tree: Integers, trees: int) -> Trees:
    """Trees without jobs; none of any size if nobody has a key."""
    count = len(key)
    return Trees(
        key,
        estimate,
        tree,
        roots=np.full(trees, -1),
        left=np.empty(count, np.int64),
        right=np.empty(count, np.int64),
        low=np.empty((count, estimate.shape[1])),
        # As long as if estimates had been chosen to defeat the hash; what is not needed is never touched.
        path=np.empty(count + 1, np.int64),
    )


@compiled
def comes_before(trees: Trees, job: int, other: int) -> bool:
    """Whether a job comes before another in the order R2."""
    first, second = trees.key[job], trees.key[other]
    return first < second or (first == second and job < other)


@compiled
def insert(trees: Trees, job: int) -> None:
    """Put a waiting job in its tree."""
    left, right, path = trees.left, trees.right, trees.path
    depth = 0
    node = trees.roots[trees.tree[job]]
    while node >= 0 and _rank(node) > _rank(job):
        path[depth] = node
        depth += 1
        node = left[node] if comes_before(trees, job, node) else right[node]
    _hang(trees, depth, job, job)
    path[depth] = job
    depth += 1
    # What was there is split into the jobs before this one and those behind it.
    before = behind = -1
    left[job] = right[job] = -1
    while node >= 0:
        path[depth] = node
        depth += 1
        if comes_before(trees, node, job):
            if before < 0:
                left[job] = node
            else:
                right[before] = node
            before = node
            node = right[node]
            right[before] = -1
        else:
            if behind < 0:
                right[job] = node
            else:
                left[behind] = node
            behind = node
            node = left[node]
            left[behind] = -1
    _refresh(trees, depth)


@compiled
def remove(trees: Trees, job: int) -> None:
    """Take a job out of its tree."""
    left, right, path = trees.left, trees.right, trees.path
    depth = 0
    node = trees.roots[trees.tree[job]]
    while node != job:
        path[depth] = node
        depth += 1
        node = left[node] if comes_before(trees, job, node) else right[node]
    # What was below it is joined: of the first jobs of both sides, the one of higher rank goes above.
    before, behind = left[job], right[job]
    while before >= 0 and behind >= 0:
        if _rank(before) > _rank(behind):
            node = before
            before = right[node]
        else:
            node = behind
            behind = left[node]
        _hang(trees, depth, job, node)
        path[depth] = node
        depth += 1
    _hang(trees, depth, job, max(before, behind))
    _refresh(trees, depth)


@compiled
def first_of(trees: Trees, tree: int) -> int:
    """First job of a tree that is not empty."""
    node: int = trees.roots[tree]
    while trees.left[node] >= 0:
        node = trees.left[node]
    return node


@compiled
def first_until(trees: Trees, tree: int, column: int, now: float, shadow: float) -> int:
    """First job of a tree that, if it starts now, is expected to end by the shadow time; −1 if none is."""
    node: int = trees.roots[tree]
    if now + trees.low[node, column] > shadow:
        return -1
    while True:
        below = trees.left[node]
        if below >= 0 and now + trees.low[below, column] <= shadow:
            node = below
        elif now + trees.estimate[node, column] <= shadow:
            return node
        else:
            node = trees.right[node]


@compiled
def _hang(trees: Trees, depth: int, job: int, node: int) -> None:
    """Put a node at the end of a path, on the side where a job belongs."""
    if depth == 0:
        trees.roots[trees.tree[job]] = node
        return
    above = trees.path[depth - 1]
    if comes_before(trees, job, above):
        trees.left[above] = node
    else:
        trees.right[above] = node


@compiled
def _refresh(trees: Trees, depth: int) -> None:
    """Find the shortest estimates along a path again, from below."""
    while depth > 0:
        depth -= 1
        node = trees.path[depth]
        before, behind = trees.left[node], trees.right[node]
        for column in range(trees.low.shape[1]):
            low = trees.estimate[node, column]
            if before >= 0:
                low = min(low, trees.low[before, column])
            if behind >= 0:
                low = min(low, trees.low[behind, column])
            trees.low[node, column] = low


@compiled
def _rank(job: int) -> int:
    # Hashes of different jobs differ, as every step can be undone.
    mixed = ((job ^ (job >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    return mixed ^ (mixed >> 16)
