"""What `profile.launch` says of sub-groups, access patterns and reuse, computed the slow way from a trace.

A sub-group is `width` work-items that follow each other in the linear order of their work-group. The k-th
execution of a static instruction by one of them goes with the k-th by the others: that is one access of the
sub-group.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from functools import reduce
from itertools import groupby, pairwise
from operator import or_
from typing import NamedTuple

from support.interpreter.machine import Access, Trace

_BANKS, _WORD = 32, 4


def _together(trace: Trace, width: int) -> Iterator[list[Access]]:
    """The accesses of sub-groups, in local memory apart from others and reads from writes."""
    found = defaultdict(list)
    for access in trace.accesses:
        where = access.site, access.turn, access.group, access.item // width
        found[where, access.space == "local", access.kind].append(access)
    yield from found.values()


def sub_group_counts(trace: Trace, width: int) -> dict[str, int]:
    """The keys of the oracle's ``hardware.json``, and those of atomics."""
    counts = dict.fromkeys(("accesses_read", "accesses_write"), 0)
    for name in ("sectors_32", "lines_64", "lines_128"):
        counts |= {f"{name}_read": 0, f"{name}_write": 0}
    counts |= {"local_wavefronts_32_banks": 0, "atomic_conflicts": 0, "atomic_accesses": 0}
    for accesses in _together(trace, width):
        kind, is_local = accesses[0].kind, accesses[0].space == "local"
        if kind == "atomic":
            places = Counter((access.memory, access.offset) for access in accesses)
            counts["atomic_conflicts"] += max(places.values())
        if is_local:
            words = {(access.memory, access.offset // _WORD) for access in accesses}
            counts["local_wavefronts_32_banks"] += max(Counter(word % _BANKS for _, word in words).values())
            continue
        direction = "read" if kind == "read" else "write"
        counts[f"accesses_{direction}"] += 1
        counts["atomic_accesses"] += kind == "atomic"
        for name, nbytes in (("sectors_32", 32), ("lines_64", 64), ("lines_128", 128)):
            touched = {(access.memory, line) for access in accesses for line in _lines(access, nbytes)}
            counts[f"{name}_{direction}"] += len(touched)
    counts["same_address_read"] = _reads_of_one_address(trace, width)
    no_phi = [site for site, instruction in enumerate(trace.sites) if instruction.opcode != "phi"]
    sub_groups = defaultdict(list)
    for (group, item), executions in trace.executions.items():
        sub_groups[group, item // width].append(executions)
    counts["instructions_without_phi"] = sum(
        executions[site] for executions in trace.executions.values() for site in no_phi
    )
    counts["sub_group_instructions_without_phi"] = sum(
        max(executions[site] for executions in items) for items in sub_groups.values() for site in no_phi
    )
    return counts


def distinct_bytes(trace: Trace) -> dict[str, dict[str, int]] | None:
    """Bytes read and written by memory; of buffers with atomics, which count twice, those of all accesses.

    ``None`` if a memory has reads, or writes, of several widths.
    """
    sides: dict[str, dict[str, set[tuple[int, int]]]] = defaultdict(lambda: defaultdict(set))
    times: Counter[tuple[int, int]] = Counter()
    widths: dict[tuple[int, str], int] = {}
    atomic = {each.memory for each in trace.accesses if each.kind == "atomic" and each.space != "local"}
    for each in trace.accesses:
        used = {(each.memory, each.offset + n) for n in range(each.nbytes)}
        space = sides["local" if each.space == "local" else "global"]
        reads, writes = each.kind != "write", each.kind != "read" and not each.failed
        for side in ("read",) * reads + ("written",) * writes:
            if widths.setdefault((each.memory, side), each.nbytes) != each.nbytes:
                return None
            space[side] |= used
            times[each.memory, each.offset] += each.memory in atomic
    found = {space: {side: len(used) for side, used in each.items()} for space, each in sides.items()}
    if atomic:
        written = [place for place in sides["global"]["written"] if place[0] in atomic]
        lines = {(memory, offset // 128) for memory, offset in times if memory in atomic}
        found["atomics"] = {"written": len(written), "lines": len(lines), "most": max(times.values())}
    return found


def _reads_of_one_address(trace: Trace, width: int) -> int:
    """Reads by sub-groups of the one buffer that has most at an address shared by all that read in a turn."""
    addresses, sub_groups = defaultdict(set), defaultdict(set)
    for access in trace.accesses:
        if access.kind == "read" and access.space == "global":
            addresses[access.site, access.turn].add((access.memory, access.offset))
            sub_groups[access.site, access.turn].add((access.group, access.item // width))
    of_memory: Counter[int] = Counter()
    for turn, places in addresses.items():
        if len(places) == 1:
            of_memory[min(places)[0]] += len(sub_groups[turn])
    return max(of_memory.values(), default=0)


def _lines(access: Access, nbytes: int) -> range:
    return range(access.offset // nbytes, (access.offset + access.nbytes - 1) // nbytes + 1)


def access_patterns(trace: Trace, width: int = 32) -> Counter[str]:
    """Pairs of neighbours in accesses to global and constant memory, by how far apart they are.

    A pair at the distance of 0 is `uniform`, of the bytes of the access `contiguous`, of the pair before it
    `strided`, and any other `irregular`. The first pair of a row is compared with the pair behind it. A pair
    that accesses two buffers has no distance.
    """
    pairs: Counter[str] = Counter()
    for accesses in _together(trace, width):
        if accesses[0].space == "local":
            continue
        items = {access.item: access for access in accesses}
        apart = {
            item: items[item + 1].offset - access.offset
            for item, access in items.items()
            if item + 1 in items and items[item + 1].memory == access.memory
        }
        for item, access in items.items():
            if item + 1 not in items:
                continue
            distance = apart.get(item)
            other = apart.get(item - 1 if item - 1 in items else item + 1)
            if distance == 0:
                pairs["uniform"] += 1
            elif distance == access.nbytes:
                pairs["contiguous"] += 1
            else:
                pairs["strided" if distance is not None and distance == other else "irregular"] += 1
    return pairs


def walks(trace: Trace) -> dict[str, float]:
    """Bytes between successive accesses of each work-item by one instruction, at most 64 each, added up.

    Accesses that rise, or fall, are a walk. With it the means of the rounded logarithms of walks' bytes, and
    of the largest powers of two that divide all distances of a walk.
    """
    by_item = defaultdict(list)
    for access in trace.accesses:
        if access.space != "local":
            by_item[access.site, access.kind, access.group, access.item].append(access)
    moved = lengths = alignments = 0
    for accesses in by_item.values():
        places = [(each.memory, each.offset) for each in sorted(accesses, key=lambda each: each.turn)]
        steps = [
            (after > before, after[1] - before[1] if after[0] == before[0] else None)
            for before, after in pairwise(places)
            if after != before
        ]
        for _, walk in groupby(steps, key=lambda step: step[0]):
            distances = [distance for _, distance in walk]
            length = sum(64 if each is None else min(abs(each), 64) for each in distances)
            moved += length
            lengths += length * (length.bit_length() - 1)
            alignments += length * _alignment_log2([each or 0 for each in distances])
    return {
        "moved_bytes": moved,
        "mean_walk_log2": lengths / moved if moved else 0.0,
        "mean_alignment_log2": alignments / moved if moved else 0.0,
    }


def _alignment_log2(distances: Iterable[int]) -> int:
    common = reduce(or_, map(abs, distances))
    return (common & -common).bit_length() - 1


class LineUse(NamedTuple):
    """An access to a line."""

    line: Hashable
    reads: bool
    writes: bool


def lines_moved(uses: Iterable[LineUse], kept: int) -> int:
    """Lines read from memory and written back, behind a cache of so many (LRU)."""
    stack: dict[Hashable, bool] = {}  # whether each was written; the last one used stands at the end
    moved = 0
    for use in uses:
        if use.line not in stack:
            moved += use.reads
        stack[use.line] = stack.pop(use.line, False) or use.writes
        if len(stack) > kept:
            moved += stack.pop(next(iter(stack)))
    return moved + sum(stack.values())


def channel_share(trace: Trace, channels: int = 16) -> float | None:
    """Chance that two lines of 128 bytes in which accesses start share a channel, of 256 bytes in turn."""
    lines = {(each.memory, each.offset // 128) for each in trace.accesses if each.space != "local"}
    counts = Counter(line // 2 % channels for _, line in lines)
    pairs = sum(n * (n - 1) for n in counts.values())
    return pairs / (len(lines) * (len(lines) - 1)) if len(lines) > 1 else None


def line_uses(trace: Trace, line_bytes: int, together: int) -> list[LineUse]:
    """Lines of global memory in the order in which groups that run together use them.

    Of a kernel without barriers and of at most one loop, in which all work-items stay equally long: what
    stands before the loop comes first, then its iterations, then what stands behind it. Of each of these
    a group makes all accesses, of one line after another, before it is another's turn.
    """
    turns: dict[int, int] = defaultdict(int)
    for access in trace.accesses:
        turns[access.site] = max(turns[access.site], access.turn)
    looped = [site for site, turn in turns.items() if turn]
    uses = set()
    for access in trace.accesses:
        if access.space == "local":
            continue
        part = 1 if access.site in looped else 0 if access.site < min(looped, default=access.site + 1) else 2
        when = access.group // together, part, access.turn, access.group, access.memory
        for line in _lines(access, line_bytes):
            uses.add((*when, line * line_bytes // 128, access.site, line, access.kind))
    return [LineUse((use[4], use[7]), use[8] != "write", use[8] != "read") for use in sorted(uses)]
