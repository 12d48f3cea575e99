"""Registers of a work-item on AMD's GPUs, and what spills, as LLVM's backend for them decides.

AMD's compilers are LLVM, which llvmlite has with the backend of these GPUs. So the IR of a program, before
any optimization, is written for their target, optimized and compiled for one of them (RDNA 2), and the
registers are read from the assembly. No device is needed. NVIDIA's compiler is not LLVM, and is not asked.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from crosscast.characterization import frontend, toolchain
from crosscast.characterization.engine import llvm
from crosscast.kernel import Program

_PROCESSOR = "gfx1030"
_LARGEST_GROUP = {"cuda": 1024, "hip": 1024, "opencl-c": 256}
"""Work-items of a group that a compiler allows for if the program does not say, by form of the program."""

_LIBRARY = Path(__file__).parent / "builtins" / "amdgcn.ll"
_LAYOUT = (
    "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48"
    "-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024"
    "-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
)
_HEADER = f'target datalayout = "{_LAYOUT}"\ntarget triple = "amdgcn-amd-amdhsa"\n'
_SPACES = {0: 5, 2: 4, 4: 0}  # AMD's numbers of address spaces, by SPIR's; others are the same
_POINTER = re.compile(r"(?<![\w.%@$-])ptr\b(?![\w.])(?: addrspace\((\d+)\))?")
_OVERLOAD = re.compile(r"(?<=\.p)\d+(?=[.(])")
_VARIABLE = re.compile(r"^(@[^\n]*? addrspace\()2(?=\) )", re.MULTILINE)
_ALLOCA = re.compile(r"= alloca [^\n!]*[^\n!, ]")
_DEBUG = re.compile(r"^\s+#dbg_.*\n|,? !(?:dbg|srcloc|tbaa|alias\.scope|noalias) !\d+", re.MULTILINE)
_PRINTF = re.compile(r"(?<== )[a-z]* ?call [^\n]*@printf\([^\n]*|^declare [^\n]*@printf\(.*\n", re.MULTILINE)
_BY_VALUE = re.compile(r"byval\([^)]*\) ")
_DROPPED = re.compile(r"^(?:target |@llvm\.).*\n", re.MULTILINE)


@dataclass(frozen=True)
class AmdRegisters:
    """Vector registers of a work-item of a kernel, of 32 bits each."""

    registers: int
    spilled: int  # Beside them, in memory
    # Instructions that move what is spilled, and operations on floating-point numbers
    moves: int
    moves_in_loops: int
    floating: int
    floating_in_loops: int


@functools.lru_cache(maxsize=256)
def amd_registers(program: Program, kernel: str) -> AmdRegisters | None:
    """Registers of a kernel; ``None`` of a program without source, or one that LLVM cannot compile so."""
    if program.form not in _LARGEST_GROUP:
        return None
    compiled = frontend.load(program, kernel).compiled
    symbol = frontend.find_kernel(program, kernel).name
    text = toolchain.compile_opencl_unoptimized(program) if compiled is None else compiled.unoptimized
    library = _HEADER + _LIBRARY.read_text(encoding="utf-8")
    ir = _HEADER + for_amd(text, symbol, _LARGEST_GROUP[program.form])
    try:
        return AmdRegisters(**llvm.amd_registers(ir, library, symbol, _PROCESSOR))
    except llvm.LLVMRefusedError:
        return None


def for_amd(text: str, symbol: str, largest_group: int) -> str:
    """IR for SPIR as IR for AMD's GPUs without its header, in which only the kernel `symbol` is a kernel."""
    text = _DROPPED.sub("", _DEBUG.sub("", text))
    text = _PRINTF.sub(lambda match: "" if match[0].startswith("declare") else "add i32 0, 0", text)
    text = _POINTER.sub(lambda match: f"ptr addrspace({_space(match[1] or 0)})", text)
    text = _OVERLOAD.sub(lambda match: str(_space(match[0])), text)
    text = _ALLOCA.sub(r"\g<0>, addrspace(5)", _VARIABLE.sub(r"\g<1>4", text))
    name = rf'@(?:{re.escape(symbol)}|"{re.escape(symbol)}")\('
    text = re.sub(rf"^define [^@\n]*?spir_kernel [^@\n]*{name}.*", _as_kernel, text, flags=re.MULTILINE)
    text = text.replace("spir_kernel ", "").replace("spir_func ", "")
    sizes = f'"amdgpu-flat-work-group-size"="1,{largest_group}"'
    return re.sub(r"^attributes #\d+ = \{", rf"\g<0> {sizes}", text, flags=re.MULTILINE)


def _as_kernel(line: re.Match[str]) -> str:
    # A structure is read where it stands, so that a pointer to it does.
    return _BY_VALUE.sub("", line[0]).replace("spir_kernel", "amdgpu_kernel")


def _space(of_spir: str | int) -> int:
    return _SPACES.get(int(of_spir), int(of_spir))
