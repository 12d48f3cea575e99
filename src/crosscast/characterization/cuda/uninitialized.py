"""Variables without a value that lanes pass to an operation of their warp.

A lane that gives no value to a shuffle need not have one: ``int x; if (lane == 0) x = f();`` may come before
``x = __shfl_sync(mask, x, 0);``. For clang an argument without a value is undefined behaviour, by its
attribute ``noundef``, so that its optimizer would take every lane for lane 0.
"""

from __future__ import annotations

import re

from crosscast.characterization.instrumentation.builtin_calls import FUNCTIONS
from crosscast.characterization.instrumentation.inline import builtin_name

_SYMBOL = r'@("[^"]+"|[-\w$.]+)\('
_DEFINITION = re.compile(rf"^define [^@\n]*{_SYMBOL}[^\n]*\n.*?^}}$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(rf"^  (?:%[^\n]*? = )?(?:tail )?call [^@\n]*{_SYMBOL}", re.MULTILINE)
_NAMED = re.compile(
    rf"^(?:define|declare|  (?:%[^\n]*? = )?(?:tail )?call) [^@\n]*{_SYMBOL}.*$", re.MULTILINE
)


def allow_uninitialized(text: str) -> str:
    """Let operations of warps, and functions of the program that do some, take arguments without a value."""
    calls = {match[1]: set(_CALL.findall(match[0])) for match in _DEFINITION.finditer(text)}
    called = set().union(*calls.values())
    found = {symbol for symbol in called if "v" in FUNCTIONS.get(builtin_name(symbol), ("", ""))[1]}
    if not found:
        return text
    while more := {symbol for symbol, callees in calls.items() if symbol not in found and callees & found}:
        found |= more

    def allow(line: re.Match[str]) -> str:
        if line[1] not in found or " spir_kernel " in line[0]:
            return line[0]
        start = line.end(1) - line.start()
        return line[0][:start] + line[0][start:].replace(" noundef", "")

    return _NAMED.sub(allow, text)
