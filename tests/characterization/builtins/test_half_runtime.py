"""The conversion routines of ``half``, for all halves and at every tie between two of them."""

from __future__ import annotations

import ctypes
import re

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
import pytest
from exact import interesting

from crosscast.characterization import toolchain
from crosscast.characterization.builtins import library

ALL_HALVES = np.arange(1 << 16, dtype=np.uint16)


@pytest.fixture(scope="module")
def routines() -> llvm.ExecutionEngine:
    """Conversions for a processor that has none, which LLVM turns into calls of the routines."""
    conversions = """
kernel void extend(global const half *x, global float *y, ulong n) {
  for (ulong k = 0; k < n; k++) y[k] = (float)x[k];
}
kernel void narrow_float(global const float *x, global half *y, ulong n) {
  for (ulong k = 0; k < n; k++) y[k] = (half)x[k];
}
kernel void narrow_double(global const double *x, global half *y, ulong n) {
  for (ulong k = 0; k < n; k++) y[k] = (half)x[k];
}
"""
    arguments = [
        *("-x", "cl", "-cl-std=CL3.0", "-O2", "-target", "spir64-unknown-unknown", "-S", "-emit-llvm"),
        *("-isystem", str(toolchain.INCLUDE_DIR)),
    ]
    source = library.source(sorted(library.HALF_RUNTIME)) + conversions
    text = toolchain.clang(arguments, source.encode(), "routines").decode()
    text = re.sub(r"^target .*\n|spir_func |spir_kernel ", "", text, flags=re.MULTILINE)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(cpu="", opt=1)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return engine


def apply(
    routines: llvm.ExecutionEngine, name: str, x: npt.NDArray[np.generic], result: type[np.generic]
) -> npt.NDArray[np.generic]:
    y = np.zeros(len(x), result)
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
    prototype(routines.get_function_address(name))(x.ctypes.data, y.ctypes.data, len(x))
    return y


def test_every_half_becomes_its_float(routines: llvm.ExecutionEngine) -> None:
    got = apply(routines, "extend", ALL_HALVES, np.float32)
    expected = ALL_HALVES.view(np.float16).astype(np.float32)
    assert np.array_equal(got, expected, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.parametrize(("name", "dtype"), [("narrow_float", np.float32), ("narrow_double", np.float64)])
def test_narrowing_rounds_to_the_nearest_half_and_ties_to_even(
    routines: llvm.ExecutionEngine, name: str, dtype: type[np.floating]
) -> None:
    with np.errstate(all="ignore"):
        halves = ALL_HALVES.view(np.float16).astype(dtype)
        finite = np.sort(halves[np.isfinite(halves)])
        ties = (finite[:-1] + finite[1:]) / 2
        edges = interesting("double").astype(dtype)
        x = np.concatenate(
            [halves, ties, np.nextafter(ties, dtype(np.inf)), np.nextafter(ties, dtype(-np.inf)), edges]
        )
        expected = x.astype(np.float16)
    got = apply(routines, name, x, np.uint16).view(np.float16)
    assert np.array_equal(got, expected, equal_nan=True)
    ordered = ~np.isnan(expected)
    assert np.array_equal(np.signbit(got[ordered]), np.signbit(expected[ordered]))
