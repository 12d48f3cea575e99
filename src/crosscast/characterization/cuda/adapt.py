"""A kernel that clang made of CUDA or HIP, adapted to what the engine knows from OpenCL C."""

from __future__ import annotations

import re
from dataclasses import replace

from crosscast.characterization import ir
from crosscast.characterization.cuda import spaces
from crosscast.errors import LaunchError

_SHARED = 3


def adapt_kernel(module: ir.Module, kernel: ir.Function, shared: int | None) -> ir.Module:
    """Adapt a flattened kernel in place; return its module with `shared` bytes of dynamic shared memory."""
    for space in ("ptr", *(f"ptr addrspace({number})" for number in (1, 2, 3))):
        module.sizes.setdefault(space, (8, 8))
    spaces.sort_pointers(kernel, module.globals)
    spaces.use_builtins(kernel)
    dynamic = [v for v in module.globals.values() if v.address_space == _SHARED and " external " in v.text]
    used = [v for v in dynamic if any(_holds(i, v.name) for i in kernel.instructions())]
    if not used:
        return module
    if not shared:
        line = next((i.where for i in kernel.instructions() if _holds(i, used[0].name) and i.line), "")
        raise LaunchError(
            f"{line}the kernel uses dynamic shared memory (extern __shared__ {used[0].name[1:]}), "
            "whose size is missing: expected --shared, or shared in the launch file, in bytes"
        )
    # However many names it has, it is one memory.
    first, *others = (v.name for v in used)
    for instruction in kernel.instructions():
        for other in others:
            instruction.text = _renamed(instruction.text, other, first)
            instruction.incoming = [(_renamed(v, other, first), b) for v, b in instruction.incoming]
    kept = {name: v for name, v in module.globals.items() if v not in dynamic}
    return replace(module, globals={**kept, first: replace(used[0], nbytes=shared)})


def _holds(instruction: ir.Instruction, name: str) -> bool:
    return any(
        re.search(rf"{re.escape(name)}(?![\w$.-])", text)
        for text in (instruction.text, *(value for value, _ in instruction.incoming))
    )


def _renamed(text: str, old: str, new: str) -> str:
    return re.sub(rf"{re.escape(old)}(?![\w$.-])", new.replace("\\", r"\\"), text)
