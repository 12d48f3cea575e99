"""Adding code to the blocks and edges of a segment."""

from __future__ import annotations

from collections.abc import Iterable

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.names import Names
from crosscast.characterization.instrumentation.segments import Segment

__all__ = ["SegmentEditor"]


class SegmentEditor:
    """Adds code to one segment.

    Parameters
    ----------
    segment
        The segment; its blocks are changed, and edges are split where code stands on them.
    names
        Where new names come from.
    """

    def __init__(self, segment: Segment, names: Names) -> None:
        self.segment, self._names = segment, names
        self.slots: list[str] = []
        """Stack slots, to be written before the segment's entry."""
        self.flow = segment.successors()
        self._predecessors: dict[str, list[str]] = {label: [] for label in segment.blocks}
        for label, successors in self.flow.items():
            for successor in successors:
                self._predecessors[successor].append(label)
        self._middles: dict[graph.Edge, str] = {}  # block on each edge that was split

    def slot(self, stem: str, type_: str, value: str = "0") -> str:
        """Make a stack slot, and return its name."""
        name = self._names.unique(stem)
        self.slots += [f"  {name} = alloca {type_}", f"  store {type_} {value}, ptr {name}"]
        return name

    def increment(self, slot: str, type_: str) -> list[str]:
        """Code that adds 1 to a stack slot."""
        old, new = self._names.unique("v"), self._names.unique("v")
        return [
            f"{old} = load {type_}, ptr {slot}",
            f"{new} = add {type_} {old}, 1",
            f"store {type_} {new}, ptr {slot}",
        ]

    def at_start(self, label: str, texts: Iterable[str]) -> None:
        """Add code behind the phis of a block."""
        self._insert(label, sum(1 for _ in self.segment.blocks[label].phis()), texts)

    def at_end(self, label: str, texts: Iterable[str]) -> None:
        """Add code before the terminator of a block."""
        self._insert(label, len(self.segment.blocks[label].instructions) - 1, texts)

    def on_edge(self, edge: graph.Edge, texts: Iterable[str]) -> None:
        """Add code that is executed whenever control goes along an edge."""
        source, target = edge
        if edge in self._middles:
            self.at_end(self._middles[edge], texts)
        elif target == graph.EXIT or len(self.flow[source]) == 1:
            self.at_end(source, texts)
        elif len(self._predecessors[target]) == 1 and target != self.segment.entry:
            self.at_start(target, texts)
        else:
            self.at_end(self._split(source, target), texts)

    def _insert(self, label: str, position: int, texts: Iterable[str]) -> None:
        self.segment.blocks[label].instructions[position:position] = map(ir.added, texts)

    def _split(self, source: str, target: str) -> str:
        """Put an empty block on an edge."""
        label = self._names.unique("edge")
        blocks = self.segment.blocks
        blocks[label] = ir.Block(label, [ir.Instruction(f"br label {target}", "br", counted=False)])
        blocks[source].terminator.retarget(target, label)
        for phi in blocks[target].phis():
            # A switch may have gone there several times; the new block goes there once.
            moved = ((value, label if p == source else p) for value, p in phi.incoming)
            phi.incoming = list(dict.fromkeys(moved))
        self.flow[source] = [label if s == target else s for s in self.flow[source]]
        self.flow[label] = [target]
        self._predecessors[label] = [source]
        self._predecessors[target] = [label if p == source else p for p in self._predecessors[target]]
        self._middles[source, target] = label
        return label
