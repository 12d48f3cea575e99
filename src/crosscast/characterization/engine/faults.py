"""One sentence for each way in which a kernel can fail while it runs."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from crosscast.characterization.engine.arguments import Memory, Placed
from crosscast.characterization.instrumentation.instrumented import Instrumented
from crosscast.kernel import Launch

__all__ = ["Fault", "explain"]

_SIGNAL, _BOUNDS, _DIVERGED, _STACK, _NO_MEMORY = range(1, 6)
_NEAR = 1 << 21
_FAR = 1 << 40
_NO_ADDRESS = 1 << 63


@dataclass(frozen=True)
class Fault:
    """What the runtime noted when a kernel failed.

    Parameters
    ----------
    kind
        Which check, as the runtime numbers them.
    signal
        Signal number; for a bounds check, 1 if the buffer is read-only.
    address
        Address accessed.
    group
        Work-group that ran.
    site
        Place in the program, for a bounds check.
    item
        Work-item of the group, for a bounds check.
    details
        Two more numbers: bytes accessed and whether it was a write; the segments that work-items
        went on to; or what stands at `address` if that is a counter, an address of a buffer's or
        an offset into local memory.
    """

    kind: int
    signal: int
    address: int
    group: tuple[int, ...]
    site: int
    item: int
    details: tuple[int, int]

    @classmethod
    def from_words(cls, words: Sequence[int]) -> Fault:
        """Read the status page's words."""
        return cls(words[1], words[2], words[3], tuple(words[4:7]), words[7], words[8], (words[9], words[10]))


def explain(fault: Fault, launch: Launch, memory: Memory, made: Instrumented) -> str:
    """Sentence that says what failed, where, and on what.

    Parameters
    ----------
    fault
        What the runtime noted.
    launch
        The launch that failed.
    memory
        Where its buffers stood.
    made
        The instrumented kernel.
    """
    dims = len(launch.global_size)
    group = _tuple(fault.group[:dims])
    name = launch.kernel.name
    if fault.kind == _BOUNDS:
        return f"{name}: {_bounds(fault, launch, memory, made)}"
    if fault.kind == _DIVERGED:
        return (
            f"{name}: a barrier was not reached by all work-items of work-group {group}{_barrier_lines(made)}"
        )
    if fault.kind == _STACK:
        return f"{name}: work-group {group} needs more private memory than the stack of 256 MiB"
    if fault.kind == _NO_MEMORY:
        return f"{name}: no memory for {fault.address} bytes of counters"
    if fault.signal == signal.SIGFPE:
        return f"{name}: integer division by zero (or the least integer divided by -1) in work-group {group}"
    if fault.signal in (signal.SIGSEGV, signal.SIGBUS):
        return (
            f"{name}: work-group {group} accessed memory that is not its own: "
            f"{_signalled(fault, launch, memory, made)}; "
            "--check-bounds tells the work-item and the line"
        )
    return f"{name}: work-group {group} was stopped by {signal.Signals(fault.signal).name}"


def _tuple(values: Sequence[int]) -> str:
    return str(tuple(values)) if len(values) > 1 else str(values[0])


def _barrier_lines(made: Instrumented) -> str:
    lines = sorted({s.after.line for s in made.segments if s.after is not None and s.after.line})
    if not lines:
        return ""
    return f" (barriers stand in line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))})"


def _bounds(fault: Fault, launch: Launch, memory: Memory, made: Instrumented) -> str:
    line = made.sites[fault.site]
    nbytes, write = fault.details
    item = _tuple(_global_id(fault, launch))
    verb = "write to a read-only buffer" if fault.signal else f"out-of-bounds {'write' if write else 'read'}"
    where = f" in line {line}" if line else ""
    target = _target(fault.address, launch, memory, made)
    return f"{verb} of {nbytes} bytes by work-item {item}{where}: {target}"


def _global_id(fault: Fault, launch: Launch) -> list[int]:
    """Global id of the work-item that faulted."""
    ids, rest = [], fault.item
    offsets = launch.global_offset or (0,) * len(launch.global_size)
    for group, local, size, offset in zip(
        fault.group, launch.local_size, launch.global_size, offsets, strict=False
    ):
        start = group * local
        items = min(local, size - start)  # the last group may be smaller
        ids.append(start + rest % items + offset)
        rest //= items
    return ids


def _signalled(fault: Fault, launch: Launch, memory: Memory, made: Instrumented) -> str:
    """Say what a signal's address is, directly or as the place of an access's counter."""
    if fault.address == _NO_ADDRESS:
        return "an address that no memory can have"
    counted, offset = map(_signed, fault.details)
    address = _signed(fault.address)
    distance = min(_outside_all(address, memory), _outside_all(counted, memory))
    if not memory.local_bytes or distance <= _outside(offset, memory.local_bytes):
        nearer = min(address, counted, key=lambda a: _outside_all(a, memory))
        return _target(nearer, launch, memory, made)
    return f"byte offset {offset} of local memory ({memory.local_bytes} bytes)"


def _outside_all(address: int, memory: Memory) -> int:
    """How far an address is from all buffers and from null."""
    buffers = (_outside(address - p.address, p.shared.nbytes) for p in memory.placed)
    return min([abs(address) if abs(address) < _NEAR else _FAR, *buffers])


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _target(address: int, launch: Launch, memory: Memory, made: Instrumented) -> str:
    if abs(address) < _NEAR:
        nulls = [p for p, a in enumerate(launch.args) if a is None and made.is_pointer(p)]
        which = f", argument {nulls[0]} ({made.names[nulls[0]]})" if len(nulls) == 1 else ""
        return f"byte offset {address} from a null pointer{which}"

    def away(placed: Placed) -> int:
        return _outside(address - placed.address, placed.shared.nbytes)

    nearest = min(memory.placed, key=away, default=None)
    if nearest is None or away(nearest) > _FAR:
        return f"address {address:#x} is in no buffer"
    return (
        f"byte offset {address - nearest.address} of buffer {made.names[nearest.position]!r} "
        f"(argument {nearest.position}, {nearest.shared.nbytes} bytes)"
    )


def _outside(distance: int, nbytes: int) -> int:
    """How far outside a buffer an offset is; 0 inside."""
    return -distance if distance < 0 else max(0, distance - nbytes + 1)
