"""Loads in flight in loops: those of nvcc's machine code, beside what profiles say of them.

``python -m benchmarks.machine_code [--architecture sm_80]`` compiles loops with NVRTC, and disassembles them.
It needs no GPU, and two wheels: ``pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-nvdisasm``. A loop's loads
in flight are its loads over the latencies in which a machine runs it that issues instructions in order.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

import crosscast
from benchmarks.table import text_table
from crosscast import Kernel

_SOURCE = Path(__file__).with_suffix(".cu")
_LATENCY, _OTHER_LATENCY = 5000, 5  # Clocks; of a load so many that all else is hidden
_ROUNDS = 8
_STORES = ("ST", "STG", "STS", "RED")
_M, _N = 64, 64  # Work-items, and iterations


class _Instruction(NamedTuple):
    name: str
    written: frozenset[str]
    read: frozenset[str]


def main() -> int:
    """Print a line a loop; return 1 if one is joined that a profile says is not, or the reverse."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--architecture", default="sm_80")
    given = parser.parse_args()
    lines, differs = [], False
    for name, loads in _in_flight(given.architecture):
        path = _path(name)
        in_turn = bool(path["loads_in_turn"].get("global"))
        lines.append((name, f"{loads:.1f}", "in turn" if in_turn else "joined"))
        differs |= (loads < 2) != in_turn
    sys.stdout.write(text_table(("loop", "loads in flight", "profile"), lines) + "\n")
    return int(differs)


def _path(name: str) -> dict[str, dict[str, int]]:
    """Return the dependence path of a loop's kernel."""
    buffers = [np.zeros(_M * _N, np.float32) for _ in range(3)]
    kernel = Kernel.from_source(_SOURCE.read_text(), name, form="cuda")
    found: dict[str, dict[str, int]] = crosscast.characterize(
        kernel, _M, 32, [*buffers, np.int32(_M), np.int32(_N)]
    ).launch["path"]
    return found


def _in_flight(architecture: str) -> Iterator[tuple[str, float]]:
    """Yield the name of each kernel, and the most loads in flight of its loops."""
    for name, code in _disassembled(architecture):
        loops = [loads / _waits(body) for body in _loops(code) if (loads := _loads(body))]
        if loops:
            yield name, max(loops)


def _disassembled(architecture: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each kernel, and its lines of machine code."""
    with TemporaryDirectory(prefix="crosscast-") as folder:
        file = Path(folder, "loops.cubin")
        file.write_bytes(_compiled(architecture))
        command = [_file("bin/nvdisasm"), "-c", str(file)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for part in re.split(r"^\.text\.", text, flags=re.MULTILINE)[1:]:
        name, _, code = part.partition(":")
        yield name, code.splitlines()


def _file(path: str) -> str:
    """Return a file of NVIDIA's wheels."""
    spec = find_spec("nvidia")
    folders = [] if spec is None else [Path(each) for each in spec.submodule_search_locations or ()]
    for folder in folders:
        for found in sorted(folder.glob(f"*/{path}")):
            return str(found)
    raise SystemExit(f"{path}: pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-nvdisasm")


def _compiled(architecture: str) -> bytes:
    library, program, size = ctypes.CDLL(_file("lib/libnvrtc.so.12")), ctypes.c_void_p(), ctypes.c_size_t()
    source, options = _SOURCE.read_bytes(), (ctypes.c_char_p * 1)(f"-arch={architecture}".encode())
    library.nvrtcCreateProgram(ctypes.byref(program), source, b"loops.cu", 0, None, None)
    if library.nvrtcCompileProgram(program, 1, options):
        raise SystemExit(f"{_SOURCE}: NVRTC does not compile it for {architecture}")
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    library.nvrtcGetCUBIN(program, code)
    return code.raw


def _loops(code: Sequence[str]) -> Iterator[list[_Instruction]]:
    """Yield what a kernel runs from the target of each backward branch to it."""
    labels: dict[str, int] = {}
    seen: list[_Instruction] = []
    for line in code:
        if label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = len(seen)
        elif text := re.search(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+ )?\s*(\S+)\s*(.*?) ?;", line):
            seen.append(_instruction(text[1].split(".")[0], text[2]))
            target = re.search(r"BRA.*\((\.L\w+)\)", line)
            if target and labels.get(target[1], len(seen)) < len(seen) - 1:
                yield seen[labels[target[1]] :]


def _instruction(name: str, operands: str) -> _Instruction:
    stores = name in _STORES
    first, _, others = operands.partition(",")
    read = operands if stores else others
    registers = {*re.findall(r"\bR\d+", read)}
    registers |= {f"R{int(each) + 1}" for each in re.findall(r"\bR(\d+)\.64", read)}
    written = frozenset() if stores else frozenset(re.findall(r"^\s*(R\d+)", first))
    return _Instruction(name, written, frozenset(registers))


def _loads(body: Sequence[_Instruction]) -> int:
    return sum(i.name == "LDG" for i in body)


def _waits(body: Sequence[_Instruction]) -> float:
    """Latencies of loads that an iteration takes."""
    ready: dict[str, int] = {}
    now, ends = 0, []
    for _ in range(_ROUNDS):
        for i in body:
            now = max([now + 1, *(ready.get(each, 0) for each in i.read)])
            ready |= dict.fromkeys(i.written, now + (_LATENCY if i.name == "LDG" else _OTHER_LATENCY))
        ends.append(now)
    return (ends[-1] - ends[1]) / (_ROUNDS - 2) / _LATENCY


if __name__ == "__main__":
    sys.exit(main())
