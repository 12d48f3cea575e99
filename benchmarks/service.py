"""How fast the prediction service answers, and how much memory it keeps: `python -m benchmarks.service`.

One client at a time, then 16, each with a connection a request as a scheduler's hook makes it; the same
question, and questions that are all different. `--requests` says how many. CPU is the time that the service
itself worked for a request, which a busy machine changes least.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np

_CLIENTS = 16
_NAMES = ("bfs/small", "crc/small", "fft/tiny", "srad/small", "kmeans/tiny")


def ask(place: str, path: str, body: bytes) -> bytes:
    """One request with a connection of its own, as Slurm's hook makes it."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(place)
        head = f"POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        asked.sendall(head.encode() + body)
        parts = []
        while part := asked.recv(1 << 16):
            parts.append(part)
    answer = b"".join(parts)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(answer[:300])
    return answer


def same(_: int) -> bytes:
    return json.dumps({"profile": "srad/small"}).encode()


def different(number: int) -> bytes:
    level = 0.5 + 0.4 * (number % 1_000_003) / 1_000_003
    return json.dumps({"profile": _NAMES[number % len(_NAMES)], "level": level}).encode()


def client(place: str, question: str, first: int, count: int) -> list[float]:
    make: Callable[[int], bytes] = {"same": same, "different": different}[question]
    seconds = []
    for number in range(first, first + count):
        start = time.perf_counter()
        ask(place, "/v1/predict", make(number))
        seconds.append(time.perf_counter() - start)
    return seconds


def memory_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(name: str, seconds: list[float], wall_s: float, worked_s: float) -> None:
    milliseconds = 1e3 * np.array(seconds)
    median, p99 = np.median(milliseconds), np.percentile(milliseconds, 99)
    rates = f"{p99 / median:8.1f} {len(seconds) / wall_s:8.0f} {1e3 * worked_s / len(seconds):8.2f}"
    print(f"{name:24} {len(seconds):8,} {median:8.2f} {p99:8.2f} {rates}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4000)
    requests = parser.parse_args().requests
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "p.sock")
        command = [sys.executable, "-m", "crosscast", "serve", "--model", "opencl-15-devices"]
        with subprocess.Popen([*command, "--socket", place], stderr=subprocess.DEVNULL) as service:
            try:
                while not Path(place).exists():
                    time.sleep(0.05)
                    if service.poll() is not None:
                        raise RuntimeError("the service did not start")
                measure(place, service.pid, requests)
            finally:
                service.send_signal(signal.SIGTERM)


def measure(place: str, pid: int, requests: int) -> None:
    columns = ("requests", "median", "p99", "p99/med", "a second", "CPU")
    print(f"{'times in ms':24} {' '.join(f'{each:>8}' for each in columns)}")
    number = 0
    for question in ("same", "different"):
        count = max(requests // 10, 100)
        start, worked_s = time.perf_counter(), cpu_s(pid)
        seconds = client(place, question, number, count)
        told(f"1 client, {question}", seconds, time.perf_counter() - start, cpu_s(pid) - worked_s)
        number += count
    before = memory_mib(pid)
    with get_context("spawn").Pool(_CLIENTS) as pool:
        for question in ("same", "different"):
            each = requests // _CLIENTS
            # Processes are started before the clock.
            pool.map(same, range(_CLIENTS))
            jobs = [(place, question, number + part * each, each) for part in range(_CLIENTS)]
            start, worked_s = time.perf_counter(), cpu_s(pid)
            found = pool.starmap(client, jobs, chunksize=1)
            wall_s = time.perf_counter() - start
            seconds = [second for some in found for second in some]
            told(f"{_CLIENTS} clients, {question}", seconds, wall_s, cpu_s(pid) - worked_s)
            number += requests
    print(f"memory: {before:.0f} MiB before the {_CLIENTS} clients, {memory_mib(pid):.0f} MiB after")


if __name__ == "__main__":
    main()
