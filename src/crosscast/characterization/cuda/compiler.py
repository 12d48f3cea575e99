"""CUDA and HIP sources to LLVM bitcode.

The preprocessor runs first, and passes over headers that are not here. What is left is split into
declarations; kernels and what they need are compiled, as HIP for SPIR-V, with a header of ours that declares
what CUDA and HIP have in terms of OpenCL's builtins. So host code never stands in the way of kernels. A
kernel that does not compile is left out with its reason, and the others of its file are compiled without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from crosscast.characterization import toolchain
from crosscast.characterization.cuda.indexes import name_indexes
from crosscast.characterization.cuda.source import CudaSource, DeclarationRefusal
from crosscast.errors import CompileError, InputError
from crosscast.kernel import Program

INCLUDE_DIR = Path(__file__).parent / "include"
_ALLOWED_OPTION = re.compile(
    rf"{toolchain.ALLOWED_OPTIONS}|-m(no-)?wavefrontsize64"
    r"|--?use_fast_math|--?fmad=(true|false)|--?(arch|gpu-architecture|offload-arch)=[a-z0-9_:+-]+"
)
_MOST_ROUNDS = 32
_TARGET = "spir64-unknown-unknown"
# Errors of clang's of what nvcc takes.
_DIALECT = (
    "-Wno-register",
    "-Wno-c++11-narrowing",
    "-Wno-reserved-user-defined-literal",
    "-Wno-error=writable-strings",
    "-Wno-invalid-utf8",
)
_DIAGNOSTIC = re.compile(r"^<stdin>:(\d+):(\d+): (fatal error|error|note): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Compiled:
    """What became of a source."""

    bitcode: bytes
    unoptimized: str  # The IR that this was made of
    refused: dict[str, DeclarationRefusal]  # Why kernels and device functions were left out, by name
    templates: tuple[str, ...]  # Names of the kernel templates
    missing: tuple[str, ...]  # Headers that were not found
    variables: tuple[str, ...]  # Names of the variables of the device, and of textures


def compile_cuda(program: Program, instance: str = "") -> Compiled:
    """Compile a CUDA or HIP source, with an instance of a kernel template if one is asked for.

    Raises
    ------
    CompileError
        If something is wrong that belongs to no declaration.
    """
    options = _options(program)
    source = preprocess(program, instance)
    for _ in range(_MOST_ROUNDS):
        done = toolchain.run_clang([*options, "-", "-o", "-"], source.compiled.encode("latin-1"))
        if done.returncode == 0:
            text = _for_any_integer(done.stdout.decode("latin-1"))
            return Compiled(
                _optimize(text, program),
                text,
                source.refused,
                source.templates,
                source.missing,
                source.variables,
            )
        said = done.stderr.decode(errors="replace")
        if not all([source.refuse(error.message, error.places) for error in _errors(said)] or [False]):
            break
    raise CompileError(f"{program.label}: the compiler refused the program\n{source.located(said)}")


class _Error(NamedTuple):
    message: str
    places: list[tuple[int, int]]  # Line and column, then those of what asked for the template that it is in


def _errors(diagnostics: str) -> Iterator[_Error]:
    found: _Error | None = None
    for line, column, kind, message in _DIAGNOSTIC.findall(diagnostics):
        if kind != "note":
            if found:
                yield found
            found = _Error(message, [(int(line), int(column))])
        elif (found and "in instantiation of" in message) or "requested here" in message:
            assert found is not None
            found.places.append((int(line), int(column)))
    if found:
        yield found


def preprocess(program: Program, instance: str = "") -> CudaSource:
    """Run the preprocessor, which passes over headers that are not here.

    Raises
    ------
    InputError
        If a compiler option is not accepted.
    """
    arguments = [
        *_language(program),
        *("-ivfsoverlay", str(INCLUDE_DIR / "headers.yaml")),
        *("-isystem", str(INCLUDE_DIR), "-isystem", str(toolchain.compiler_headers())),
        *(["-I", str(program.path.parent.absolute())] if program.path is not None else []),
        *_macros(program),
        *("-include", "crosscast_cuda.h", *_given(program, of_preprocessor=True)),
        # Headers that are not found are listed, and are no errors.
        *("-E", "-dD", "-Xclang", "-MG", "-Xclang", "-dependency-file", "-Xclang", "/dev/stderr"),
        *("-Xclang", "-MT", "-Xclang", "headers", "-", "-o", "-"),
    ]
    done = toolchain.run_clang(arguments, program.content)
    said = done.stderr.decode(errors="replace")
    listed = re.search(r"^headers:((?:.*\\\n)*.*)$", said, re.MULTILINE)
    names = listed[1].replace("\\\n", " ").split() if listed else []
    missing = tuple(name for name in names if not name.startswith(("/", "-", "<")))
    if not listed:
        raise CompileError(f"{program.label}: the preprocessor refused the program\n{said.strip()}")
    ours = str(INCLUDE_DIR), str(toolchain.compiler_headers())
    return CudaSource(done.stdout.decode("latin-1"), program.label, ours, missing, instance)


def may_have_instance(text: str, name: str) -> bool:
    """Whether a source may itself ask for an instance of a template, such as ``ns::saxpy<float>``."""
    template = re.escape(name.split("<")[0].rsplit("::", 1)[-1].strip())
    return re.search(rf'\b{template}\s*<|#\s*include\s*"', text) is not None


def _for_any_integer(text: str) -> str:
    """IR for the target of OpenCL C, of which no integer is the native one."""
    text = re.sub(r'^(target datalayout = ".*)-n[\d:]+(.*")$', r"\1\2", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^target triple = .*$", f'target triple = "{_TARGET}"', text, count=1, flags=re.MULTILINE)
    return name_indexes(text)


def _optimize(text: str, program: Program) -> bytes:
    """Optimize IR as that of OpenCL C is."""
    # A work-item of a GPU has no registers of several numbers, into which its sums could be packed.
    scalar = "-fno-slp-vectorize"
    arguments = ["-x", "ir", "-target", _TARGET, scalar, *_passes(program), toolchain.level(program)]
    return toolchain.clang([*arguments, "-emit-llvm", "-c"], text.encode("latin-1"), program.label)


def _passes(program: Program) -> list[str]:
    """Options that say which passes the optimizer runs."""
    return [o for o in program.options if re.fullmatch(r"-f(no-)?(unroll-loops|(slp-)?vectorize)", o)]


def wave_size(program: Program) -> int:
    """Lanes of a warp: 32, or 64 where an option asks for AMD's wide wavefronts."""
    asked = [option for option in program.options if option.endswith("wavefrontsize64")]
    return 64 if asked and not asked[-1].startswith("-mno") else 32


def _options(program: Program) -> list[str]:
    return [
        *_language(program),
        *("-ferror-limit=0", "-w", *_DIALECT),
        *("-fno-caret-diagnostics", "-Xclang", "-fno-diagnostics-use-presumed-location"),
        *("-ffp-contract=on", "-fno-discard-value-names", "-fuse-cuid=none"),
        *("-Xclang", "-debug-info-kind=limited", "-Xclang", "-dwarf-version=5"),
        *(*_given(program, of_preprocessor=False), toolchain.level(program)),
        *("-Xclang", "-disable-llvm-passes", "-emit-llvm", "-S"),
    ]


def _language(program: Program) -> list[str]:
    """Options that the preprocessor and the compiler have in common."""
    # Headers of ours are of C++14, which takes what C++03 has, beside the errors that _DIALECT takes back.
    standard = "c++14" if program.standard in ("c++03", "c++11") else program.standard
    return [
        *("-x", "hip", f"-std={standard}", "--cuda-device-only", "--offload=spirv64"),
        *("-nogpulib", "-nogpuinc", "-nostdinc", "-ffreestanding", "-fdeclspec"),
        "-Wno-unused-command-line-argument",
    ]


def _given(program: Program, *, of_preprocessor: bool) -> list[str]:
    """The program's own options, as clang calls them."""
    given = []
    for option in program.options:
        if not _ALLOWED_OPTION.fullmatch(option):
            raise InputError(
                f"{program.label}: compiler option {option!r} is not accepted; expected -D, -U, -I, -W*, -w, "
                "-O*, -std=c++*, -use_fast_math, -fmad=false, -arch=*, -mwavefrontsize64, "
                "or a floating-point -f option"
            )
        if not option.startswith("-O") and of_preprocessor == option.startswith(("-D", "-U", "-I")):
            given += _clang_options(option)
    return given


def _macros(program: Program) -> list[str]:
    macros = [f"-DCROSSCAST_WARP_SIZE={wave_size(program)}"]
    if program.form == "hip":
        return [*macros, "-D__HIPCC__=1", "-D__HIP_PLATFORM_AMD__=1", "-D__HIP_PLATFORM_HCC__=1"]
    architecture = next((m[1] for o in program.options if (m := re.search(r"(?:sm|compute)_(\d+)", o))), "80")
    macros += ["-U__HIP__", "-U__HIPCC__", "-U__HIP_DEVICE_COMPILE__", "-D__CUDACC__=1", "-D__NVCC__=1"]
    return [*macros, f"-D__CUDA_ARCH__={architecture}0", "-D__CUDACC_VER_MAJOR__=12"]


def _clang_options(option: str) -> list[str]:
    """What clang calls an option of nvcc or hipcc."""
    if option.endswith("use_fast_math"):
        return ["-ffast-math"]
    if "fmad=" in option:
        return ["-ffp-contract=off" if option.endswith("false") else "-ffp-contract=on"]
    if "arch" in option or option.endswith("wavefrontsize64"):
        return []
    return [toolchain.absolute(option)]
