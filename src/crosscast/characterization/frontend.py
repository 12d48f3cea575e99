"""From a program in any accepted form to checked LLVM IR, its kernels and their parameters."""

from __future__ import annotations

import functools
import re
import time
from dataclasses import dataclass

import llvmlite.binding as llvm

from crosscast.characterization import ir
from crosscast.characterization.interruption import interruption_deferred
from crosscast.characterization.toolchain import compile_opencl, compiler_version
from crosscast.errors import CompileError, InputError
from crosscast.kernel import Parameter, ParameterKind, Program


@dataclass(frozen=True)
class Frontend:
    """A program after the frontend."""

    module: ir.Module  # Its IR
    compiler: str  # What made the IR: our compiler, or what the given IR names
    compile_s: float  # Seconds spent in the compiler and in reading its output


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.lru_cache(maxsize=32)
@interruption_deferred()
def load(program: Program) -> Frontend:
    """Compile or parse a program."""
    _initialize()
    start = time.perf_counter()
    if program.form != "opencl-c":
        module, compiler = _parse(program, program.content)
    else:
        module, compiler = _parse(program, compile_opencl(program))
        if any(map(_may_be_inline, module.declared)):
            module, compiler = _parse(program, compile_opencl(program, define_inline=True))
    _use_kernel_bodies(module)
    return Frontend(module, compiler, time.perf_counter() - start)


def _may_be_inline(undefined: str) -> bool:
    """Whether an undefined function can only be the program's own: builtins have mangled names."""
    return not undefined.startswith(("_Z", "__", "llvm.")) and undefined != "printf"


def _parse(program: Program, content: bytes) -> tuple[ir.Module, str]:
    """The IR of a program, and what made it."""
    try:
        if program.form == "llvm-ir":
            parsed = llvm.parse_assembly(content.decode())
        else:
            parsed = llvm.parse_bitcode(content)
        parsed.verify()
    except RuntimeError as error:
        reason = " ".join(str(error).replace("<string>", program.label).split())
        raise CompileError(
            f"{program.label}: expected LLVM {'IR text' if program.form == 'llvm-ir' else 'bitcode'} "
            f"of LLVM 14 to 22, found something else ({reason})"
        ) from error
    if not parsed.triple.startswith("spir64"):
        raise InputError(
            f"{program.label}: expected IR for the target spir64, found {parsed.triple or 'no target'}"
        )
    module = ir.read_module(parsed, llvm.create_target_data(parsed.data_layout))
    return module, _compiler(program, str(parsed))


def _compiler(program: Program, text: str) -> str:
    if program.form == "opencl-c":
        return compiler_version()
    ident = re.search(r"^!llvm\.ident = !\{!(\d+)", text, re.MULTILINE)
    producer = re.search(rf'^!{ident[1]} = !\{{!"(.*)"\}}$', text, re.MULTILINE) if ident else None
    return producer[1] if producer else "unknown (the IR does not say)"


def _use_kernel_bodies(module: ir.Module) -> None:
    """Characterize the body, not the stub that clang 21 and later wrap around a kernel at ``-O0``."""
    for name in module.kernels:
        body = module.functions.get(f"__clang_ocl_kern_imp_{name}")
        if body is None:
            continue
        called = [i for i in module.functions[name].instructions() if i.opcode == "call"]
        if any(f"@{body.name}(" in i.text for i in called):
            stub = module.functions[name]
            stub.blocks, stub.parameters = body.blocks, body.parameters


def kernel_names(program: Program) -> tuple[str, ...]:
    """Names of the kernels of a program."""
    return tuple(load(program).module.kernels)


def find_kernel(program: Program, kernel: str) -> ir.Function:
    """Return the function of a kernel."""
    module = load(program).module
    if kernel not in module.kernels:
        there = ", ".join(module.kernels) or "none"
        raise InputError(f"{program.label}: no kernel named {kernel!r}; the kernels there are: {there}")
    return module.functions[kernel]


def required_local_size(program: Program, kernel: str) -> tuple[int, int, int] | None:
    """Work-group size that the kernel's attribute ``reqd_work_group_size`` asks for."""
    entries = find_kernel(program, kernel).metadata.get("reqd_work_group_size")
    if not entries:
        return None
    first, second, third = (int(entry.split()[-1]) for entry in entries)
    return first, second, third


def parameters(program: Program, kernel: str) -> tuple[Parameter, ...]:
    """Formal parameters of a kernel."""
    function = find_kernel(program, kernel)
    sizes = load(program).module.sizes
    types = _strings(function, "kernel_arg_type")
    found = []
    names = parameter_names(function)
    for index, (name, parameter) in enumerate(zip(names, function.parameters, strict=True)):
        type_name = types[index] if index < len(types) else parameter.type
        kind, size = _kind(parameter, type_name, sizes)
        found.append(Parameter(name, type_name, kind, size, bool(byval_type(parameter))))
    return tuple(found)


def parameter_names(function: ir.Function) -> list[str]:
    """Names of a kernel's parameters in its source, as far as the IR tells."""
    names = _strings(function, "kernel_arg_name")
    return names + [_bare(p.name, n) for n, p in enumerate(function.parameters) if n >= len(names)]


def _bare(local: str, index: int) -> str:
    name = local.lstrip("%").strip('"')
    return f"arg{index}" if name.startswith(".") else name


def _strings(function: ir.Function, key: str) -> list[str]:
    return [entry.removeprefix('!"').removesuffix('"') for entry in function.metadata.get(key, [])]


def _kind(
    parameter: ir.Parameter, type_name: str, sizes: dict[str, tuple[int, int]]
) -> tuple[ParameterKind, int]:
    if type_name.startswith("image") or "spirv.Image" in parameter.type:
        return "image", 8
    if type_name.startswith("sampler") or "spirv.Sampler" in parameter.type:
        return "sampler", 8
    if size := byval_type(parameter):
        return "value", sizes[size][0]
    space = re.fullmatch(r"ptr addrspace\((\d)\)", parameter.type)
    kinds: dict[str, ParameterKind] = {"1": "global", "2": "constant", "3": "local"}
    if space and space[1] in kinds:
        return kinds[space[1]], 8
    return "value", sizes[parameter.type][0]


def byval_type(parameter: ir.Parameter) -> str:
    """Type that a by-value structure parameter points to; empty for other parameters."""
    match = re.search(r"\bbyval\((.*?)\)(?: |$)", parameter.attributes)
    return match[1] if match else ""
