"""Messages on kernels that failed: work-item, line and memory, as far as known."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from crosscast.characterization.engine.abi import CONSTANTS
from crosscast.characterization.engine.arguments import Memory, three
from crosscast.characterization.engine.layout import ResultLayout
from crosscast.kernel import Launch

_FAULTS = {
    CONSTANTS[name]: name
    for name in (
        "SIGNAL",
        "BOUNDS",
        "DIVERGED",
        "STACK",
        "NO_MEMORY",
        "LANES_MISSING",
        "ASSERTION",
        "OUTSIDE",
        "PRINTED",
    )
}
_WHO = "--check-bounds tells the work-item and the line"
_NEAR, _FAR = 1 << 21, 1 << 40
_NO_ADDRESS = 1 << 63
_WORD = (1 << 64) - 1


def _listed(values: Sequence[int]) -> str:
    return str(tuple(values)) if len(values) > 1 else str(values[0])


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _outside(distance: int, nbytes: int) -> int:
    """Return the distance of an offset from a buffer; 0 inside."""
    return -distance if distance < 0 else max(0, distance - nbytes + 1)


def describe_fault(status: Sequence[int], launch: Launch, memory: Memory, layout: ResultLayout) -> str:
    """Return a sentence on the fault, its location and its memory; see the calls of ``cc_fail``."""
    return _Fault(launch, memory, layout).sentence(status)


@dataclass(frozen=True)
class _Fault:
    launch: Launch
    memory: Memory
    layout: ResultLayout

    def sentence(self, status: Sequence[int]) -> str:
        layout, dims = self.layout, len(self.launch.global_size)
        fault, number, address, x, y, z, site, item, a, b = status[
            CONSTANTS["S_FAULT"] : CONSTANTS["S_B"] + 1
        ]
        group = f"work-group {_listed((x, y, z)[:dims])}"
        work_item = f"work-item {_listed(self._global_id((x, y, z), item))}"
        outside = "accessed memory that is not its own"
        match _FAULTS[fault]:
            case "BOUNDS":
                line = f" in line {layout.fault_lines[site]}" if layout.fault_lines[site] else ""
                access = f"out-of-bounds {'write' if b else 'read'}"
                verb = "write to a read-only buffer" if number else access
                return f"{verb} of {a} bytes by {work_item}{line}: {self._nearest(address)[1]}"
            case "DIVERGED":
                lines = sorted({line for line in layout.cut_lines if line})
                stand = f" (barriers stand in line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))})"
                return f"a barrier was not reached by all work-items of {group}{stand if lines else ''}"
            case "LANES_MISSING":
                where = f"line {layout.cut_lines[a]}: " if layout.cut_lines[a] else ""
                return f"{where}a warp operation was not reached by all lanes that its mask names, in {group}"
            case "ASSERTION":
                return f"an assertion in line {layout.fault_lines[site]} failed in {work_item}"
            case "STACK":
                return f"{group} needs more private memory than the stack of 256 MiB"
            case "NO_MEMORY":
                return f"no memory for {address} bytes of counters"
            case "PRINTED":
                return f"{group} printed more than the limit of {address >> 20} MiB"
            case "OUTSIDE":
                return f"{outside}: {self._accessed(address, a, b)}; {_WHO}"
        if number == signal.SIGFPE:
            return f"integer division by zero (or the least integer divided by -1) in {group}"
        if number in (signal.SIGSEGV, signal.SIGBUS):
            return f"{group} {outside}: {self._accessed(address, a, b)}; {_WHO}"
        return f"{group} was stopped by {signal.Signals(number).name}"

    def _global_id(self, groups: Sequence[int], item: int) -> list[int]:
        """Return the global id of a work-item by its number in a group; the last group may be smaller."""
        launch, ids = self.launch, []
        sizes = three(launch.local_size, 1), three(launch.global_size, 1), three(launch.global_offset, 0)
        for group, local, size, offset in zip(groups, *sizes, strict=True):
            items = min(local, size - group * local)
            ids.append(group * local + item % items + offset)
            item //= items
        return ids[: len(launch.local_size)]

    def _accessed(self, address: int, counted: int, offset: int) -> str:
        """Describe a signal's address: of data, or of the counter of an address or of a local offset."""
        if address == _NO_ADDRESS:
            return "an address that no memory can have"
        local, offset = self.memory.local_bytes, _signed(offset)
        candidates = [self._nearest(address), self._nearest(counted)]
        if local:
            text = f"byte offset {offset} of local memory ({local} bytes)"
            candidates.append((_outside(offset, local), text))
        return min(candidates, key=itemgetter(0))[1]

    def _nearest(self, address: int) -> tuple[int, str]:
        """Return the distance of an address from the nearest buffer, with a description."""
        address = _signed(address)
        if abs(address) < _NEAR:
            arguments = enumerate(zip(self.launch.args, self.layout.parameters, strict=True))
            nulls = [(n, p.name) for n, (argument, p) in arguments if argument is None and p.is_buffer]
            which = f", argument {nulls[0][0]} ({nulls[0][1]})" if len(nulls) == 1 else ""
            return abs(address), f"byte offset {address} from a null pointer{which}"
        distances = [_outside(address - p.address, p.shared.nbytes) for p in self.memory.placed]
        distance = min(distances, default=_FAR + 1)
        if distance > _FAR:
            return _FAR, f"address {address & _WORD:#x} is in no buffer"
        nearest = self.memory.placed[distances.index(distance)]
        name, nbytes = self.layout.parameters[nearest.position].name, nearest.shared.nbytes
        offset = address - nearest.address
        return distance, (
            f"byte offset {offset} of buffer {name!r} (argument {nearest.position}, {nbytes} bytes)"
        )
