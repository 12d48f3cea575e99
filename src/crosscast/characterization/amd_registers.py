"""Registers of a work-item on AMD GPUs, and how many spill, as LLVM's backend for these GPUs allocates them.

AMD's compilers are built on LLVM, and llvmlite has their backend. The unoptimized IR of a program is
rewritten for their target, optimized and compiled for an RDNA 2 GPU, and the registers are read from the
assembly. No device is needed. On NVIDIA GPUs, ptxas allocates registers, which is not part of LLVM.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from pathlib import Path

from crosscast.characterization import frontend, toolchain
from crosscast.characterization.engine import llvm
from crosscast.kernel import Program

_PROCESSOR = "gfx1030"
_LARGEST_GROUP = {"cuda": 1024, "hip": 1024, "opencl-c": 256}
"""Largest work-group that compilers allow for by default, in work-items, by form of the program.

It bounds the registers of a work-item. ``reqd_work_group_size`` takes its place; ``__launch_bounds__`` is not
read.
"""

_LIBRARY = Path(__file__).parent / "builtins" / "amdgcn.ll"
_LAYOUT = (
    "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48"
    "-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024"
    "-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
)
_HEADER = f'target datalayout = "{_LAYOUT}"\ntarget triple = "amdgcn-amd-amdhsa"\n'
_ADDRESS_SPACES = {0: 5, 2: 4, 4: 0}  # AMD's numbers by SPIR's, where they differ
# A quoted string is matched first, so that the word in it is not taken for a type.
_POINTER = re.compile(r'"[^"\n]*"|(?<![\w.%@$-])ptr\b(?![\w.])(?: addrspace\((\d+)\))?')
_INTRINSIC_SPACE = re.compile(r"(?<=\.p)\d+(?=[.(])")
_CONSTANT_SPACE = re.compile(r"^(@[^\n]*? addrspace\()2(?=\) )", re.MULTILINE)
_ALLOCA = re.compile(r"= alloca [^\n!]*[^\n!, ]")
_METADATA = re.compile(r"^\s+#dbg_.*\n|,? !(?:dbg|srcloc|tbaa|alias\.scope|noalias) !\d+", re.MULTILINE)
_PRINTF = re.compile(r"(?<== )[a-z]* ?call [^\n]*@printf\([^\n]*|^declare [^\n]*@printf\(.*\n", re.MULTILINE)
_BY_VALUE = re.compile(r"byval\([^)]*\) ")
_DROPPED = re.compile(r"^(?:target |@llvm\.).*\n", re.MULTILINE)


@dataclass(frozen=True)
class AmdRegisters:
    """Vector registers of 32 bits that a work-item of a kernel needs, and instructions of its code."""

    registers: int
    spilled: int  # Registers that spill to private memory
    moves: int  # Loads and stores of private memory: of spilled registers, and of arrays that stay there
    moves_in_loops: int
    floating: int  # Additions, multiplications and multiply-adds of floating-point numbers
    floating_in_loops: int


@functools.lru_cache(maxsize=256)
def amd_registers(program: Program, kernel: str) -> AmdRegisters | None:
    """Compile a kernel for an AMD GPU, and return its registers.

    Returns
    -------
    AmdRegisters or None
        ``None`` if the program has no source, or LLVM cannot compile it for this target, as with images.

    Raises
    ------
    InputError
        If the program cannot be compiled at all, or has no such kernel.
    """
    if program.form not in _LARGEST_GROUP:
        return None
    compiled = frontend.load(program, kernel).compiled
    symbol = frontend.find_kernel(program, kernel).name
    spir = toolchain.compile_opencl_unoptimized(program) if compiled is None else compiled.unoptimized
    library = _HEADER + _LIBRARY.read_text(encoding="utf-8")
    required = frontend.required_local_size(program, kernel)
    largest = _LARGEST_GROUP[program.form] if required is None else math.prod(required)
    ir = _HEADER + for_amd(spir, symbol, largest)
    try:
        return AmdRegisters(**llvm.amd_registers(ir, library, symbol, _PROCESSOR))
    except llvm.LLVMRefusedError:
        return None


def for_amd(text: str, symbol: str, largest_group: int) -> str:
    """Rewrite the IR of a SPIR module for AMD GPUs, without the target's header.

    Only the kernel `symbol` stays a kernel. Calls of ``printf`` return 0, and debug information and aliasing
    metadata are dropped. Functions are compiled for work-groups of up to `largest_group` work-items.
    """
    text = _DROPPED.sub("", _METADATA.sub("", text))
    text = _PRINTF.sub(lambda match: "" if match[0].startswith("declare") else "add i32 0, 0", text)
    text = _POINTER.sub(_amd_pointer, text)
    text = _INTRINSIC_SPACE.sub(lambda match: str(_amd_space(match[0])), text)
    text = _ALLOCA.sub(r"\g<0>, addrspace(5)", _CONSTANT_SPACE.sub(r"\g<1>4", text))
    name = rf'@(?:{re.escape(symbol)}|"{re.escape(symbol)}")\('
    text = re.sub(rf"^define [^@\n]*?spir_kernel [^@\n]*{name}.*", _as_kernel, text, flags=re.MULTILINE)
    text = text.replace("spir_kernel ", "").replace("spir_func ", "")
    group_bound = f'"amdgpu-flat-work-group-size"="1,{largest_group}"'
    return re.sub(r"^attributes #\d+ = \{", rf"\g<0> {group_bound}", text, flags=re.MULTILINE)


def _as_kernel(line: re.Match[str]) -> str:
    # A structure passed by value is read through its pointer, so the argument is only that pointer.
    return _BY_VALUE.sub("", line[0]).replace("spir_kernel", "amdgpu_kernel")


def _amd_pointer(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else f"ptr addrspace({_amd_space(match[1] or 0)})"


def _amd_space(spir_space: str | int) -> int:
    return _ADDRESS_SPACES.get(int(spir_space), int(spir_space))
