"""LLVM in a child process: reading the IR of a program, and compiling the instrumented IR."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from crosscast.characterization import ir
from crosscast.characterization.engine import workers
from crosscast.characterization.engine.arguments import memory_file
from crosscast.errors import InputError

__all__ = ["LLVMRefusedError", "amd_registers", "build", "parse"]

_LIMIT_S = {"parse": 30, "build": 120, "amd": 60}
_REFUSED = 3
_LONG_LINES = 8_000  # of which even few optimizations take longer than they save


class LLVMRefusedError(InputError):
    """LLVM refused its input, crashed on it, or took too long; the message is the reason only."""


class _CrashedError(LLVMRefusedError):
    """LLVM crashed."""


def parse(content: bytes, *, is_text: bool) -> ir.Parsed:
    """Read and verify a module, given as text or bitcode.

    Raises
    ------
    LLVMRefusedError
        If LLVM does not accept it.
    """
    text, facts = _do("parse", {"is_text": is_text}, [content], results=2)
    return ir.Parsed.from_json(text.decode(errors="replace"), facts)


def build(
    kernel: str, library: str, exported: Sequence[str], native: str = "", *, quick: bool = False
) -> tuple[bytes, list[str], bytes]:
    """Compile host IR, linked with the library functions that it calls; only `exported` names stay visible.

    `native`, the uninstrumented kernel, is compiled as well if it is given. A `quick` build takes
    half as long, and its code up to twice as long; both compute the same values.

    Returns
    -------
    tuple
        The object file; the names of undefined functions; and the object file of `native`,
        empty if there is none or LLVM refuses it.

    Raises
    ------
    LLVMRefusedError
        If LLVM does not accept it.
    """
    contents = [kernel.encode(), library.encode(), native.encode()]
    quickest = 0 if kernel.count("\n") > _LONG_LINES else 1
    level, code_level = (quickest, 0) if quick else (3, 3)
    facts = {"exported": list(exported), "level": level, "code_level": code_level}
    try:
        content, undefined, uncounted = _do("build", facts, contents, results=3)
    except _CrashedError:  # mostly in an optimization
        facts |= {"level": 1, "code_level": 3}
        content, undefined, uncounted = _do("build", facts, contents, results=3)
    names: list[str] = json.loads(undefined)
    return content, names, uncounted


def amd_registers(program: str, library: str, kernel: str, processor: str) -> dict[str, int]:
    """Compile a kernel of IR for an AMD GPU, and count in its assembly.

    Returns
    -------
    dict
        Numbers by field of `crosscast.characterization.launch_facts.AmdRegisters`.

    Raises
    ------
    LLVMRefusedError
        If LLVM does not accept it.
    """
    facts = {"kernel": kernel, "processor": processor}
    (content,) = _do("amd", facts, [program.encode(), library.encode()], results=1)
    counts: dict[str, int] = json.loads(content)
    return counts


def _do(task: str, facts: Mapping[str, object], inputs: Sequence[bytes], *, results: int) -> list[bytes]:
    job = json.dumps({"task": task, **facts, "given": len(inputs)}).encode()
    with ExitStack() as stack:
        contents = [b"", job, *inputs, *[b""] * results]  # the first is for errors
        files = [stack.enter_context(memory_file(f"crosscast-{task}", content)) for content in contents]
        code = workers.run("llvm", files, lambda worker: worker.wait(_LIMIT_S[task]))
        if code is None:
            raise LLVMRefusedError(f"LLVM did not end within {_LIMIT_S[task]} s")
        if code:
            errors = Path(f"/proc/self/fd/{files[0]}").read_text(errors="replace").split()
            raise (_CrashedError if code < 0 else LLVMRefusedError)(_reason(code, " ".join(errors)))
        return [Path(f"/proc/self/fd/{fd}").read_bytes() for fd in files[-results:]]


def _reason(code: int, errors: str) -> str:
    if code == _REFUSED:
        return errors
    if code > 0:
        return f"LLVM's process ended with code {code}{f': {errors[:300]}' if errors else ''}"
    name = signal.Signals(-code).name
    # LLVM's message comes first, and a stack trace after it.
    reason = errors.split(" PLEASE submit")[0].split(" Stack dump")[0].split(" #0 ")[0][:300]
    return f"LLVM was stopped by {name}{f': {reason}' if reason else ''}"
