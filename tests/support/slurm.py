"""A real Slurm for tests, private to them: own munged, slurmctld and nodes, own ports and files.

Runs as root or as any user, from Debian's packages (`PACKAGES`); without systemd, cgroups and any network but
127.0.0.1. It starts in about a second.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PACKAGES = "slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins lua-socket lua-cjson"
_NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo")
# The daemons are in folders that users often have not in theirs.
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


def missing() -> str:
    """What is not installed, and how to install it; empty if all is there."""
    lacks = [name for name in _NEEDED if shutil.which(name, path=_PATH) is None]
    if not Path("/usr/share/lua/5.1/socket.lua").exists():
        lacks.append("lua-socket")
    return f"no {', '.join(lacks)} here (apt-get install {PACKAGES})" if lacks else ""


def _version() -> tuple[int, int]:
    environment = {"PATH": _PATH}
    told = subprocess.run(["slurmctld", "-V"], env=environment, text=True, capture_output=True, check=True)
    major, minor = told.stdout.split()[-1].split(".")[:2]
    return int(major), int(minor)


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses at the moment."""
    with ExitStack() as undo:
        sockets = [undo.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


@dataclass(frozen=True)
class Partition:
    """Nodes of one kind."""

    name: str
    nodes: int = 1
    gpus: int = 0  # Of each node
    default: bool = False
    most_minutes: int | None = None


@dataclass
class SlurmCluster:
    """A cluster in a folder, as a context manager."""

    home: Path
    partitions: tuple[Partition, ...]
    lines: tuple[str, ...] = ()  # More of slurm.conf
    hooks: Path | None = None  # Folder with job_submit.lua and cli_filter.lua
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """What sbatch, srun and squeue need."""
        others = ("SLURM_", "SBATCH_", "SRUN_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        return kept | {"SLURM_CONF": str(self.home / "slurm.conf"), "PATH": _PATH}

    def run(self, *command: object, timeout: float = 60, check: bool = True) -> str:
        """Standard output of a command."""
        words = [str(word) for word in command]
        try:
            done = subprocess.run(
                words, env=self.environment, text=True, capture_output=True, timeout=timeout, check=check
            )
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"{words}: {error.stderr}\n{self.logs()}") from error
        return done.stdout

    def submit(self, *options: object, script: str = "true") -> str:
        """Number of a job that is submitted."""
        output = () if any(str(each).startswith("-o") for each in options) else ("-o", "/dev/null")
        return self.run("sbatch", "--parsable", *output, *options, "--wrap", script).strip()

    def job(self, number: str) -> dict[str, str]:
        """What Slurm says of a job."""
        found = dict[str, str]()
        for line in map(str.strip, self.run("scontrol", "show", "job", number).splitlines()):
            name, _, value = line.partition("=")
            # All others are without spaces.
            found |= {name: value} if name.endswith("Comment") else dict(re.findall(r"(\S+?)=(\S*)", line))
        return found

    def restart(self) -> None:
        """Start the controller again, as an operator would."""
        self.run("scontrol", "shutdown", "slurmctld")
        self.processes.pop("slurmctld").wait(20)
        self._start("slurmctld", "slurmctld", "-D")
        self.until(lambda: "UP" in self.run("scontrol", "ping", check=False))

    def __enter__(self) -> SlurmCluster:
        assert len(str(self.home)) <= 80, "too long for a Unix socket"
        try:
            self._write()
            home = self.home
            options = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid"}
            words = [f"--{name}={home}/{file}" for name, file in options.items()]
            self._start("munged", "munged", "--foreground", f"--seed-file={home}/munged.seed", *words)
            self.until((home / "munge.socket").exists)
            self._start("slurmctld", "slurmctld", "-D", "-c", "-i")
            for number in range(1, 1 + sum(each.nodes for each in self.partitions)):
                self.start_node(number)
            self.until(self._idle)
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_node(self, number: int) -> None:
        """Start a node, for the first time or again."""
        self._start(f"slurmd-n{number}", "slurmd", "-D", "-N", f"n{number}")

    def kill_node(self, number: int) -> None:
        """End a node and what runs on it at once, as when its power fails."""
        mark = f"SLURMD_NODENAME=n{number}".encode()
        node = self.processes.pop(f"slurmd-n{number}")
        node.kill()
        node.wait()
        for pid in self._left(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def __exit__(self, *_: object) -> None:
        if self.processes.get("slurmctld"):
            with suppress(subprocess.SubprocessError, OSError, RuntimeError):
                self.run("scancel", f"--user={_user()}", timeout=5)
                self.until(lambda: not self.run("squeue", "-h", "-t", "R,CG", timeout=5), 5)
        for kind in ("slurmd", "slurmctld", "munged"):
            ending = [each for name, each in self.processes.items() if name.split("-")[0] == kind]
            for each in ending:
                each.terminate()
            for each in ending:
                try:
                    each.wait(5)
                except subprocess.TimeoutExpired:
                    each.kill()
                    each.wait()
        self.processes.clear()
        # slurmstepd outlives slurmd on purpose, and so do the processes of jobs.
        for pid in self._left():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def until(self, holds: Callable[[], object], seconds: float = 30) -> None:
        """Wait until something holds."""
        end = time.monotonic() + seconds
        while not holds():
            if any(each.poll() is not None for each in self.processes.values()) or time.monotonic() > end:
                raise RuntimeError(f"it never held:\n{self.logs()}")
            time.sleep(0.03)

    def logs(self) -> str:
        """The ends of all logs."""
        files = sorted((self.home / "log").iterdir())
        return "\n".join(f"== {each.name}\n{each.read_text(errors='replace')[-2000:]}" for each in files)

    def _idle(self) -> bool:
        return set(self.run("sinfo", "-h", "-N", "-o", "%T", timeout=10, check=False).split()) == {"idle"}

    def _start(self, name: str, *command: str) -> None:
        with (self.home / "log" / f"{name}.out").open("ab") as out:
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
            self.processes[name] = subprocess.Popen(
                command, env=self.environment, start_new_session=True, **streams
            )

    def _left(self, also: bytes | None = None) -> list[int]:
        """Processes of the cluster that are there still, of one node if asked to."""
        marks = {f"SLURM_CONF={self.home}/slurm.conf".encode()} | ({also} if also else set())
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                with suppress(OSError):
                    if marks <= set((folder / "environ").read_bytes().split(b"\0")):
                        found.append(int(folder.name))
        return found

    def _write(self) -> None:
        home = self.home
        for folder in ("state", "spool", "log"):
            (home / folder).mkdir(parents=True)
        home.chmod(0o755)
        key = home / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(128))
        lines = [*self._settings(), *self.lines]
        for plugin, name in (("JobSubmitPlugins", "job_submit.lua"), ("CliFilterPlugins", "cli_filter.lua")):
            if self.hooks is not None and (self.hooks / name).exists():
                lines.append(f"{plugin}=lua")
                # Slurm looks for it beside its own configuration.
                shutil.copy(self.hooks / name, home / name)
        (home / "slurm.conf").write_text("\n".join(lines) + "\n")
        # From 24.05 on slurmd starts it whatever ProctrackType says; older ones do not know the word.
        if _version() >= (24, 5):
            (home / "cgroup.conf").write_text("CgroupPlugin=disabled\n")

    def _settings(self) -> list[str]:
        home, me, host = self.home, _user(), socket.gethostname().split(".")[0]
        ports = iter(free_ports(1 + sum(each.nodes for each in self.partitions)))
        lines = [
            "ClusterName=test",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={next(ports)}",
            f"SlurmUser={me}",
            f"SlurmdUser={me}",
            "AuthType=auth/munge",
            f"AuthInfo=socket={home}/munge.socket",
            "CredType=cred/munge",
            f"StateSaveLocation={home}/state",
            f"SlurmdSpoolDir={home}/spool/%n",
            f"SlurmctldPidFile={home}/slurmctld.pid",
            f"SlurmdPidFile={home}/slurmd-%n.pid",
            f"SlurmctldLogFile={home}/log/slurmctld.log",
            f"SlurmdLogFile={home}/log/slurmd-%n.log",
            "MailProg=/bin/true",
            "MpiDefault=none",
            # With the default, srun and sbatch succeed and run nothing.
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core_Memory",
            "DefMemPerCPU=1",
            "SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_min_interval=0",
            # Nodes have more processors than this machine.
            "SlurmdParameters=config_overrides",
            "ReturnToService=2",
            "KillWait=1",
            "SlurmdTimeout=5",
            "GresTypes=gpu",
        ]
        gres, number = [], 0
        for each in self.partitions:
            names = [f"n{number + place}" for place in range(1, each.nodes + 1)]
            number += each.nodes
            gpus = f" Gres=gpu:{each.gpus}" if each.gpus else ""
            lines += [
                f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={next(ports)} CPUs=8 "
                f"RealMemory=4000{gpus}"
                for name in names
            ]
            gres += [f"NodeName={name} Name=gpu File=/dev/null" for name in names for _ in range(each.gpus)]
            lines.append(
                f"PartitionName={each.name} Nodes={','.join(names)} DefaultTime=60 State=UP "
                f"Default={'YES' if each.default else 'NO'} MaxTime={each.most_minutes or 'INFINITE'}"
            )
        (home / "gres.conf").write_text("".join(f"{line}\n" for line in gres))
        return lines


@contextmanager
def starting() -> Iterator[Callable[..., SlurmCluster]]:
    """Gives what starts clusters of partitions, with hooks and lines of slurm.conf; all end with it."""
    with ExitStack() as undo:

        def start(
            *partitions: Partition, hooks: Path | None = None, lines: tuple[str, ...] = ()
        ) -> SlurmCluster:
            # Not pytest's folders: munge wants one that others cannot write, and Unix sockets a short name.
            home = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))
            home.chmod(0o755)
            return undo.enter_context(SlurmCluster(home / "c", partitions, lines, hooks))

        yield start


def _user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name
