"""``shuffle`` and ``shuffle2`` (OpenCL C 1.2, section 6.12.12)."""

from __future__ import annotations

from crosscast.characterization.builtins.mangling import Declaration
from crosscast.characterization.builtins.spelling import BITS, INTEGERS, per_element, vector

_SOURCES = {"shuffle": 1, "shuffle2": 2}


def define(declaration: Declaration) -> str | None:
    """Result type and block of a shuffle; ``None`` for other functions."""
    sources = _SOURCES.get(declaration.name)
    if sources is None or len(declaration.parameters) != sources + 1:
        return None
    *inputs, mask = declaration.parameters
    base, size = inputs[0].base, inputs[0].width
    if base not in BITS or mask.base not in INTEGERS or any(t != inputs[0] or t.pointer for t in inputs):
        return None

    def picked(index: int) -> str:
        selector = f"a{sources}.s{index:x}"
        first = f"a0[{selector} & {size - 1}]"
        if sources == 1:
            return first
        return f"(({selector} & {size}) ? a1[{selector} & {size - 1}] : {first})"

    result = vector(base, mask.width)
    return f"{result} {{ return {per_element(base, mask.width, picked)}; }}"
