"""Worker process in which LLVM runs, and its forked children, of which each does one job.

LLVM aborts on some input that it cannot read or compile, and takes very long for some, so all of LLVM runs in
processes that may crash or be killed.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import resource
import runpy
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict

import llvmlite.binding as llvm

_REFUSED = 3
"""Exit code of a child whose input LLVM refused; the reason is on standard error."""
_MEMORY_BYTES = 8 << 30
_PR_SET_PDEATHSIG = 1
_UNSIZED = ("void", "label", "metadata", "token")
# Forbidden in a variable's name: some characters would need quotes, and `cc` is the runtime's prefix.
_STRANGE = re.compile(r"[^\w.$-]|^cc(?=[_.])", re.ASCII)
# LLVM's time is superlinear in the code: larger code is optimized less.
_WHOLE_OPTIMIZATION, _ANY_OPTIMIZATION = 50_000, 150_000

# LLVM unrolls a loop that a pragma names to 16,384 instructions. Of programs with multiply-adds, compilers of
# those that were measured counted three where this one counts one: halves of multiply-adds, and addresses.
_MOST_UNROLLED, _COUNTED_AS = 16384, 3
_IN_REGISTERS = re.compile(
    r"ptr(?: addrspace\(\d\))?|i32|float|i64|double|half|<[234] x (?:float|i32)>|<2 x (?:double|i64|half)>"
)
_BRANCH = re.compile(r"s_c?branch\w*\s+(\.L\w+)")
_PRIVATE_ACCESS = re.compile(r"scratch_|buffer_(?:store|load)_\w+ v\S+, (?:off|v\d+), s\[")
_FLOATING = re.compile(r"v_(?:pk_)?(?:add|sub|mul|fma|mac|mad)\w*_f(?:16|32|64)")


class LlvmJob(TypedDict, total=False):
    """Description of a task, in its first file."""

    task: str  # One of `_TASKS`
    given: int  # Number of input files
    is_text: bool  # For `parse`: whether the module is text
    exported: list[str]  # For `build`: names that stay visible
    level: int  # Optimization level, from 0 to 3
    code_level: int  # Optimization level of the backend, from 0 to 3
    alone: bool  # One thread runs the kernel: atomics are plain accesses
    kernel: str  # For `amd`: its name
    processor: str  # For `amd`: such as gfx1030


def _handle(descriptors: Sequence[int]) -> int:
    """Do the task that the first file describes; its inputs follow, and the last files are its outputs."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = _MEMORY_BYTES if most == resource.RLIM_INFINITY else min(_MEMORY_BYTES, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    task, *files = map(_file, descriptors)
    job = json.loads(task.read_bytes())
    try:
        results = _TASKS[job["task"]](job, *(file.read_bytes() for file in files[: job["given"]]))
    except (RuntimeError, UnicodeDecodeError) as error:
        os.write(2, str(error).encode())
        return _REFUSED
    for file, content in zip(files[job["given"] :], results, strict=True):
        file.write_bytes(content)
    return 0


def _file(descriptor: int) -> Path:
    """Return the file of a descriptor, opened from its start whatever the other process's offset."""
    return Path(f"/proc/self/fd/{descriptor}")


def _parse(job: LlvmJob, content: bytes) -> tuple[bytes, bytes]:
    """Return a module's canonical text and its facts (see `ir.Parsed`)."""
    parsed = llvm.parse_assembly(content.decode()) if job["is_text"] else llvm.parse_bitcode(content)
    parsed.verify()
    for value in (*parsed.global_variables, *parsed.functions):
        value.name = value.name or "unnamed"  # LLVM adds a number where a name is taken
    libc = ctypes.CDLL(None)
    for variable in parsed.global_variables:
        name = variable.name
        if name.startswith("llvm.") or variable.is_declaration:
            continue
        if _STRANGE.search(name) or hasattr(libc, name):  # the runtime would take it for the C library's
            variable.name = f"{_STRANGE.sub('_', name)}.v"
    layout = llvm.create_target_data(parsed.data_layout)
    sizes: dict[str, tuple[int, int]] = {}

    def sized(type_: llvm.TypeRef) -> str:
        name = str(type_)
        if name not in sizes and name not in _UNSIZED:
            sizes[name] = layout.get_abi_size(type_), layout.get_abi_alignment(type_)
        return name

    structures = {
        struct.name: (layout.get_abi_size(struct), layout.get_abi_alignment(struct))
        for struct in parsed.struct_types
        if not struct.is_opaque_struct
    }
    functions = {
        function.name: (
            [sized(argument.type) for argument in function.arguments],
            [[(i.opcode, sized(i.type)) for i in block.instructions] for block in function.blocks],
        )
        for function in parsed.functions
        if not function.is_declaration
    }
    variables = {v.name: layout.get_abi_size(v.global_value_type) for v in parsed.global_variables}
    facts = {
        "triple": parsed.triple,
        "functions": functions,
        "sizes": sizes,
        "structures": structures,
        "variables": variables,
    }
    return str(parsed).encode(), json.dumps(facts).encode()


def _build(job: LlvmJob, kernel: bytes, library: bytes, native: bytes) -> tuple[bytes, bytes, bytes]:
    """Return object code of a module with the library functions that it calls; the names of undefined
    functions; and object code of the uninstrumented kernel, which another process compiles meanwhile.
    """
    if not native:
        return *_compile(job, kernel, library), b""
    uncounted = os.memfd_create("crosscast-native")
    child = _fork_native(job, native, library, uncounted)
    counted = _compile(job, kernel, library)
    has_failed = os.waitpid(child, 0)[1]
    return *counted, b"" if has_failed else _file(uncounted).read_bytes()


def _fork_native(job: LlvmJob, native: bytes, library: bytes, file: int) -> int:
    """Start a process that compiles the uninstrumented kernel to a file."""
    child = os.fork()
    if not child:
        code = 1
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            content, _ = _compile({**job, "exported": ["cc_native"], "alone": False}, native, library)
            _file(file).write_bytes(content)
            code = 0
        finally:
            os._exit(code)
    return child


def _compile(job: LlvmJob, kernel: bytes, library: bytes) -> tuple[bytes, bytes]:
    """Return object code of a module with the library functions that it calls, and undefined functions."""
    large = kernel.count(b"\n") > _ANY_OPTIMIZATION
    machine = _target_machine(0 if large else job["code_level"])
    header = f'target datalayout = "{machine.target_data}"\ntarget triple = "{machine.triple}"\n'
    exported = set(job["exported"])
    parsed = llvm.parse_assembly(header + kernel.decode())
    if library:
        linked = llvm.parse_assembly(header + library.decode())
        # Functions that only the backend calls have no caller yet, and linkonce would drop them.
        _set_linkage(linked, exported, others="linkonce_odr")
        parsed.link_in(linked)
    parsed.verify()
    _set_linkage(parsed, exported, others="internal")
    if job["alone"]:
        passes = llvm.create_new_module_pass_manager()
        passes.add_lower_atomic_pass()
        passes.run(parsed, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    if not large:
        _optimize(parsed, machine, job["level"] if kernel.count(b"\n") <= _WHOLE_OPTIMIZATION else 1)
    undefined = [f.name for f in parsed.functions if f.is_declaration]
    return machine.emit_object(parsed), json.dumps(undefined).encode()


def _target_machine(level: int) -> llvm.TargetMachine:
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=level, reloc="pic", codemodel="default"
    )


def _set_linkage(parsed: llvm.ModuleRef, exported: set[str], *, others: str) -> None:
    for function in parsed.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name in exported else others


def _optimize(parsed: llvm.ModuleRef, machine: llvm.TargetMachine, level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = level == 3
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)


def _amd(job: LlvmJob, program: bytes, library: bytes) -> tuple[bytes]:
    """Compile a kernel for an AMD GPU, and return counts from its assembly (see `AmdRegisters`), as JSON.

    Raises
    ------
    RuntimeError
        If the program does not define the kernel, or LLVM refuses the program.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    parsed = llvm.parse_assembly(program.decode())
    kernel = job["kernel"]
    if kernel not in [f.name for f in parsed.functions if not f.is_declaration]:
        raise RuntimeError(f"no kernel {kernel}")
    target = llvm.Target.from_triple(parsed.triple)
    machine = target.create_target_machine(cpu=job["processor"], opt=3)
    _remove_but(parsed, machine, kernel)
    counted_as = _COUNTED_AS if any(f.name.startswith("llvm.fmuladd.") for f in parsed.functions) else 1
    llvm.set_option("", f"-pragma-unroll-threshold={_MOST_UNROLLED // counted_as}")
    parsed.link_in(llvm.parse_assembly(library.decode()))
    undefined = [f for f in parsed.functions if f.is_declaration and not f.name.startswith("llvm.")]
    header = f'target datalayout = "{parsed.data_layout}"\ntarget triple = "{parsed.triple}"\n'
    parsed.link_in(llvm.parse_assembly(header + "".join(map(_opaque, undefined))))
    parsed.verify()
    _set_linkage(parsed, {kernel}, others="internal")
    _optimize(parsed, machine, 3)
    return (json.dumps(_registers_of(machine.emit_assembly(parsed), kernel)).encode(),)


def _remove_but(parsed: llvm.ModuleRef, machine: llvm.TargetMachine, kernel: str) -> None:
    """Remove the functions that a kernel does not call: other kernels of its file must not count for it."""
    _set_linkage(parsed, {kernel}, others="internal")
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(parsed, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


def _opaque(function: llvm.ValueRef) -> str:
    """Define a library function, as IR, by empty assembly with its arguments and result in vector registers.

    So the optimizer keeps its arguments alive and knows nothing of its result. Types that no vector register
    holds, such as structures and 16-bit integers, are left out, and a result of these is any constant.
    """
    type_ = function.global_value_type
    if type_.is_function_vararg:
        raise RuntimeError(f"{function.name} takes any number of arguments")
    result = str(type_.get_function_return())
    parameters = [f"{each} %{number}" for number, each in enumerate(type_.get_function_parameters())]
    operands = [each for each in parameters if _IN_REGISTERS.fullmatch(each.rpartition(" ")[0])]
    has_result = _IN_REGISTERS.fullmatch(result) is not None
    constraints = ",".join(["=v"] * has_result + ["v"] * len(operands))
    # A function that returns nothing or takes a pointer may write to memory: its calls are not removed.
    is_pure = result != "void" and not any(each.startswith("ptr") for each in operands)
    assembly = f'asm {"" if is_pure else "sideeffect "}"", "{constraints}"({", ".join(operands)})'
    if result == "void":
        body = f"call void {assembly}\nret void"
    elif has_result:
        body = f"%r = call {result} {assembly}\nret {result} %r"
    else:
        body = f"%r = freeze {result} poison\nret {result} %r"
    return f'define {result} @"{function.name}"({", ".join(parameters)}) alwaysinline {{\n{body}\n}}\n'


def _registers_of(assembly: str, kernel: str) -> dict[str, int]:
    """Read the fields of `AmdRegisters` from a kernel's assembly, which has no other kernel.

    A loop is the code from a label to a branch back to it.
    """
    start = assembly.index(f"\n{kernel}:")
    lines = [line.strip() for line in assembly[start : assembly.index(".amdhsa_kernel", start)].splitlines()]
    labels = {line.split(":")[0]: number for number, line in enumerate(lines) if line.startswith(".L")}
    loops = [
        (labels[match[1]], number)
        for number, line in enumerate(lines)
        if (match := _BRANCH.match(line)) and labels.get(match[1], number) < number
    ]
    counts = dict.fromkeys(("moves", "moves_in_loops", "floating", "floating_in_loops"), 0)
    for number, line in enumerate(lines):
        kind = "moves" if _PRIVATE_ACCESS.match(line) else "floating" if _FLOATING.match(line) else None
        if kind is not None:
            counts[kind] += 1
            counts[f"{kind}_in_loops"] += any(first <= number <= last for first, last in loops)
    allocated = dict(re.findall(r"\.(vgpr_count|vgpr_spill_count):\s+(\d+)", assembly))
    return {
        "registers": int(allocated["vgpr_count"]),
        "spilled": int(allocated["vgpr_spill_count"]),
        **counts,
    }


def _release_code() -> None:
    """Release the memory of LLVM's code, which only children run.

    They read it from the file again.
    """
    libc = ctypes.CDLL(None)
    for mapping in re.split(r"^(?=\w+-\w+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE):
        if "llvm" in mapping and re.search(r"^Anonymous: +0 kB", mapping, re.MULTILINE):
            start, end = (int(address, 16) for address in mapping.split()[0].split("-"))
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


_TASKS: dict[str, Callable[..., tuple[bytes, ...]]] = {"parse": _parse, "build": _build, "amd": _amd}

if __name__ == "__main__":
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    _release_code()
    # By its path, so that this process imports nothing else of the package.
    runpy.run_path(str(Path(__file__).with_name("worker.py")))["main"](_handle)
