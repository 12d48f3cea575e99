"""LLVM in a child process: reading the IR of a program, and compiling the instrumented IR.

An instrumented kernel becomes a shared library of host machine code, which the child process loads.
"""

from __future__ import annotations

import json
import re
import signal
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from crosscast.characterization import builtins as library
from crosscast.characterization import engine, ir, toolchain
from crosscast.characterization.engine import workers
from crosscast.characterization.engine.arguments import memory_file
from crosscast.errors import InputError, UnsupportedError

_LIMIT_S = {"parse": 30, "build": 120, "amd": 60}
_REFUSED = 3
_LONG_LINES = 8_000  # of which even few optimizations take longer than they save


class LLVMRefusedError(InputError):
    """LLVM refused its input, crashed on it, or took too long; the message is the reason only."""


class _CrashedError(LLVMRefusedError):
    """LLVM crashed."""


def parse(content: bytes, *, is_text: bool) -> ir.Parsed:
    """Read and verify a module, given as text or bitcode."""
    text, facts = _do("parse", {"is_text": is_text}, [content], results=2)
    return ir.Parsed.from_json(text.decode(errors="replace"), facts)


def build(
    kernel: str,
    library: str,
    exported: Sequence[str],
    native: str = "",
    *,
    quick: bool = False,
    alone: bool = False,
) -> tuple[bytes, list[str], bytes]:
    """Compile host IR, linked with the library functions that it calls; only `exported` names stay visible.

    Returns the object file, the names of undefined functions, and the object file of `native`, the
    uninstrumented kernel: empty if there is none or LLVM refuses it. A `quick` build takes half as long, and
    its code up to twice as long; both compute the same values. `alone`: one thread runs the kernel.
    """
    contents = [kernel.encode(), library.encode(), native.encode()]
    quickest = 0 if kernel.count("\n") > _LONG_LINES else 1
    level, code_level = (quickest, 0) if quick else (3, 3)
    facts = {"exported": list(exported), "level": level, "code_level": code_level, "alone": alone}
    try:
        content, undefined, uncounted = _do("build", facts, contents, results=3)
    except _CrashedError:  # mostly in an optimization
        facts |= {"level": 1, "code_level": 3}
        content, undefined, uncounted = _do("build", facts, contents, results=3)
    names: list[str] = json.loads(undefined)
    return content, names, uncounted


def amd_registers(program: str, library: str, kernel: str, processor: str) -> dict[str, int]:
    """Compile a kernel of IR for an AMD GPU, and count in its assembly: the fields of `AmdRegisters`."""
    facts = {"kernel": kernel, "processor": processor}
    (content,) = _do("amd", facts, [program.encode(), library.encode()], results=1)
    counts: dict[str, int] = json.loads(content)
    return counts


def _do(task: str, facts: Mapping[str, object], inputs: Sequence[bytes], *, results: int) -> list[bytes]:
    job = json.dumps({"task": task, **facts, "given": len(inputs)}).encode()
    with ExitStack() as stack:
        contents = [b"", job, *inputs, *[b""] * results]  # the first is for errors
        files = [stack.enter_context(memory_file(f"crosscast-{task}", content)) for content in contents]
        code = workers.run("llvm", files, lambda worker: worker.wait(_LIMIT_S[task]))
        if code is None:
            raise LLVMRefusedError(f"LLVM did not end within {_LIMIT_S[task]} s")
        if code:
            errors = Path(f"/proc/self/fd/{files[0]}").read_text(errors="replace").split()
            raise (_CrashedError if code < 0 else LLVMRefusedError)(_reason(code, " ".join(errors)))
        return [Path(f"/proc/self/fd/{fd}").read_bytes() for fd in files[-results:]]


def _reason(code: int, errors: str) -> str:
    if code == _REFUSED:
        return errors
    if code > 0:
        return f"LLVM's process ended with code {code}{f': {errors[:300]}' if errors else ''}"
    name = signal.Signals(-code).name
    # LLVM's message comes first, and a stack trace after it.
    reason = errors.split(" PLEASE submit")[0].split(" Stack dump")[0].split(" #0 ")[0][:300]
    return f"LLVM was stopped by {name}{f': {reason}' if reason else ''}"


_VARIABLES_SECTION = "cc_variables"
_TARGET_TYPE = re.compile(r'target\("spirv\.\w+"[^)]*\)')
_OPAQUE = re.compile(r" addrspace\(\d+\)")
_OVERLOAD = re.compile(r"(@llvm\.[-a-zA-Z$._0-9]*)")
_CONVENTION = re.compile(r"\bspir_(?:kernel|func) ")
_LINKAGE = re.compile(
    r" (unnamed_addr|local_unnamed_addr|dso_local|private|internal|externally_initialized)\b"
)
_EXTERNAL = re.compile(r" = (?:\w+ )*(external|extern_weak) ")
_UNCOUNTED = [
    f"define void @{name}(ptr %texel, i64 %nbytes) alwaysinline nounwind {{ ret void }}"
    for name in ("cc_texel_read", "cc_texel_write")
]
_NOTES = frozenset({"@llvm.used", "@llvm.compiler.used"})
_MODULE_LINE = re.compile(r"!(llvm\.(module\.flags|ident|errno)|opencl\.)|target |source_filename")


def host_ir(text: str) -> str:
    """Rewrite IR for ``spir64`` for this machine's backend: one flat address space."""
    text = _TARGET_TYPE.sub("ptr", text)
    text = _OPAQUE.sub("", text)
    text = _CONVENTION.sub("", text)
    text = _OVERLOAD.sub(lambda m: re.sub(r"\.p\d+", ".p0", m[1]), text)
    return text.replace("addrspacecast", "bitcast")


def _without_module_lines(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not _MODULE_LINE.match(line))


def kernel_ir(module: ir.Module, functions: str, *, counts: bool = True) -> str:
    """Return the host IR of one kernel, instrumented or not, without library functions."""
    texts = [*module.types, *_variables(module, counts=counts), *_declared(module, functions), functions]
    if not counts:
        texts += _UNCOUNTED
    return host_ir("\n".join(texts))


def _declared(module: ir.Module, functions: str) -> list[str]:
    """Declare each function once: copies between address spaces are the same function in a flat one."""
    copy = "llvm.memcpy.p0.p0.i64"
    names = dict.fromkeys(re.findall(r"@(llvm\.[-a-zA-Z$._0-9]+|_Z\w+)\(", functions))
    unfused = {name.replace("llvm.fma.", "llvm.fmuladd.") for name in names if name not in module.declared}
    texts = [module.declared[name] for name in (*names, *sorted(unfused)) if name in module.declared]
    texts = [text.replace("llvm.fmuladd.", "llvm.fma.") for text in texts]
    if f"@{copy}(" in functions:
        texts.append(f"declare void @{copy}(ptr, ptr, i64, i1)")
    once: dict[str, str] = {}
    for text in map(host_ir, texts):
        once.setdefault(text[text.index("@") : text.index("(", text.index("@"))], text)
    return list(once.values())


def _variables(module: ir.Module, *, counts: bool) -> list[str]:
    """Return program-scope variables, each in separate address ranges, as the metrics require."""
    texts = []
    for variable in module.globals.values():
        if variable.address_space == 3 or variable.name in _NOTES:
            continue
        _refuse_variable(variable)
        text = re.sub(r", (section|align|comdat)\b.*$", "", variable.text)
        text = _LINKAGE.sub("", text)
        if not counts:
            texts.append(text.replace(" = ", " = internal ", 1))
            continue
        text = text.replace(" = ", " = protected ", 1).replace("protected external", "external")
        # Constants and variables are in one section, with one distance to their counters.
        text = re.sub(r"\bconstant\b", "global", text, count=1)
        texts.append(f'{text}, section "{_VARIABLES_SECTION}", align 1024')
    return texts


def _refuse_variable(variable: ir.GlobalVariable) -> None:
    """Raise for variables that would run code, or refer to other libraries, on loading."""
    if variable.name.startswith("@llvm."):
        raise UnsupportedError(
            f"the program's {variable.name[1:]} (code that runs on loading) is not supported"
        )
    if " thread_local" in re.split(r" (?:global|constant) ", variable.text)[0]:
        raise UnsupportedError(f"the thread-local variable {variable.name[1:]!r} is not supported")
    if _EXTERNAL.search(variable.text):
        raise UnsupportedError(
            f"the variable {variable.name[1:]!r} is declared but not defined in the program"
        )


def build_library(
    kernel: str,
    library_symbols: Iterable[str],
    native: str = "",
    *,
    quick: bool = False,
    alone: bool = False,
) -> bytes:
    """Compile an instrumented kernel to a shared library, with the uninstrumented kernel.

    Both are host IR, which calls functions of the library of builtins; the options are those of `build`.
    """
    toolchain.host_machine()
    symbols, exported = frozenset(library_symbols), {"cc_group"}
    if " half" in kernel or "bfloat" in kernel or any("Dh" in symbol for symbol in symbols):
        # The backend calls these, even if the IR does not.
        symbols |= library.HALF_RUNTIME
        exported |= library.HALF_RUNTIME
    builtins = _without_module_lines(host_ir(library.llvm_ir(sorted(symbols)))) if symbols else ""
    workers.prestart("kernel")  # after the compiler, to limit memory
    try:
        content, undefined, uncounted = build(
            kernel, builtins, sorted(exported), native, quick=quick, alone=alone
        )
    except LLVMRefusedError as error:
        raise UnsupportedError(
            f"the program's IR uses something that cannot be rewritten for this machine ({error})"
        ) from error
    _refuse_unresolved(undefined)
    with tempfile.TemporaryDirectory(prefix="crosscast-") as folder:
        object_file, output = Path(folder) / "kernel.o", Path(folder) / "kernel.so"
        object_file.write_bytes(content)
        object_files = [object_file]
        if uncounted:
            object_files.append(Path(folder) / "native.o")
            object_files[-1].write_bytes(uncounted)
        toolchain.link_shared([*object_files, *engine.objects(undefined)], output)
        return output.read_bytes()


def _refuse_unresolved(undefined: Sequence[str]) -> None:
    for name in undefined:
        if name.startswith(("llvm.", "cc_")):
            continue
        if name not in library.LIBM and name not in ("memcpy", "memset", "memmove"):
            raise UnsupportedError.of(
                where=f"unresolved function {name!r}", problem="neither the program nor OpenCL C defines it"
            )
