"""Values that are computed again in each segment that needs them, instead of being carried in memory.

These are the cheap functions of ids, arguments and uniform values: addresses, mostly.
"""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.inline import called_builtin

__all__ = ["IDENTITIES", "chain", "recomputable", "sources"]

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

    Parameters
    ----------
    definitions
        Definition of every value of the kernel.
    given
        Names of the kernel's parameters.
    uniform
        Names of uniform values.
    """
    cheap: Definitions = {}
    for leaves in (given, given | uniform):
        for name in definitions:
            if name not in uniform or leaves is given:
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
        known = leaves | cheap.keys() | trial.keys()
        pending += [used for used in instruction.uses() if used in definitions and used not in known]
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
