"""The SPIR-V module of a program, for profiles to be embedded in."""

from __future__ import annotations

from crosscast.characterization.embedding.module import read_module
from crosscast.characterization.toolchain import compile_spirv
from crosscast.errors import UnsupportedError
from crosscast.kernel import Program

__all__ = ["compile_module"]


def compile_module(program: Program) -> bytes:
    """Compile OpenCL C to a SPIR-V module that needs no other one.

    Raises
    ------
    CompileError
        If the compiler refuses it.
    UnsupportedError
        If the compiler leaves a builtin function to others.
    """
    content = compile_spirv(program)
    imports = read_module(content, program.label).imports
    if imports:
        raise UnsupportedError(
            f"{program.label}: the kernel compiler has no SPIR-V for {', '.join(sorted(imports))}"
        )
    return content
