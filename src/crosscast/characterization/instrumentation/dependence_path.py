"""Dependence path: the longest chain of dependent instructions of a work-item.

An instruction depends on those that compute its operands, and on the barrier before it; a barrier depends on
all instructions before it. Nothing else is ordered: branches are assumed to be predicted, and addresses to
differ. The path is the longest chain of such instructions that a work-item executed. Its length follows from
the dependences and the executions of each block, without a trace: one pass through a loop changes the lengths
of chains linearly in max-plus algebra (Baccelli, Cohen, Olsder and Quadrat 1992, *Synchronization and
Linearity*), so that n passes are its n-th power.

That is exact for straight-line code, and for loops whose iterations all take the same path. Otherwise
iterations with the same path are assumed to be consecutive, the most frequent ones first, and all entries of
an inner loop to have equal numbers of iterations, up to one.

Devices without speculation run basic blocks one after another. Their path is the sum of those of the executed
blocks, in which a load that may read what a store before it writes waits for what that store waits for.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import address_space
from crosscast.characterization.instrumentation.graph import Edge

# A length is numbers of instructions and of loads from each memory, 64 bits each, in one integer: sums are
# those of each number, and the largest has the most instructions and then the most loads.
_SPACES = ("global", "constant", "local")
_INSTRUCTION = 1 << 64 * len(_SPACES)
_LOADS = {space: 1 << 64 * (len(_SPACES) - 1 - n) for n, space in enumerate(_SPACES)}
_FIELD = (1 << 64) - 1
_BY_NUMBER = {1: "global", 2: "constant", 3: "local", 4: "global"}
"""Names of address spaces; generic pointers are mostly to global memory."""

_NOW, _FENCE, _START = "now", "fence", ""
"""Names of the longest chain so far, the one at the last barrier, and the kernel's start."""

Lengths = dict[str, int]
"""A length as the maximum over names of their lengths plus a constant."""
Change = dict[str, Lengths]
"""New lengths of some names by the old ones; the others do not change."""


class Path(NamedTuple):
    """The longest chain of dependences, and those of the executed blocks, added up."""

    instructions: int
    loads: dict[str, int]  # Loads among them, by address space
    block_instructions: int
    block_loads: dict[str, int]  # The most loads of an address space that any chain of a block has
    loads_in_turn: dict[str, int]  # Of these, in loops that no compiler unrolls
    loads_rolled: dict[str, int]  # Also in those of no constant length, which AMD's keep


@dataclass(frozen=True)
class _Step:
    """An instruction that is no phi."""

    result: str | None
    operands: tuple[str, ...]
    weight: int
    is_barrier: bool
    is_last: bool  # Nothing in its block depends on it
    position: int  # In its block
    behind: int | None  # Position of the last store that compilers keep before it
    stores: bool
    copies: bool


@dataclass
class _Region:
    """A loop, or the whole kernel; its parts are its direct blocks and its inner loops."""

    blocks: frozenset[str]
    headers: frozenset[str]
    kept: frozenset[str]  # Values that are used behind it, or in its next pass
    inner: list[_Region] = field(default_factory=list)


@dataclass
class _Passes:
    """Changes of lengths by passes through a region, with the frequency of each path."""

    again: list[tuple[Change, int]] = field(default_factory=list)  # Paths back to its start
    out: dict[Edge, deque[tuple[Change, int]]] = field(default_factory=lambda: defaultdict(deque))
    bodies: deque[tuple[Change, int]] = field(default_factory=deque)  # Change of each entry before its exit


class Dependences:
    """Dependences among the instructions of a flattened kernel, whose kinds are known."""

    def __init__(
        self,
        function: ir.Function,
        in_turn: Collection[str] = (),
        rolled: Collection[str] = (),
        behind: Mapping[str, Mapping[int, int]] | None = None,
    ) -> None:
        """Read a kernel, and what is known of the compilers of devices.

        Blocks in loops that none unrolls, and that AMD's do not; and in each block which loads, by their
        positions, are kept behind which stores.
        """
        self._in_turn, self._rolled = in_turn, rolled
        self._flow = function.flow
        self._entry = function.entry.label
        self._defined = {i.result for i in function.instructions() if i.result}
        kept = behind or {}
        self._steps = {
            label: _steps(block, self._defined, kept.get(label, {}))
            for label, block in function.blocks.items()
        }
        # Phis behind each edge, and their values
        self._phis: dict[Edge, list[tuple[str, str]]] = defaultdict(list)
        for label, block in function.blocks.items():
            for phi in block.phis():
                for value, source in phi.incoming:
                    self._phis[source, label].append((str(phi.result), value))
        self._whole = self._find_regions(function)
        self._last: tuple[dict[str, int], Path] | None = None

    def _find_regions(self, function: ir.Function) -> _Region:
        used: dict[str, set[str]] = defaultdict(set)  # by name, the blocks that use it
        defined: dict[str, set[str]] = {}
        for label, block in function.blocks.items():
            defined[label] = {i.result for i in block.instructions if i.result}
            for i in block.instructions:
                for value, source in i.incoming:
                    used[value].add(source)
                    if source != label:
                        used[value].add(label)
                for name in i.uses() if not i.incoming else ():
                    used[name].add(label)
        whole = _Region(frozenset(function.blocks), frozenset({self._entry}), frozenset())
        regions = [whole]
        for loop in graph.find_loops(self._flow):
            values = set().union(*(defined[label] for label in loop.blocks))
            kept = {name for name in values if not used[name] <= loop.blocks}
            kept |= {str(phi.result) for label in loop.headers for phi in function.blocks[label].phis()}
            region = _Region(loop.blocks, loop.headers, frozenset(kept))
            parent = next(r for r in reversed(regions) if r.blocks >= loop.blocks)
            parent.inner.append(region)
            regions.append(region)
        return whole

    def longest(self, executions: Mapping[str, int]) -> Path:
        """Return the path of a work-item by its executions of each block, by label.

        Ties go to the chain with the most loads.
        """
        known = {label: executions.get(label, 0) for label in self._flow}
        if self._last is None or self._last[0] != known:
            self._last = known, self._longest(known)
        return self._last[1]

    def _longest(self, executions: dict[str, int]) -> Path:
        flows = _find_flows(self._flow, self._entry, executions)
        passes = self._pass_through(self._whole, flows, 1)
        start: Change = {_NOW: {_START: 0}, _FENCE: {_START: 0}}
        ends = (change[_NOW] for queue in passes.out.values() for change, _ in queue)
        length = max((_compose({_NOW: now}, start)[_NOW].get(_START, 0) for now in ends), default=0)
        return Path(
            length // _INSTRUCTION,
            {space: length // unit & _FIELD for space, unit in _LOADS.items() if length // unit & _FIELD},
            self._in_blocks(executions, _INSTRUCTION),
            self._loads_in(executions),
            *(self._in_turns(executions, blocks) for blocks in (self._in_turn, self._rolled)),
        )

    def _in_turns(self, executions: Mapping[str, int], blocks: Collection[str]) -> dict[str, int]:
        """Loads of blocks in loops that are not unrolled, and those that stores keep apart elsewhere."""
        totals = Counter[str]()
        for label, times in executions.items():
            for space, unit in _LOADS.items() if times else ():
                steps = self._steps[label]
                free = 0 if label in blocks else _chain(steps, unit, is_kept=False)
                totals[space] += times * (_chain(steps, unit) - free)
        return {space: total for space, total in totals.items() if total}

    def _loads_in(self, executions: Mapping[str, int]) -> dict[str, int]:
        return {
            space: total for space, unit in _LOADS.items() if (total := self._in_blocks(executions, unit))
        }

    def _in_blocks(self, executions: Mapping[str, int], unit: int) -> int:
        """Sum the longest chains of the executed blocks, in instructions or in loads of one memory."""
        return sum(times * _chain(self._steps[label], unit) for label, times in executions.items() if times)

    def _pass_through(self, region: _Region, flows: Mapping[Edge, int], entries: int) -> _Passes:
        """Compute the changes by passes through a region with a number of entries."""
        inner = {label: loop for loop in region.inner for label in loop.blocks}
        passes: dict[int, _Passes] = {}
        for loop in region.inner:
            into = sum(n for (u, v), n in flows.items() if v in loop.blocks and u not in loop.blocks)
            passes[id(loop)] = self._pass_through(loop, flows, into)
        result = _Passes()
        # Flow between parts of the region, out of it and back to its start
        remaining = {
            (u, v): n
            for (u, v), n in flows.items()
            if n and u in region.blocks and not (u in inner and v in inner[u].blocks)
        }
        while (counted_path := _find_path(region, inner, remaining))[1]:
            path, times = counted_path
            for part, change in self._along(path, times, region, inner, passes):
                if path[-1][1] in region.headers:
                    result.again.append((change, part))
                else:
                    result.out[path[-1]].append((change, part))
        if region is not self._whole:
            result.bodies = deque(_by_entry(result.again, entries))
        return result

    def _along(
        self,
        path: list[Edge],
        times: int,
        region: _Region,
        inner: Mapping[str, _Region],
        passes: Mapping[int, _Passes],
    ) -> Iterable[tuple[int, Change]]:
        """Yield the changes by a path, in parts with equal changes by the loops on it."""
        while times:
            queues: list[deque[tuple[Change, int]]] = []
            state: Change = {}
            for (_, label), (source, target) in itertools.pairwise(path):
                if label not in inner:
                    self._run(label, state)
                else:
                    loop = passes[id(inner[label])]
                    for queue in (loop.bodies, loop.out[source, target]):
                        if queue:
                            queues.append(queue)
                            state = _compose(queue[0][0], state)
                self._enter((source, target), state)
            part = min([times, *(queue[0][1] for queue in queues)])
            times -= part
            for queue in queues:
                change, n = queue.popleft()
                if n > part:
                    queue.appendleft((change, n - part))
            if region is not self._whole:
                kept = region.kept | {_NOW, _FENCE}
                state = {name: length for name, length in state.items() if name in kept}
            yield part, state

    def _enter(self, edge: Edge, state: Change) -> None:
        """Set the phis behind an edge."""
        taken = {name: self._look_up(value, state) for name, value in self._phis.get(edge, ())}
        state.update(taken)

    def _look_up(self, value: str, state: Change) -> Lengths:
        return state.get(value, {value: 0} if value in self._defined else {})

    def _run(self, label: str, state: Change) -> None:
        """Apply the instructions of a block except its phis."""
        fence = state.get(_FENCE, {_FENCE: 0})
        now = dict(state.get(_NOW, {_NOW: 0}))
        for step in self._steps[label]:
            if step.is_barrier:
                fence = now = {name: length + step.weight for name, length in now.items()}
                now = dict(now)
                state[_FENCE] = fence
                continue
            length = dict(fence) if step.weight else {}
            for operand in step.operands:
                _raise(length, self._look_up(operand, state))
            if step.weight:
                length = {name: n + step.weight for name, n in length.items()}
            if step.is_last:
                _raise(now, length)
            if step.result:
                state[step.result] = length
        state[_NOW] = now


def _steps(block: ir.Block, defined: set[str], behind: Mapping[int, int]) -> list[_Step]:
    steps = []
    waited_for: set[str] = set()
    for position, i in reversed(list(enumerate(block.instructions))):
        if i.opcode == "phi":
            continue
        barrier = i.kind[0] in ("barriers", "collectives")
        if barrier:
            waited_for.clear()
        operands = tuple(sorted(i.uses() & defined))
        waited_for.update(operands)
        is_last = i.result not in waited_for
        kind, kept = i.kind[0].split(".")[0], behind.get(position)
        what = kind in ("stores", "atomics", "copies"), kind == "copies"
        steps.append(_Step(i.result, operands, _weight(i), barrier, is_last, position, kept, *what))
    return steps[::-1]


def _chain(steps: Iterable[_Step], unit: int, *, is_kept: bool = True) -> int:
    """Return the length of the longest chain of a block by itself, in instructions or in loads.

    A load that compilers keep behind a store waits for what this and earlier ones wait for: GPUs issue in the
    order of the code. Without `is_kept`, it does not.
    """
    lengths: dict[str, int] = {}
    issued: dict[int, int] = {}  # When stores are, by their positions
    last = fence = longest = 0
    for step in steps:
        weight = step.weight // unit & _FIELD
        if step.is_barrier:
            fence = longest = longest + weight
            continue
        start = max((lengths.get(name, fence) for name in step.operands), default=fence)
        start = max(start, fence)
        if is_kept and step.behind is not None:
            start = max(start, issued[step.behind])
        length = start + weight
        longest = max(longest, length)
        if step.stores:
            # What is copied is loaded first.
            issued[step.position] = last = max(last, length if step.copies else start)
        if step.result:
            lengths[step.result] = length
    return longest


def _weight(instruction: ir.Instruction) -> int:
    kind, *where = instruction.kind[0].split(".")
    if not instruction.counted or kind in ("free", "calls"):
        return 0
    if kind == "copies":
        spaces = {address_space(a.pointer_type) for a in instruction.accesses if a.kind == "read"}
        return _INSTRUCTION + max((_LOADS[_BY_NUMBER[n]] for n in spaces if n in _BY_NUMBER), default=0)
    if kind in ("loads", "consecutive", "atomics") or where == ["read"]:
        # Generic pointers are mostly to global memory, as are images.
        space = "global" if kind == "images" or where[0] == "generic" else where[0].partition("_")[0]
        return _INSTRUCTION + _LOADS.get(space, 0)
    return _INSTRUCTION


def _raise(length: Lengths, other: Lengths) -> None:
    """Set a length to the maximum of itself and another one."""
    for name, n in other.items():
        if n > length.get(name, -1):
            length[name] = n


def _compose(second: Change, first: Change) -> Change:
    composed = dict(first)
    for name, length in second.items():
        total: Lengths = {}
        composed[name] = total
        for source, n in length.items():
            if source not in first:
                _raise(total, {source: n})
            else:
                _raise(total, {origin: n + m for origin, m in first[source].items()})
    return composed


def _power(change: Change, times: int) -> Change:
    power: Change = {}
    while times:
        if times & 1:
            power = _compose(change, power)
        times >>= 1
        change = _compose(change, change) if times else change
    return power


def _by_entry(again: list[tuple[Change, int]], entries: int) -> Iterable[tuple[Change, int]]:
    """Yield changes of a loop's entries before their last pass, for evenly divided passes, with counts."""
    if entries <= 0:
        return
    borders = sorted({0, entries, *(times % entries for _, times in again)})
    for start, end in itertools.pairwise(borders):
        total: Change = {}
        for change, times in again:
            total = _compose(_power(change, times // entries + (start < times % entries)), total)
        yield total, end - start


def _find_path(
    region: _Region, inner: Mapping[str, _Region], remaining: dict[Edge, int]
) -> tuple[list[Edge], int]:
    """Remove a path through a region from the remaining flow; return it and its count, 0 without flow."""

    def part_of(label: str) -> int | str:
        return id(inner[label]) if label in inner else label

    leaving: dict[int | str, list[Edge]] = defaultdict(list)
    for edge, n in remaining.items():
        if n > 0:
            leaving[part_of(edge[0])].append(edge)
    starts = [label for label in region.headers if part_of(label) in leaving]
    if not starts:
        return [], 0
    path: list[Edge] = [(graph.EXIT, min(starts))]
    passed: set[int | str] = set()
    while True:
        part = part_of(path[-1][1])
        choices = [] if part in passed else leaving.get(part, [])
        if not choices:
            break  # flows that do not add up
        passed.add(part)
        path.append(max(choices, key=remaining.__getitem__))
        target = path[-1][1]
        if target not in region.blocks or target in region.headers:
            break
    times = min((remaining[edge] for edge in path[1:]), default=0)
    for edge in path[1:]:
        remaining[edge] -= times
    return path, times


def _find_flows(flow: graph.Graph, entry: str, executions: Mapping[str, int]) -> dict[Edge, int]:
    """Return the flow along each edge, by the executions of each block; `EXIT` is the end.

    If the flow is not determined, the first edges take as much as possible.
    """
    edges = [(u, v) for u, successors in flow.items() for v in successors or [graph.EXIT]]
    out, into = dict(executions), dict(executions)
    into[graph.EXIT] = 1
    into[entry] -= 1
    flows: dict[Edge, int] = {}
    unknown_out, unknown_in = Counter(u for u, _ in edges), Counter(v for _, v in edges)
    while edges:
        determined = [e for e in edges if 1 in (unknown_out[e[0]], unknown_in[e[1]])]
        for u, v in determined or edges[:1]:
            both = ((out[u], unknown_out[u]), (into[v], unknown_in[v]))
            exact = [n for n, unknown in both if unknown == 1]
            flows[u, v] = amount = max(0, min(exact or [n for n, _ in both]))
            out[u] -= amount
            into[v] -= amount
            unknown_out[u] -= 1
            unknown_in[v] -= 1
        edges = [e for e in edges if e not in flows]
    return flows
