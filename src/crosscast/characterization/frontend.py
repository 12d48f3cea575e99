"""Frontend: from a program in any accepted form to checked LLVM IR, its kernels and their parameters."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from crosscast.characterization import ir
from crosscast.characterization.cuda.adapt import adapt_program
from crosscast.characterization.cuda.compiler import Compiled, compile_cuda, may_have_instance
from crosscast.characterization.cuda.kernels import CudaKernel
from crosscast.characterization.cuda.source import DeclarationRefusal
from crosscast.characterization.engine import llvm
from crosscast.characterization.toolchain import compile_opencl, compiler_version
from crosscast.characterization.value_types import ValueType
from crosscast.errors import CompileError, CrosscastError, InputError, UnsupportedError
from crosscast.kernel import Kernel, Parameter, ParameterKind, Program


@dataclass(frozen=True)
class LoadedProgram:
    """A program after the frontend."""

    module: ir.Module  # Its IR
    compiler: str  # Compiler of the IR: ours, or the one that given IR names
    compile_s: float  # Seconds spent in the compiler and in reading its output
    # Kernels of a CUDA or HIP program by their names in the IR
    cuda_kernels: dict[str, CudaKernel] = field(default_factory=dict)
    compiled: Compiled | None = None  # Compilation of such a program, with the declarations left out

    def symbols_called(self, kernel: str) -> list[str]:
        """Return the names in the IR of the kernels that a spelling may denote."""
        if self.compiled is None:
            return [kernel] * (kernel in self.module.kernels)
        kernel = self.compiled.instances.get(re.sub(r"\s", "", kernel), kernel)
        matches = [k for k in self.cuda_kernels.values() if k.is_called(kernel)]
        exact = [k for k in matches if "<" not in k.name or "<" in kernel]
        return [k.symbol for k in exact or matches]

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """Names of the kernels as in the source; overloads with their parameters."""
        if self.compiled is None:
            return tuple(self.module.kernels)
        names = [k.name for k in self.cuda_kernels.values()]
        return tuple(k.name if names.count(k.name) == 1 else k.signature for k in self.cuda_kernels.values())


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel in the module of its program."""

    kernel: Kernel
    program: LoadedProgram = field(compare=False, repr=False)
    function: ir.Function = field(compare=False, repr=False)

    @functools.cached_property
    def required_local_size(self) -> tuple[int, int, int] | None:
        """Work-group size of its attribute ``reqd_work_group_size``."""
        entries = self.function.metadata.get("reqd_work_group_size")
        if not entries:
            return None
        try:
            first, second, third = (int(entry.split()[-1]) for entry in entries)
        except ValueError:
            raise InputError.of(
                where=self.kernel.program.label,
                problem=(
                    f"{self.kernel.name}: reqd_work_group_size: expected three sizes, found "
                    f"{', '.join(entries)}"
                ),
            ) from None
        return first, second, third

    @functools.cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its formal parameters."""
        function, sizes = self.function, self.program.module.sizes
        types, base = (_strings(function, f"kernel_arg_{key}") for key in ("type", "base_type"))
        formal = []
        names = parameter_names(function)
        for index, (name, parameter) in enumerate(zip(names, function.parameters, strict=True)):
            type_name = types[index] if index < len(types) else parameter.type
            is_named = ValueType.find(type_name) is None
            if is_named and index < len(base):
                # Resolve typedefs, except of structures, of which the underlying name says no more.
                resolved = _VECTOR.sub(r"\1", base[index])
                type_name = resolved if ValueType.find(resolved) else type_name
            kind, size = _kind(parameter, type_name, sizes)
            formal.append(Parameter(name, type_name, kind, size, bool(parameter.structure), is_named))
        return tuple(formal)


def load(program: Program, kernel: str = "") -> LoadedProgram:
    """Compile or parse a program; if `kernel` is one of a template, with that instance."""
    instances = [""]
    if program.is_cuda and "<" in kernel:
        instance = kernel.split("(")[0] if kernel.endswith(")") else kernel
        # One of several templates of the name is instantiated with its parameters.
        instances = list(dict.fromkeys([instance, kernel]))
        if may_have_instance(program.content.decode(errors="replace"), instance):
            instances.insert(0, "")
    for each in instances:
        loaded = _load(program, each)
        if loaded.symbols_called(kernel):
            break
    return loaded


@functools.lru_cache(maxsize=32)
def _load(program: Program, instance: str) -> LoadedProgram:
    start = time.perf_counter()
    compiled, kernels = None, {}
    if program.is_cuda:
        compiled = compile_cuda(program, instance)
        module, text = _parse(program, compiled.bitcode)
        kernels = adapt_program(module, text)
    elif program.form != "opencl-c":
        module, text = _parse(program, program.content)
    else:
        for define_inline in (False, True):
            module, text = _parse(program, compile_opencl(program, define_inline=define_inline))
            if not any(map(_may_be_inline, module.declared)):
                break
    _use_kernel_bodies(module)
    return LoadedProgram(module, _compiler(program, text), time.perf_counter() - start, kernels, compiled)


def _may_be_inline(undefined: str) -> bool:
    """Whether an undefined function must be one of the program: builtins have mangled names."""
    return not undefined.startswith(("_Z", "__", "llvm.")) and undefined != "printf"


def _parse(program: Program, content: bytes) -> tuple[ir.Module, str]:
    """Return the IR of a program, as data and as text."""
    try:
        parsed = llvm.parse(content, is_text=program.form == "llvm-ir")
    except llvm.LLVMRefusedError as error:
        reason = str(error).replace("<string>", program.label)
        raise CompileError(
            f"{program.label}: expected LLVM {'IR text' if program.form == 'llvm-ir' else 'bitcode'} "
            f"of LLVM 14 to 22, found something else ({reason})"
        ) from error
    if not parsed.triple.startswith("spir64"):
        raise InputError.of(
            where=program.label, expected="IR for the target spir64", found=f"{parsed.triple or 'no target'}"
        )
    return ir.read_module(parsed), parsed.text


def _compiler(program: Program, text: str) -> str:
    if program.form == "opencl-c" or program.is_cuda:
        return compiler_version()
    ident = re.search(r"^!llvm\.ident = !\{!(\d+)", text, re.MULTILINE)
    producer = re.search(rf'^!{ident[1]} = !\{{!"(.*)"\}}$', text, re.MULTILINE) if ident else None
    return producer[1] if producer else "unknown (the IR does not say)"


def _use_kernel_bodies(module: ir.Module) -> None:
    """Use the body instead of the stub that clang 21 and later wrap around a kernel at ``-O0``."""
    for name in module.kernels:
        body = module.functions.get(f"__clang_ocl_kern_imp_{name}")
        if body is None:
            continue
        if any(i.callee == body.name for i in module.functions[name].instructions()):
            stub = module.functions[name]
            stub.blocks, stub.parameters = body.blocks, body.parameters


@functools.lru_cache(maxsize=32)
def load_kernel(kernel: Kernel) -> LoadedKernel:
    """Compile or parse the program of a kernel, and find the kernel in it."""
    program, name = kernel.program, kernel.name
    loaded = load(program, name)
    symbols = loaded.symbols_called(name)
    if len(symbols) == 1:
        if loaded.compiled is not None and loaded.compiled.refused:
            _refuse_left_out(program, name, loaded.module, symbols[0], loaded.compiled)
        return LoadedKernel(kernel, loaded, loaded.module.functions[symbols[0]])
    raise _not_one(program, name, loaded, symbols)


def parameters(program: Program, kernel: str) -> tuple[Parameter, ...]:
    """Return the formal parameters of a kernel."""
    return load_kernel(Kernel(program, kernel)).parameters


def _not_one(program: Program, kernel: str, loaded: LoadedProgram, symbols: Sequence[str]) -> CrosscastError:
    """Return the error about a name that denotes no kernel or several."""
    if symbols:
        signatures = ", ".join(loaded.cuda_kernels[symbol].signature for symbol in symbols)
        return InputError.of(
            where=program.label, problem=f"{kernel!r} may be any of {signatures}; name one of them so"
        )
    message = f"{program.label}: no kernel named {kernel!r}; the kernels there are: "
    message += ", ".join(load(program).kernel_names) or "none"
    if (compiled := loaded.compiled) is None:
        return InputError(message)
    if refusal := compiled.refused.get(re.sub(r"[<(].*", "", kernel, flags=re.DOTALL).rsplit("::", 1)[-1]):
        return _refused(program, kernel, refusal)
    if named := [template for template in compiled.templates if template.startswith(f"{kernel}<")]:
        return InputError.of(
            where=program.label,
            problem=f"{kernel!r} is a template, which is named with its arguments: {named[0]}",
        )
    if refusal := compiled.refused.get(kernel):
        message = message.replace(";", f" ({refusal.reason});", 1)
    if compiled.templates:
        message += f"; templates, which are named with their arguments: {', '.join(compiled.templates)}"
    if compiled.missing:
        message += f"; headers that were not found: {', '.join(compiled.missing)}"
    return InputError(message)


def _refused(program: Program, kernel: str, refusal: DeclarationRefusal) -> CrosscastError:
    if refusal.is_unsupported:
        return UnsupportedError.of(where=program.label, problem=f"{kernel}: {refusal.reason}")
    return CompileError(f"{program.label}: the compiler refused the kernel {kernel}\n{refusal.reason}")


def _refuse_left_out(
    program: Program, kernel: str, module: ir.Module, symbol: str, compiled: Compiled
) -> None:
    """Raise for a kernel that calls a function which did not compile or is defined nowhere."""
    pending, seen = [symbol], {symbol}
    while pending:
        for instruction in module.functions[pending.pop()].instructions():
            callee = instruction.callee
            if not callee or callee in seen:
                continue
            seen.add(callee)
            if callee in module.functions:
                pending.append(callee)
                continue
            for name, refusal in compiled.refused.items():
                if re.match(rf"_Z\w*?{len(name)}{name}(?!\d)", callee) or callee == name:
                    raise _refused(program, kernel, refusal)


_VECTOR = re.compile(r" __attribute__\(\(ext_vector_type\((\d+)\)\)\)")


def parameter_names(function: ir.Function) -> list[str]:
    """Return the names of a kernel's parameters in its source, as far as the IR has them."""
    names = _strings(function, "kernel_arg_name")[: len(function.parameters)]
    return names + [_bare(p.name, n) for n, p in enumerate(function.parameters) if n >= len(names)]


def _bare(local: str, index: int) -> str:
    name = local.lstrip("%").strip('"')
    return f"arg{index}" if name.startswith(".") else name


def _strings(function: ir.Function, key: str) -> list[str]:
    return [entry.removeprefix('!"').removesuffix('"') for entry in function.metadata.get(key, [])]


def _kind(
    parameter: ir.FunctionParameter, type_name: str, sizes: dict[str, tuple[int, int]]
) -> tuple[ParameterKind, int]:
    if type_name.startswith("image") or "spirv.Image" in parameter.type:
        return "image", 8
    if type_name.startswith("sampler") or "spirv.Sampler" in parameter.type:
        return "sampler", 8
    if size := parameter.structure:
        return "value", sizes[size][0]
    space = re.fullmatch(r"ptr addrspace\((\d)\)", parameter.type)
    kinds: dict[str, ParameterKind] = {"1": "global", "2": "constant", "3": "local"}
    if space and space[1] in kinds:
        return kinds[space[1]], 8
    return "value", sizes[parameter.type][0]
