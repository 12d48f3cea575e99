"""Mutated inputs of every format: each must give a profile, or one sentence and exit code 2.

``python -m benchmarks.fuzz --inputs N`` mutates programs (``.cl``, ``.cu``, ``.ll``, ``.bc``) and launches
(``.toml``, ``.sim``) and characterizes each in a process that is watched: a process that is gone, an
exception that is not Crosscast's own, and a run that does not end are failures, and their inputs are kept.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

FORMATS = (".cl", ".ll", ".bc", ".toml", ".sim", ".cu")
_HANG_S = 60.0
_TIMEOUT_S = 2.0

_SOURCE = """
typedef struct { int a; float b[3]; uchar c; } T;
constant int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
inline float twice(float x) { return x + x; }
float walk(T t, int n) { switch (n & 3) { case 0: t.a++; case 1: return t.b[n % 3]; } return t.a; }
kernel void k(global float *o, global const int *x, local int *l, float f, int n, T t) {
  local float s[16];
  int i = get_global_id(0), j = get_local_id(0);
  l[j] = x[i] + table[i & 7];
  s[j] = f;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = 0; r < n; r++) {
    if (l[(j + r) & 7] > 3) s[j] += twice(sqrt(fabs(f * r)));
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  atomic_add((global int *)&x[0], 1);
  float4 v = vload4(0, o) * (float4)(1, 2, 3, (float)n);
  if (i == 0) printf("%d %v4hlf %s\\n", n, v, "x");
  o[i] = s[j] + walk(t, n) + v.w;
}
"""
_CUDA_SOURCE = """
struct Pair { int a; float b; };
template <typename T> __device__ T twice(T x) { return x + x; }
__constant__ int table[4] = {1, 2, 3, 4};
__global__ void k(float *o, const int *x, int n, Pair p) {
  __shared__ int s[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = x[i] + table[i & 3];
  __syncthreads();
  int sum = __shfl_xor_sync(0xffffffff, s[threadIdx.x], 1);
  for (int r = 0; r < n; r++) { sum += s[(threadIdx.x + r) & 7]; __syncthreads(); }
  atomicAdd(&o[0], 1.0f);
  o[i] = twice(sum) + p.b * sqrtf(p.a);
}
"""
_ARGUMENTS = """
[[arg]]
name = "o"
type = "float"
length = 64
fill = "uniform"

[[arg]]
name = "x"
type = "int"
length = 64
fill = "arange"
"""
_LAUNCH = (
    'source = "{program}"\nkernel = "k"\nglobal = 16\nlocal = 8\nseed = 3\n'
    + _ARGUMENTS
    + """
[[arg]]
name = "l"
local = 32

[[arg]]
name = "f"
type = "float"
value = 1.5

[[arg]]
name = "n"
type = "int"
value = 3

[[arg]]
name = "t"
type = "int"
value = [1, 2, 3, 4, 5]
"""
)
_CUDA_LAUNCH = (
    'source = "{program}"\nkernel = "k"\ngrid = 2\nblock = 8\n'
    + _ARGUMENTS
    + """
[[arg]]
name = "n"
type = "int"
value = 3

[[arg]]
name = "p"
type = "int"
value = [1, 2]
"""
)
_SIM = """{program}
k
16 1 1
8 1 1
<size=256 float range=0:1:63 dump>
<size=256 int fill=3>
<size=32>
<size=4 float>
1.5
<size=4>
3
<size=20 char hex>
0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 7
"""
_WORD = re.compile(rb"[0-9][.\w]*|[%@!#]?[A-Za-z_.][\w.]*|\S")
_NUMBERS = b"0 1 2 3 7 8 9 16 31 32 33 64 1024 65536 2097152 1000000000000 18446744073709551616 1e999".split()
_WORDS = b"""ptr i1 i8 i16 i32 i64 void float double half <4 x i32> undef poison null zeroinitializer
    addrspace(3) addrspace(1) label br ret phi load store call switch unreachable barrier kernel global local
    int char float3 while(1){} goto asm volatile static return size fill range type value true""".split()


def mutated(content: bytes, generator: random.Random) -> bytes:
    """Return `content` with a few random changes: of bits, of stretches of bytes, or of words and lines."""
    is_text = not content.startswith(b"BC")
    for _ in range(generator.choice((1, 1, 1, 2, 3, 8))):
        if not content:
            break
        if is_text and generator.random() < 0.9:
            content = _mutated_lines(content, generator)
        else:
            content = _mutated_bytes(content, generator, header=0 if is_text else 64)
    return content


def _mutated_lines(content: bytes, generator: random.Random) -> bytes:
    lines = content.split(b"\n")
    at = generator.randrange(len(lines))
    kind = generator.randrange(12)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(generator.randrange(len(lines)), lines[at])
    elif kind == 2:
        other = generator.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif words := list(_WORD.finditer(lines[at])):
        # Mostly another word of the same kind, so that much of what comes out still is a program.
        word = generator.choice(words)
        alike = [w[0] for w in _WORD.finditer(content) if w[0][:1].isdigit() == word[0][:1].isdigit()]
        same = [w for w in alike if w[:1] == word[0][:1]]
        own = _NUMBERS if word[0][:1].isdigit() else _WORDS
        new = generator.choice(generator.choice((same, same, alike, own)))
        lines[at] = lines[at][: word.start()] + new + lines[at][word.end() :]
    return b"\n".join(lines)


def _mutated_bytes(content: bytes, generator: random.Random, *, header: int) -> bytes:
    data = bytearray(content)
    at = min(len(data) - 1, generator.randrange(header, max(len(data), header + 1)))
    end = min(len(data), at + generator.choice((1, 2, 4, 16, 80)))
    kind = generator.randrange(12)
    if kind == 0:
        del data[at:end]
    elif kind == 1:
        data[at:at] = data[at:end]
    elif kind == 2:
        to = generator.randrange(len(data))
        data[to : to + end - at] = data[at:end]
    elif kind == 3:
        del data[at:]
    elif kind < 7:
        data[at] = generator.randrange(256)
    else:
        data[at] ^= 1 << generator.randrange(8)
    return bytes(data)


def _characterize(path: Path) -> str:
    """Do what the command line does with a launch file; return what came of it."""
    from crosscast.characterization.launchfiles import read_launches
    from crosscast.characterization.run import Options, characterize_launch
    from crosscast.errors import CrosscastError

    try:
        for launch in read_launches(path):
            characterize_launch(launch, options=Options(timeout_s=_TIMEOUT_S, memory_limit=1 << 30))
    except CrosscastError as error:
        if error.exit_code == 2:
            return "refused"
        return f"{type(error).__name__}: {error}"
    return "profile"


def _serve(connection: Connection) -> None:
    while True:
        path = connection.recv()
        try:
            connection.send(_characterize(path))
        except Exception:  # noqa: BLE001 - a traceback is what this looks for
            connection.send(f"traceback\n{traceback.format_exc(limit=-6)}")


class Watched:
    """A process that characterizes launch files, and is started again when it is gone or hangs."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,))
        self._process.start()
        theirs.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()

    def characterize(self, path: Path) -> str:
        """What came of a launch file: ``profile``, ``refused``, or a failure in words."""
        self._connection.send(path)
        try:
            if self._connection.poll(_HANG_S):
                return str(self._connection.recv())
            found = f"hang: did not end within {_HANG_S:g} s"
        except (EOFError, ConnectionError):
            self._process.join()
            found = f"crash: exit code {self._process.exitcode}"
        self.close()
        self._start()
        return found


@dataclass(frozen=True)
class Found:
    """What came of one input."""

    seed: int
    suffix: str
    outcome: str

    @property
    def is_failure(self) -> bool:
        """Whether it is neither a profile nor a refusal."""
        return self.outcome not in ("profile", "refused")


class Fuzzer:
    """Makes inputs and tries them, each from its seed alone."""

    def __init__(self, folder: Path, formats: tuple[str, ...]) -> None:
        self._folder, self._formats = folder, formats
        self._programs: dict[str, bytes] = {}

    def program(self, suffix: str) -> bytes:
        """An unchanged program of a format."""
        if suffix not in self._programs:
            self._programs[suffix] = _MAKERS[suffix]()
        return self._programs[suffix]

    def write(self, seed: int) -> tuple[str, Path]:
        """Write the input of a seed; return its format and the launch file."""
        generator = random.Random(seed)
        suffix = self._formats[seed % len(self._formats)]
        folder = self._folder / str(seed)
        folder.mkdir(parents=True, exist_ok=True)
        kind = suffix if suffix in _MAKERS else generator.choice((".cl", ".cl", ".bc"))
        program = folder / f"program{kind}"
        content = self.program(kind)
        program.write_bytes(mutated(content, generator) if kind == suffix else content)
        text = (_SIM if suffix == ".sim" else _CUDA_LAUNCH if kind == ".cu" else _LAUNCH).format(
            program=program
        )
        launch = folder / ("launch.sim" if suffix == ".sim" else "launch.toml")
        launch.write_bytes(
            mutated(text.encode(), generator) if suffix in (".sim", ".toml") else text.encode()
        )
        return suffix, launch

    def attempt(self, seed: int, watched: Watched) -> Found:
        """Make the input of a seed and characterize it; it is kept only if that fails."""
        suffix, launch = self.write(seed)
        found = Found(seed, suffix, watched.characterize(launch))
        if not found.is_failure:
            for path in launch.parent.iterdir():
                path.unlink()
            launch.parent.rmdir()
        return found


def _compiled(*, text: bool) -> bytes:
    from crosscast.characterization import toolchain
    from crosscast.characterization.engine import llvm
    from crosscast.kernel import Program

    content = toolchain.compile_opencl(Program(_SOURCE.encode(), "opencl-c", standard="1.2"))
    return llvm.parse(content, is_text=False).text.encode() if text else content


_MAKERS: dict[str, Callable[[], bytes]] = {
    ".cl": _SOURCE.encode,
    ".cu": _CUDA_SOURCE.encode,
    ".ll": lambda: _compiled(text=True),
    ".bc": lambda: _compiled(text=False),
}


def main() -> int:
    """Run the fuzzer and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first input")
    parser.add_argument("--formats", nargs="*", default=FORMATS, choices=FORMATS)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--keep", type=Path, help="folder for the inputs that fail")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="crosscast-fuzz-"))
    fuzzer = Fuzzer(folder, tuple(options.formats))
    outcomes: Counter[tuple[str, str]] = Counter()
    start = time.monotonic()

    def work(share: int) -> None:
        watched = Watched()
        for seed in range(options.seed + share, options.seed + options.inputs, options.processes):
            found = fuzzer.attempt(seed, watched)
            kind = found.outcome.split("\n")[0].split(":")[0]
            outcomes[found.suffix, kind] += 1
            if found.is_failure:
                print(f"seed {found.seed} ({found.suffix}): {found.outcome}", flush=True)
        watched.close()

    for suffix in fuzzer._formats:  # before threads make them at the same time
        if suffix in _MAKERS:
            fuzzer.program(suffix)
    fuzzer.program(".bc")
    with ThreadPoolExecutor(options.processes) as pool:
        list(pool.map(work, range(options.processes)))
    for (suffix, kind), count in sorted(outcomes.items()):
        print(f"{suffix:6} {kind:20} {count}")
    failures = sum(count for (_, kind), count in outcomes.items() if kind not in ("profile", "refused"))
    minutes = (time.monotonic() - start) / 60
    print(
        f"{'FAIL' if failures else 'PASS'}  {options.inputs} inputs in {minutes:.1f} min: {failures} failures"
    )
    if failures:
        print(f"inputs: {folder}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
