"""A cache of what clang, LLVM and the linker make, for all tests, processes and sessions.

They are functions of what they are given, and tests give them the same thousands of times. A key is all of
that: the input with its options, the tools with their versions, this machine's CPU, and the files of the
package that the tools read or that run them. `make test-full` does without the cache.
"""

import contextlib
import functools
import hashlib
import platform
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import llvmlite
import llvmlite.binding
import msgspec
import pytest

from crosscast.characterization import toolchain
from crosscast.characterization.cuda import compiler
from crosscast.characterization.engine import llvm
from crosscast.data.files import cache_home

FOLDER = cache_home() / "tests"
_KEPT_S = 14 * 24 * 3600
_ENGINE = Path(llvm.__file__).parent
_FOLDERS = (toolchain.INCLUDE_DIR, compiler.INCLUDE_DIR, _ENGINE / "runtime")
_SOURCES = {"clang": _FOLDERS, "link": (), "llvm": (_ENGINE / "llvm_worker.py",)}
"""Files of the package, other than the toolchain, on which results depend, by tool."""


def install(patch: pytest.MonkeyPatch) -> None:
    """Let the toolchain and LLVM's processes be asked only for what is not in the cache."""
    patch.setattr(toolchain, "run_clang", functools.partial(_run_clang, toolchain.run_clang))
    patch.setattr(toolchain, "link_shared", functools.partial(_link_shared, toolchain.link_shared))
    patch.setattr(llvm, "_do", functools.partial(_do, llvm._do))


def prune() -> None:
    """Delete what was made long ago."""
    oldest = time.time() - _KEPT_S
    for path in FOLDER.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # Other sessions rename what they have written.
            if path.stat().st_mtime < oldest:
                path.unlink()


@functools.cache
def _tools(kind: str) -> bytes:
    """Digest of the tools, of this machine, and of the sources that run the tools."""
    cpu = f"{llvmlite.binding.get_host_cpu_name()} {llvmlite.binding.get_host_cpu_features().flatten()}"
    names = f"{toolchain.compiler_version()} {llvmlite.__version__} {platform.machine()} {cpu}"
    digest = hashlib.sha256(names.encode())
    for source in (Path(toolchain.__file__), *_SOURCES[kind]):
        for path in (source, *sorted(source.rglob("*"))):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(path.read_bytes())
    return digest.digest()


def cached(
    tools: bytes, kind: str, facts: object, inputs: Sequence[bytes], make: Callable[[], Sequence[bytes]]
) -> list[bytes]:
    """Return what `make` returned for this input, now or in an earlier test; `tools` is a digest of these."""
    digest = hashlib.sha256(tools + msgspec.json.encode([kind, facts, [len(each) for each in inputs]]))
    for content in inputs:
        digest.update(content)
    path = FOLDER / digest.hexdigest()[:40]
    try:
        kept: list[bytes] = msgspec.msgpack.decode(zlib.decompress(path.read_bytes()), type=list[bytes])
    except FileNotFoundError:
        kept = list(make())
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=FOLDER, delete=False) as handle:
            handle.write(zlib.compress(msgspec.msgpack.encode(kept), 1))
        Path(handle.name).replace(path)
    return kept


def _run_clang(
    run: Callable[[Sequence[str], bytes], subprocess.CompletedProcess[bytes]],
    arguments: Sequence[str],
    source: bytes,
) -> subprocess.CompletedProcess[bytes]:
    """Run the compiler, unless it may read files that are not the package's nor its own."""
    own = (*map(str, _FOLDERS), str(Path(toolchain._zig()).parent))
    foreign = {
        each for each in arguments if "/" in each and not each.removeprefix("-isystem").startswith(own)
    }
    if foreign and b"include" in source:
        return run(arguments, source)
    facts = [each for each in arguments if each not in foreign]

    def made() -> list[bytes]:
        done = run(arguments, source)
        return [str(done.returncode).encode(), done.stdout, done.stderr]

    code, out, errors = cached(_tools("clang"), "clang", facts, [source], made)
    return subprocess.CompletedProcess(list(arguments), int(code), out, errors)


def _link_shared(link: Callable[[Sequence[Path], Path], None], objects: Sequence[Path], output: Path) -> None:
    def made() -> list[bytes]:
        link(objects, output)
        return [output.read_bytes()]

    output.write_bytes(cached(_tools("link"), "link", None, [path.read_bytes() for path in objects], made)[0])


def _do(
    run: Callable[..., list[bytes]],
    task: str,
    facts: Mapping[str, object],
    inputs: Sequence[bytes],
    *,
    results: int,
) -> list[bytes]:
    return cached(_tools("llvm"), task, facts, inputs, lambda: run(task, facts, inputs, results=results))
