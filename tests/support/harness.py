"""Runs a small kernel, so that builtins can be compared with NumPy."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

import crosscast
from crosscast.characterization import toolchain
from crosscast.kernel import Argument, Kernel

_TARGET_LINES = re.compile(r"^target (datalayout|triple) = .*\n", re.MULTILINE)


def run(source: str, kernel: str, args: Sequence[Argument], global_size: int, standard: str = "1.2") -> None:
    """Run `kernel` for that many work-items; buffers hold its output afterwards."""
    crosscast.characterize(
        Kernel.from_source(source, kernel, standard=standard), global_size, 1, args, threads=1
    )


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
