"""Sources with what they include in the places of their ``#include``, so that nothing else is needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from crosscast.errors import InputError, UnsupportedError
from crosscast.kernel import Program

__all__ = ["Header", "inlined", "self_contained"]

Header = tuple[str, str]
"""What an included file is known by, and its text."""

# Comments and texts first, so that an include inside of one stays what it is
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
    """A source whose includes are replaced by what they include; those that are not found stay.

    Parameters
    ----------
    text
        The source.
    find
        Finds a header by its name, whether that is in quotes, and what the including file is known by.
    label
        The source, for messages and for `find`.
    stack, once
        The files around this one, and those that are to be included once and were.

    Raises
    ------
    UnsupportedError
        If a header without a guard includes itself.
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
    """A program that needs no file but its source: what it includes of the user's folders is in it.

    Raises
    ------
    InputError
        If a header cannot be read, or is named by a macro.
    """
    if program.form in ("llvm-ir", "bitcode") or b"include" not in program.content:
        return replace(program, options=_without_folders(program))
    text = program.content.decode("utf-8", "surrogateescape")
    folders = [Path(option[2:].strip()) for option in program.options if option.startswith("-I")]

    def find(name: str, quoted: bool, of: str) -> Header | None:
        near = [Path(of).parent] if quoted and program.path else []
        own = [program.path.parent] if program.path else []
        for folder in (*near, *own, *folders):
            path = (folder / name).absolute()
            if path.is_file():
                try:
                    return str(path), path.read_text("utf-8", "surrogateescape")
                except OSError as error:
                    raise InputError(f"{path}: cannot be read ({error.strerror})") from error
        return None

    whole = inlined(text, find, str(program.path.absolute()) if program.path else program.label)
    if folders and _BY_MACRO.search(whole):
        raise UnsupportedError(f"{program.label}: it includes a file by the name that a macro has")
    content = whole.encode("utf-8", "surrogateescape")
    return replace(program, content=content, options=_without_folders(program))


def _without_folders(program: Program) -> tuple[str, ...]:
    return tuple(option for option in program.options if not option.startswith("-I"))
