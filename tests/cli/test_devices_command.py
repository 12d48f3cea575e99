"""The command devices."""

import json
import subprocess
import sys

import pytest

from crosscast.cli import main
from crosscast.measure.opencl import devices

Output = pytest.CaptureFixture[str]


def test_json_is_a_list_of_devices(capsys: Output) -> None:
    assert main(["devices", "--json"]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert [entry["id"] for entry in found] == [device.id for device in devices()]
    assert all({"id", "name", "type", "compute_units", "sensors"} <= entry.keys() for entry in found)
    assert output.err == ""


def test_people_get_a_table_and_why_sensors_do_not_work(capsys: Output) -> None:
    assert main(["devices", "--json"]) == 0
    reasons = {
        sensor["reason"]
        for entry in json.loads(capsys.readouterr().out)
        for sensor in entry["sensors"]
        if not sensor["works"]
    }
    assert main(["devices"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("id ")
    assert all(device.id in shown for device in devices())
    assert all(reason in shown for reason in reasons)


def without_pyopencl(*words: str) -> "subprocess.CompletedProcess[str]":
    script = (
        "import sys\n"
        "sys.modules['pyopencl'] = None\n"
        "from crosscast.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    return subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("words", ["devices", "devices --json"])
def test_without_pyopencl_the_extra_is_named(words: str) -> None:
    ran = without_pyopencl(*words.split())
    assert (ran.stdout, ran.returncode) == ("", 2)
    assert ran.stderr == (
        "crosscast: measuring on OpenCL devices needs an optional part: pip install 'crosscast[opencl]'\n"
    )


@pytest.mark.parametrize("words", ["devices --help", "measure --help", "dataset build --help"])
def test_help_needs_no_opencl(words: str) -> None:
    ran = without_pyopencl(*words.split())
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert "--json" in ran.stdout
