"""Runs a small kernel, so that builtins can be compared with NumPy."""

import ctypes
import functools
import hashlib
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from crosscast.characterization import toolchain
from crosscast.characterization.builtins import library

_TARGET_LINES = re.compile(r"^target (datalayout|triple) = .*\n", re.MULTILINE)
_DECLARED = re.compile(r"^declare .*?@(_Z\w+)\(", re.MULTILINE)
_ALIGNMENT = 128
_WORK_ITEM = """
@current_work_item = global i64 0
define i64 @_Z13get_global_idj(i32 %dimension) alwaysinline {
  %id = load i64, ptr @current_work_item
  ret i64 %id
}
"""


def run(
    source: str, kernel: str, args: list[npt.NDArray[np.generic]], global_size: int, standard: str = "1.2"
) -> None:
    """Run `kernel` for that many work-items; buffers hold its output afterwards."""
    ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    shared = ctypes.CDLL(str(_built(source, standard)), mode=1 | 2)
    function = shared[kernel]
    current = ctypes.c_uint64.in_dll(shared, "current_work_item")
    buffers = [_aligned(array) for array in args]
    pointers = [ctypes.c_void_p(buffer.ctypes.data) for buffer in buffers]
    for work_item in range(global_size):
        current.value = work_item
        function(*pointers)
    for array, buffer in zip(args, buffers, strict=True):
        array[...] = buffer


def _aligned(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Copy at an address as a device would choose it: a multiple of the largest type's size."""
    room = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@functools.cache
def _tools() -> str:
    """What a library depends on beside its source: compiler, host, and the builtins with their headers."""
    digest = hashlib.sha256(f"{toolchain.compiler_version()} {llvm.get_host_cpu_name()}".encode())
    for folder in (toolchain.INCLUDE_DIR, Path(library.__file__).parent):
        for path in sorted(each for each in folder.rglob("*") if each.is_file() and each.suffix != ".pyc"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _built(source: str, standard: str) -> Path:
    """The shared library of a source, which is compiled once for all tests, processes and sessions."""
    return toolchain.cached(["test", _tools(), standard, source], ".so", lambda: _build(source, standard))


def _build(source: str, standard: str) -> bytes:
    module = host_module(compiled_ir(source, standard))
    demanded = [s for s in _DECLARED.findall(str(module)) if "get_global_id" not in s]
    module.link_in(host_module(library.llvm_ir(demanded)))
    module.link_in(llvm.parse_assembly(_WORK_ITEM))
    machine = _optimize(module)
    with tempfile.TemporaryDirectory() as folder:
        compiled, linked = Path(folder) / "kernel.o", Path(folder) / "kernel.so"
        compiled.write_bytes(machine.emit_object(module))
        toolchain.link_shared([compiled], linked)
        return linked.read_bytes()


def compiled_ir(source: str, standard: str, level: str = "-Oz") -> str:
    """IR of OpenCL C for ``spir64``."""
    arguments = [
        *("-x", "cl", f"-cl-std=CL{standard}", "-target", "spir64-unknown-unknown", "-w", level),
        *("-isystem", str(toolchain.INCLUDE_DIR), "-S", "-emit-llvm"),
    ]
    return toolchain.clang(arguments, source.encode(), "builtins").decode()


def host_module(text: str) -> llvm.ModuleRef:
    """IR for this machine; images and samplers are pointers in it."""
    text = re.sub(r'target\("spirv\.Image"[^)]*\)', "ptr addrspace(1)", _TARGET_LINES.sub("", text))
    text = text.replace('target("spirv.Sampler")', "ptr addrspace(2)")
    text = text.replace("spir_func ", "").replace("spir_kernel ", "").replace("dso_local ", "")
    return llvm.parse_assembly(text)


def _optimize(module: llvm.ModuleRef) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        reloc="pic",
        codemodel="small",
    )
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine


DTYPES: dict[str, Any] = {
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "half": np.float16,
    "float": np.float32,
    "double": np.float64,
}
_BASES = {np.dtype(dtype): base for base, dtype in DTYPES.items()}


def evaluate(
    expressions: Mapping[str, str],
    result: str,
    inputs: Mapping[str, npt.NDArray[np.generic]],
    width: int = 1,
    standard: str = "1.2",
) -> dict[str, npt.NDArray[np.generic]]:
    """Values of OpenCL C expressions over vectors of `width` elements.

    Parameters
    ----------
    expressions
        Expressions by a label. They name the inputs.
    result
        Element type of every expression.
    inputs
        Arrays of one length, a multiple of `width`, by the names that stand for their elements.
    """
    length = len(next(iter(inputs.values())))
    assert length % width == 0
    parameters, loads = [], []
    for name, array in inputs.items():
        base = _BASES[array.dtype]
        parameters.append(f"global const {base} *{name}_")
        load = f"vload{width}(i, {name}_)" if width > 1 else f"{name}_[i]"
        loads.append(f"{base}{width if width > 1 else ''} {name} = {load};")
    stores = (
        f"vstore{width}({expression}, i, out + {k * length});"
        if width > 1
        else f"out[{k * length} + i] = {expression};"
        for k, expression in enumerate(expressions.values())
    )
    out = np.zeros((len(expressions), length), DTYPES[result])
    source = (
        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
        f"kernel void k({', '.join(parameters)}, global {result} *out) {{\n"
        f"size_t i = get_global_id(0);\n{' '.join(loads)}\n" + "\n".join(stores) + "\n}"
    )
    run(source, "k", [*inputs.values(), out], length // width, standard)
    return dict(zip(expressions, out, strict=True))
