"""Microbenchmarks as processes without OpenCL, by call and by command."""

import json
import subprocess
import sys

import pytest

from crosscast.cli import main
from crosscast.errors import InputError
from crosscast.measure.corun.stressors import LEVELS, host_run

Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize("level", LEVELS)
def test_it_runs_once_at_least_after_it_said_that_it_is_ready(level: str) -> None:
    said: list[str] = []
    found = host_run(level, 6400, 0.0, lambda: said.append("ready"))
    assert (found.level, found.runs, said) == (level, 1, ["ready"])
    assert found.bandwidth_bytes_per_s > 0


@pytest.mark.parametrize(
    ("level", "nbytes", "seconds", "message"),
    [
        ("highest", 6400, 0.0, "level: expected one of low, medium, high, found 'highest'"),
        ("high", 63, 0.0, "image_bytes: expected at least 64, found 63"),
        ("high", 6400, -1.0, "seconds: expected a number of seconds, found -1"),
        ("high", 6400, float("nan"), "seconds: expected a number of seconds, found nan"),
    ],
)
def test_wrong_input_is_refused(level: str, nbytes: int, seconds: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        host_run(level, nbytes, seconds)


def test_the_command_says_when_it_is_ready_and_what_it_moved(capfd: Output) -> None:
    assert main(["corun", "neighbour", "medium", "--seconds", "0", "--image", "64K", "--json"]) == 0
    output = capfd.readouterr()
    found = json.loads(output.out)
    assert (found["level"], found["runs"], found["image_bytes"]) == ("medium", 1, 65536)
    assert output.err == "ready\n"


def test_the_command_refuses_what_it_cannot_be(capfd: Output) -> None:
    assert main(["corun", "neighbour", "none"]) == 2
    assert "LEVEL: expected one of low, medium, high, found 'none'" in capfd.readouterr().err
    assert main(["corun", "neighbour", "low", "--seconds", "-3"]) == 2
    assert "--seconds: expected a number of seconds" in capfd.readouterr().err


def test_it_needs_no_opencl() -> None:
    code = (
        "import sys; sys.modules['pyopencl'] = None\n"
        "from crosscast.cli import main\n"
        "sys.exit(main(['corun', 'neighbour', 'low', '--seconds', '0', '--image', '64K']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("low: ")
