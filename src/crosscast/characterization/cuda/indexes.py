"""Global thread indices, replaced by one call before the optimizer rearranges their sums."""

from __future__ import annotations

import re
from collections import defaultdict

_NAME = r"%[-\w.$]+"
_FUNCTION = re.compile(r"^define [^\n]*\n.*?^}$", re.MULTILINE | re.DOTALL)
_GETTER = re.compile(
    rf"  ({_NAME}) = call spir_func noundef i32 @_ZN\d+(threadIdx|blockIdx|blockDim)_t5get_([xyz])Ev\("
)
_OPERATION = re.compile(rf"  ({_NAME}) = (add|mul) (?:nuw |nsw )*i32 ({_NAME}), ({_NAME})(, !dbg !\d+)?")
_GENERIC = re.compile(rf"  ({_NAME}) = addrspacecast ptr ({_NAME}) to ptr addrspace\(4\)")
_STORE = re.compile(rf"  store i32 (%?[-\w.$]+), ptr(?: addrspace\(4\))? ({_NAME})")
_LOAD = re.compile(rf"  ({_NAME}) = load i32, ptr(?: addrspace\(4\))? ({_NAME})")
_HARMLESS = re.compile(rf"  (?:{_NAME} = alloca |{_NAME} = addrspacecast |call void @llvm\.lifetime| *#dbg_)")
_Meaning = tuple[str, object]


def name_indexes(text: str) -> str:
    """Replace ``blockIdx.x * blockDim.x + threadIdx.x`` by one call in unoptimized IR.

    The optimizer would transform the sum, for a comparison such as ``i == 0`` for instance. A variable with a
    single store stands for its value.
    """
    changed = _FUNCTION.sub(lambda match: _named(match[0]), text)
    if changed == text:
        return text
    declaration = re.search(r"^declare (.*)@_Z12get_local_idj\(i32 noundef\)(.*)$", text, re.MULTILINE)
    kind, attributes = (declaration[1], declaration[2]) if declaration else ("spir_func noundef i64 ", "")
    return f"{changed}\ndeclare {kind}@_Z13get_global_idj(i32 noundef){attributes}\n"


def _named(function: str) -> str:
    if "threadIdx_t5get_" not in function:
        return function
    lines = function.split("\n")
    values = _written_once(lines)
    meanings: dict[str, _Meaning | None] = {}
    for number, line in enumerate(lines):
        if getter := _GETTER.match(line):
            meanings[getter[1]] = (getter[2], getter[3])
        elif load := _LOAD.match(line):
            meanings[load[1]] = meanings.get(values.get(load[2], ""))
        elif operation := _OPERATION.match(line):
            result, kind, first, second, where = operation.groups()
            terms = frozenset((meanings.get(first), meanings.get(second)))
            meanings[result] = None if None in terms else (kind, terms)
            if (dimension := _INDEXES.get(meanings[result])) is not None:
                lines[number] = (
                    f"  {result}.wide = call spir_func noundef i64 @_Z13get_global_idj"
                    f"(i32 noundef {dimension}){where or ''}\n"
                    f"  {result} = trunc i64 {result}.wide to i32{where or ''}"
                )
    return "\n".join(lines)


def _index(axis: str) -> _Meaning:
    product = ("mul", frozenset({("blockIdx", axis), ("blockDim", axis)}))
    return "add", frozenset({product, ("threadIdx", axis)})


_INDEXES: dict[_Meaning | None, int] = {_index(axis): dimension for dimension, axis in enumerate("xyz")}


def _written_once(lines: list[str]) -> dict[str, str]:
    """Return the value of each local variable with a single store and only loads, by its addresses."""
    variables: dict[str, str] = {}  # by their addresses, of which the generic one is another
    stored: dict[str, list[str]] = defaultdict(list)
    escaped: set[str] = set()
    for line in lines:
        if generic := _GENERIC.match(line):
            variables[generic[1]] = generic[2]
        if store := _STORE.match(line):
            stored[variables.get(store[2], store[2])].append(store[1])
        elif not _LOAD.match(line) and not _HARMLESS.match(line):
            escaped.update(variables.get(name, name) for name in re.findall(_NAME, line))
    once = {name: values[0] for name, values in stored.items() if len(values) == 1 and name not in escaped}
    return once | {address: once[name] for address, name in variables.items() if name in once}
