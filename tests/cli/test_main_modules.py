"""The command by the names of its modules."""

import subprocess
import sys

import pytest

import crosscast


@pytest.mark.parametrize("module", ["crosscast", "crosscast.cli"])
def test_the_package_runs_as_the_command(module: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, crosscast.__version__)
