"""A peer: an OpenCL implementation from a wheel, in a process and an environment of its own."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.setup_peers import ROOT, peers_python


class PeerError(Exception):
    """A peer ended, or answered something else than expected."""


class PeerTimeoutError(PeerError):
    """A peer did not answer within the time limit."""


@dataclass(frozen=True)
class Ran:
    """Times of one run of a kernel, in seconds."""

    wall_s: float  # From its start to its end, by OpenCL's event
    cpu_s: float  # CPU time of the thread that ran it


class Peer:
    """A worker process that runs cases on one OpenCL platform, that of the file name of its ``.icd``.

    An answer is given up after `limit_s`.
    """

    def __init__(self, name: str, driver: str, variables: dict[str, str], limit_s: float) -> None:
        python = peers_python()
        (icd,) = python.parent.parent.glob(f"lib/python3*/site-packages/pyopencl/.libs/{driver}")
        self.name = name
        self.limit_s = limit_s
        self._scratch = tempfile.TemporaryDirectory(prefix="crosscast-peer-")
        self._messages = Path(self._scratch.name) / "messages"
        environment = {
            **os.environ,
            **variables,
            "OCL_ICD_VENDORS": str(icd),
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
            "POCL_CACHE_DIR": self._scratch.name,
            "PYOPENCL_NO_CACHE": "1",
        }
        with self._messages.open("w") as messages:
            self._process = subprocess.Popen(
                [str(python), "-m", "benchmarks.peers.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                env=environment,
                cwd=ROOT,
            )
        self.platform: str = self._answer()["platform"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._scratch.cleanup()

    def load(self, case: str, size: int) -> float:
        """Make a case ready to run and return its amount of work."""
        return float(self._ask("load", case=case, size=size)["work"])

    def run(self, *, cold: bool = False) -> Ran:
        """Run the loaded case once; `cold` empties the CPU's caches first."""
        return Ran(**self._ask("run", cold=cold))

    def check(self) -> str | None:
        """What is wrong with the outputs of the last run; ``None`` if nothing is."""
        fault: str | None = self._ask("check")["fault"]
        return fault

    def _ask(self, operation: str, **values: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": operation, **values}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise PeerError(self._last_words()) from error
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(self.limit_s):
                raise PeerTimeoutError(f"{self.name}: no answer within {self.limit_s:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        self._process.wait()
        lines = self._messages.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
        return f"{self.name}: the worker ended with status {self._process.returncode} ({lines[-1]})"


def native(limit_s: float = 120.0) -> Peer:
    """PoCL on one thread: the kernel compiled for this CPU."""
    # Without affinity PoCL's thread may wander; POCL_AFFINITY would pin it to a CPU that others use.
    return Peer("PoCL", "pocl.icd", {"POCL_MAX_PTHREAD_COUNT": "1"}, limit_s)


def oclgrind(limit_s: float = 120.0) -> Peer:
    """Oclgrind on one thread, without plugins other than those it always loads."""
    return Peer("Oclgrind", "oclgrind.icd", {"OCLGRIND_NUM_THREADS": "1"}, limit_s)
