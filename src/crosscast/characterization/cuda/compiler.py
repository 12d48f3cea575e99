"""CUDA and HIP sources to LLVM bitcode.

Clang compiles device code as HIP for SPIR-V, with a header of ours that declares what CUDA and HIP have in
terms of OpenCL's builtins. It says which lines it cannot compile. Where those stand in declarations of the
host, they are blanked, and the rest is compiled again: a ``main`` that uses libraries which are not here does
not stand in the way of its kernels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from crosscast.characterization import toolchain
from crosscast.characterization.cuda.indexes import name_indexes
from crosscast.errors import CompileError, InputError, UnsupportedError
from crosscast.kernel import Program

_DEVICE = r"__(?:global|device|shared|constant|managed)__"
_MACRO = re.compile(rf"^[ \t]*#[ \t]*define[ \t]+(\w+).*{_DEVICE}", re.MULTILINE)
_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<raw>[^()\s]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
    r"""|^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*|[{};]""",
    re.DOTALL | re.MULTILINE,
)
_NAMESPACE = re.compile(r'\bnamespace\b[^;(){}]*$|\bextern\s*"C(\+\+)?"$')
_LAUNCHED = re.compile(r"([\w:]+\s*<[^<>;{}()]*>)\s*<<<")
_LAUNCH = "a kernel launch in device code (dynamic parallelism)"


@dataclass(frozen=True)
class _Piece:
    """A declaration at namespace level, or a line of the preprocessor's."""

    start: int
    end: int


class DeviceCode:
    """A source, of which host code that does not compile is left out."""

    def __init__(self, text: str) -> None:
        self.text = text
        # Instances of templates that the host launches: what else is there may not survive.
        self.instances = [re.sub(r"\s+", " ", name) for name in dict.fromkeys(_LAUNCHED.findall(text))]
        macros = _MACRO.findall(text)
        self._device = re.compile("|".join([_DEVICE, r"\bconstexpr\b", *(rf"\b{m}\b" for m in macros)]))
        self._pieces = _split(text)
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]

    @property
    def source(self) -> str:
        """What to compile: the text, and behind it one line for each instance."""
        rows = (f"template __global__ decltype({name}) {name};" for name in self.instances)
        return "\n".join([self.text, *rows, ""])

    def drop_host_code(self, diagnostics: str, label: str) -> bool:
        """Blank the host declarations that the compiler refused; false where it refused anything else."""
        lines = _error_lines(diagnostics, label)
        wrong = {line - len(self._lines) - 1 for line in lines if line > len(self._lines)}
        failing = {self._piece_at(line) for line in lines if line <= len(self._lines)}
        if not lines or any(piece is None or self._is_device(piece) for piece in failing):
            return False
        self.instances = [name for n, name in enumerate(self.instances) if n not in wrong]
        for piece in failing:
            assert piece is not None
            blank = re.sub(r"[^\n]", " ", self.text[piece.start : piece.end])
            self.text = self.text[: piece.start] + blank + self.text[piece.end :]
        return True

    def explain(self, diagnostics: str, label: str) -> None:
        """Refuse by name what device code has that is not supported and that clang does not parse."""
        for line in _error_lines(diagnostics, label):
            source = self.text[self._lines[min(line, len(self._lines)) - 1] :].split("\n", 1)[0]
            if "<<<" in source:
                raise UnsupportedError(f"{label}: line {line}: {_LAUNCH} is not supported")

    def _piece_at(self, line: int) -> _Piece | None:
        start = self._lines[line - 1]
        end = self._lines[line] if line < len(self._lines) else len(self.text)
        found = [p for p in self._pieces if p.start < end and p.end > start]
        # On a line with several, any that is the device's decides.
        return next((p for p in found if self._is_device(p)), found[0] if found else None)

    def _is_device(self, piece: _Piece) -> bool:
        text = self.text[piece.start : piece.end]
        return not text.lstrip().startswith("#") and self._device.search(text) is not None


def templates(text: str) -> list[str]:
    """Names of the kernel templates of a source."""
    return re.findall(r"\btemplate\s*<[^{};]*?__global__[^{};(]*?(\w+)\s*\(", text)


def may_have_instance(text: str, name: str) -> bool:
    """Whether a source may itself ask for an instance of a template, such as ``ns::saxpy<float>``."""
    template = re.escape(name.split("<")[0].rsplit("::", 1)[-1].strip())
    return re.search(rf'\b{template}\s*<|#\s*include\s*"', text) is not None


def _error_lines(diagnostics: str, label: str) -> list[int]:
    """Lines of the source itself that errors are in, or that include a file with errors."""
    file = re.escape(label)
    pattern = rf"^In file included from {file}:(\d+):|^{file}:(\d+):\d+: (?:fatal )?error: "
    return [int(including or own) for including, own in re.findall(pattern, diagnostics, re.MULTILINE)]


def _split(text: str) -> list[_Piece]:
    """The declarations of a source at namespace level."""
    pieces: list[_Piece] = []
    depth, start = 0, 0
    is_body = False  # the brace that is open is a function's, which needs no semicolon behind it

    def finish(end: int) -> None:
        nonlocal start
        if content := text[start:end].lstrip():
            pieces.append(_Piece(end - len(content), end))
        start = end

    for match in _TOKEN.finditer(text):
        token = match[0].lstrip()
        if token.startswith("#") and depth == 0:
            finish(match.start())
            finish(match.end())
        elif token == "{":
            head = text[start : match.start()].rstrip()
            if depth == 0 and _NAMESPACE.search(head):
                start = match.end()  # what it holds is at namespace level
                continue
            if depth == 0:
                is_body = head.endswith((")", "const", "noexcept", "override"))
            depth += 1
        elif token == "}" and depth == 0:
            start = match.end()  # of a namespace
        elif token == "}":
            depth -= 1
            if depth == 0 and is_body:
                finish(match.end())
        elif token == ";" and depth == 0:
            finish(match.end())
    finish(len(text))
    return pieces


INCLUDE_DIR = Path(__file__).parent / "include"
_ALLOWED_OPTION = re.compile(
    rf"{toolchain.ALLOWED_OPTIONS}|-m(no-)?wavefrontsize64"
    r"|--?use_fast_math|--?fmad=(true|false)|--?(arch|gpu-architecture|offload-arch)=[a-z0-9_:+-]+"
)
_MOST_ROUNDS = 6
_TARGET = "spir64-unknown-unknown"


def compile_cuda(program: Program, instance: str = "") -> bytes:
    """Compile a CUDA or HIP source, with an instance of a kernel template if one is asked for."""
    options = _options(program)
    device = DeviceCode(program.content.decode())
    device.instances += [instance] * bool(instance)
    for _ in range(_MOST_ROUNDS):
        try:
            made = toolchain.clang(options, device.source.encode(), program.label)
            return _optimize(made.decode(), program)
        except CompileError as error:
            if not device.drop_host_code(str(error), program.label):
                device.explain(str(error), program.label)
                raise
    raise CompileError(f"{program.label}: host code and kernels could not be told apart")


def _optimize(text: str, program: Program) -> bytes:
    """Optimize IR as that of OpenCL C is: for the same target, of which no integer is the native one."""
    text = re.sub(r'^(target datalayout = ".*)-n[\d:]+(.*")$', r"\1\2", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^target triple = .*$", f'target triple = "{_TARGET}"', text, count=1, flags=re.MULTILINE)
    arguments = ["-x", "ir", "-target", _TARGET, *_passes(program), toolchain.level(program)]
    text = name_indexes(text)
    return toolchain.clang([*arguments, "-emit-llvm", "-c"], text.encode(), program.label)


def _passes(program: Program) -> list[str]:
    """Options that say which passes the optimizer runs."""
    return [o for o in program.options if re.fullmatch(r"-f(no-)?(unroll-loops|(slp-)?vectorize)", o)]


def wave_size(program: Program) -> int:
    """Lanes of a warp: 32, or 64 where an option asks for AMD's wide wavefronts."""
    asked = [option for option in program.options if option.endswith("wavefrontsize64")]
    return 64 if asked and not asked[-1].startswith("-mno") else 32


def _options(program: Program) -> list[str]:
    for option in program.options:
        if not _ALLOWED_OPTION.fullmatch(option):
            raise InputError(
                f"{program.label}: compiler option {option!r} is not accepted; expected -D, -U, -I, -W*, -w, "
                "-O*, -std=c++*, -use_fast_math, -fmad=false, -arch=*, -mwavefrontsize64, "
                "or a floating-point -f option"
            )
    given = [o for option in program.options if not option.startswith("-O") for o in _clang_options(option)]
    return [
        *("-x", "hip", f"-std={program.standard}", "--cuda-device-only", "--offload=spirv64"),
        *("-nogpulib", "-nogpuinc", "-nostdinc", "-ffreestanding", "-fdeclspec", "-fuse-cuid=none"),
        *("-ferror-limit=0", "-ffp-contract=on", "-fno-discard-value-names", "-Wno-unused-value"),
        *("-Xclang", "-debug-info-kind=limited", "-Xclang", "-dwarf-version=5"),
        *("-ivfsoverlay", str(INCLUDE_DIR / "headers.yaml")),
        *("-isystem", str(INCLUDE_DIR), "-isystem", str(toolchain.compiler_headers())),
        *(["-I", str(program.path.parent.absolute())] if program.path is not None else []),
        *_macros(program),
        *("-include", "crosscast_cuda.h"),
        *given,
        toolchain.level(program),
        *("-Xclang", "-disable-llvm-passes", "-emit-llvm", "-S"),
    ]


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
