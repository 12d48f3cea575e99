"""What the runtime counted by sub-groups, as a profile has it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crosscast.characterization.engine.layout import BlockCosts, SubGroupLayout

WIDTHS = (32, 64)
"""Work-items of a sub-group."""

COUNTED = (
    *("accesses_read", "accesses_write", "sectors_32_read", "sectors_32_write", "lines_64_read"),
    *("lines_64_write", "lines_128_read", "lines_128_write", "local_wavefronts_32_banks"),
    *("instructions_without_phi", "sub_group_instructions_without_phi", "atomic_conflicts"),
)
"""What is counted by sub-groups."""

_TOGETHER = (1, 16, 256)
_CACHES = tuple(1 << bits for bits in range(14, 27))
_OF_WIDTH = 5
_PAIRS = ("uniform", "contiguous", "strided", "irregular")


@dataclass
class SubGroupCounts:
    """What the runtime counted by sub-groups, of all threads."""

    sites: dict[int, list[int]] = field(default_factory=dict)
    entries: list[int] = field(default_factory=list)  # By width and index
    forms: list[int] = field(default_factory=list)  # By width and form
    # Instructions and group of one work-item, then its counts
    longest: list[int] = field(default_factory=list)
    reuse: list[int] = field(default_factory=list)  # See `reuse.c`
    overflow: int = 0  # Words that a stream had no room for; 1 where rows were

    def read(self, name: str, words: list[int]) -> None:
        """Read a record of one thread."""
        match name:
            case "SITE":
                site, *rest = words
                _add(self.sites.setdefault(site, []), rest)
            case "ENTRIES":
                _add(self.entries, words)
            case "FORMS":
                _add(self.forms, words)
            case "LONGEST":
                # Of several work-items, the one in the first work-group.
                if not self.longest or (-words[0], words[1]) < (-self.longest[0], self.longest[1]):
                    self.longest = words
            case "REUSE":
                self.reuse = words
            case _:
                self.overflow = max(self.overflow, *words)

    def executions_of_longest(self, layout: SubGroupLayout, blocks: Iterable[BlockCosts]) -> dict[str, int]:
        """How often the work-item of most instructions executed each block, by label."""
        columns, alike = layout.columns, layout.alike
        _, _, *counted = self.longest
        executions: Counter[str] = Counter()
        for block in blocks:
            for counter, sign in block.executions.items():
                index = alike[counter] if counter in alike else len(alike) + columns[counter]
                executions[block.label] += sign * counted[index]
        return dict(executions)

    def by_width(
        self, layout: SubGroupLayout, instructions: int, sub_groups: Sequence[int]
    ) -> dict[str, dict[str, int]]:
        """Counts of a launch of so many instructions, phis left out, and sub-groups of each width."""
        by_width = {}
        alike, forms = len(layout.alike), len(layout.forms)
        for number, width in enumerate(WIDTHS):
            counts = dict.fromkeys(COUNTED, 0)
            for site, words in self.sites.items():
                accesses, sectors, lines_64, lines_128, conflicts = words[number * _OF_WIDTH :][:_OF_WIDTH]
                access = layout.sites[site]
                counts["atomic_conflicts"] += conflicts
                if access.is_local:
                    counts["local_wavefronts_32_banks"] += sectors
                    continue
                side = "write" if access.is_written else "read"
                counts[f"accesses_{side}"] += accesses
                counts[f"sectors_32_{side}"] += sectors
                counts[f"lines_64_{side}"] += lines_64
                counts[f"lines_128_{side}"] += lines_128
            entries = self.entries[number * alike :][:alike]
            if alike and not any(self.entries):  # all run their only segment, without a look at each group
                entries = [sub_groups[number]]
            executed = sum(w * n for w, n in zip(layout.weights, entries, strict=True))
            sums = self.forms[number * forms :][:forms]
            executed += sum(f.weight * n for f, n in zip(layout.forms, sums, strict=True))
            counts["instructions_without_phi"] = instructions
            counts["sub_group_instructions_without_phi"] = executed
            by_width[str(width)] = counts
        return by_width

    def reuse_bytes(self, distinct: Mapping[str, int], moved: Sequence[int]) -> dict[str, Any]:
        """Bytes that reach memory behind caches, by size of line, groups that run together, and size.

        Sampled lines stand for as many as there are: `distinct`, by size. The few lines that are accessed too
        often to be sampled stay in every cache: the distinct bytes read and written are `moved` once.
        """
        rate, *rest = self.reuse
        lines: dict[str, dict[str, dict[str, int]]] = {"128": {}, "64": {}}
        for number, groups in enumerate(_TOGETHER):
            for half, (line, found) in enumerate(lines.items()):
                start = (2 * number + half) * (2 + len(_CACHES))
                there, first, *sizes = rest[start : start + 2 + len(_CACHES)]
                if distinct[line] and not there:
                    first, *sizes = [sum(-(-nbytes // int(line)) for nbytes in moved)] * (1 + len(_CACHES))
                weight = int(line) * (1 if rate == 1 or not there else max(distinct[line] / there, 1))
                found[str(groups)] = {
                    "first": round(first * weight),
                    **{str(size): round(n * weight) for size, n in zip(_CACHES, sizes, strict=True)},
                }
        sampled = rest[0]
        return {
            "bytes": lines,
            "rate": 1 / rate,
            "error": 0.0 if rate == 1 else 1 / math.sqrt(sampled) if sampled else None,
        }

    def patterns(self, layout: SubGroupLayout) -> Mapping[str, int]:
        """Pairs of neighbours by how their addresses of global memory change, and bytes of strides."""
        patterns = dict.fromkeys((*_PAIRS, "stride_bytes"), 0)
        for site, words in self.sites.items():
            if not layout.sites[site].is_local:
                for name, n in zip(patterns, words[2 * _OF_WIDTH :], strict=True):
                    patterns[name] += n
        return patterns


def _add(to: list[int], words: Sequence[int]) -> None:
    to[:] = [a + b for a, b in zip(to, words, strict=True)] if to else words
