"""The programs of `wild_capture`, none of which is part of this project.

They come from Debian 12 (``apt-get install pocl-opencl-icd clblast-utils clfft-client clpeak piglit
starpu-examples python-pyopencl-doc clblast-tests``) and from PyPI, in a virtual environment of their own
whose interpreter ``$WILD_PYTHON`` names (``pip install numpy mako pyopencl==2026.1.4 reikna==0.9.0
loopy==2025.2 opencv-python-headless==5.0.0.93 tinygrad==0.14.0``); ``$WILD_SOURCES`` names the folder where
the source distributions of reikna and loopy are unpacked, for their examples. ``$OCL_ICD_VENDORS`` names a
folder with PoCL's ``pocl.icd``. PoCL 3.1 takes a CPU that its LLVM does not know as
``POCL_LLVM_CPU_NAME=x86-64-v3``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["KNOWN", "Program", "programs"]

KNOWN = {
    "piglit clz-optimizations": "v_clz_u16 and v_firstbit_u16 have 34 work-items for 18 elements of memory",
    "piglit bswap": "v_bswap_v2u16 has 24 work-items for 8 elements of memory",
}
"""Reasons, which were looked at, in a program or in PoCL why a replay differs or is refused."""

_PYTHON = os.environ.get("WILD_PYTHON", "python")
_LIB = Path("/usr/lib/x86_64-linux-gnu")
_DOC = Path("/usr/share/doc")
_SOURCES = Path(os.environ.get("WILD_SOURCES", "."))


@dataclass(frozen=True)
class Program:
    """A program, and how it is run."""

    name: str
    group: str  # The package that it is of
    command: tuple[str, ...]
    code: int = 0  # That it ends with
    compared: tuple[str, ...] = ()  # Endings of files whose content it leaves behind
    environment: Mapping[str, str] = field(default_factory=dict)

    def installed(self) -> bool:
        """Whether it is there."""
        paths = [word for word in self.command if word.startswith("/")]
        return shutil.which(self.command[0]) is not None and all(Path(path).exists() for path in paths)


_EXAMPLES = (
    *("black-hole-accretion", "demo-struct-reduce", "demo", "demo_array", "demo_array_svm"),
    *("demo_elementwise", "demo_elementwise_complex", "demo_mandelbrot", "demo_meta_codepy"),
    *("demo_meta_template", "dump-performance", "median-filter", "n-body", "narray", "pi-monte-carlo", "svm"),
    "transpose",
)
_TUNERS = (
    *("copy_fast", "copy_pad", "invert", "transpose_fast", "transpose_pad", "xaxpy", "xconvgemm", "xdot"),
    *("xgemm", "xgemm_direct", "xgemv", "xger", "routine_xtrsv", "routine_xgemm"),
)
_STARPU = (
    *("vector_scal", "variable", "block", "incrementer", "matvecmult", "fblock", "sgemm"),
    *("cg", "spmv", "heat", "vector_data_interface", "matrix_data_interface", "bcsr_data_interface"),
    *("variable_data_interface", "block_data_interface", "csr_data_interface", "coo_data_interface"),
    *("multiformat_data_interface", "mandelbrot", "yuv_downscaler", "minmax_reduction"),
)
_STARPU_ENVIRONMENT = {
    "STARPU_NCPU": "0",
    "STARPU_NOPENCL": "1",
    "STARPU_OPENCL_ON_CPUS": "1",
    "STARPU_SILENT": "1",
}
_PIGLIT = _LIB / "piglit"
_PIGLIT_TESTS = (
    *("amdgcn-callee-saved-registers", "amdgcn-f32-inline-immediates", "amdgcn-i16-inline-immediates"),
    *("attributes", "bitselect", "bswap", "calls-large-struct", "calls-struct", "calls-workitem-id", "calls"),
    *("clz-optimizations", "comma", "constant-load", "fdiv-modifiers-f32", "for-loop", "get-global-id"),
    *("gegl-fir-get-mean-component-1D-CL", "gegl-gamma-2-2-to-linear", "gegl-rgb-gamma-u8-to-ragabaf"),
    *("get-group-id", "global-memory", "global-offset", "i32-stack-array", "image-attributes"),
    *("image-read-2d", "image-write-2d", "int-definitions", "kernel_exec", "local-memory", "load-hi16"),
    *("multiple-stack-objects", "negative-private-base-pointer", "mad-mix", "store-hi16", "tail-calls"),
    *("scalar-arithmetic-int", "scalar-comparison-float", "scalar-logical-float", "scalar-bitwise-int"),
    *(
        "sizeof",
        "switch-case",
        "program-scope-arrays",
        "pyrit-wpa-psk",
        "sha256-Ch",
        "sampler",
        "v3i32-stack",
    ),
    *("vector-conversion", "vector-load-int4", "vector-store-int4", "realign-stack", "reserved-words"),
)
_FFT = {
    "1d": ("-x", "1024", "-b", "8"),
    "2d": ("-x", "64", "-y", "48"),
    "3d": ("-x", "16", "-y", "8", "-z", "12"),
    "prime": ("-x", "343", "-b", "4"),
    "planar": ("-x", "256", "--inLayout", "2", "--outLayout", "2"),
}


def programs() -> Iterator[Program]:
    """All of them."""
    for name in _EXAMPLES:
        path = _DOC / "python-pyopencl-doc/examples" / f"{name}.py"
        yield Program(f"pyopencl {name}", "python-pyopencl-doc", (_PYTHON, str(path)))
    tests = sorted(Path("/usr/bin").glob("clblast_test_x*"))
    for path in tests:
        yield Program(f"CLBlast {path.name[8:]}", "clblast-tests", (str(path), "-precision", "32"))
    for name in _TUNERS:
        command = (f"/usr/bin/clblast_tuner_{name}", "-precision", "32", "-runs", "1", "-fraction", "16")
        yield Program(f"CLBlast tuner_{name}", "clblast-utils", (*command, *_SMALL.get(name, ())))
    for name, options in _FFT.items():
        yield Program(f"clFFT {name}", "clfft-client", ("/usr/bin/clFFT-client", "-c", *options))
    for name in _STARPU:
        path = _LIB / "starpu/examples" / name
        yield Program(f"StarPU {name}", "starpu-examples", (str(path),), environment=_STARPU_ENVIRONMENT)
    for name in _PIGLIT_TESTS:
        test = _PIGLIT / "tests/cl/program/execute" / f"{name}.cl"
        yield Program(f"piglit {name}", "piglit", (str(_PIGLIT / "bin/cl-program-tester"), str(test)))
    for path in sorted((_PIGLIT / "bin").glob("cl-*")):
        if path.name != "cl-program-tester" and ("enqueue" in path.name or "custom" in path.name):
            yield Program(f"piglit {path.name}", "piglit", (str(path),))
    yield Program("piglit bitcoin-phatk", "piglit", (str(_PIGLIT / "bin/cl-program-bitcoin-phatk"),))
    for name, script in _SCRIPTS.items():
        environment = {
            "OPENCV_OPENCL_DEVICE": ":CPU:",
            "DEV": "CL",
            "CACHELEVEL": "0",
            "OPENCV_OPENCL_CACHE": "0",
        }
        package = name.split()[0]
        yield Program(name, f"PyPI {package}", (_PYTHON, "-c", script), environment=environment)
    for name in _REIKNA:
        path = _SOURCES / "reikna-0.9.0/examples" / f"{name}.py"
        yield Program(f"reikna {name}", "PyPI reikna", (_PYTHON, str(path)))
    for name in ("hello-loopy", "rank-one", "vector-types", "sparse", "find-centers"):
        path = _SOURCES / "loopy-2025.2/examples/python" / f"{name}.py"
        yield Program(f"loopy {name}", "PyPI loopy", (_PYTHON, str(path)))
    yield Program("clpeak", "clpeak", ("/usr/bin/clpeak", "--global-bandwidth", "--compute-integer"))


_REIKNA = (
    *(
        "demo_fftn_with_transpose",
        "demo_fftshift_transformation",
        "demo_real_to_complex_fft",
        "demo_specgram",
    ),
    *("demo_specialized_fft", "demo_struct_reduce"),
)
_OPENCV = """
import cv2, numpy as np
cv2.ocl.setUseOpenCL(True)
u = cv2.UMat(np.random.default_rng(0).integers(0, 256, (256, 256), np.uint8))
f = cv2.UMat(np.random.default_rng(0).random((128, 128), np.float32))
print(cv2.ocl.useOpenCL(), ({}).get().sum())
"""
_TINYGRAD = """
import numpy as np
from tinygrad import Tensor
a = Tensor(np.random.default_rng(0).random((64, 64), np.float32))
b = Tensor(np.random.default_rng(1).random((1, 3, 32, 32), np.float32))
w = Tensor(np.random.default_rng(2).random((4, 3, 3, 3), np.float32))
print(({}).numpy().sum())
"""
_SCRIPTS = {
    f"{library} {name}": script.format(expression)
    for library, script, expressions in (
        (
            "opencv-python-headless",
            _OPENCV,
            {
                "GaussianBlur": "cv2.GaussianBlur(u, (5, 5), 1.5)",
                "Canny": "cv2.Canny(u, 50, 100)",
                "resize": "cv2.resize(u, (100, 80))",
                "threshold": "cv2.threshold(u, 128, 255, cv2.THRESH_BINARY)[1]",
                "erode": "cv2.erode(u, None)",
                "Laplacian": "cv2.Laplacian(u, cv2.CV_32F)",
                "gemm": "cv2.gemm(f, f, 1.0, None, 0.0)",
                "dft": "cv2.dft(f)",
                "warpAffine": "cv2.warpAffine(u, np.float32([[1, 0.2, 3], [0.1, 1, 4]]), (256, 256))",
                "medianBlur": "cv2.medianBlur(u, 3)",
                "bilateralFilter": "cv2.bilateralFilter(u, 5, 50, 50)",
                "equalizeHist": "cv2.equalizeHist(u)",
                "pyrDown": "cv2.pyrDown(u)",
                "integral": "cv2.integral(u)",
                "cornerHarris": "cv2.cornerHarris(u, 2, 3, 0.04)",
            },
        ),
        (
            "tinygrad",
            _TINYGRAD,
            {
                "matmul": "a @ a",
                "softmax": "a.softmax()",
                "conv2d": "b.conv2d(w).relu()",
                "sort": "a.sort()[0]",
                "cumsum": "a.cumsum()",
                "layernorm": "a.layernorm()",
            },
        ),
    )
    for name, expression in expressions.items()
}
_SMALL = {
    "xgemm": ("-m", "128", "-n", "128", "-k", "128"),
    "xgemm_direct": ("-m", "64", "-n", "64", "-k", "64"),
    "xgemv": ("-m", "256", "-n", "256"),
    "xger": ("-m", "256", "-n", "256"),
    "copy_fast": ("-m", "256", "-n", "256"),
    "copy_pad": ("-m", "256", "-n", "256"),
    "transpose_fast": ("-m", "256", "-n", "256"),
    "transpose_pad": ("-m", "256", "-n", "256"),
    "xaxpy": ("-n", "65536"),
    "xdot": ("-n", "65536"),
}
