"""Nodes of a real Slurm: prolog and epilog set power caps, and give back what was there before.

Of a dataset that is built on nodes, one that fails loses only what it did.
"""

import importlib.util
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from crosscast.cli import main
from crosscast.data.dataset import read_dataset
from support.slurm import Partition, SlurmCluster, missing, starting

pytestmark = pytest.mark.system

if lacks := missing():
    pytest.skip(lacks, allow_module_level=True)

SMI = """#!/bin/bash
case "$*" in
  *--query-gpu*) echo "$(cat {gpu}).00, 100.00, 300.00" ;;
  *-pl*) [[ -e {gpu}.broken ]] && exit 1; echo "${{@: -1}}" > {gpu} ;;
esac
"""


@dataclass
class Site:
    """A node with a GPU and a CPU whose limits are files."""

    cluster: SlurmCluster
    gpu: Path
    cpu: Path
    state: Path

    @property
    def caps(self) -> tuple[int, int]:
        """What is in force, in watts."""
        # A file that is being written is empty for a moment.
        return int(self.gpu.read_text() or 0), int(self.cpu.read_text() or 0) // 10**6

    def during(self, comment: str, *options: str) -> tuple[int, int]:
        """What is in force while a job runs."""
        out = self.cluster.home / "out"
        words = ("--wait", "-o", str(out), f"--comment={comment}", *options)
        self.cluster.run("sbatch", *words, "--wrap", f"cat {self.gpu} {self.cpu}")
        self.cluster.until(lambda: not self.kept)
        gpu, cpu = out.read_text().split()
        return int(gpu), int(cpu) // 10**6

    @property
    def kept(self) -> list[Path]:
        """What is to be given back."""
        return [path for path in self.state.glob("*.*") if path.name != "lock"]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("caps")
    assert main(["hooks", "install", "slurm", "--dir", str(folder)]) == 0
    zone = folder / "powercap" / "intel-rapl:0"
    zone.mkdir(parents=True)
    gpu, cpu, state = folder / "gpu", zone / "constraint_0_power_limit_uw", folder / "state"
    smi = folder / "nvidia-smi"
    smi.write_text(SMI.format(gpu=gpu))
    smi.chmod(0o755)
    (folder / "crosscast" / "caps.conf").write_text(
        f"GPU_MIN_W=120\nGPU_MAX_W=280\nCPU_MIN_W=40\nCPU_MAX_W=1000\nNODE_CPUS=8\nSTATE={state}\n"
        f"LOG={folder}/log\nPOWERCAP={folder}/powercap\nSMI={smi}\n"
    )
    names = ("Prolog", "Epilog")
    lines = [f"{name}={folder}/crosscast/{name.lower()}.sh" for name in names]
    with starting() as start:
        cluster = start(Partition("gpu", gpus=1, default=True), lines=(*lines, "PrologFlags=Alloc"))
        yield Site(cluster, gpu, cpu, state)


@pytest.fixture
def site(node: Site) -> Site:
    """The node with its own limits."""
    node.gpu.write_text("250\n")
    node.cpu.write_text("200000000\n")
    return node


WHOLE = ("--gres=gpu:1", "-c", "8")


@pytest.mark.parametrize(
    ("comment", "caps"),
    [
        ("crosscast:a/b;gpu_cap_w=180;cpu_cap_w=120", (180, 120)),
        ("gpu_cap_w=9000 cpu_cap_w=9000", (280, 200)),
        ("gpu_cap_w=0 cpu_cap_w=1", (120, 40)),
        ("gpu_cap_w=0180", (180, 200)),
        *((wrong, (250, 200)) for wrong in ("gpu_cap_w=-5", "gpu_cap_w=180W", "gpu_cap_w=123456", "nothing")),
        ("gpu_cap_w=$(echo 150) cpu_cap_w=`echo 50`", (250, 200)),
    ],
)
def test_a_wish_is_clamped_and_given_back(site: Site, comment: str, caps: tuple[int, int]) -> None:
    assert site.during(comment, *WHOLE) == caps
    assert site.caps == (250, 200)


def test_what_a_job_does_not_have_is_not_capped(site: Site) -> None:
    assert site.during("gpu_cap_w=180 cpu_cap_w=100", "-c", "8") == (250, 100)
    assert site.during("gpu_cap_w=180 cpu_cap_w=100", "--gres=gpu:1", "-c", "4") == (180, 200)


def runs(site: Site, comment: str, caps: tuple[int, int]) -> str:
    """A job that runs with these caps."""
    job = site.cluster.submit(*WHOLE, f"--comment={comment}", script="sleep 100")
    site.cluster.until(lambda: site.cluster.job(job)["JobState"] == "RUNNING" and site.caps == caps)
    return job


def test_caps_of_a_job_or_node_that_ends_early_are_given_back(site: Site) -> None:
    job = runs(site, "gpu_cap_w=150 cpu_cap_w=90", (150, 90))
    site.cluster.run("scancel", job)
    site.cluster.until(lambda: site.caps == (250, 200))
    runs(site, "gpu_cap_w=150 cpu_cap_w=90", (150, 90))
    site.cluster.kill_node(1)
    site.cluster.run("scancel", "--state=RUNNING", "--user=root", check=False)
    site.cluster.start_node(1)
    site.cluster.run("scontrol", "update", "nodename=n1", "state=resume", check=False)
    site.cluster.until(lambda: "idle" in site.cluster.run("sinfo", "-h", "-o", "%T"))
    assert site.during("nothing", *WHOLE) == (250, 200)


def test_what_cannot_be_given_back_now_is_later(site: Site) -> None:
    job, broken = runs(site, "gpu_cap_w=150", (150, 200)), site.gpu.with_name("gpu.broken")
    broken.touch()
    site.cluster.run("scancel", job)
    # The node is free when the epilog has ended.
    site.cluster.until(lambda: "idle" in site.cluster.run("sinfo", "-h", "-o", "%T"))
    assert site.caps == (150, 200)
    broken.unlink()
    assert site.during("gpu_cap_w=170", *WHOLE) == (170, 200)
    assert site.caps == (250, 200)


@pytest.mark.parametrize("lost", ["crosscast/caps.conf", "crosscast/caps.sh", "nvidia-smi"])
def test_whatever_fails_the_node_stays_and_the_job_runs(site: Site, lost: str) -> None:
    path = site.gpu.parent / lost
    path.rename(path.with_name("gone"))
    try:
        site.during("gpu_cap_w=150", *WHOLE)
        assert site.cluster.run("sinfo", "-h", "-o", "%T").strip() in ("idle", "mixed", "completing")
    finally:
        path.with_name("gone").rename(path)


BUILD = (
    "dataset build --sizes tiny --devices pocl:0 --min-runs 3 --min-time 0.1 --suite crc,nqueens,fft".split()
)


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    with starting() as start:
        yield start(Partition("cpu", nodes=4, default=True))


@pytest.mark.skipif(
    # Its import would take Ctrl-C for itself.
    not all(map(importlib.util.find_spec, ("dask_jobqueue", "pyopencl"))),
    reason="dask-jobqueue or pyopencl is not installed",
)
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
