"""The command dataset build: whole, killed, interrupted, and with applications that fail."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crosscast.cli import main
from crosscast.data.dataset import Dataset, parts, read_dataset, write_dataset
from crosscast.data.description import describe
from crosscast.data.schema import DEVICES
from crosscast.data.table import table_of
from crosscast.measure.inventory import known_row
from crosscast.measure.opencl import devices
from support.commands import Output
from support.processes import NOTE, is_gone, noted, wait_until

Folder = Callable[..., Path]
Process = subprocess.Popen[str]
APPLICATIONS = ["crc", "gem"]
DEVICE = devices()[-1]
QUICK = ["--sizes", "tiny", "--min-runs", "3", "--min-time", "0.02", "--sensor", "none"]


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """A dataset that holds no more than the device, so that no test waits for that."""
    row = known_row(DEVICE) | {"launch_overhead_s": 1e-5}
    write_dataset(Dataset("new", devices=table_of(DEVICES, [row])), tmp_path / "set")
    return tmp_path / "set"


def words(out: Path, *applications: object) -> list[str]:
    suite = ",".join(map(str, applications))
    return ["dataset", "build", "--out", str(out), "--suite", suite, "--devices", DEVICE.id, *QUICK]


def start(out: Path, *applications: object) -> Process:
    command = [sys.executable, "-m", "crosscast", *words(out, *applications)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def ended(build: Process) -> tuple[int, str]:
    """Exit code of a build, and its complaints other than its progress."""
    _, errors = build.communicate(timeout=120)
    complaints = [line for line in errors.splitlines() if not re.search(r" done, (about|less than) ", line)]
    return build.returncode, "\n".join(complaints)


def sessions(folder: Path) -> dict[str, float]:
    """When each application was measured."""
    rows = read_dataset(folder).sessions.to_pylist()
    return {row["application"]: row["started_s"] for row in rows}


def test_a_build_describes_characterizes_and_measures(tmp_path: Path, capfd: Output) -> None:
    assert main([*words(tmp_path / "new", *APPLICATIONS), "--json"]) == 0
    output = capfd.readouterr()
    found = json.loads(output.out)
    assert (found["applications"], found["sizes"], found["devices"]) == (
        ["crc", "gem"],
        ["tiny"],
        [DEVICE.key],
    )
    assert (found["cells"], found["failed"], found["missing"]) == (2, [], [])
    dataset = read_dataset(tmp_path / "new")
    assert dataset.devices.column("bandwidth_bytes_per_s").to_pylist()[0] > 0
    assert parts(tmp_path / "new") == ()
    assert main([*words(tmp_path / "new", *APPLICATIONS), "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == found


@pytest.mark.system
def test_a_build_killed_again_and_again_ends_as_if_it_had_not_been(described: Path, tmp_path: Path) -> None:
    undisturbed = tmp_path / "undisturbed"
    write_dataset(read_dataset(described), undisturbed)
    began = time.monotonic()
    assert ended(start(undisturbed, *APPLICATIONS)) == (0, "")
    whole_s = time.monotonic() - began
    chance = random.Random(7)
    before: dict[str, float] = {}
    for _ in range(3):
        build = start(described, *APPLICATIONS)
        time.sleep(chance.uniform(0.1, 0.8) * whole_s)
        os.killpg(build.pid, signal.SIGKILL)
        build.communicate()
        now = sessions(described)
        # What was done is not done again.
        assert before.items() <= now.items()
        before = now
    assert ended(start(described, *APPLICATIONS)) == (0, "")
    assert before.items() <= sessions(described).items()
    cells = [
        [(noise.application, noise.kernel, noise.size, noise.device) for noise in describe(dataset).noise]
        for dataset in map(read_dataset, (described, undisturbed))
    ]
    assert cells[0] == cells[1]
    assert (described / "profiles.parquet").read_bytes() == (undisturbed / "profiles.parquet").read_bytes()
    assert parts(described) == ()
    assert {path.name for path in described.iterdir()} == {path.name for path in undisturbed.iterdir()}


@pytest.mark.system
def test_ctrl_c_keeps_what_is_done_and_leaves_no_process(described: Path, make_application: Folder) -> None:
    slow = make_application("slow", init=NOTE, run="time.sleep(0.1)")
    build = start(described, "crc", slow)
    # One process characterizes, the other measures.
    wait_until(lambda: len(noted(slow)) == 2)
    build.send_signal(signal.SIGINT)
    output, errors = build.communicate(timeout=60)
    assert (output, errors.splitlines()[-1], build.returncode) == ("", "crosscast: interrupted", 130)
    assert "Traceback" not in errors
    assert sessions(described).keys() == {"crc"}
    wait_until(lambda: all(map(is_gone, noted(slow))))
