"""What the engine is made of: compiled functions, heaps, what runs, and trees of what waits."""

from __future__ import annotations

import hashlib
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
"""Without what nobody calls, and without counting references to arrays: the caller holds on to all of them.
Counting would take most of the time, as a simulation is dozens of arrays that each function is given."""


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function when it is first called, as a part of another one that is compiled.

    With the environment variable ``NUMBA_DISABLE_JIT`` set it stays Python.
    """
    made: Callable[Parameters, Result] = _NUMBA.njit(no_cpython_wrapper=True, **_LEAN)(function)
    return made


def kept(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function when it is first called, and keep it with all that it calls for other processes.

    It is kept in ``NUMBA_CACHE_DIR`` if that is set, or else with other things that Crosscast keeps; if
    that cannot be written, where Numba finds a place; if there is none, it is compiled in every process.
    """
    made: Callable[Parameters, Result]
    try:
        with _cache_folder():
            made = _NUMBA.njit(cache=True, **_LEAN)(function)
    except RuntimeError:
        # There is no folder that may be written.
        made = _NUMBA.njit(**_LEAN)(function)
    return made


def is_kept(function: Callable[..., object]) -> bool:
    """Whether a function made by `kept` is compiled already, now or by an earlier process."""
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
    """The function, made by `kept`, to simulate so many jobs with, or any number.

    For `most` jobs at most it stays Python while nobody has compiled it: compiling takes longer than those.
    """
    if is_kept(function):
        return function
    if jobs is not None and jobs <= most:
        return interpreted(function, {})
    if progress is not None:
        progress("compiling the simulator: this is done once, and takes up to a minute")
    return function


def interpreted(
    function: Callable[Parameters, Result], made: dict[object, Callable[..., Any]]
) -> Callable[Parameters, Result]:
    """A function made by `kept` or `compiled` as Python, with all that it calls; `made` has those so far."""
    plain: FunctionType = function.py_func  # type: ignore[attr-defined]
    if plain not in made:
        scope = dict(plain.__globals__)
        made[plain] = FunctionType(plain.__code__, scope, plain.__name__)
        for name in plain.__code__.co_names:
            if _NUMBA.extending.is_jitted(scope.get(name)):
                scope[name] = interpreted(scope[name], made)
    return made[plain]


@contextmanager
def _cache_folder() -> Iterator[None]:
    """Where Numba keeps a function is decided when it is decorated: a folder for just these sources.

    Numba looks at the file of the function only, and would go on with old code of what it calls.
    """
    before = _NUMBA.config.CACHE_DIR
    try:
        base = Path(before) / "crosscast" if before else cache_home()
    except RuntimeError:
        # Of a user without a home folder nothing is kept but what Numba keeps by itself.
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


class Heap(NamedTuple):
    """A binary heap of items with keys; of equal keys the least item comes first."""

    keys: Reals  # Its entries; the first is `items[0]`
    items: Integers
    size: Integers  # How many there are, of shape `(1,)`


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


class Running(NamedTuple):
    """What runs on ``m`` machines."""

    free: Integers  # Processors free on each machine, of shape `(m,)`
    first: Integers  # Where the running jobs of each machine begin in the arrays below, and how many they are
    jobs: Integers
    due: Reals  # When jobs are expected to end, ascending on each machine, and their processors
    procs: Integers


def start_running(size: Integers, jobs: int) -> Running:
    """Machines of sizes in processors on which none of so many jobs runs yet."""
    most = np.minimum(size, jobs)
    total = int(most.sum())
    return Running(
        size.copy(), np.cumsum(most) - most, np.zeros_like(size), np.empty(total), np.empty(total, np.int64)
    )


@compiled
def add(running: Running, machine: int, due: float, procs: int) -> None:
    """Note that a job starts on a machine and is expected to end then."""
    first = running.first[machine]
    place = first + running.jobs[machine]
    while place > first and running.due[place - 1] > due:
        running.due[place] = running.due[place - 1]
        running.procs[place] = running.procs[place - 1]
        place -= 1
    running.due[place] = due
    running.procs[place] = procs
    running.jobs[machine] += 1
    running.free[machine] -= procs


@compiled
def drop(running: Running, machine: int, due: float, procs: int) -> None:
    """Note that a job has ended that was expected to end then."""
    place = running.first[machine]
    last = place + running.jobs[machine] - 1
    high = last
    while place < high:
        middle = (place + high) >> 1
        if running.due[middle] < due:
            place = middle + 1
        else:
            high = middle
    # Jobs of one width that are due at one time are the same here.
    while running.procs[place] != procs:
        place += 1
    while place < last:
        running.due[place] = running.due[place + 1]
        running.procs[place] = running.procs[place + 1]
        place += 1
    running.jobs[machine] -= 1
    running.free[machine] += procs


@compiled
def reservation(running: Running, machine: int, procs: int, now: float) -> tuple[float, int]:
    """When so many processors should be free on a machine, and how many more than those then.

    A job that has run longer than it was expected to may end at any moment: it counts as ending now. All
    jobs that are expected to end at the time found count.
    """
    free = running.free[machine]
    place = running.first[machine]
    end = place + running.jobs[machine]
    shadow = now
    while place < end and (free < procs or running.due[place] <= shadow):
        shadow = max(shadow, running.due[place])
        free += running.procs[place]
        place += 1
    return shadow, free - procs


class QueueTrees(NamedTuple):
    """Waiting jobs in the order R2: search trees (treaps by a hash of the job) of ``n`` jobs."""

    # Key of each job in the order R2: the less, the earlier; of equal ones the job that was submitted first.
    # Of shape `(n,)`
    key: Reals
    estimate: Reals  # Estimated times, of shape `(n, m)` for `m` machines, or `(n, 1)` if only one matters
    tree: Integers  # Place of each job's tree in `roots`, of shape `(n,)`
    roots: Integers  # First job of each tree; −1 if it is empty
    left: Integers  # Jobs below each job, −1 where there is none
    right: Integers
    low: Reals  # Shortest estimate of each job and those below, of the shape of `estimate`
    path: Integers  # Room for the way down a tree


def start_trees(key: Reals, estimate: Reals, tree: Integers, trees: int) -> QueueTrees:
    """Trees without jobs; none of any size if nobody has a key."""
    count = len(key)
    return QueueTrees(
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
def comes_before(trees: QueueTrees, job: int, other: int) -> bool:
    """Whether a job comes before another in the order R2."""
    first, second = trees.key[job], trees.key[other]
    return first < second or (first == second and job < other)


@compiled
def insert(trees: QueueTrees, job: int) -> None:
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
def remove(trees: QueueTrees, job: int) -> None:
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
def first_of(trees: QueueTrees, tree: int) -> int:
    """First job of a tree that is not empty."""
    node: int = trees.roots[tree]
    while trees.left[node] >= 0:
        node = trees.left[node]
    return node


@compiled
def first_until(trees: QueueTrees, tree: int, column: int, now: float, shadow: float) -> int:
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
def _hang(trees: QueueTrees, depth: int, job: int, node: int) -> None:
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
def _refresh(trees: QueueTrees, depth: int) -> None:
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
