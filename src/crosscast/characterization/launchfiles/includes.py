"""Sources with their includes inlined, so that no other file is needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from crosscast.errors import InputError, UnsupportedError
from crosscast.kernel import Program

Header = tuple[str, str]
"""Key of an included file, and its text."""

# Comments and strings first, so that an include inside of one does not match
_TOKEN = re.compile(
    r"/\*.*?\*/|//(?:\\\r?\n|[^\n])*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|^[ \t]*#[ \t]*include[ \t]*(?:\"(?P<quoted>[^\"\n]+)\"|<(?P<angled>[^>\n]+)>)[^\n]*$",
    re.MULTILINE | re.DOTALL,
)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*$", re.MULTILINE)
_BY_MACRO = re.compile(r"^[ \t]*#[ \t]*include[ \t]+[A-Za-z_]", re.MULTILINE)
_GUARD = re.compile(r"^[ \t]*#[ \t]*(?:ifndef\b|if[ \t]+!)", re.MULTILINE)


def inlined(
    text: str,
    find: Callable[[str, bool, str], Header | None],
    label: str,
    stack: tuple[str, ...] = (),
    once: set[str] | None = None,
) -> str:
    """Inline the includes of a source; those that are not found are left.

    `find` gets the name of a header, whether that is in quotes, and the key of the including file, which is
    `label` for the source. Files that include it, and those that are included at most once and were, are in
    `stack` and `once`.
    """
    seen: set[str] = set() if once is None else once

    def put(match: re.Match[str]) -> str:
        name = match["quoted"] or match["angled"]
        header = find(name, match["quoted"] is not None, label) if name else None
        if header is None:
            return match[0]
        key, content = header
        is_once = _ONCE.search(content) is not None
        if key in (*stack, label) and not (is_once or _GUARD.search(content)):
            raise UnsupportedError(f"{label}: its header {name} includes itself")
        if key in (*stack, label) or key in seen:
            return ""
        if is_once:
            seen.add(key)
        return inlined(_ONCE.sub("", content), find, key, (*stack, label), seen)

    return _TOKEN.sub(put, text)


def self_contained(program: Program) -> Program:
    """Return a program of a single source, with the user's headers inlined."""
    if program.form in ("llvm-ir", "bitcode") or b"include" not in program.content:
        return replace(program, options=_without_folders(program))
    text = program.content.decode("utf-8", "surrogateescape")
    folders = [Path(option[2:].strip()) for option in program.options if option.startswith("-I")]

    def find(name: str, quoted: bool, of: str) -> Header | None:
        including = [Path(of).parent] if quoted and program.path else []
        source = [program.path.parent] if program.path else []
        for folder in (*including, *source, *folders):
            path = (folder / name).absolute()
            if path.is_file():
                try:
                    return str(path), path.read_text("utf-8", "surrogateescape")
                except OSError as error:
                    raise InputError(f"{path}: cannot be read ({error.strerror})") from error
        return None

    source_text = inlined(text, find, str(program.path.absolute()) if program.path else program.label)
    if folders and _BY_MACRO.search(source_text):
        raise UnsupportedError(f"{program.label}: it includes a file by the name that a macro has")
    content = source_text.encode("utf-8", "surrogateescape")
    return replace(program, content=content, options=_without_folders(program))


def _without_folders(program: Program) -> tuple[str, ...]:
    return tuple(option for option in program.options if not option.startswith("-I"))
