"""Compiler of CUDA and HIP sources to LLVM bitcode.

The preprocessor runs first, and skips missing headers. Its output is split into declarations; kernels and
the declarations that they need are compiled, as HIP for SPIR-V, with a header of ours that declares the
functions of CUDA and HIP by OpenCL's builtins. So host code does not interfere with kernels. A kernel that
does not compile is left out with its reason, and the others of its file are compiled without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from crosscast.characterization import toolchain
from crosscast.characterization.cuda.rewrites import for_optimizer
from crosscast.characterization.cuda.source import CudaSource, DeclarationRefusal
from crosscast.errors import CompileError, InputError
from crosscast.kernel import Program

INCLUDE_DIR = Path(__file__).parent / "include"
_OF_NVCC = {
    "use_fast_math": ("-fapprox-func",),  # It does not allow for reassociation
    "fmad=true": ("-ffp-contract=on",),
    "fmad=false": ("-ffp-contract=off",),
    "prec-div=false": ("-freciprocal-math",),
    "prec-sqrt=false": ("-DCROSSCAST_SQRT",),
    "ftz=true": ("-DCROSSCAST_FTZ",),
    **dict.fromkeys(("prec-div=true", "prec-sqrt=true", "ftz=false"), ()),
}
"""Options of floating-point arithmetic, without their dashes, in clang's spelling."""
_OF_MACROS = re.compile(r"-m(no-)?wavefrontsize64|--?(arch|gpu-architecture|offload-arch)=[a-z0-9_:+-]+")
_ALLOWED_OPTION = re.compile(rf"{toolchain.ALLOWED_OPTIONS}|{_OF_MACROS.pattern}|--?({'|'.join(_OF_NVCC)})")
_MOST_ROUNDS = 32
_TARGET = "spir64-unknown-unknown"
# Errors of clang for code that nvcc accepts.
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
    """A compiled source."""

    bitcode: bytes
    unoptimized: str  # The IR before optimization
    refused: dict[str, DeclarationRefusal]  # Kernels and device functions left out, by name
    templates: tuple[str, ...]  # Kernel templates with their parameters
    instances: dict[str, str]  # Names of instances of kernel templates by other spellings, without spaces
    missing: tuple[str, ...]  # Headers that were not found
    variables: tuple[str, ...]  # Names of device variables and textures


def compile_cuda(program: Program, instance: str = "") -> Compiled:
    """Compile a CUDA or HIP source, optionally with an instance of a kernel template."""
    options = _options(program)
    source = preprocess(program, instance)
    for _ in range(_MOST_ROUNDS):
        done = toolchain.run_clang([*options, "-", "-o", "-"], source.compiled.encode("latin-1"))
        if done.returncode == 0:
            symbols, text = _take_annotations(done.stdout.decode("latin-1"))
            text = for_optimizer(text, _TARGET)
            return Compiled(
                _optimize(text, program),
                text,
                source.refused,
                source.templates,
                _instances(source, symbols),
                source.missing,
                source.variables,
            )
        diagnostics = done.stderr.decode(errors="replace")
        if not all(
            [source.refuse(error.message, error.positions) for error in _errors(diagnostics)] or [False]
        ):
            break
    raise CompileError(f"{program.label}: the compiler refused the program\n{source.located(diagnostics)}")


_ANNOTATIONS = re.compile(r"^@llvm\.global\.annotations = .*\n", re.MULTILINE)
_ANNOTATION = re.compile(r'^(@\.str[.\d]*) = .* c"cc:(\d+)\\00", section "llvm\.metadata"', re.MULTILINE)
_ANNOTATED = re.compile(r'@("[^"]+"|[-\w$.]+) to ptr addrspace\(1\)\), ptr addrspace\(1\) (@\.str[.\d]*),')


def _take_annotations(text: str) -> tuple[list[tuple[int, str]], str]:
    """Return numbers of instances with the names of their functions, and the IR without annotations."""
    annotations = _ANNOTATIONS.search(text)
    if not annotations:
        return [], text
    numbers = {name: int(number) for name, number in _ANNOTATION.findall(text)}
    symbols = [
        (numbers[n], symbol.strip('"')) for symbol, n in _ANNOTATED.findall(annotations[0]) if n in numbers
    ]
    is_ours = len(symbols) == annotations[0].count("@.str") / 2
    return symbols, _ANNOTATIONS.sub("", text) if is_ours else text


def _instances(source: CudaSource, symbols: list[tuple[int, str]]) -> dict[str, str]:
    by_spelling = source.repeated | {source.instances[number]: symbol for number, symbol in symbols}
    return {re.sub(r"\s", "", spelling): name for spelling, name in by_spelling.items()}


class _Error(NamedTuple):
    message: str
    positions: list[tuple[int, int]]  # Line and column, then those of the template's instantiations


def _errors(diagnostics: str) -> Iterator[_Error]:
    error: _Error | None = None
    for line, column, kind, message in _DIAGNOSTIC.findall(diagnostics):
        if kind != "note":
            if error:
                yield error
            error = _Error(message, [(int(line), int(column))])
        elif (error and "in instantiation of" in message) or "requested here" in message:
            assert error is not None
            error.positions.append((int(line), int(column)))
    if error:
        yield error


def preprocess(program: Program, instance: str = "") -> CudaSource:
    """Run the preprocessor, which skips missing headers."""
    arguments = [
        *_language(program),
        *("-ivfsoverlay", str(INCLUDE_DIR / "headers.yaml")),
        *("-isystem", str(INCLUDE_DIR), "-isystem", str(toolchain.compiler_headers())),
        *(["-I", str(program.path.parent.absolute())] if program.path is not None else []),
        *_macros(program),
        *("-include", "crosscast_cuda.h", *_program_options(program, of_preprocessor=True)),
        # Missing headers are listed instead of errors.
        *("-E", "-dD", "-Xclang", "-MG", "-Xclang", "-dependency-file", "-Xclang", "/dev/stderr"),
        *("-Xclang", "-MT", "-Xclang", "headers", "-", "-o", "-"),
    ]
    done = toolchain.run_clang(arguments, program.content)
    diagnostics = done.stderr.decode(errors="replace")
    listed = re.search(r"^headers:((?:.*\\\n)*.*)$", diagnostics, re.MULTILINE)
    names = listed[1].replace("\\\n", " ").split() if listed else []
    missing = tuple(name for name in names if not name.startswith(("/", "-", "<")))
    if not listed:
        raise CompileError(f"{program.label}: the preprocessor refused the program\n{diagnostics.strip()}")
    ours = str(INCLUDE_DIR), str(toolchain.compiler_headers())
    return CudaSource(done.stdout.decode("latin-1"), program.label, ours, missing, instance)


def may_have_instance(text: str, name: str) -> bool:
    """Whether a source may instantiate a template itself, such as ``ns::saxpy<float>``."""
    template = re.escape(name.split("<")[0].rsplit("::", 1)[-1].strip())
    return re.search(rf'\b{template}\s*<|#\s*include\s*"', text) is not None


def _optimize(text: str, program: Program) -> bytes:
    """Optimize IR as for OpenCL C."""
    # A work-item of a GPU has no vector registers.
    scalar = ("-fno-vectorize", "-fno-slp-vectorize")
    passes = [*_passes(program), *toolchain.inlining(program), program.level]
    arguments = ["-x", "ir", "-target", _TARGET, *scalar, *passes]
    return toolchain.clang([*arguments, "-emit-llvm", "-c"], text.encode("latin-1"), program.label)


def _passes(program: Program) -> list[str]:
    """Return the options that select passes of the optimizer."""
    return [o for o in program.options if re.fullmatch(r"-f(no-)?(unroll-loops|(slp-)?vectorize)", o)]


def wave_size(program: Program) -> int:
    """Return the lanes of a warp: 32, or 64 with AMD's wide wavefronts."""
    options = [option for option in program.options if option.endswith("wavefrontsize64")]
    return 64 if options and not options[-1].startswith("-mno") else 32


def _options(program: Program) -> list[str]:
    return [
        *_language(program),
        *("-ferror-limit=0", "-w", *_DIALECT),
        *("-fno-caret-diagnostics", "-Xclang", "-fno-diagnostics-use-presumed-location"),
        *("-ffp-contract=on", "-fno-discard-value-names", "-fuse-cuid=none"),
        *("-Xclang", "-debug-info-kind=limited", "-Xclang", "-dwarf-version=5"),
        *(*_program_options(program, of_preprocessor=False), program.level),
        *("-Xclang", "-disable-llvm-passes", "-emit-llvm", "-S"),
    ]


def _language(program: Program) -> list[str]:
    """Return the common options of preprocessor and compiler."""
    # Our headers need C++14, which accepts C++03 except for the errors that _DIALECT disables.
    standard = "c++14" if program.standard in ("c++03", "c++11") else program.standard
    return [
        *("-x", "hip", f"-std={standard}", "--cuda-device-only", "--offload=spirv64"),
        *("-nogpulib", "-nogpuinc", "-nostdinc", "-ffreestanding", "-fdeclspec"),
        "-Wno-unused-command-line-argument",
    ]


def _program_options(program: Program, *, of_preprocessor: bool) -> list[str]:
    """Return the program's options in clang's spelling."""
    options: list[str] = []
    for option in program.options:
        if not _ALLOWED_OPTION.fullmatch(option):
            raise InputError.of(
                where=program.label,
                problem=(
                    f"compiler option {option!r} is not accepted; expected -D, -U, -I, -W*, -w, "
                    "-O*, -std=c++*, -use_fast_math, -fmad=false, -ftz=true, -prec-div=false, "
                    "-prec-sqrt=false, -arch=*, -mwavefrontsize64, or a floating-point -f option"
                ),
            )
        if not option.startswith("-O"):
            options += _clang_options(option)
    return [each for each in options if of_preprocessor == each.startswith(("-D", "-U", "-I"))]


def _macros(program: Program) -> list[str]:
    macros = [f"-DCROSSCAST_WARP_SIZE={wave_size(program)}"]
    if program.form == "hip":
        return [*macros, "-D__HIPCC__=1", "-D__HIP_PLATFORM_AMD__=1", "-D__HIP_PLATFORM_HCC__=1"]
    architecture = next((m[1] for o in program.options if (m := re.search(r"(?:sm|compute)_(\d+)", o))), "80")
    macros += ["-U__HIP__", "-U__HIPCC__", "-U__HIP_DEVICE_COMPILE__", "-D__CUDACC__=1", "-D__NVCC__=1"]
    return [*macros, f"-D__CUDA_ARCH__={architecture}0", "-D__CUDACC_VER_MAJOR__=12"]


def _clang_options(option: str) -> Sequence[str]:
    """Translate an option of nvcc or hipcc to clang's; of some `_macros` makes what they do."""
    if _OF_MACROS.fullmatch(option):
        return ()
    return _OF_NVCC.get(option.lstrip("-"), (toolchain.absolute(option),))
