"""Programs that end in every way, in processes of their own."""

import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from crosscast import read_history
from crosscast.measure.regions.key import RegionRun
from support.processes import wait_until

BEGIN = """
import atexit, os, signal, sys, threading, time
import crosscast
path = sys.argv[1]
def step(name):
    with crosscast.profiled(name, history=path, sensors="none"):
        pass
step("first")
"""


def started(program: str, path: Path) -> subprocess.Popen[str]:
    script = dedent(BEGIN) + dedent(program)
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(program: str, path: Path) -> tuple[int, str]:
    with started(program, path) as process:
        return process.wait(), process.communicate()[1]


def names_in(path: Path) -> list[str]:
    history = read_history(path)
    keys = history.keys()
    runs: list[RegionRun] = [run for key in keys for run in history.runs(key, failed=True)]
    return [f"{run.key.name} {run.failure}" if run.failure else run.key.name for run in runs]


@pytest.mark.parametrize(
    ("program", "status", "names"),
    [
        ("step('last')", 0, ["first", "last"]),
        ("sys.exit(3)", 3, ["first"]),
        ("raise ValueError", 1, ["first"]),
        (
            """
            with crosscast.profiled("last", history=path, sensors="none"):
                raise ValueError
            """,
            1,
            ["first", "last ValueError"],
        ),
        (
            """
            with crosscast.profiled("last", history=path, sensors="none"):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(60)
            """,
            -signal.SIGINT,
            ["first", "last KeyboardInterrupt"],
        ),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -signal.SIGTERM, ["first"]),
        # After that of the history, and before.
        ("atexit.register(step, 'last')", 0, ["first", "last"]),
        # A program's own handler is left alone.
        (
            """
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(5))
            step("last")
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
            """,
            5,
            ["first", "last"],
        ),
        (
            """
            thread = threading.Thread(target=step, args=("last",))
            thread.start()
            thread.join()
            """,
            0,
            ["first", "last"],
        ),
    ],
)
def test_a_program_that_ends_has_written_its_runs(
    program: str, status: int, names: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "runs.jsonl"
    found, errors = ended(program, path)
    assert (found, names_in(path)) == (status, names), errors


def test_regions_in_functions_that_run_at_the_end_are_written_too(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    script = "import atexit\natexit.register(lambda: step('last'))\n" + BEGIN
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, names_in(path)) == (0, ["first", "last"]), done.stderr


def test_a_killed_program_loses_only_what_it_did_just_before(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    program = """
    while True:
        step("again")
        time.sleep(0.001)
    """
    with started(program, path) as process:
        wait_until(lambda: path.exists() and len(read_history(path)) > 100)
        process.kill()
    names = names_in(path)
    assert set(names) == {"first", "again"}
    assert len(names) > 100


def test_the_signal_in_the_middle_of_writing_ends_the_program_after_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    program = """
    from crosscast.measure.regions import history
    append = history.append
    def interrupted(*words):
        os.kill(os.getpid(), signal.SIGTERM)
        append(*words)
    history.append = interrupted
    crosscast.profiled("first", history=path).history.flush()
    time.sleep(60)
    """
    status, errors = ended(program, path)
    assert (status, names_in(path)) == (-signal.SIGTERM, ["first"]), errors


def test_a_forked_process_that_ends_writes_its_own(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    program = """
    with crosscast.profiled("both", history=path, sensors="none"):
        child = os.fork()
    if child == 0:
        step("child")
        sys.exit(0)
    os.waitpid(child, 0)
    """
    status, errors = ended(program, path)
    assert status == 0, errors
    assert sorted(names_in(path)) == ["both", "child", "first"]
    assert not errors


def test_many_processes_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    program = """
    for number in range(300):
        step(f"{os.getpid()}")
        if number % 7 == 0:
            crosscast.profiled("x", history=path).history.flush()
    """
    processes = [started(program, path) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    for process in processes:
        process.communicate()
    names = names_in(path)
    assert {name: names.count(name) for name in set(names)} == {
        "first": 4,
        **{str(process.pid): 300 for process in processes},
    }


def test_regions_bring_nothing_heavy(tmp_path: Path) -> None:
    program = """
    heavy = {"numpy", "pyarrow", "pyopencl", "pynvml", "rich", "cyclopts"} & sys.modules.keys()
    sys.exit(",".join(heavy) or 0)
    """
    assert ended(program, tmp_path / "runs.jsonl") == (0, "")


def test_the_example_shows_its_history(tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "examples" / "profiled_stencil.py"
    if not example.exists():
        pytest.skip("no checkout")
    path = tmp_path / "runs.jsonl"
    words = [sys.executable, str(example), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "smooth(float64[128x128], float64[128x128]) at __main__.relax" in done.stdout
    history = read_history(path)
    keys = history.keys()
    assert sorted(len(history.runs(key)) for key in keys) == [1, 1, 200, 200]
