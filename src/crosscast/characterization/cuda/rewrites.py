"""Rewrites of a CUDA or HIP program's IR before the optimizer sees it.

Copies of aligned structures, such as the vector types, become those of their members, sums of global thread
indices one call each, and atomic sums of pairs atomics of vectors. Lanes may shuffle variables without a
value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from crosscast.characterization.instrumentation.builtin_calls import FUNCTIONS
from crosscast.characterization.instrumentation.inline import builtin_name

_PAIR_SUM = re.compile(
    r"call spir_func noundef (?P<type><2 x \w+>) @_Z13cc_atomic_add\w+\("
    r"(?P<pointer>ptr addrspace\(4\)) noundef (?P<to>\S+), <2 x \w+> noundef (?P<value>\S+)\) #\d+"
)


def for_optimizer(text: str, target: str) -> str:
    """Return IR for the target of OpenCL C, without native integer widths."""
    text = re.sub(r'^(target datalayout = ".*)-n[\d:]+(.*")$', r"\1\2", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^target triple = .*$", f'target triple = "{target}"', text, count=1, flags=re.MULTILINE)
    # Clang's builtins have no atomics of vectors, LLVM has.
    text = _PAIR_SUM.sub(r"atomicrmw fadd \g<pointer> \g<to>, \g<type> \g<value> monotonic, align 4", text)
    return allow_uninitialized(separate_members(name_indexes(text)))


_MOST_BYTES = 64
_COPY = re.compile(
    r"^  call void @llvm\.memcpy\.[^(]*\("
    r"(?P<to>ptr(?: addrspace\(\d\))?) align (?P<to_align>\d+) (?P<target>.+), "
    r"(?P<of>ptr(?: addrspace\(\d\))?) align (?P<of_align>\d+) (?P<source>.+), "
    r"i64 (?P<nbytes>\d+), i1 false\)(?P<where>, !dbg !\d+)?, !tbaa\.struct !(?P<members>\d+)$",
    re.MULTILINE,
)
_NODE = re.compile(r"^!(\d+) = !\{(.*)\}$", re.MULTILINE)
_MEMBER = re.compile(r"i64 (\d+), i64 (\d+), !(\d+)")
_TYPE_NAME = re.compile(r'!"([^"]*)"')
_TYPES = {
    "omnipotent char": ("i8", 1),
    "bool": ("i8", 1),
    "short": ("i16", 2),
    "int": ("i32", 4),
    "long": ("i64", 8),
    "long long": ("i64", 8),
    "_Float16": ("half", 2),
    "__bf16": ("bfloat", 2),
    "float": ("float", 4),
    "double": ("double", 8),
}
"""Type in the IR and bytes of a member, by the name of its type in the metadata."""


class _Member(NamedTuple):
    offset: int
    nbytes: int
    type: str
    tag: str  # Number of its metadata node

    def aligned(self, alignment: str) -> int:
        """Return its alignment in a structure with an alignment."""
        return min(int(alignment), self.offset & -self.offset) if self.offset else int(alignment)


def separate_members(text: str) -> str:
    """Replace copies of aligned structures in unoptimized IR by loads and stores of their members.

    Otherwise the optimizer keeps copies of several unused members together, such as 12 bytes of a ``float4``,
    whose alignment is that of one member. A structure is aligned if its alignment exceeds the size of each
    member. Those with padding, unions or pointers are copied as before.
    """
    nodes: dict[str, str] = {}
    copies = 0

    def separated(copy: re.Match[str]) -> str:
        nonlocal copies
        if not nodes:
            nodes.update(_NODE.findall(text))
        members = _members(nodes, copy["members"])
        nbytes, alignment = int(copy["nbytes"]), min(int(copy["to_align"]), int(copy["of_align"]))
        is_whole = sum(member.nbytes for member in members) == nbytes <= _MOST_BYTES
        if not is_whole or alignment <= max(member.nbytes for member in members):
            return copy[0]
        copies += 1
        return _copied(copy, members, f"%copied.{copies}")

    return _COPY.sub(separated, text)


def _members(nodes: Mapping[str, str], number: str) -> list[_Member]:
    """Return the scalars in a structure, from its metadata node; none if it has other members."""
    members = []
    for offset, nbytes, tag in _MEMBER.findall(nodes[number]):
        name = _TYPE_NAME.match(nodes[nodes[tag].partition(",")[0].removeprefix("!")])
        type_, size = _TYPES.get(name[1] if name else "", ("", 0))
        if size != int(nbytes):
            return []
        members.append(_Member(int(offset), size, type_, tag))
    return members


def _copied(copy: re.Match[str], members: Iterable[_Member], name: str) -> str:
    loads, stores = [], []
    for number, member in enumerate(members):
        value = f"{name}.{number}"
        end = f"{copy['where'] or ''}, !tbaa !{member.tag}"
        lines, source = _address(copy, "of", "source", member, value)
        loads += [
            *lines,
            f"  {value} = load {member.type}, {source}, align {member.aligned(copy['of_align'])}{end}",
        ]
        lines, target = _address(copy, "to", "target", member, value)
        stores += [
            *lines,
            f"  store {member.type} {value}, {target}, align {member.aligned(copy['to_align'])}{end}",
        ]
    return "\n".join([*loads, *stores])


def _address(
    copy: re.Match[str], type_: str, pointer: str, member: _Member, value: str
) -> tuple[list[str], str]:
    """Return the lines that compute a member's address, and the address with its type."""
    if not member.offset:
        return [], f"{copy[type_]} {copy[pointer]}"
    name = f"{value}.{pointer}"
    whole = f"{copy[type_]} {copy[pointer]}"
    line = f"  {name} = getelementptr inbounds i8, {whole}, i64 {member.offset}{copy['where'] or ''}"
    return [line], f"{copy[type_]} {name}"


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


_SYMBOL = r'@("[^"]+"|[-\w$.]+)\('
_DEFINITION = re.compile(rf"^define [^@\n]*{_SYMBOL}[^\n]*\n.*?^}}$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(rf"^  (?:%[^\n]*? = )?(?:tail )?call [^@\n]*{_SYMBOL}", re.MULTILINE)
_NAMED = re.compile(
    rf"^(?:define|declare|  (?:%[^\n]*? = )?(?:tail )?call) [^@\n]*{_SYMBOL}.*$", re.MULTILINE
)


def allow_uninitialized(text: str) -> str:
    """Let operations of warps, and functions of the program that do some, take arguments without a value.

    A lane that gives no value to a shuffle need not have one: ``int x; if (lane == 0) x = f();`` may come
    before ``x = __shfl_sync(mask, x, 0);``. For clang an argument without a value is undefined behaviour, by
    its attribute ``noundef``, so that its optimizer would take every lane for lane 0.
    """
    calls = {match[1]: set(_CALL.findall(match[0])) for match in _DEFINITION.finditer(text)}
    called = set().union(*calls.values())
    variadic = {symbol for symbol in called if "v" in FUNCTIONS.get(builtin_name(symbol), ("", ""))[1]}
    if not variadic:
        return text
    while more := {
        symbol for symbol, callees in calls.items() if symbol not in variadic and callees & variadic
    }:
        variadic |= more

    def allow(line: re.Match[str]) -> str:
        if line[1] not in variadic or " spir_kernel " in line[0]:
            return line[0]
        start = line.end(1) - line.start()
        return line[0][:start] + line[0][start:].replace(" noundef", "")

    return _NAMED.sub(allow, text)
