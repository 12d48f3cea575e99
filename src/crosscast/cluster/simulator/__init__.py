"""Simulators of queues: compiled functions, and the heaps, running jobs and trees that they work with."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numba
import numba.extending
import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.files import cache_home

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_NUMBA: ModuleType = numba

_LEAN = {"no_cfunc_wrapper": True, "_nrt": False}
"""Without unused wrappers, and without reference counts of arrays: the caller keeps all of them alive.
Counting would take most of the time, as each function is given the dozens of arrays of a simulation."""


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function at its first call, as a part of another compiled one.

    With the environment variable ``NUMBA_DISABLE_JIT`` set it stays Python.
    """
    jitted: Callable[Parameters, Result] = _NUMBA.njit(no_cpython_wrapper=True, **_LEAN)(function)
    return jitted


def jit_cached(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function and its callees at the first call, and cache the code for other processes.

    The cache is in ``NUMBA_CACHE_DIR`` if that is set, or else in that of Crosscast; if that is not writable,
    in Numba's default; without one, each process compiles anew.
    """
    jitted: Callable[Parameters, Result]
    try:
        with _cache_folder():
            jitted = _NUMBA.njit(cache=True, **_LEAN)(function)
    except RuntimeError:
        # No folder is writable.
        jitted = _NUMBA.njit(**_LEAN)(function)
    return jitted


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise an interrupt that came while LLVM compiled, after that.

    A signal is handled in the next callback of LLVM, which ignores what that raises; compiling may then fail.
    """
    ignored: list[BaseException] = []
    show = sys.unraisablehook

    def keep(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_value is None or isinstance(unraisable.exc_value, Exception):
            show(unraisable)
        else:
            ignored.append(unraisable.exc_value)

    sys.unraisablehook = keep
    try:
        yield
    finally:
        sys.unraisablehook = show
        if ignored:
            raise ignored[0]


def is_jit_cached(function: Callable[..., object]) -> bool:
    """Whether a function of `jit_cached` is compiled, by this or an earlier process."""
    if not hasattr(function, "stats"):
        return True
    folder = function.stats.cache_path
    if getattr(function, "signatures", ()):
        return True
    return folder is not None and any(Path(folder).glob(f"*.{function.__name__}-*.nbi"))


def suited(
    function: Callable[Parameters, Result],
    jobs: int | None,
    most: int,
    progress: Callable[[str], None] | None,
) -> Callable[Parameters, Result]:
    """Return a function of `jit_cached`, compiled or interpreted, for a number of jobs; `None` for any
    number.

    For `most` jobs at most it stays Python unless it is compiled: compiling takes longer than simulating.
    """
    if is_jit_cached(function):
        return function
    if jobs is not None and jobs <= most:
        return interpreted(function, {})
    if progress is not None:
        progress("compiling the simulator: this is done once, and takes up to a minute")
    return function


def interpreted(
    function: Callable[Parameters, Result], copies: dict[object, Callable[..., Any]]
) -> Callable[Parameters, Result]:
    """Return a jitted function as Python, with its callees; `copies` has those made so far."""
    plain: FunctionType = function.py_func  # type: ignore[attr-defined]
    if plain not in copies:
        scope = dict(plain.__globals__)
        copies[plain] = FunctionType(plain.__code__, scope, plain.__name__)
        for name in plain.__code__.co_names:
            if _NUMBA.extending.is_jitted(scope.get(name)):
                scope[name] = interpreted(scope[name], copies)
    return copies[plain]


@contextmanager
def _cache_folder() -> Iterator[None]:
    """Point Numba at a cache folder for exactly these sources while a function is decorated.

    Numba checks the function's file only, and would use outdated code of its callees.
    """
    before = _NUMBA.config.CACHE_DIR
    try:
        base = Path(before) / "crosscast" if before else cache_home()
    except RuntimeError:
        # A user without a home folder has Numba's default cache only.
        yield
        return
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    _NUMBA.config.CACHE_DIR = str(base / "simulator" / digest.hexdigest()[:16])
    try:
        yield
    finally:
        _NUMBA.config.CACHE_DIR = before


NO_INTEGERS, NO_REALS = np.zeros(0, np.int64), np.zeros(0)


def integers_of(values: Integers | None) -> Integers:
    """Copy integers as compiled functions take them; ``None`` becomes no integers."""
    return NO_INTEGERS if values is None else np.array(values, np.int64)


class Heap(NamedTuple):
    """A binary heap of items with keys; among equal keys the least item comes first."""

    keys: Reals  # Keys and items of the entries; the first is the least
    items: Integers
    size: Integers  # Number of entries, of shape `(1,)`


def start_heap(most: int) -> Heap:
    """Return an empty heap for at most `most` items."""
    return Heap(np.empty(most), np.empty(most, np.int64), np.zeros(1, np.int64))


@compiled
def push(heap: Heap, key: float, item: int) -> None:
    """Insert an item."""
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
    """Remove and return the first item."""
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


class Running(NamedTuple):
    """Running jobs on ``m`` machines."""

    free: Integers  # Free processors of each machine, of shape `(m,)`
    first: Integers  # Index of each machine's first running job in the arrays below, and their number
    jobs: Integers
    due: Reals  # Expected ends of jobs, ascending on each machine, and their processors
    procs: Integers


def start_running(size: Integers, jobs: int) -> Running:
    """Return idle machines of these numbers of processors, for a number of jobs."""
    most = np.minimum(size, jobs)
    total = int(most.sum())
    return Running(
        size.copy(), np.cumsum(most) - most, np.zeros_like(size), np.empty(total), np.empty(total, np.int64)
    )


@compiled
def add(running: Running, machine: int, due: float, procs: int) -> None:
    """Add a job on a machine with its expected end."""
    first = running.first[machine]
    index = first + running.jobs[machine]
    while index > first and running.due[index - 1] > due:
        running.due[index] = running.due[index - 1]
        running.procs[index] = running.procs[index - 1]
        index -= 1
    running.due[index] = due
    running.procs[index] = procs
    running.jobs[machine] += 1
    running.free[machine] -= procs


@compiled
def drop(running: Running, machine: int, due: float, procs: int) -> None:
    """Remove a job from a machine by its expected end."""
    index = running.first[machine]
    last = index + running.jobs[machine] - 1
    high = last
    while index < high:
        middle = (index + high) >> 1
        if running.due[middle] < due:
            index = middle + 1
        else:
            high = middle
    # Jobs of equal width and expected end are interchangeable.
    while running.procs[index] != procs:
        index += 1
    while index < last:
        running.due[index] = running.due[index + 1]
        running.procs[index] = running.procs[index + 1]
        index += 1
    running.jobs[machine] -= 1
    running.free[machine] += procs


@compiled
def reservation(running: Running, machine: int, procs: int, now: float) -> tuple[float, int]:
    """Return the time at which enough processors should be free on a machine, and the extra ones then.

    A job past its expected end counts as ending now. All jobs that are expected to end at the returned time
    count.
    """
    free = running.free[machine]
    index = running.first[machine]
    end = index + running.jobs[machine]
    shadow = now
    while index < end and (free < procs or running.due[index] <= shadow):
        shadow = max(shadow, running.due[index])
        free += running.procs[index]
        index += 1
    return shadow, free - procs


class QueueTrees(NamedTuple):
    """Waiting jobs in the order R2: search trees (treaps by a hash of the job) of ``n`` jobs."""

    # Key of each job in the order R2, of shape `(n,)`: lower ones first, ties by submission
    key: Reals
    estimate: Reals  # Estimated times, of shape `(n, m)` for `m` machines, or `(n, 1)` if only one matters
    tree: Integers  # Index of each job's tree in `roots`, of shape `(n,)`
    roots: Integers  # First job of each tree; −1 if it is empty
    left: Integers  # Children of each job, −1 where there is none
    right: Integers
    low: Reals  # Shortest estimate in the subtree of each job, of the shape of `estimate`
    path: Integers  # Buffer for a path from a root


def start_trees(key: Reals, estimate: Reals, tree: Integers, trees: int) -> QueueTrees:
    """Return empty trees."""
    count = len(key)
    return QueueTrees(
        key,
        estimate,
        tree,
        roots=np.full(trees, -1),
        left=np.empty(count, np.int64),
        right=np.empty(count, np.int64),
        low=np.empty((count, estimate.shape[1])),
        # The worst case of the hash; unused pages are never touched.
        path=np.empty(count + 1, np.int64),
    )


@compiled
def comes_before(trees: QueueTrees, job: int, other: int) -> bool:
    """Whether a job comes before another in the order R2."""
    first, second = trees.key[job], trees.key[other]
    return first < second or (first == second and job < other)


@compiled
def insert(trees: QueueTrees, job: int) -> None:
    """Insert a waiting job into its tree."""
    left, right, path = trees.left, trees.right, trees.path
    depth = 0
    node = trees.roots[trees.tree[job]]
    while node >= 0 and _rank(node) > _rank(job):
        path[depth] = node
        depth += 1
        node = left[node] if comes_before(trees, job, node) else right[node]
    _attach(trees, depth, job, job)
    path[depth] = job
    depth += 1
    # Split the subtree into the jobs before this one and those behind it.
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
def remove(trees: QueueTrees, job: int) -> None:
    """Remove a job from its tree."""
    left, right, path = trees.left, trees.right, trees.path
    depth = 0
    node = trees.roots[trees.tree[job]]
    while node != job:
        path[depth] = node
        depth += 1
        node = left[node] if comes_before(trees, job, node) else right[node]
    # Merge its subtrees: of the two roots, the one of higher rank goes above.
    before, behind = left[job], right[job]
    while before >= 0 and behind >= 0:
        if _rank(before) > _rank(behind):
            node = before
            before = right[node]
        else:
            node = behind
            behind = left[node]
        _attach(trees, depth, job, node)
        path[depth] = node
        depth += 1
    _attach(trees, depth, job, max(before, behind))
    _refresh(trees, depth)


@compiled
def first_of(trees: QueueTrees, tree: int) -> int:
    """Return the first job of a tree that is not empty."""
    node: int = trees.roots[tree]
    while trees.left[node] >= 0:
        node = trees.left[node]
    return node


@compiled
def first_until(trees: QueueTrees, tree: int, column: int, now: float, shadow: float) -> int:
    """Return the first job of a tree that, started now, should end by the shadow time; −1 if none does."""
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
def _attach(trees: QueueTrees, depth: int, job: int, node: int) -> None:
    """Attach a node at the end of a path, on the side where a job belongs."""
    if depth == 0:
        trees.roots[trees.tree[job]] = node
        return
    above = trees.path[depth - 1]
    if comes_before(trees, job, above):
        trees.left[above] = node
    else:
        trees.right[above] = node


@compiled
def _refresh(trees: QueueTrees, depth: int) -> None:
    """Recompute the shortest estimates along a path, from below."""
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
    # Every step is invertible, so that different jobs have different hashes.
    mixed = ((job ^ (job >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    return mixed ^ (mixed >> 16)
