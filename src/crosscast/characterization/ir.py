"""LLVM IR of a program as mutable data: functions, blocks, instructions and their operands.

LLVM parses and verifies the IR and prints it in its canonical form (in a child process, see
`engine/llvm.py`), but llvmlite cannot insert instructions; so the canonical text is read here, together with
LLVM's list of the opcode and type of every instruction. All instrumentation works on these classes.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crosscast.errors import UnsupportedError

_NAME = r'(?:"[^"]*"|[-\w$.]+)'
_DEEPEST = 8
"""Most levels of nested brackets in types and constants."""
_BRACKETS = "(?!)"
for _ in range(_DEEPEST):
    _BRACKETS = rf'[\[({{<](?:[^\[\](){{}}<>"]++|"[^"]*"|{_BRACKETS})*+[\])}}>]'
_PARENTHESES, _AGGREGATE = rf"(?=\(){_BRACKETS}", rf"(?=[\[{{<]){_BRACKETS}"
_TYPE = (
    r"(?:ptr(?: addrspace\(\d+\))?|i\d+|half|bfloat|float|double|label|metadata|token|target\([^)]*\)"
    rf"|%{_NAME}|{_AGGREGATE})"
)
_EXPRESSION = (
    r"(?:(?:getelementptr|bitcast|inttoptr|ptrtoint|ptrtoaddr|addrspacecast|trunc|splat|add|sub|xor|blockaddress"
    r"|extractelement|insertelement|shufflevector)(?: inbounds| nuw| nusw| nsw| inrange\([^)]*\))*)"
)
_VALUE = (
    rf'(?:[%@]{_NAME}|-?\d[^\s,)\]]*|true|false|null|undef|poison|zeroinitializer|none|c?"[^"]*"'
    rf"|{_EXPRESSION} ?{_PARENTHESES}|{_AGGREGATE}|![^\s,)]+)"
)
_ATTRIBUTES = rf"(?:align \d+ |[a-z_]+(?:{_PARENTHESES})? )*?"
# Type, attributes and value of each operand. A type may be alone, before a comma; and a value without a
# type, as the second one of an addition, has that of the one before.
_OPERANDS = re.compile(rf'((?<![-\w.%@$"]){_TYPE}|(?<=, ))((?<=, )|(?=,)| {_ATTRIBUTES})((?=,)|{_VALUE})')
_CONSTANT = re.compile(rf"({_EXPRESSION}) ?\((.*)\)$")
_CALLEE = re.compile(rf"@({_NAME})\(")
SYMBOL = re.compile(r'@(?:"[^"]*"|[-\w$.]+)')
"""Pattern of a reference to a global variable or function."""

_WIDTH = re.compile(r"<(?:vscale x )?(\d+) x ")


def width_of(type_: str) -> int:
    """Elements of a type: 1 of scalars, pointers and void."""
    match = _WIDTH.match(type_)
    return int(match[1]) if match else 1


class Operand(NamedTuple):
    """An operand of an instruction, or an argument of a call."""

    type: str  # LLVM type
    value: str  # Local or global name, constant or constant expression; empty for a type alone
    attributes: str = ""  # Text between them

    @property
    def constant_expression(self) -> Instruction | None:
        """The instruction that computes it, if it is an expression of constants."""
        match = _CONSTANT.match(self.value)
        if match is None:
            return None
        return Instruction(f"{match[1]} {match[2]}", match[1].split(" ")[0], self.type, counted=False)


@dataclass
class Instruction:
    """One instruction."""

    text: str  # Text behind `%result =`; empty if it is counted, but not executed
    opcode: str  # LLVM's name of the operation
    type: str = "void"  # LLVM type of the result (`void` if none)
    result: str | None = None  # Name of the result with its `%`, or `None`
    line: int = 0  # Source line, 0 if unknown
    file: str = ""  # Included file that the line is of
    counted: bool = True  # Whether it is of the program: rewriting adds uncounted ones
    branch: int | None = None  # Number of a static conditional branch
    # (value, label) pairs of a phi, each label once, even if a switch has several edges from there
    incoming: list[tuple[str, str]] = field(default_factory=list)
    # Accesses outside private memory, set by the instrumentation
    accesses: list[Any] = field(default_factory=list)
    # Likewise its kind (see `instruction_kinds.py`) and elements; a ghost is a call or a return
    kind: tuple[str, int] = ("calls", 1)
    _parsed: tuple[str, list[str]] = field(default=("", [""]), repr=False)
    _operands: tuple[str, tuple[Operand, ...]] = field(default=("", ()), repr=False)
    _used: tuple[str, frozenset[str]] = field(default=("", frozenset()), repr=False)

    @property
    def where(self) -> str | None:
        """Its line, for errors; ``None`` if it is not known."""
        return f"{self.file}{': ' * bool(self.file)}line {self.line}" if self.line else None

    def refused(self, problem: str) -> UnsupportedError:
        """Return the error about it; source and kernel are named where they are known."""
        return UnsupportedError.of(field=self.where, problem=problem)

    @property
    def width(self) -> int:
        """Elements of the result: 1 for scalars, pointers and void."""
        return width_of(self.type)

    def _parts(self) -> list[str]:
        """Return its text, split around the type and the value of each operand."""
        if self._parsed[0] is not self.text:
            call = _CALLEE.search(self.text) if self.opcode in ("call", "cut") else None
            start = call.end() if call else 0
            parts = _OPERANDS.split(self.text[start:])
            parts[0] = self.text[:start] + parts[0]
            self._parsed = self.text, parts
        return self._parsed[1]

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Operands in order, or the arguments of a call; those of a load, an alloca and a ``getelementptr``
        begin with a type without value.
        """
        if self._operands[0] is not self.text:
            type_, operands = "", []
            _, *parts = self._parts()
            for given, attributes, value in zip(parts[::4], parts[1::4], parts[2::4], strict=True):
                type_ = given or type_
                operands.append(Operand(type_, value, attributes.strip()))
            self._operands = self.text, tuple(operands)
        return self._operands[1]

    @property
    def callee(self) -> str:
        """Name of the called function; empty if there is none, or if it has no name."""
        match = _CALLEE.search(self.text) if self.opcode in ("call", "cut") else None
        return "" if match is None or " asm " in self.text[: match.start()] else match[1].strip('"')

    @property
    def symbols(self) -> set[str]:
        """Global variables and functions that it refers to, with their `@`."""
        texts = (self.text, *(value for value, _ in self.incoming))
        return {name for text in texts if "@" in text for name in SYMBOL.findall(text)}

    @property
    def targets(self) -> list[str]:
        """Labels that a terminator names, in order, with repetition."""
        parts = self._parts()
        return [value for type_, value in zip(parts[1::4], parts[3::4], strict=True) if type_ == "label"]

    @property
    def successors(self) -> list[str]:
        """Labels that a terminator names, in order, without repetition."""
        return list(dict.fromkeys(self.targets))

    def uses(self) -> frozenset[str]:
        """Return the local values that it reads."""
        if self._used[0] is not self.text:
            parts = self._parts()
            named = zip(parts[1::4], parts[3::4], strict=True)
            used = frozenset(value for type_, value in named if value.startswith("%") and type_ != "label")
            self._used = self.text, used
        if self.incoming:
            return self._used[1].union(value for value, _ in self.incoming if value.startswith("%"))
        return self._used[1]

    def rename(self, new: Callable[[str], str], types: Mapping[str, str] | None = None) -> None:
        """Replace each value and label by the result of `new`; before that, types by value."""
        parts = self._parts().copy()
        if types:
            named = zip(parts[1::4], parts[3::4], strict=True)
            parts[1::4] = [types.get(value, type_) if type_ else "" for type_, value in named]
        parts[3::4] = map(new, parts[3::4])
        text = "".join(parts)
        self.text, self._parsed = text, (text, parts)
        if self.incoming:
            self.incoming = [(new(value), new(label)) for value, label in self.incoming]

    def retarget(self, old: str, new: str) -> None:
        """Replace a label in a terminator or phi."""
        self.rename(lambda name: new if name == old else name)

    def copy(self) -> Instruction:
        """Return an independent copy."""
        copied = object.__new__(Instruction)
        copied.__dict__.update(self.__dict__)
        return copied

    def ghost(self) -> Instruction:
        """Return an instruction that is counted like it, but not executed."""
        return Instruction("", self.opcode, self.type, line=self.line)

    def render(self) -> str:
        """Return the text of the whole instruction, which is no phi."""
        return f"  {self.result} = {self.text}" if self.result else f"  {self.text}"


def added(text: str) -> Instruction:
    """Return an instruction that instrumentation adds; its text may begin with the name of a result."""
    return Instruction(text, "cc", counted=False)


def jump(label: str) -> Instruction:
    """Return a jump that instrumentation adds."""
    return Instruction(f"br label {label}", "br", counted=False)


@dataclass
class Block:
    """A basic block; its last instruction is the terminator."""

    label: str
    instructions: list[Instruction]

    @property
    def terminator(self) -> Instruction:
        """The last instruction."""
        return self.instructions[-1]

    def phis(self) -> Iterator[Instruction]:
        """Yield the phi instructions."""
        for instruction in self.instructions:
            if instruction.opcode != "phi":
                return
            yield instruction


def render_phi(phi: Instruction, label: str, blocks: Mapping[str, Block]) -> str:
    """Return the text of a phi in the block of a label, with a value for every incoming edge."""
    edges = [
        f"[ {value}, {source} ]"
        for value, source in phi.incoming
        for _ in range(blocks[source].terminator.targets.count(label))
    ]
    return f"  {phi.result} = {phi.text} {', '.join(edges)}"


@dataclass(frozen=True)
class FunctionParameter:
    """A parameter of a function."""

    type: str
    name: str  # With its `%`
    attributes: str = ""
    offset: int | None = None  # Offset in local memory of a local variable
    # Type and name of a structure in private memory that it is a member of, and its offset there
    member_of: tuple[str, str, int] | None = None

    @property
    def is_restricted(self) -> bool:
        """Whether nothing else points to what it points to, as of a `restrict` pointer."""
        return "noalias" in self.attributes.split()

    @property
    def structure(self) -> str:
        """Type of the structure that is passed by value; empty for other parameters."""
        match = re.search(r"\bbyval\((.*?)\)(?: |$)", self.attributes)
        return match[1] if match else ""


@dataclass
class Function:
    """A defined function."""

    name: str
    parameters: list[FunctionParameter]
    blocks: dict[str, Block]
    is_kernel: bool
    line: int
    metadata: dict[str, list[str]]

    @property
    def entry(self) -> Block:
        """Entry block."""
        return next(iter(self.blocks.values()))

    @property
    def flow(self) -> dict[str, list[str]]:
        """Labels of the blocks that may follow each."""
        return {label: block.terminator.successors for label, block in self.blocks.items()}

    def instructions(self) -> Iterator[Instruction]:
        """Yield all instructions, block by block."""
        for block in self.blocks.values():
            yield from block.instructions

    def drop_unused(self, may_go: Callable[[Instruction], bool]) -> None:
        """Remove instructions that have no use after rewriting."""
        users = Counter(name for i in self.instructions() for name in i.uses())
        made = {i.result: i for i in self.instructions() if i.result and i.text}
        pending = [name for name in made if not users[name]]
        dropped: set[str | None] = set()
        while pending:
            name = pending.pop()
            if not may_go(made[name]):
                continue
            dropped.add(name)
            users.subtract(made[name].uses())
            pending += [each for each in made[name].uses() if each in made and not users[each]]
        if dropped:
            for block in self.blocks.values():
                block.instructions = [i for i in block.instructions if i.result not in dropped]


@dataclass(frozen=True)
class GlobalVariable:
    """A module-level variable: name with ``@``, address space, whole definition, size in bytes."""

    name: str
    address_space: int
    text: str
    nbytes: int


@dataclass
class Module:
    """A program's IR."""

    functions: dict[str, Function]  # Defined functions by name
    declared: dict[str, str]  # Declaration lines of undefined functions by name
    globals: dict[str, GlobalVariable]  # Module-level variables by name with `@`
    types: list[str]  # Definitions of named types
    # Size and alignment in bytes of each type that an instruction or parameter has
    sizes: dict[str, tuple[int, int]]
    branches: list[tuple[str, int]]  # (function, source line) of every static conditional branch, by number

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels."""
        return [f.name for f in self.functions.values() if f.is_kernel]


@dataclass(frozen=True)
class Parsed:
    """A module that LLVM parsed and verified."""

    text: str  # The module in LLVM's canonical form
    triple: str  # Target triple
    # Types of the parameters, and (opcode, type) of the instructions of each block, by name of the function
    functions: dict[str, tuple[list[str], list[list[tuple[str, str]]]]]
    sizes: dict[str, tuple[int, int]]  # Size and alignment in bytes of those types and the named structures
    variables: dict[str, int]  # Sizes in bytes by name

    @classmethod
    def from_json(cls, text: str, facts: bytes) -> Parsed:
        """Parse the output of `llvm_worker.py`."""
        content = json.loads(facts)
        sizes = {name: (size, alignment) for name, (size, alignment) in content["sizes"].items()}
        for name, (size, alignment) in content["structures"].items():
            sizes[f"%{name}"] = sizes[f'%"{name}"'] = (size, alignment)
        return cls(text, content["triple"], content["functions"], sizes, content["variables"])


def symbol(name: str) -> str:
    """Return the symbol of a name in the text: without ``@``, quotes and hexadecimal escapes."""
    name = name.removeprefix("@").strip('"')
    if "\\" not in name:
        return name
    content = re.sub(rb"\\([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), name.encode())
    return content.decode(errors="replace")


_ARRAY = re.compile(r"[\[<]\d+ x (.*)[\]>]")


def indexed_elements(step: Instruction) -> list[tuple[str, str]] | None:
    """Return the indices of a ``getelementptr``, each with the type of the elements that it counts.

    ``None`` if one is of a structure's members.
    """
    type_, _, *indices = step.operands
    elements = [type_.type]
    for _ in indices[1:]:
        array = _ARRAY.fullmatch(elements[-1])
        if array is None:
            return None
        elements.append(array[1])
    return [(index.value, element) for index, element in zip(indices, elements, strict=False)]


_LABEL = re.compile(rf"({_NAME}):")
_INCOMING = re.compile(rf"\[ (.*?), (%{_NAME}) \]")
_ATTACHMENT = re.compile(r",? ![\w.]+ !\d+|,? ![\w.]+ !\{\}")
_GROUP = re.compile(r" #\d+(?=$| \[)")
_DBG = re.compile(r"!dbg !(\d+)")
_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DI(?:Location|Subprogram)\(.*?\bline: (\d+)", re.MULTILINE)
# Scopes of locations, and their files.
_SCOPED = re.compile(r"^!(\d+) = !DILocation\(.*?\bscope: !(\d+)", re.MULTILINE)
_SCOPE = re.compile(
    r"^!(\d+) = distinct !DI(?:LexicalBlock|LexicalBlockFile|Subprogram)\(.*?\bfile: !(\d+)", re.MULTILINE
)
_FILE = re.compile(r'^!(\d+) = !DIFile\(filename: "([^"]*)"', re.MULTILINE)
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!\{(.*)\}$", re.MULTILINE)
_ENTRY = re.compile(r'(?:[^,"]|"[^"]*")+')
_NUMBERED = re.compile(r"%(\d+)\b")
_QUOTED = re.compile(r'(\bc)?"([^"]*)"')
_CHARACTER = re.compile(r"\\[0-9A-F]{2}|(.)", re.DOTALL)
_MARKERS = re.compile(r"@llvm\.(dbg\.|lifetime\.|experimental\.noalias\.)")


def _named(text: str) -> str:
    """Give numbered values names, so that changes of instructions do not renumber them."""
    return _NUMBERED.sub(r"%..\1", text)


def _depth(text: str) -> int:
    return max(itertools.accumulate((c in "[({<") - (c in "])}>") for c in text))


def _spelled_out(quoted: re.Match[str]) -> str:
    """Escape all characters of a string, so that none is taken for IR; names do not change."""
    if not quoted[1]:
        return quoted[0]
    return 'c"' + _CHARACTER.sub(lambda m: f"\\{ord(m[1]):02X}" if m[1] else m[0], quoted[2]) + '"'


def _included(text: str) -> dict[str, str]:
    """Return the file of each location in an included file, by its number."""
    files = {number: name for number, name in _FILE.findall(text) if not name.startswith(("<", "-"))}
    if not files:
        return {}
    scopes = {scope: files[file] for scope, file in _SCOPE.findall(text) if file in files}
    return {number: scopes[scope] for number, scope in _SCOPED.findall(text) if scope in scopes}


class _Reader:
    def __init__(self, parsed: Parsed) -> None:
        self.parsed = parsed
        self.branches: list[tuple[str, int]] = []
        self.lines = {number: int(line) for number, line in _LOCATION.findall(parsed.text)}
        self.files = _included(parsed.text)
        self.nodes = dict(_NODE.findall(parsed.text))

    def read(self) -> Module:
        functions: dict[str, Function] = {}
        declared: dict[str, str] = {}
        definitions: dict[str, str] = {}
        types: list[str] = []
        rows = iter(_QUOTED.sub(_spelled_out, self.parsed.text).splitlines())
        for row in rows:
            if row.startswith("define "):
                function = self._function(row, _statements(rows))
                functions[function.name] = function
            elif row.startswith("declare ") and (match := _CALLEE.search(row)):
                declared[match[1].strip('"')] = re.sub(r" #\d+$|!dbg !\d+ ", "", row)
            elif row.startswith("%") and " = type " in row:
                types.append(row)
            elif row.startswith("@"):
                name = row.split(" = ", 1)[0]
                definitions[symbol(name)] = _ATTACHMENT.sub("", row)
        variables = [_variable(definitions[name], size) for name, size in self.parsed.variables.items()]
        named = {variable.name: variable for variable in variables}
        return Module(functions, declared, named, types, self.parsed.sizes, self.branches)

    def _function(self, header: str, statements: Iterator[str]) -> Function:
        match = _CALLEE.search(header)
        assert match is not None
        name = match[1].strip('"')
        types, blocks = self.parsed.functions[symbol(name)]
        _, *cut = _OPERANDS.split(header[match.end() :])
        parameters = [
            FunctionParameter(type_, _named(local), attributes.strip())
            for type_, attributes, local in zip(types, cut[1::4], cut[2::4], strict=False)
        ]
        for structure in filter(None, (parameter.structure for parameter in parameters)):
            if structure not in self.parsed.sizes:
                raise UnsupportedError.of(
                    where=name, problem=f"a parameter of type {structure} by value is not supported"
                )
        unnamed = sum(parameter.name.startswith("%..") for parameter in parameters)
        metadata = {
            key: [entry.strip() for entry in _ENTRY.findall(self.nodes.get(node, ""))]
            for key, node in re.findall(r"!(\w+) !(\d+)", header)
        }
        dbg = _DBG.search(header)
        return Function(
            name,
            parameters,
            self._blocks(name, statements, blocks, f"%..{unnamed}"),
            "spir_kernel" in header[: match.start()].split(),
            self.lines.get(dbg[1], 0) if dbg else 0,
            metadata,
        )

    def _blocks(
        self, function: str, statements: Iterator[str], parsed: list[list[tuple[str, str]]], entry: str
    ) -> dict[str, Block]:
        blocks: dict[str, Block] = {}
        for parsed_block in parsed:
            statement = next(statements)
            name = entry
            if label := _LABEL.match(statement):
                name = _named(f"%{label[1]}")
                statement = next(statements)
            block = blocks[name] = Block(name, [])
            for position, (opcode, type_) in enumerate(parsed_block):
                if position:
                    statement = next(statements)
                block.instructions.append(self._instruction(function, statement, opcode, type_))
        end = next(statements, None)
        assert end is None, end
        return blocks

    def _instruction(self, function: str, statement: str, opcode: str, type_: str) -> Instruction:
        dbg = _DBG.search(statement)
        line = self.lines.get(dbg[1], 0) if dbg else 0
        text = _named(_ATTACHMENT.sub("", statement).strip())
        result = None
        if text.startswith("%"):
            result, text = text.split(" = ", 1)
        file = self.files.get(dbg[1], "") if dbg else ""
        instruction = Instruction(text, opcode, type_, result, line, file)
        if max(map(text.count, "[({<")) > _DEEPEST and _depth(text) > _DEEPEST:
            raise instruction.refused(f"a {opcode} of types nested over {_DEEPEST} deep is not supported")
        if opcode == "call":
            instruction.text = _GROUP.sub("", text)
            instruction.counted = not _MARKERS.search(text)
        elif opcode == "phi":
            instruction.incoming = list(dict.fromkeys(_INCOMING.findall(text)))
            instruction.text = f"phi {type_}"
        elif opcode == "br" and text.startswith("br i1 "):
            instruction.branch = len(self.branches)
            self.branches.append((function, line))
        return instruction


def _variable(text: str, nbytes: int) -> GlobalVariable:
    space = re.search(r"addrspace\((\d+)\)", re.split(r" (?:global|constant) ", text)[0])
    return GlobalVariable(text.split(" = ", 1)[0], int(space[1]) if space else 0, text, nbytes)


def _statements(rows: Iterator[str]) -> Iterator[str]:
    """Yield labels and instructions of a function's body as strings; `rows` is consumed up to its end."""
    statement = ""
    for row in rows:
        bare = row.strip()
        if row == "}":
            break
        if not bare or bare.startswith((";", "#dbg_")):
            continue
        if row.startswith("   ") or bare.startswith("]"):  # cases of a switch, labels of an invoke
            statement += f" {bare}"
            continue
        if statement:
            yield statement
        label = _LABEL.match(row)
        statement = label[0] if label else bare
    yield statement


def read_module(parsed: Parsed) -> Module:
    """Read a module that LLVM parsed and verified."""
    return _Reader(parsed).read()
