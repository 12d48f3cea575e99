"""A preprocessed CUDA or HIP source, reduced to the declarations that compile."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crosscast.characterization.cuda.declarations import Declaration, needed, parse, tokens_of
from crosscast.characterization.cuda.ptx import translate

_MARKER = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)$')
_DEFINE = re.compile(r"#define (\w+) (.*)")
_UNROLL = re.compile(r"(\s*#\s*pragma\s+(?:unroll|nounroll|GCC unroll)\b)(.*)")
_LAUNCHED = re.compile(r"((?:::)?\b\w[\w:]*\s*<[^<>;{}()]*>)\s*<<<")
_MOST_INSTANCES = 256
# Settings of a texture reference in host code, by the bits of our header.
_SETTINGS = {
    1: r"filterMode\s*=\s*\w*FilterModeLinear",
    2: r"normalized\s*=\s*(true|1)\b",
    4: r"addressMode\s*\[\s*0\s*\]\s*=\s*\w*AddressModeWrap",
}
# Those of texture objects, which host code sets in descriptors.
_DESCRIBED = re.compile(
    r"(\w+)\s*(?:\.|->)\s*(filterMode|normalizedCoords|readMode|addressMode)\s*(?:\[[^]]*\]\s*)?=\s*"
    r"(?:\w+\s*(?:\.|->)\s*addressMode\s*\[[^]]*\]\s*=\s*)*(?:cuda|hip)?(\w+)"
)
_BITS = dict.fromkeys(("FilterModePoint", "false", "0", "ReadModeElementType", "AddressModeClamp"), 0)
_BITS |= {"FilterModeLinear": 1, "true": 2, "1": 2, "AddressModeWrap": 4, "AddressModeBorder": 8}
_BITS |= {"ReadModeNormalizedFloat": 16, "AddressModeMirror": 32}
_NO_CLAMP = {"AddressModeWrap", "AddressModeMirror"}
_LAUNCH = "a kernel launch in device code (dynamic parallelism)"


@dataclass(frozen=True)
class DeclarationRefusal:
    """Reason why a declaration was left out."""

    reason: str
    is_unsupported: bool = False  # Due to an unsupported construct, not an error of the compiler


class CudaSource:
    """Declarations that kernels need, without those that do not compile.

    It is read from the preprocessor's output with macro definitions (``-dD``), in which a character is a
    byte. Headers in the folders `ours` are not part of the program, and those `missing` were not found.
    Beside the instances of templates that the host launches, `instance` is compiled.
    """

    def __init__(
        self, text: str, label: str, ours: tuple[str, ...], missing: tuple[str, ...], instance: str = ""
    ) -> None:
        self.missing = missing
        self._label = label
        self.refused: dict[str, DeclarationRefusal] = {}
        # Names of instances by their other spellings, such as with a typedef
        self.repeated: dict[str, str] = {}
        self._lines, self._origins, is_ours = _read(translate(text), label, ours)
        lines = self._lines
        self._text = "\n".join(lines)
        self._text = self._text.replace(
            "cc_settings = 0x00", f"cc_settings = 0x{_object_settings(self._text):02x}"
        )
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        pairs = list(zip(lines, is_ours, strict=True))
        program_text = "\n".join(" " * len(line) if is_header else line for line, is_header in pairs)
        self.declarations = parse([*tokens_of(program_text)])
        launched = self._launched("\n".join(line for line, is_header in pairs if not is_header))
        self.instances = list(dict.fromkeys(filter(None, map(self._instance, launched))))
        self.instances += [instance] * bool(instance and instance not in self.instances)
        kept = needed(self.declarations, " ".join(self.instances))
        self._kept = [d for number, d in enumerate(self.declarations) if number in kept]
        self._hosts = {name for d in self.declarations if d.is_host for name in d.names}
        self._blanks = [(d.start, d.end, "") for n, d in enumerate(self.declarations) if n not in kept]
        for declaration in self._kept:
            for part in (declaration, *declaration.all_members()):
                self._drop_body(part)
        for declaration in self._kept:
            if declaration.kind == "other":
                self._make_texture(declaration, program_text)
                self._make_settable(declaration)
        self._refuse_undefined()
        templates = (d for d in self._kept if d.is_kernel and d.template)
        self.templates = tuple(
            dict.fromkeys(f"{name}<{', '.join(d.template)}>" for d in templates for name in d.names)
        )

    @property
    def compiled(self) -> str:
        """Source to compile: the remaining declarations, then one line for each instance of a template."""
        parts, last = [], 0
        for start, end, instead in sorted(self._blanks):
            if start >= last:  # spans inside of a removed span are removed with it
                parts += [self._text[last:start], instead, _blank(self._text[start:end])[len(instead) :]]
                last = end
        rows = (
            f'template __attribute__((global, annotate("cc:{n}"))) '
            f"{'void' if name.endswith(')') else f'decltype({name})'} {name};"
            if name
            else ""
            for n, name in enumerate(self.instances)
        )
        return "\n".join(["".join(parts) + self._text[last:], *rows, ""])

    def refuse(self, message: str, positions: Sequence[tuple[int, int]]) -> bool:
        """Leave out the declaration with an error, or the one that instantiates the template with it.

        Returns whether there is one.
        """
        where = positions[0]
        for line, column in reversed(positions):
            instance = line - len(self._starts)
            if 0 <= instance < len(self.instances):
                if name := self.instances[instance]:
                    self._refuse_instance(name, message, where)
                self.instances[instance] = ""
                return True
            position = self._position(line, column)
            if part := self._part_at(position, self._kept):
                self._leave_out(part, position)
                for name in part.names:
                    self._refuse(name, message, where)
                return True
        return False

    def _refuse_instance(self, name: str, message: str, where: tuple[int, int]) -> None:
        """Record why there is no such instance: its template was left out, or needs more arguments."""
        base = name.split("<")[0].rsplit("::", 1)[-1].strip()
        templates = [d for d in self._kept if d.is_kernel and d.template and d.body and base in d.names]
        if repeated := re.match("duplicate explicit instantiation of '(.*)'", message):
            scope = name.split("<")[0].rpartition("::")
            self.repeated[name] = f"{scope[0]}{scope[1]}{repeated[1]}"
        elif base in self.refused:
            self.refused.setdefault(name, self.refused[base])
        elif "overloaded function" in message and len(templates) == 1:
            needed = ", ".join(templates[0].template)
            self.refused.setdefault(
                name, DeclarationRefusal(f"expected a value for each of {base}<{needed}>")
            )
        elif "overloaded function" in message or "does not refer to a function" in message:
            several = f"{len(templates)} kernel templates are named {base}: expected parameters of one, "
            several += f"as in {base}<int>(int*)"
            self.refused.setdefault(name, DeclarationRefusal(several))
        else:
            self._refuse(name, message, where)

    def position_of(self, position: int) -> tuple[str, int]:
        """Return file and line of a position."""
        return self._origin(bisect.bisect_right(self._starts, position))

    def located(self, diagnostics: str) -> str:
        """Translate positions in diagnostics to files and lines."""

        def locate(match: re.Match[str]) -> str:
            file, line = self._origin(int(match[1]))
            return f"{file}:{line}:{match[2]}"

        return re.sub(r"^<stdin>:(\d+):(\d+)", locate, diagnostics.strip(), flags=re.MULTILINE)

    def _drop_body(self, part: Declaration) -> None:
        """Leave out the body of a host's member function, and of one that launches kernels."""
        if part.kind != "function" or part.body is None:
            return
        if part.is_host:
            self._blanks.append((part.body, part.end, ";"))
        elif launch := next((token for token in part.tokens if token.text == "<<<"), None):
            self._leave_out(part, launch.start)
            where = self._where(launch.start)
            for name in part.names:
                self.refused[name] = DeclarationRefusal(f"{where}{_LAUNCH} is not supported", True)

    def _make_texture(self, declaration: Declaration, text: str) -> None:
        """Turn a texture reference into a device variable, with the host's settings."""
        token = next((t for t in declaration.tokens if t.text not in ("static", "extern")), None)
        if token is None or token.text not in ("texture", "surface"):
            return
        settings = 0
        for name in declaration.names:
            for bit, setting in _SETTINGS.items():
                settings |= bit * (re.search(rf"\b{name}\s*\.\s*{setting}", text) is not None)
        kind = f"__attribute__((device)) {token.text}{f'_{settings}' if settings else ''}"
        self._blanks.append((token.start, token.end, kind))

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of device variables and textures."""
        declarations = [d for d in self.declarations if d.kind == "other"]
        device = [d for d in declarations if d.spaces & {"device", "constant"} or _is_texture(d)]
        return tuple(dict.fromkeys(name for d in device for name in sorted(d.names)))

    def _make_settable(self, declaration: Declaration) -> None:
        """Remove ``static`` from a variable, whose initializer the compiler would assume constant."""
        if declaration.spaces & {"device", "constant"} or _is_texture(declaration):
            self._blanks += [(t.start, t.end, "") for t in declaration.tokens if t.text == "static"]

    def _refuse_undefined(self) -> None:
        """Record device functions that are declared but not defined, for kernels that call them."""
        functions = [d for d in self._kept if d.kind == "function" and "device" in d.spaces]
        defined = {name for d in functions if d.body is not None for name in d.names}
        for declaration in functions:
            for name in declaration.names - defined:
                where = self._where(declaration.start)
                reason = f"{where}the device function {name} is defined nowhere (separate compilation)"
                self.refused.setdefault(name, DeclarationRefusal(f"{reason}, which is not supported", True))

    def _leave_out(self, part: Declaration, position: int) -> None:
        if part.body is not None and position >= part.body:
            self._blanks.append((part.body, part.end, ";"))
        else:
            self._blanks.append((part.start, part.end, ""))

    def _refuse(self, name: str, message: str, where: tuple[int, int]) -> None:
        file, line = self._origin(where[0])
        reason = f"{file}:{line}: error: {message}{self._explain(message)}"
        self.refused.setdefault(name, DeclarationRefusal(reason))

    def _explain(self, message: str) -> str:
        """Explain the names in an error: left out, of the host, or in a missing header."""
        for name in re.findall(r"'(\w+)'", message):
            if name in self.refused:
                return f" ({name} was left out: {self.refused[name].reason})"
            if name in self._hosts:
                return f" ({name} is a function of the host)"
        is_unknown = re.search(r"undeclared|unknown|no (type|template|member) named", message)
        if self.missing and is_unknown and "did you mean" not in message:
            return f" (headers that were not found: {', '.join(self.missing)})"
        return ""

    def _part_at(self, position: int, among: Sequence[Declaration]) -> Declaration | None:
        """Return the declaration at a position: a member function, or a complete declaration."""
        for part in among:
            if part.start <= position < part.end:
                member = self._part_at(position, part.members)
                return member if member and member.kind == "function" else part
        return None

    def _position(self, line: int, column: int) -> int:
        return self._starts[min(line, len(self._starts)) - 1] + column - 1

    def _origin(self, line: int) -> tuple[str, int]:
        return self._origins[min(line, len(self._origins)) - 1]

    def _launched(self, text: str) -> Iterator[str]:
        """Yield instances of templates that are launched, also from templates of the host."""
        yield from _LAUNCHED.findall(text)
        hosts = {name: d for d in self.declarations if d.is_host and d.template for name in d.names}
        if not hosts:
            return
        call = re.compile(rf"\b({'|'.join(map(re.escape, hosts))})\s*<([^<>;{{}}()]*)>\s*\(")
        pending: list[tuple[str, str]] = list(dict.fromkeys(call.findall(text)))
        seen: set[tuple[str, str]] = set()
        while pending:
            called = pending.pop()
            if called in seen or len(seen) > _MOST_INSTANCES:
                continue
            seen.add(called)
            host = hosts[called[0]]
            arguments = dict(zip(host.template, (a.strip() for a in called[1].split(",")), strict=False))
            body = "".join(
                f" {arguments.get(t.text, t.text)}" if t.kind == "word" else t.text for t in host.tokens
            )
            yield from _LAUNCHED.findall(body)
            pending += call.findall(body)

    def _where(self, position: int) -> str:
        """Return the line of a position in the form of the engine's messages."""
        file, line = self.position_of(position)
        return f"line {line}: " if file == self._label else f"{file}: line {line}: "

    def _instance(self, launched: str) -> str:
        """Return the full name of an instance that the host launches; empty if it is not of a kernel."""
        name = re.sub(r"\s+", " ", launched)
        base = name.split("<")[0].strip()
        for declaration in self.declarations:
            if (
                declaration.is_kernel
                and declaration.template
                and base.rsplit("::", 1)[-1] in declaration.names
            ):
                return name if "::" in base else "::".join((*declaration.scope, name))
        return ""


def _object_settings(text: str) -> int:
    """Return the settings of texture objects, as bits of our header: 64 if they differ or are not known."""
    settings: dict[str, set[str]] = {}
    references = set(re.findall(r"\btexture\s*<[^;]*>\s*(\w+)", text))
    for name, setting, value in _DESCRIBED.findall(text):
        if name not in references:
            settings.setdefault(setting, set()).add(value)
    if not settings:
        return 0
    modes = settings.setdefault("addressMode", {"AddressModeWrap"})  # which a descriptor of zeros says
    if settings.get("normalizedCoords", {"0"}) <= {"0", "false"}:
        settings["addressMode"] = {"AddressModeClamp" if mode in _NO_CLAMP else mode for mode in modes}
    bits = 0
    for given in settings.values():
        bits |= _BITS.get(given.pop(), 64) | 64 * bool(given)
    return bits


def _is_texture(declaration: Declaration) -> bool:
    return any(token.text in ("texture", "surface") for token in declaration.tokens[:3])


def _blank(text: str) -> str:
    """Blank all but the preprocessor's line markers."""
    lines = text.split("\n")
    return "\n".join(line if n and _MARKER.match(line) else " " * len(line) for n, line in enumerate(lines))


def _read(
    text: str, label: str, ours: tuple[str, ...]
) -> tuple[list[str], list[tuple[str, int]], list[bool]]:
    """Return lines without macro definitions, the file and line of each, and whether it is of our headers."""
    lines: list[str] = []
    origins: list[tuple[str, int]] = []
    is_ours: list[bool] = []
    macros: dict[str, str] = {}
    file, number = label, 0
    for line in text.split("\n"):
        number += 1
        if marker := _MARKER.match(line):
            file, number = marker[2].replace("<stdin>", label), int(marker[1]) - 1
        elif line.startswith(("#define ", "#undef ")):
            if define := _DEFINE.match(line):
                macros[define[1]] = define[2]
            line = ""
        elif unroll := _UNROLL.fullmatch(line):
            line = unroll[1] + _expand(unroll[2], macros)
        lines.append(line)
        origins.append((file, number))
        is_ours.append(file.startswith(ours) or file.startswith("<built"))
    return lines, origins, is_ours


def _expand(text: str, macros: dict[str, str]) -> str:
    """Expand macros in a pragma, which the preprocessor does not."""
    for _ in range(8):
        text = re.sub(r"\b[A-Za-z_]\w*\b", lambda match: macros.get(match[0], match[0]), text)
    return text
