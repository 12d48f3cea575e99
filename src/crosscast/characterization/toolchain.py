"""Kernel compiler: clang and lld from the pinned `ziglang` wheel, and a cache of their output."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.data.files import atomic_file, cache_home, is_writable, temporary_cache
from crosscast.errors import CompileError, EnvironmentFault, InputError, UnsupportedError

if TYPE_CHECKING:  # it brings NumPy
    from crosscast.kernel import Program

INCLUDE_DIR = Path(__file__).parent / "include"
_COMPILE_TIMEOUT_S = 120
# A launch file is untrusted: only options that cannot write files or load code reach the compiler.
ALLOWED_OPTIONS = (
    r"-(D|U|I).+|-w|-W[a-z][a-z0-9=+-]*|-O[0-3sz]?|-g|-f(no-)?[a-z-]*math[a-z-]*"
    r"|-ffp-contract=[a-z-]+|-f(no-)?(signed-zeros|unroll-loops|vectorize|slp-vectorize|inline)"
)
"""Pattern of the options that all languages accept."""
_ALLOWED_OPENCL = re.compile(rf"{ALLOWED_OPTIONS}|-cl-[a-z0-9.=A-Z-]+")


@functools.cache
def host_machine() -> str:
    """Return this machine's architecture in the compiler's spelling."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64"):
        raise EnvironmentFault(
            f"kernels run natively on Linux on x86-64 and AArch64 only; this is {sys.platform} on {machine}"
        )
    return machine


@functools.cache
def _zig() -> str:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentFault("the kernel compiler is missing: pip install ziglang==0.17.0")
    path = Path(next(iter(spec.submodule_search_locations))) / "zig"
    if not path.exists():
        raise EnvironmentFault(f"the kernel compiler is missing: no file {path}; reinstall ziglang")
    return str(path)


def compiler_headers() -> Path:
    """Return the folder of the compiler's headers, such as ``stdint.h``."""
    return Path(_zig()).parent / "lib" / "include"


@functools.cache
def compiler_version() -> str:
    """Return name and version of the kernel compiler, such as ``clang 22.1.8 (ziglang 0.17.0)``."""
    text = _run(["clang", "--version"], b"").stdout.decode()
    match = re.search(r"clang version (\S+)", text)
    version = match[1] if match else "unknown"
    return f"clang {version} (ziglang {importlib.metadata.version('ziglang')})"


def _run(command: Sequence[str], stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [_zig(), *command],
            input=stdin,
            capture_output=True,
            timeout=_COMPILE_TIMEOUT_S,
            check=False,
            cwd=INCLUDE_DIR,  # clang searches here before the system's folders
        )
    except subprocess.TimeoutExpired as error:
        raise CompileError(
            f"the compiler did not end within {_COMPILE_TIMEOUT_S} s: {' '.join(command)}"
        ) from error
    except OSError as error:
        raise EnvironmentFault(f"the kernel compiler does not start: {error}") from error


def run_clang(arguments: Sequence[str], source: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the compiler on `source`, given on standard input; failures are not raised."""
    return _run(["clang", *arguments], source)


def clang(arguments: Sequence[str], source: bytes, label: str) -> bytes:
    """Compile `source`, given on standard input, and return the output."""
    done = run_clang([*arguments, "-", "-o", "-"], source)
    if done.returncode != 0:
        diagnostics = done.stderr.decode(errors="replace").replace("<stdin>", label).strip()
        raise CompileError(f"{label}: the compiler refused the program\n{diagnostics}")
    return done.stdout


def compile_opencl(program: Program, *, define_inline: bool = False) -> bytes:
    """Compile OpenCL C to LLVM bitcode for ``spir64``, at ``-Oz`` unless an option says otherwise.

    In C99 an ``inline`` function that is not ``static`` is undefined unless the compiler inlines it. With
    `define_inline` such functions are defined, as OpenCL drivers do.
    """
    facts = ("-cl-kernel-arg-info", "-gline-tables-only", "-fno-discard-value-names")
    more = ("-fgnu89-inline",) if define_inline else ()
    try:
        return _compile(program, "spir64-unknown-unknown", *facts, *more, "-emit-llvm")
    except CompileError as error:
        if program.standard in _WITHOUT_GENERIC_POINTERS and _is_newer(program):
            raise CompileError(f"{error}\nOpenCL C 3.0 has what it needs: --std 3.0") from error
        raise


_WITHOUT_GENERIC_POINTERS = ("1.0", "1.1", "1.2")


def _is_newer(program: Program) -> bool:
    """Whether a program that older versions refuse is one of OpenCL C 3.0."""
    try:
        _compile(replace(program, standard="3.0"), "spir64-unknown-unknown", "-fsyntax-only")
    except CompileError:
        return False
    return True


def compile_opencl_unoptimized(program: Program) -> str:
    """Compile OpenCL C to LLVM IR for ``spir64``, on which no optimization has run, but for all to come."""
    plain = replace(program, options=(*program.options, "-O3"))
    passes = ("-Xclang", "-disable-llvm-passes", "-fgnu89-inline")
    return _compile(plain, "spir64-unknown-unknown", *passes, "-emit-llvm", "-S").decode("latin-1")


def compile_spirv(program: Program) -> bytes:
    """Compile OpenCL C to a SPIR-V module, at the same level as `compile_opencl`.

    Its version is 1.0, which all consumers of SPIR-V read.
    """
    return _compile(program, "spirv64v1.0-unknown-unknown")


# Errors of recent clangs that are warnings in drivers.
_WARNINGS_OF_DRIVERS = (
    "-Wno-error=incompatible-pointer-types",
    "-Wno-error=int-conversion",
    "-Wno-error=implicit-int",
    "-Wno-error=return-mismatch",
)


# A work-item that gives no value to these need not have one: ``int x; if (id == 0) x = f();`` may come before
# ``work_group_broadcast(x, 0)``. For clang an argument without a value is undefined behaviour otherwise.
_VALUE_OF_ANOTHER = re.compile(rb"\b(?:work|sub)_group_(?:broadcast|shuffle)")
_MAY_BE_UNDEFINED = ("-Xclang", "-no-enable-noundef-analysis")


def _compile(program: Program, target: str, *more: str) -> bytes:
    for option in program.options:
        if not _ALLOWED_OPENCL.fullmatch(option):
            raise InputError.of(
                where=program.label,
                problem=(
                    f"compiler option {option!r} is not accepted; expected -D, -U, -I, -cl-*, -W*, "
                    "-w, -O*, or a floating-point -f option"
                ),
            )
    arguments = [
        *(*_language(program), "-target", target),
        *("-isystem", str(INCLUDE_DIR)),
        *(["-I", str(program.path.parent.absolute())] if program.path is not None else []),
        *_WARNINGS_OF_DRIVERS,
        # Among warnings errors are hard to find.
        *(() if any(option.startswith("-W") for option in program.options) else ("-w",)),
        *(("-fno-vectorize",) if program.level in ("-O2", "-O3") else ()),  # As GPUs have no vectors
        *(absolute(o) for o in program.options if not o.startswith("-O")),
        *inlining(program),
        program.level,
        *more,
        *(_MAY_BE_UNDEFINED if _VALUE_OF_ANOTHER.search(program.content) else ()),
        "-c",
    ]
    return clang(arguments, program.content, program.label)


def _language(program: Program) -> tuple[str, ...]:
    if program.standard.startswith("clc++"):
        return "-x", "clcpp", f"-cl-std={program.standard}"
    return "-x", "cl", f"-cl-std=CL{program.standard}"


def inlining(program: Program) -> tuple[str, ...]:
    """Return options to inline functions as long as LLVM does for NVIDIA's and AMD's GPUs.

    That is 11 times the usual 250 (``getInliningThresholdMultiplier``).
    """
    return ("-mllvm", "-inline-threshold=2750") if program.level in ("-O2", "-O3") else ()


def absolute(option: str) -> str:
    """Make a relative include folder absolute, from the user's working directory."""
    return f"-I{Path(option[2:].strip()).absolute()}" if option.startswith("-I") else option


def system_headers() -> list[str]:
    """Return options to include the headers of the C library, of any version from 2.17 on."""
    arch = host_machine().replace("x86_64", "x86")
    folders = [f"{arch}-linux-gnu", "generic-glibc", f"{arch}-linux-any", "any-linux-any"]
    headers = compiler_headers()
    paths = [headers, *(headers.parent / "libc" / "include" / name for name in folders)]
    return ["-D__GLIBC_MINOR__=17", *(f"-isystem{path}" for path in paths)]


_STATIC_PARTS = b"""
#define HIDDEN __attribute__((visibility("hidden")))
extern int __cxa_atexit(void (*)(void *), void *, void *);
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
static char self;
HIDDEN int atexit(void (*f)(void)) { return __cxa_atexit((void (*)(void *))f, 0, &self); }
HIDDEN int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
  return __register_atfork(before, parent, child, &self);
}
"""
"""Static parts of the C library that each shared library has, as the shared part lacks them."""


def c_library(
    sources: Sequence[Path],
    *options: str,
    needs: Sequence[str],
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Compile the first of these C files, which includes the others, to a cached shared library.

    The compiler's driver would make the C library's start files first, which takes six times as long; a
    library does not need them.

    Parameters
    ----------
    needs
        Needed libraries, such as ``libpthread.so.0``.
    progress
        Called with a sentence if it has to be compiled.

    Raises
    ------
    EnvironmentFault
        If this machine is not supported, or the compiler does not work.
    """
    target = [*("-x", "c", "-target", f"{host_machine()}-linux-gnu"), *system_headers(), "-fPIC", "-c"]
    language = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fvisibility=hidden", *options]

    def make() -> bytes:
        if progress is not None:
            progress(f"compiling {sources[0].stem}, which is done once")
        try:
            code = clang(
                [*target, *language, f"-I{sources[0].parent}"], sources[0].read_bytes(), sources[0].name
            )
            parts = clang([*target, "-O2"], _STATIC_PARTS, "static parts")
        except CompileError as error:
            raise EnvironmentFault(str(error)) from error
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "code.o").write_bytes(code)
            (folder / "parts.o").write_bytes(parts)
            for library in needs:
                # A stub with the right name: symbols are resolved when the library is loaded.
                _link([folder / "parts.o"], folder / library, "-soname", library)
            _link(
                [folder / "code.o", folder / "parts.o", *(folder / library for library in needs)],
                folder / "library.so",
                *("-z", "nodelete", "-z", "now"),
            )
            return (folder / "library.so").read_bytes()

    key: list[str | bytes] = [compiler_version(), host_machine(), *language, *needs, _STATIC_PARTS]
    key += [source.read_bytes() for source in sources]
    if "-march=native" in options:
        # A home folder may be shared by machines with different instructions.
        key.append(_host_cpu())
    return cached(key, ".so", make)


@functools.cache
def _host_cpu() -> str:
    """Return this machine's CPU and its features."""
    # Imported here: most commands need no LLVM.
    from llvmlite import binding

    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


def _link(inputs: Sequence[Path], output: Path, *options: str) -> None:
    done = _run(["ld.lld", "-shared", *options, "-o", str(output), *map(str, inputs)], b"")
    if done.returncode != 0:
        raise EnvironmentFault(f"the linker failed: {done.stderr.decode(errors='replace').strip()}")


def link_shared(objects: Sequence[Path], output: Path) -> None:
    """Link object files, the program's first, to a library whose undefined symbols the loader resolves."""
    done = _run(["ld.lld", "-shared", "-o", str(output), *map(str, objects)], b"")
    if done.returncode == 0:
        return
    output_text = done.stderr.decode(errors="replace").replace("ld.lld: error: ", "").strip()
    reason = output_text.partition("\n")[0]
    if str(objects[0]) in output_text:
        raise UnsupportedError(f"the program cannot be linked for this machine: {reason}")
    raise EnvironmentFault(f"the linker failed: {reason}")


@functools.cache
def cache_dir() -> Path:
    """Return the folder of what this user's processes compiled."""
    path = cache_home()
    return path if is_writable(path) else temporary_cache()


def cached(
    key: Sequence[str | bytes], suffix: str, make: Callable[[], bytes], folders: Sequence[Path] = ()
) -> Path:
    """Return the file that `make` produced for `key`, making it once, in the last of these folders."""
    digest = hashlib.sha256()
    for part in key:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    paths = [folder / f"{digest.hexdigest()[:40]}{suffix}" for folder in folders or (cache_dir(),)]
    for path in paths:
        # A full disk or a power cut may have left an empty file.
        if path.exists() and path.stat().st_size:
            return path
    content = make()
    with atomic_file(paths[-1]) as temporary:
        temporary.write_bytes(content)
    return paths[-1]
