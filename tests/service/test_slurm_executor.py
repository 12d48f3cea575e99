"""Datasets are built on nodes of a real Slurm, and a node that fails loses only what it did."""

import importlib.util
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from crosscast.data.dataset import read_dataset
from support.slurm import Partition, SlurmCluster, missing, starting

pytestmark = pytest.mark.system

if importlib.util.find_spec("dask_jobqueue") is None:  # its import would take Ctrl-C for itself
    pytest.skip("dask-jobqueue is not installed", allow_module_level=True)
pytest.importorskip("pyopencl")
if lacks := missing():
    pytest.skip(lacks, allow_module_level=True)

BUILD = (
    "dataset build --sizes tiny --devices pocl:0 --min-runs 3 --min-time 0.1 --suite crc,nqueens,fft".split()
)


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    with starting() as start:
        yield start(Partition("cpu", nodes=4, default=True))


def test_a_node_that_is_killed_changes_nothing(slurm: SlurmCluster, tmp_path: Path) -> None:
    out, workers = tmp_path / "out", tmp_path / "workers.toml"
    workers.write_text(
        'jobs = 4\ninterface = "lo"\nmemory = "1GB"\nwalltime = "00:20:00"\n'
        f'log_directory = "{tmp_path}/log"\nlocal_directory = "{tmp_path}/scratch"\n'
        'job_extra_directives = ["--exclusive"]\n'
    )
    words = [*BUILD, "--out", str(out), "--executor", f"slurm:{workers}", "--json"]
    command = [sys.executable, "-m", "crosscast", *words]
    with Popen(command, env=slurm.environment, stdout=PIPE, stderr=PIPE, text=True) as process:
        end = time.monotonic() + 200
        while not list(out.glob("**/*profiles*")) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        slurm.kill_node(1)
        found, told = process.communicate(timeout=400)
    assert process.returncode == 0, told
    assert json.loads(found)
    names = ("application", "size", "repeat", "failure")
    sessions = sorted(tuple(row[name] for name in names) for row in read_dataset(out).sessions.to_pylist())
    assert sessions == [("crc", "tiny", 0, None), ("fft", "tiny", 0, None), ("nqueens", "tiny", 0, None)]
    # Nothing is left to do, and no worker is left.
    slurm.until(lambda: not slurm.run("squeue", "-h", "-t", "R,PD"), 60)
