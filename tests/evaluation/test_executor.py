"""Work on a cluster of Dask gives the same as work in this process."""

import importlib.util
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crosscast.cli import main
from crosscast.errors import EnvironmentFault, InputError
from crosscast.evaluation import executor
from crosscast.evaluation.executor import workers
from support.commands import Command, Output, written
from support.datasets import made_dataset
from support.refusals import refusals
from support.slurm import free_ports

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

EVALUATE = "evaluate time bundled --models device-mean --json".split()
BUILD = "dataset build --suite crc,nqueens --sizes tiny --devices pocl:0 --min-runs 3 --min-time 0.02".split()


@dataclass
class Cluster:
    """A scheduler and workers, as processes."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    port: int = field(default_factory=lambda: free_ports(1)[0])

    @property
    def executor(self) -> str:
        """Its argument on the command line."""
        return f"dask://127.0.0.1:{self.port}"

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a part of it."""
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        self.processes.append(process)
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        """Start a worker."""
        words = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0")
        return self.start("worker", f"tcp://127.0.0.1:{self.port}", *words)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    path = Cluster(tmp_path)
    try:
        path.start("scheduler", "--host", "127.0.0.1", "--port", str(path.port))
        yield path
    finally:
        for each in path.processes:
            each.kill()
            each.wait()


def run(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "crosscast", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def output(*words: object, code: int = 0) -> str:
    with run(*words) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    return out


def test_an_evaluation_on_a_cluster_has_the_same_bytes(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, made = [], written(made_dataset(), tmp_path_factory)
    with warnings.catch_warnings():
        # Dask's own: what it imports is deprecated, and its sockets are closed later.
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
        ) as cluster:
            address = f"dask:{cluster.scheduler_address.removeprefix('tcp:')}"
            for words in (["--executor", address], ["--jobs", "1"]):
                # Answers that are kept are not worked out again.
                monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / words[0]))
                assert main([*EVALUATE[:2], str(made), *EVALUATE[3:], *words]) == 0
                texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


@pytest.mark.system
def test_an_evaluation_has_the_same_bytes_even_if_a_worker_is_killed(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "far"))
    doomed, _ = cluster.worker(), cluster.worker()
    with run(*EVALUATE, "--executor", cluster.executor) as evaluation:
        log = cluster.folder / "1.log"
        end = time.monotonic() + 60
        while b"Starting established connection" not in log.read_bytes() and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(2)
        doomed.kill()
        answer, stderr = evaluation.communicate(timeout=300)
    assert evaluation.returncode == 0, stderr
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "near"))
    assert answer == output(*EVALUATE, "--jobs", "1")


def sessions(folder: Path) -> list[dict[str, Any]]:
    from crosscast.data.dataset import read_dataset

    return [dict(row) for row in read_dataset(folder).sessions.to_pylist()]


def cells(folder: Path) -> list[tuple[Any, ...]]:
    names = ("application", "size", "device", "repeat", "failure")
    return sorted(tuple(row[name] for name in names) for row in sessions(folder))


@pytest.mark.system
def test_a_dataset_has_the_same_cells_each_measured_alone(cluster: Cluster, tmp_path: Path) -> None:
    pytest.importorskip("pyopencl")
    cluster.worker()
    cluster.worker()
    far, near = tmp_path / "far", tmp_path / "near"
    output(*BUILD, "--out", far, "--executor", cluster.executor)
    output(*BUILD, "--out", near)
    assert cells(far) == cells(near)
    # On one machine, one after another.
    spans = sorted((row["started_s"], row["started_s"] + row["loop_s"]) for row in sessions(far))
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


@pytest.mark.system
def test_what_lost_workers_did_not_measure_is_measured_later(cluster: Cluster, tmp_path: Path) -> None:
    pytest.importorskip("pyopencl")
    doomed, out = cluster.worker(), tmp_path / "out"
    words = [*BUILD[:-1], "3", "--out", out]
    with run(*words, "--executor", cluster.executor) as build:
        end = time.monotonic() + 120
        while not list(out.glob("**/*profiles*")) and build.poll() is None and time.monotonic() < end:
            time.sleep(0.2)
        doomed.kill()
        _, stderr = build.communicate(timeout=300)
    assert build.returncode == 1, stderr
    assert "no worker that has the device is left" in stderr
    output(*BUILD, "--out", out)
    assert [row[-1] for row in cells(out)] == [None, None]


def test_other_executors_are_refused(capsys: Output) -> None:
    for other in ("ray://x", "dask:", "slurm:", "somewhere"):
        with (
            pytest.raises(InputError, match=r"expected local, dask://HOST:PORT, or slurm:FILE.toml"),
            workers(other),
        ):
            pass
    # Processes are counted here only.
    words = ("--executor", "dask://127.0.0.1:1", "--jobs", "2")
    assert "--jobs" in Command.of("evaluate time bundled").refusal(capsys, *words)


def test_nobody_at_the_address_is_no_fault_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_CONNECT_S", 0.2)
    address = f"dask://127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(EnvironmentFault, match=f"^executor: {address} gives no workers"), workers(address):
        pass


# A cluster that Dask did not make in whole complains when it is thrown away.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@refusals("content said")
def test_a_file_of_workers_is_checked(tmp_path: Path, content: str, said: str) -> None:
    if importlib.util.find_spec("dask_jobqueue") is None:
        pytest.skip("dask-jobqueue is not installed")
    path = tmp_path / "workers.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=said), workers(f"slurm:{path}"):
        pass


def test_a_machine_without_slurm_says_so_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask_jobqueue")
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "workers.toml"
    path.write_text("jobs = 1")
    with pytest.raises(EnvironmentFault, match="needs Slurm's sbatch"), workers(f"slurm:{path}"):
        pass


def test_clusters_on_queues_leave_ctrl_c_alone() -> None:
    if importlib.util.find_spec("dask_jobqueue") is None:
        pytest.skip("dask-jobqueue is not installed")
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert executor._jobqueue().SLURMCluster
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
