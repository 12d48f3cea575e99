"""Launches in host code, with sizes and arguments as far as these are constants."""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from crosscast.characterization.cuda.compiler import preprocess
from crosscast.characterization.cuda.declarations import Token
from crosscast.characterization.cuda.source import CudaSource
from crosscast.characterization.value_types import ValueType
from crosscast.kernel import Parameter, Program

Number = int | float
_TYPES = {
    1: "char bool",
    2: "short half __nv_bfloat16",
    4: "int unsigned float uint uchar4 half2 __nv_bfloat162",
    8: "long double size_t float2 int2",
    16: "float4 int4 double2",
    48: "curandState curandState_t",
    64: "curandStatePhilox4_32_10_t",
}
_SIZES = {name: nbytes for nbytes, names in _TYPES.items() for name in names.split()}
_FLOATING = {"float", "double"}
_CASTS = {*_SIZES, "const", "signed"}
_ALLOCATIONS = re.compile(r"(cuda|hip)Malloc(Managed|Host)?$")
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    **dict.fromkeys(("ceil", "ceilf"), math.ceil),
    **dict.fromkeys(("floor", "floorf"), math.floor),
    **dict.fromkeys(("sqrt", "sqrtf"), math.sqrt),
    "max": max,
    "min": min,
    "log2": math.log2,
}
_OPERATORS: dict[type, Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: int(a / b) if isinstance(a, int) and isinstance(b, int) else a / b,
    ast.Mod: lambda a, b: int(math.fmod(a, b)),
    ast.LShift: lambda a, b: int(a) << min(int(b), 63),
    ast.RShift: lambda a, b: int(a) >> min(int(b), 63),
}
_MOST_DEPTH = 16


class _UnknownError(Exception):
    """Part of an expression that is not constant."""


@dataclass(frozen=True)
class HostArgument:
    """An argument of a launch in host code."""

    text: str  # Text in the source
    value: Number | None = None
    nbytes: int | None = None  # Bytes of a buffer


@dataclass(frozen=True)
class HostLaunch:
    """A launch in host code; unknown values are ``None``."""

    file: str
    line: int
    kernel: str
    text: str  # ``kernel<<<...>>>(...)``
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    shared: int | None
    arguments: tuple[HostArgument, ...]
    unknown: tuple[str, ...] = ()  # Names of unknown terms in grid, block and shared memory


@dataclass
class _Names:
    """Definitions of names in host code."""

    values: dict[str, list[Sequence[Token]]] = field(default_factory=lambda: defaultdict(list))
    buffers: dict[str, list[Sequence[Token]]] = field(default_factory=lambda: defaultdict(list))
    changed: set[str] = field(default_factory=set)

    def read(self, tokens: Sequence[Token]) -> None:
        """Read the assignments, declarations and allocations of some code."""
        is_declaration, depth = False, 0  # whether the statement here declares variables
        for at, token in enumerate(tokens):
            following = _text(tokens, at + 1)
            before = tokens[at - 1].text if at else ";"
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0 and before in (";", "{", "}") and token.kind == "word":
                is_declaration = token.text in (*_CASTS, "dim3", "static")
            if token.kind != "word":
                continue
            if following == "=" and before not in (".", "->"):
                self.values[token.text].append(_until(tokens, at + 2, (",", ";")))
            elif following == "(" and is_declaration and depth == 0 and before in (*_SIZES, "dim3", ","):
                self.values[token.text].append(tokens[at + 1 : _closed(tokens, at + 1)])
            elif following in ("+", "-", "*", "/", "<", ">") and _text(tokens, at + 2) in ("=", following):
                changes = following in "+-" or _text(tokens, at + 2) == "="
                self.changed |= {token.text} if changes else set()
            elif _ALLOCATIONS.match(token.text) and following == "(":
                arguments = _split(tokens[at + 2 : _closed(tokens, at + 1) - 1])
                names = [t.text for t in arguments[0] if t.kind == "word" and t.text not in (*_CASTS, "void")]
                if len(arguments) > 1 and names:
                    self.buffers[names[-1]].append(arguments[1])
            elif before in ("&", "++", "--"):
                self.changed.add(token.text)

    def dimensions(self, tokens: Sequence[Token], depth: int = 0) -> tuple[int, ...]:
        """Return one to three numbers of a grid or a block."""
        words = [t for t in tokens if t.text != "dim3"]
        if len(words) == 1 and words[0].kind == "word" and depth < _MOST_DEPTH:
            return self.dimensions(self._definition(words[0].text), depth + 1)
        is_list = len(words) < len(tokens) or (
            words and words[0].text == "(" and _closed(words, 0) == len(words)
        )
        parts = _split(words[1:-1]) if is_list and words else [words]
        return tuple(int(self.number(part)) for part in parts)

    def number(self, tokens: Sequence[Token], depth: int = 0) -> Number:
        """Evaluate a constant expression."""
        text = self._expression(tokens, depth)
        try:
            return _evaluated(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, ValueError, ArithmeticError, TypeError, RecursionError, MemoryError) as error:
            raise _UnknownError(" ".join(t.text for t in tokens)) from error

    def _definition(self, name: str) -> Sequence[Token]:
        definitions = {" ".join(t.text for t in tokens): tokens for tokens in self.values.get(name, ())}
        if len(definitions) != 1 or name in self.changed:
            raise _UnknownError(name)
        return next(iter(definitions.values()))

    def _expression(self, tokens: Sequence[Token], depth: int) -> str:
        parts: list[str] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            end = _closed(tokens, at) if token.text == "(" else at
            inner = {t.text for t in tokens[at + 1 : end - 1]}
            if token.text == "sizeof" and _text(tokens, at + 1) == "(":
                end = _closed(tokens, at + 1)
                parts.append(str(_size(tokens[at + 2 : end - 1])))
                at = end
                continue
            if inner and inner <= _CASTS:
                parts.append("1.0*" if inner & _FLOATING else "")
                at = end
                continue
            if token.kind == "number":
                parts.append(_number(token.text))
            elif token.kind == "word" and token.text in _CASTS and _text(tokens, at + 1) == "(":
                parts.append("1.0*" if token.text in _FLOATING else "")
            elif token.kind == "word" and token.text in _FUNCTIONS and _text(tokens, at + 1) == "(":
                parts.append(token.text)
            elif token.kind == "word":
                if depth >= _MOST_DEPTH or _text(tokens, at + 1) in ("(", ".", "->", "["):
                    raise _UnknownError(token.text)
                try:
                    parts.append(f"({self.number(self._definition(token.text), depth + 1)!r})")
                except _UnknownError:
                    raise _UnknownError(token.text) from None
            elif token.text in "+-*/%(),<>":
                parts.append(token.text)
            else:
                raise _UnknownError(token.text)
            at += 1
        return "".join(parts)


def find_launches(program: Program) -> list[HostLaunch]:
    """Return the launches in the host code of a CUDA or HIP program, in its order."""
    source, common = preprocess(program), _Names()
    for declaration in source.declarations:
        if declaration.kind == "other":
            common.read(declaration.tokens)
    launches = []
    for declaration in source.declarations:
        if not declaration.is_host or declaration.body is None:
            continue
        names = _Names(changed=set(common.changed))
        names.values.update({name: list(tokens) for name, tokens in common.values.items()})
        names.read([token for token in declaration.tokens if token.start >= (declaration.body or 0)])
        launches += list(_launches(declaration.tokens, names, source))
    return launches


def with_members(launch: HostLaunch, parameters: Sequence[Parameter]) -> HostLaunch:
    """Return the launch with an argument for each member of a structure that the kernel takes apart."""
    names = [parameter.name for parameter in parameters]
    by_name = itertools.groupby(names, lambda name: re.split(r"[.[]", name)[0])
    groups = [(name, [*members]) for name, members in by_name]
    if len(groups) != len(launch.arguments):
        return launch
    arguments: list[HostArgument] = []
    for argument, (name, members) in zip(launch.arguments, groups, strict=True):
        parts = [HostArgument(argument.text + member.removeprefix(name)) for member in members]
        arguments += [argument] if members == [name] else parts
    return replace(launch, arguments=tuple(arguments))


def argument_texts(launch: HostLaunch, parameters: Sequence[Parameter]) -> list[str | None]:
    """Return the text for ``--arg`` of each parameter; ``None`` if the source does not determine it."""
    texts: list[str | None] = []
    for argument, parameter in itertools.zip_longest(launch.arguments, parameters):
        if argument is None or parameter is None:
            texts.append(None)
            continue
        kind = parameter.type_name.rstrip("*")
        value_type = ValueType.find(kind)
        if parameter.kind == "value" and value_type and value_type.width == 1 and argument.value is not None:
            value = argument.value if value_type.dtype.kind == "f" else int(argument.value)
            texts.append(f"{kind}={value}")
        elif parameter.kind == "global" and value_type and argument.nbytes is not None:
            length = max(1, argument.nbytes // (value_type.dtype.itemsize * value_type.slots))
            texts.append(f"{kind}:{length}{':uniform' if value_type.dtype.kind == 'f' else ''}")
        elif parameter.kind == "global" and argument.nbytes:
            texts.append(f"char:{argument.nbytes}")  # Structures
        else:
            texts.append(None)
    return texts


def _launches(tokens: Sequence[Token], names: _Names, source: CudaSource) -> Iterator[HostLaunch]:
    for at, token in enumerate(tokens):
        end = next((n for n in range(at, len(tokens)) if tokens[n].text == ">>>"), 0)
        if token.text != "<<<" or not end or _text(tokens, end + 1) != "(":
            continue
        first = _kernel_start(tokens, at)
        close = _closed(tokens, end + 1)
        kernel = "".join(t.text if t.text != "," else ", " for t in tokens[first:at])
        sizes = [*_split(tokens[at + 1 : end]), [], []]
        unknown: list[str] = []

        def dimensions(tokens: Sequence[Token], unknown: list[str] = unknown) -> tuple[int, ...] | None:
            try:
                return names.dimensions(tokens)
            except _UnknownError as error:
                unknown.append(str(error))
                return None

        grid, block = dimensions(sizes[0]), dimensions(sizes[1])
        shared = dimensions(sizes[2]) if sizes[2] else None
        arguments = tuple(_argument(part, names) for part in _split(tokens[end + 2 : close - 1]) if part)
        file, line = source.position_of(token.start)
        text = " ".join(t.text for t in tokens[first:close])
        yield HostLaunch(
            file=file,
            line=line,
            kernel=kernel,
            text=_tidy(text),
            grid=grid,
            block=block,
            shared=shared[0] if shared else None,
            arguments=arguments,
            unknown=tuple(dict.fromkeys(unknown)),
        )


def _argument(tokens: Sequence[Token], names: _Names) -> HostArgument:
    text = _tidy(" ".join(token.text for token in tokens))
    plain = [token.text for token in tokens if token.kind == "word" and token.text not in _CASTS]
    try:
        sizes = names.buffers.get(plain[0], []) if len(plain) == 1 else []
        if len(sizes) == 1:
            return HostArgument(text, nbytes=int(names.number(sizes[0])))
        return HostArgument(text, value=names.number(tokens))
    except _UnknownError:
        return HostArgument(text)


def _evaluated(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluated(left), _evaluated(right))
        case ast.UnaryOp(ast.USub(), operand):
            return -_evaluated(operand)
        case ast.UnaryOp(ast.UAdd(), operand):
            return _evaluated(operand)
        case ast.Call(ast.Name(name), args, []) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*map(_evaluated, args))
    raise ValueError("no constant")


def _number(text: str) -> str:
    if re.fullmatch(r"0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*", text):
        return str(int(re.sub(r"^0(?=\d)", "0o", text.rstrip("uUlL")), 0))
    return text.rstrip("fFlL")


def _size(tokens: Sequence[Token]) -> int:
    words = [token.text for token in tokens]
    sizes = [_SIZES[word] for word in words if word in _SIZES]
    if "*" in words:
        return 8
    if not sizes or not set(words) <= _CASTS:
        raise _UnknownError(f"sizeof({' '.join(words)})")
    return sizes[-1] if words[-1] != "unsigned" else 4


def _kernel_start(tokens: Sequence[Token], at: int) -> int:
    """Return the start of the name before a position, template arguments included."""
    depth, first = 0, at
    while first > 0:
        text = tokens[first - 1].text
        depth += {">": 1, "<": -1}.get(text, 0)
        is_part = tokens[first - 1].kind == "word" and (first == at or _text(tokens, first) in ("<", "::"))
        if depth == 0 and text not in ("::", "<") and not is_part:
            break
        first -= 1
    return first


def _split(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Split tokens at top-level commas."""
    parts: list[Sequence[Token]] = []
    at = 0
    while at <= len(tokens):
        parts.append(_until(tokens, at, (",",)))
        at += len(parts[-1]) + 1
    return parts


def _until(tokens: Sequence[Token], at: int, ends: tuple[str, ...] = ()) -> Sequence[Token]:
    """Return the tokens from a position to one of the ends, or to a bracket that closes nothing of them."""
    depth = 0
    for end in range(at, len(tokens)):
        text = tokens[end].text
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if depth < 0 or (depth == 0 and text in ends):
            return tokens[at:end]
    return tokens[at:]


def _closed(tokens: Sequence[Token], at: int) -> int:
    """Return the position behind the matching parenthesis of the one at a position."""
    return min(at + len(_until(tokens, at + 1)) + 2, len(tokens))


def _text(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text if at < len(tokens) else ""


def _tidy(text: str) -> str:
    """Remove unusual spaces from a text."""
    text = re.sub(r"\s*(::|->|<<<|>>>|[.()\[\]])\s*", r"\1", text)
    text = re.sub(r"(?<=\w) < (?=[\w, ]* ><<<)| >(?=<<<)", lambda match: match[0].strip(), text)
    return re.sub(r"\s+,", ",", re.sub(r"([<>]) \1(?= )", r"\1\1", text))
