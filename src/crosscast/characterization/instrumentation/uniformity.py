"""Which values are the same for all work-items of a work-group, whenever they run in step.

A value diverges if it comes from an id, from memory, or from a value that diverges; a phi also
diverges where paths meet that a divergent branch has parted. All that does not diverge is uniform:
conditions of loops with barriers in them nearly always are. The analysis is conservative: what it
calls uniform is.

Values that are computed again in each segment that needs them, instead of being carried in memory.

These are the cheap functions of ids, arguments and uniform values: addresses, mostly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.inline import called_builtin

PURE = frozenset(
    "add sub mul udiv sdiv urem srem shl lshr ashr and or xor icmp fcmp select trunc zext sext fpext fptrunc "
    "fadd fsub fmul fdiv frem fneg uitofp sitofp fptoui fptosi bitcast addrspacecast ptrtoint inttoptr "
    "getelementptr freeze extractelement insertelement shufflevector extractvalue insertvalue".split()
)
"""Operations that depend on their operands alone and have no effect."""
_UNIFORM_CALLS = frozenset(
    "get_group_id get_local_size get_enqueued_local_size get_global_size get_num_groups "
    "get_global_offset get_work_dim".split()
)


@dataclass(frozen=True)
class Uniformity:
    """What is the same for all work-items of a group."""

    values: set[str]  # Names of uniform values
    parted: set[str]  # Blocks that only some of the work-items may run, or not all equally often

    def decides_for_all(self, block: ir.Block) -> bool:
        """Whether all work-items that reach a segment take the same way at the end of a block."""
        return block.label not in self.parted and block.terminator.uses() <= self.values


def find_uniform(blocks: Mapping[str, ir.Block], flow: graph.Graph, parameters: Sequence[str]) -> Uniformity:
    """Find the values that are uniform, and the blocks that diverging branches part."""
    divergent: set[str] = set()
    after = graph.immediate_postdominators(flow)
    spread: set[str] = set()  # blocks whose divergent branches have been followed
    joins: set[str] = set()  # blocks whose phis diverge
    parted: set[str] = set()
    known = set(parameters)
    changed = True
    while changed:
        changed = False
        for label, block in blocks.items():
            for instruction in block.instructions:
                result = instruction.result
                if result is None or result in divergent or result in known:
                    continue
                if _diverges(instruction, divergent, label in joins):
                    divergent.add(result)
                    changed = True
            if label not in spread and len(flow[label]) > 1 and _condition(block) & divergent:
                spread.add(label)
                reached = _between(flow, flow[label], after.get(label))
                joins |= reached
                parted |= reached - {after.get(label, "")}
                changed = True
    defined = {i.result for b in blocks.values() for i in b.instructions if i.result}
    return Uniformity((defined - divergent) | known, parted)


def _diverges(instruction: ir.Instruction, divergent: set[str], at_join: bool) -> bool:
    if instruction.opcode == "phi":
        used = {name for value, _ in instruction.incoming for name in ir.LOCAL.findall(value)}
        return at_join or bool(used & divergent)
    pure = instruction.opcode in PURE or called_builtin(instruction) in _UNIFORM_CALLS
    return not pure or bool(instruction.uses() & divergent)


def _condition(block: ir.Block) -> set[str]:
    return block.terminator.uses()


def _between(flow: graph.Graph, starts: Sequence[str], end: str | None) -> set[str]:
    """Blocks on the way from `starts` to `end`, `end` included."""
    reached: set[str] = set()
    pending = list(starts)
    while pending:
        label = pending.pop()
        if label in reached:
            continue
        reached.add(label)
        if label != end:
            pending.extend(flow[label])
    return reached


IDENTITIES = frozenset(
    "get_global_id get_local_id get_group_id get_local_size get_enqueued_local_size get_global_size "
    "get_num_groups get_global_offset get_work_dim get_global_linear_id get_local_linear_id".split()
)
"""Work-item functions: cheap, and without effect on memory."""

_CHEAP = frozenset(
    "getelementptr trunc zext sext bitcast addrspacecast ptrtoint inttoptr "
    "add sub mul shl lshr ashr and or xor icmp select alloca".split()
)
_LONGEST_CHAIN = 12

Definitions = dict[str, ir.Instruction]


def recomputable(definitions: Definitions, given: set[str], uniform: set[str]) -> Definitions:
    """Definitions of the values to compute again.

    A uniform value that is more than a function of ids and arguments is not among them: it is
    carried, once a work-group.
    """
    cheap: Definitions = {}
    for leaves in (given, given | uniform):
        for name in definitions:
            if name not in cheap and (name not in uniform or leaves is given):
                cheap.update(_trial(name, definitions, leaves, cheap))
    return cheap


def _trial(name: str, definitions: Definitions, leaves: set[str], cheap: Definitions) -> Definitions:
    """A value and those that it is computed from, if all of them are cheap; else nothing."""
    trial: Definitions = {}
    pending = [name]
    while pending:
        current = pending.pop()
        instruction = definitions[current]
        if instruction.opcode not in _CHEAP and called_builtin(instruction) not in IDENTITIES:
            return {}
        trial[current] = instruction
        if len(trial) > _LONGEST_CHAIN:
            return {}
        pending += [
            used
            for used in instruction.uses()
            if used in definitions and not (used in leaves or used in cheap or used in trial)
        ]
    return trial


def sources(values: set[str], cheap: Definitions) -> set[str]:
    """Values that are not cheap, from which the cheap ones among `values` are computed."""
    found: set[str] = set()
    pending = [name for name in values if name in cheap]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in cheap:
            pending.extend(cheap[name].uses())
        else:
            found.add(name)
    return found


def chain(wanted: set[str], cheap: Definitions) -> list[ir.Instruction]:
    """Copies of the instructions that compute `wanted`, each after those it uses."""
    ordered: Definitions = {}

    def visit(name: str) -> None:
        if name in ordered or name not in cheap:
            return
        for used in sorted(cheap[name].uses()):
            visit(used)
        copy = ir.copy_instruction(cheap[name])
        copy.counted = False
        ordered[name] = copy

    for name in sorted(wanted):
        visit(name)
    return list(ordered.values())
