"""CUDA and HIP sources to LLVM bitcode.

Clang compiles device code as HIP for SPIR-V, with a header of ours that declares what CUDA and HIP have
in terms of OpenCL's builtins. Host code around the kernels is compiled where our stubs are enough for it,
and left out where they are not.
"""

from __future__ import annotations

import re
from pathlib import Path

from crosscast.characterization import toolchain
from crosscast.characterization.cuda import host_code
from crosscast.errors import CompileError, InputError
from crosscast.kernel import Program

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
    device = host_code.DeviceCode(program.content.decode())
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
    arguments = ["-x", "ir", "-target", _TARGET, toolchain.level(program), "-emit-llvm", "-c"]
    return toolchain.clang(arguments, text.encode(), program.label)


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
