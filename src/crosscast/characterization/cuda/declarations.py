"""Declarations of a preprocessed source, and those that its kernels need."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

# Blank lines, which headers leave, are passed at once: else each of their characters is tried as a token.
_TOKEN = re.compile(
    r"(?:[ \t]*\n)+"
    r'|(?P<text>(?:u8|[uUL])?R"(?P<raw>[^()\s]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![\w.])(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')"
    r"|^(?P<line>[ \t]*\#[^\n]*)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)"
    r"|(?P<sign>::|->|<<<|>>>|[<>=!]=|[^\s\w])",
    re.DOTALL | re.MULTILINE,
)
_SPACES = {"global", "device", "shared", "constant", "host"}
_CLASSES = {"class", "struct", "union"}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ATTRIBUTES = {"__attribute__", "__declspec", "alignas", "_Alignas", "__launch_bounds__", "decltype"}


class Token(NamedTuple):
    """A word, number, string or sign, with its start."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Position behind it."""
        return self.start + len(self.text)


def tokens_of(text: str, start: int = 0) -> Iterator[Token]:
    """Yield the tokens of a preprocessed text from a position on, without lines of ``#``."""
    for match in _TOKEN.finditer(text, start):
        if match.lastgroup not in (None, "line"):
            yield Token(match.lastgroup or "", match[0], match.start())


@dataclass
class Declaration:
    """A declaration at namespace level or in a class."""

    start: int
    end: int
    kind: Literal["function", "class", "other"]
    names: frozenset[str]  # Declared names
    spaces: frozenset[str]  # Of CUDA's: "global", "device", "shared", "constant", "host"
    tokens: Sequence[Token]
    scope: tuple[str, ...] = ()  # Enclosing namespaces
    body: int | None = None  # Start of a function's body, member initializers included
    members: list[Declaration] = field(default_factory=list)
    template: tuple[str, ...] = ()  # Names of a template's parameters

    @property
    def words(self) -> set[str]:
        """Words in it, except in bodies of host's member functions."""
        skipped = [(m.body, m.end) for m in self.all_members() if m.is_host and m.body is not None]
        return {
            token.text
            for token in self.tokens
            if token.kind == "word" and not any(a <= token.start < b for a, b in skipped)
        }

    @property
    def is_host(self) -> bool:
        """Whether it is a function that device code cannot call."""
        if self.kind != "function" or self.spaces & {"global", "device"}:
            return False
        return not any(token.text in ("constexpr", "consteval") for token in self.head)

    @property
    def is_kernel(self) -> bool:
        """Whether it is a kernel."""
        return "global" in self.spaces

    @property
    def is_operator(self) -> bool:
        """Whether it is a function that expressions call without its name."""
        return self.kind == "function" and "operator" in self.names

    @property
    def head(self) -> Iterator[Token]:
        """Tokens before the body."""
        return (token for token in self.tokens if self.body is None or token.start < self.body)

    def all_members(self) -> Iterator[Declaration]:
        """Yield members recursively."""
        for member in self.members:
            yield member
            yield from member.all_members()


class _TokenParser:
    """Splits tokens into declarations."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def scope(self, names: tuple[str, ...], *, is_class: bool) -> Iterator[Declaration]:
        """Yield declarations up to the brace that closes a scope."""
        while self.at < len(self.tokens):
            if self.tokens[self.at].text == "}":
                return
            if (opened := None if is_class else self._namespace()) is not None:
                yield from self.scope((*names, *opened), is_class=False)
                self.at += 1
            elif self.tokens[self.at].text == ";":
                self.at += 1
            elif is_class and self._is_label():
                self.at += 2
            else:
                yield self._declaration(names)

    def _is_label(self) -> bool:
        access = self.tokens[self.at].text in ("public", "private", "protected")
        return access and self._text(self.at + 1) == ":"

    def _text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def _namespace(self) -> tuple[str, ...] | None:
        """Return the names of a namespace that opens here and skip its brace; ``None`` if none opens."""
        at = self.at
        if self._text(at) == "extern" and self._text(at + 1).startswith('"') and self._text(at + 2) == "{":
            self.at += 3
            return ()
        at += self._text(at) == "inline"
        if self._text(at) != "namespace":
            return None
        names = []
        at += 1
        while at < len(self.tokens) and self._text(at) not in ("{", ";", "="):
            if self._text(at) in _ATTRIBUTES:
                at = self._skip(at + 1)
                continue
            if self.tokens[at].kind == "word":
                names.append(self._text(at))
            at += 1
        if self._text(at) != "{":
            return None
        self.at = at + 1
        return tuple(names)

    def _skip(self, at: int) -> int:
        """Return the position behind the group that opens at a position."""
        closing = [_CLOSING[self._text(at)]] if self._text(at) in _CLOSING else []
        at += 1
        while closing and at < len(self.tokens):
            text = self.tokens[at].text
            if text in _CLOSING:
                closing.append(_CLOSING[text])
            elif text == closing[-1]:
                closing.pop()
            elif text == "}" and "}" in closing:  # a group that nothing closes
                closing = closing[: closing.index("}")]
            at += 1
        return at

    def _skip_angles(self, at: int) -> int:
        """Return the position behind the angle brackets that open at a position."""
        depth = 0
        while at < len(self.tokens):
            text = self.tokens[at].text
            if text in ("(", "[", "{"):
                at = self._skip(at)
                continue
            if text in (";", "}"):
                return at
            depth += {"<": 1, "<<<": 3, ">": -1, ">>>": -3}.get(text, 0)
            at += 1
            if depth <= 0:
                return at
        return at

    def _declaration(self, scope: tuple[str, ...]) -> Declaration:
        first = self.at
        names: set[str] = set()
        spaces: set[str] = set()
        template: list[str] = []
        members: list[Declaration] = []
        kind: Literal["function", "class", "other"] = "other"
        body: int | None = None
        name = ""  # the last word, which the parentheses of a function's parameters follow
        is_class = is_enum = is_value = is_type = False
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            text = token.text
            if text == ";":
                self.at += 1
                break
            if text == "}":
                break
            if text in _ATTRIBUTES and self._text(self.at + 1) == "(":
                end = self._skip(self.at + 1)
                spaces |= {
                    t.text.strip("_") for t in self.tokens[self.at : end] if t.kind == "word"
                } & _SPACES
                self.at = end
                continue
            if text == "template" and self._text(self.at + 1) == "<":
                end = self._skip_angles(self.at + 1)
                template += _parameters(self.tokens[self.at + 2 : end])
                self.at = end
                continue
            if text in ("typedef", "using", "static_assert", "friend"):
                is_type = is_type or text != "friend"
            elif text == "operator":
                self.at += 1
                # ``operator()``, ``operator=`` and the others; a conversion is named by its type.
                while self._text(self.at) not in ("(", ""):
                    self.at += 1
                if self._text(self.at + 1) == ")" and self._text(self.at + 2) == "(":
                    self.at += 2
                name = "operator"
                continue
            elif text in _CLASSES and kind == "other" and not is_value:
                is_class = True
            elif text == "enum":
                is_enum = True
            elif text == "=" and kind == "other":
                is_value = True
            elif text == "," and kind == "other":
                is_value = False
            elif text == "<" and name and not is_value:
                end = self._skip_angles(self.at)
                if self._text(end) in ("(", "::", "{", ";") or self._is_name(end):
                    self.at = end
                    continue
            elif text == "(" and not is_value:
                end = self._skip(self.at)
                if pointers := self._pointer_names():
                    names |= pointers
                    is_type = True
                elif kind == "other" and name and not is_type and not is_enum:
                    kind, names, is_class = "function", {name}, False
                self.at = end
                continue
            elif text == ":" and kind == "function" and body is None:
                body = token.start
            elif text in ("(", "["):
                self.at = self._skip(self.at)
                continue
            elif text == "{":
                if kind == "function" and (body is None or self._ends_initializers()):
                    body = token.start if body is None else body
                    self.at = self._skip(self.at)
                    break
                if is_class and not is_value and kind == "other":
                    kind = "class"
                    self.at += 1
                    members = list(self.scope(scope, is_class=True))
                    self.at += 1
                    continue
                end = self._skip(self.at)
                if is_enum:
                    names |= {t.text for t in self.tokens[self.at : end] if t.kind == "word"}
                self.at = end
                continue
            elif token.kind == "word":
                name = text
                if kind != "function" and not is_value and (is_class or self._is_declarator()):
                    names.add(text)
            self.at += 1
        self.at = max(self.at, first + 1)
        tokens = self.tokens[first : self.at]
        where = tokens[0].start, tokens[-1].end
        sets = frozenset(names - _KEYWORDS), frozenset(spaces)
        return Declaration(*where, kind, *sets, tokens, scope, body, members, tuple(template))

    def _pointer_names(self) -> set[str]:
        """Return names such as ``f`` in ``(*f)(int)``, whose parentheses open here."""
        at = self.at + 1
        if self._text(at) not in ("*", "&"):
            return set()
        while self._text(at) in ("*", "&", "const"):
            at += 1
        return {self._text(at)} if self._is_name(at) else {""}

    def _is_declarator(self) -> bool:
        following = self._text(self.at + 1)
        return following in _ATTRIBUTES or following in ("=", "[", ",", ";", "{", ":", ")", "")

    def _is_name(self, at: int) -> bool:
        return at < len(self.tokens) and self.tokens[at].kind == "word"

    def _ends_initializers(self) -> bool:
        """Whether the brace here opens a body instead of initializing a member."""
        before = self._text(self.at - 1)
        return before in (")", "}") or (self._is_name(self.at - 1) and before in _KEYWORDS)


_KEYWORDS = frozenset(
    "static const extern inline typedef struct class union enum unsigned signed int char short long float "
    "double void bool volatile constexpr consteval template typename using namespace register auto virtual "
    "explicit friend mutable noexcept override final public private protected default delete try size_t "
    "__restrict__ __restrict __inline__ __inline __extension__ operator".split()
) - {"operator"}


def _parameters(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the names of a template's parameters."""
    depth, name, is_default = 0, "", False
    before = ""  # The two tokens before, which tell the name of a pointer to a function
    for token in tokens:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.text == ",":
            yield name
            name, is_default = "", False
        elif depth == 0 and token.text == "=":
            is_default = True
        elif token.kind == "word" and not is_default and (depth == 0 or before == "(*"):
            name = token.text
        before = before[-1:] + token.text
    if name:
        yield name


def parse(tokens: Sequence[Token]) -> list[Declaration]:
    """Return the declarations at namespace level, in order."""
    parser = _TokenParser(tokens)
    declarations: list[Declaration] = []
    while parser.at < len(tokens):
        declarations += parser.scope((), is_class=False)
        parser.at += 1  # a brace that closes nothing
    return declarations


def needed(declarations: Iterable[Declaration], instances: str = "") -> set[int]:
    """Return the indices of declarations that kernels need, transitively, without host functions.

    The words of `instances`, of templates to compile, are needed as well.
    """
    all_declarations = list(declarations)
    by_name: dict[str, list[int]] = defaultdict(list)
    pending = []
    for number, declaration in enumerate(all_declarations):
        if declaration.is_host and not _is_instance(declaration):
            continue
        for name in declaration.names:
            by_name[name].append(number)
        if declaration.is_kernel or declaration.is_operator or _is_directive(declaration):
            pending.append(number)
    indices: set[int] = set()
    seen = set(re.findall(r"[A-Za-z_]\w*", instances))
    pending += [number for word in seen for number in by_name.get(word, ())]
    while pending:
        number = pending.pop()
        if number in indices:
            continue
        indices.add(number)
        for word in all_declarations[number].words - seen:
            seen.add(word)
            pending += by_name.get(word, ())
    return indices


def _is_instance(declaration: Declaration) -> bool:
    """Whether it is an explicit instantiation: ``template void f<int>(int *)``."""
    return declaration.tokens[0].text == "template" and declaration.tokens[1].text != "<"


def _is_directive(declaration: Declaration) -> bool:
    return [token.text for token in declaration.tokens[:2]] == ["using", "namespace"]
