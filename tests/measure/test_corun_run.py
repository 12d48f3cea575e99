"""Mixes: their arithmetic, and on a real device, of applications that are well and of some that are not."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import InputError, MissingExtraError, UnsupportedError
from crosscast.measure import Reading, corun
from crosscast.measure.corun import crew as crews
from crosscast.measure.opencl import devices
from crosscast.measure.processes import Orders
from crosscast.measure.sensors import ReplaySensor
from crosscast.measure.subjects import LaunchFile, SuiteProblem
from support.processes import NOTE, is_gone, noted
from support.refusals import refusal, refusals


@refusals("given message")
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        corun.CoRunSettings(**given)


STEPS = Reading("package-0", 4, (0.0, 1.0, 2.0, 3.0), (0.0, 10.0, 40.0, 50.0))
"""10 W for a second, 30 W for one, and 10 W for one."""


@pytest.mark.parametrize(
    ("time", "watts"),
    [(corun.Span(100.0, 103.0), 50 / 3), (corun.Span(100.5, 101.5), 20.0), (corun.Span(90.0, 101.0), 10.0)],
)
def test_power_is_energy_in_the_window_by_time(time: corun.Span, watts: float) -> None:
    assert corun.powers([STEPS], 100.0, time) == {"package-0": pytest.approx(watts)}
    assert corun.powers([STEPS], 100.0, corun.Span(0.0, 1.0)) == corun.powers([], 0.0, time) == {}


@st.composite
def members(draw: st.DrawFn) -> list[corun.Span]:
    """Jobs one after another, with pauses of any length between them."""
    steps = draw(st.lists(st.integers(0, 5), min_size=2, max_size=24))
    times = list(accumulate(steps, initial=draw(st.integers(0, 10))))
    return [
        corun.Span(float(a), float(b)) for number, (a, b) in enumerate(pairwise(times)) if number % 2 == 0
    ]


@given(st.lists(members(), min_size=1, max_size=4))
def test_the_window_is_from_the_last_first_start_to_the_first_last_end(jobs: list[list[corun.Span]]) -> None:
    together = corun.window(jobs)
    start_s, end_s = max(some[0].start_s for some in jobs), min(some[-1].end_s for some in jobs)
    assert together == (corun.Span(start_s, end_s) if start_s < end_s else None)
    for some in jobs if together else []:
        within = [job for job in some if start_s <= job.start_s and job.end_s <= end_s]
        assert some[corun.inside(some, corun.Span(start_s, end_s))] == within
    assert corun.window([*jobs, []]) is corun.window([]) is None


@given(st.lists(members().map(lambda jobs: jobs[0]), min_size=1, max_size=5))
def test_the_overlap_is_the_share_in_which_all_run(round_: list[corun.Span]) -> None:
    whole = range(int(min(job.start_s for job in round_)), int(max(job.end_s for job in round_)))
    together = [all(job.start_s <= step < job.end_s for job in round_) for step in whole]
    assert corun.overlap(round_) == (sum(together) / len(whole) if whole else 1.0)


def test_orders_come_one_by_one_however_they_were_written() -> None:
    here, there = os.pipe()
    orders = Orders(here)
    assert not orders.waiting()
    os.write(there, b'{"do": "a"}\n{"do": "b", "runs": 3}\n{"do":')
    assert [(orders.waiting(), orders.next()) for _ in range(2)] == [
        (True, {"do": "a"}),
        (True, {"do": "b", "runs": 3}),
    ]
    os.write(there, b' "c"}\n')
    assert (orders.next(), orders.waiting()) == ({"do": "c"}, False)
    os.close(there)
    assert orders.waiting(), "a loop must end when nobody is there to end it"
    assert orders.next() is None
    os.close(here)


Folder = Callable[..., Path]
QUICK = corun.CoRunSettings(round_s=0.05, jobs=2)
FLAG = "if Path(__file__).with_name('flag').exists(): "


def work(folder: Path, runs: int | None = 1) -> corun.JobWork:
    return corun.JobWork(SuiteProblem(str(folder), "tiny", {"items": 1024}, 0), runs)


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[crews.Crew]:
    """A crew beside a sensor that sees 10 W at all times."""
    recording = tmp_path_factory.mktemp("sensor") / "watts.csv"
    recording.write_text("domain,time_s,energy_j\nall,0,0\nall,1000,10000\n")
    with crews.Crew(devices()[-1], replace(QUICK, sensor=f"replay:{recording}")) as crew:
        yield crew


def expect_whole(mix: corun.MixRun, jobs: int = QUICK.jobs) -> None:
    assert not mix.failed
    assert mix.notes == []
    # A recording is read by the clock after the time that the reading carries: by microseconds, or by
    # milliseconds where another process comes between the two.
    assert mix.powers_w == {"all": pytest.approx(10.0, rel=0.05)}
    assert len(mix.mix_times_s) == QUICK.jobs
    assert mix.overlap is not None
    assert 0 <= mix.overlap <= 1
    for each in mix.co_runners:
        assert each.memory_bytes == 8192
        assert len(each.times_s) >= jobs
        # All run together for as long as so many jobs are meant to take; some of that is between jobs.
        assert sum(each.times_s) >= 0.5 * QUICK.window_s
        assert each.cpu_s is not None and min(each.cpu_s, *each.times_s) > 0
        assert all(value >= 0 for value in each.counters.values())


def test_an_application_alone_and_twice_at_the_same_time(crew: crews.Crew, make_application: Folder) -> None:
    folder = make_application(init=NOTE)
    told: list[tuple[int, float]] = []
    alone = crew.run([work(folder, None)], lambda jobs, seconds: told.append((jobs, seconds)))
    expect_whole(alone)
    assert (alone.overlap, alone.sharing) == (1.0, {})
    assert told == sorted(told)
    assert told[-1][0] >= QUICK.jobs
    assert len(noted(folder)) == 1
    twice = crew.run([work(folder, None), work(folder, None)])
    expect_whole(twice)
    assert [each.runs for each in twice.co_runners] == [alone.co_runners[0].runs] * 2
    expect_whole(crew.run([work(folder, 7)]))
    assert len(noted(folder)) == 2, "one process for each, which stay"


@pytest.mark.system
def test_jobs_are_as_many_runs_as_asked_also_when_the_sensor_goes_away(
    crew: crews.Crew, make_application: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    short = tmp_path / "short.csv"
    short.write_text("domain,time_s,energy_j\nall,0,0\nall,0.01,1\n")
    monkeypatch.setattr(crew, "_sensor", ReplaySensor(short))
    folder = make_application(check="Path(__file__ + '.runs').write_text(str(self.count))")
    mix = crew.run([work(folder, 5)])
    runs = int((folder / "driver.py.runs").read_text())
    (each,) = mix.co_runners
    assert each.runs == 5
    # A warm-up, the jobs of the loop, the last of which may have been stopped, and those of the rounds.
    assert runs >= 1 + 5 * (len(each.times_s) + QUICK.jobs) >= 1 + 10 * QUICK.jobs
    assert (mix.powers_w, mix.notes) == ({}, [f"replay: {short} ends after 0.01 s"])


def test_a_co_runner_that_crashes_leaves_the_others_what_they_have(
    crew: crews.Crew, make_application: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    well = make_application("well")
    ill = make_application("ill", run="time.sleep(0.002)\n        if self.count > 200: os.abort()")
    monkeypatch.setattr(crew, "settings", replace(crew.settings, jobs=1000))
    mix = crew.run([work(ill), work(well)])
    first, second = mix.co_runners
    assert first.failure == "ill tiny: the process that measured was killed by SIGABRT"
    assert (first.times_s, first.runs, first.memory_bytes) == ([], 1, 8192)
    assert second.times_s and second.failure is None
    assert (mix.failed, mix.mix_times_s, mix.overlap) == (True, [], None)
    monkeypatch.undo()
    expect_whole(crew.run([work(well)]))


@pytest.mark.system
def test_co_runners_that_do_not_start_are_marked_and_others_not(
    crew: crews.Crew, make_application: Folder
) -> None:
    unbuilt = make_application("unbuilt", source="kernel void twice(global int *a) { a[0] = oops; }")
    crashing = make_application("crashing", kernels=("crash",))
    raising = make_application("raising", init="1 / 0")
    mix = crew.run([work(make_application("well")), work(crashing), work(unbuilt, None), work(raising)])
    failures = [each.failure or "" for each in mix.co_runners]
    assert failures[0] == ""
    assert "crashing tiny: the process that measured was killed by SIG" in failures[1]
    assert "refuses it" in failures[2]
    assert "raising tiny: the process that measured ended with code 1: ZeroDivisionError" in failures[3]
    assert not any("\n" in failure for failure in failures)
    found = [(each.runs, each.memory_bytes, each.times_s) for each in mix.co_runners]
    assert found == [(1, 8192, []), (1, None, []), (None, None, []), (1, None, [])]
    assert (mix.mix_times_s, mix.overlap, mix.powers_w) == ([], None, {})


def test_a_wrong_result_spoils_its_own_times_only(crew: crews.Crew, make_application: Folder) -> None:
    wrong = make_application("wrong", check="if self.count > 1: raise CheckFailed('first at 3')")
    mix = crew.run([work(wrong), work(make_application("well"))])
    first, second = mix.co_runners
    assert (first.failure, first.times_s, second.failure, mix.mix_times_s) == ("first at 3", [], None, [])
    assert len(second.times_s) >= QUICK.jobs


@pytest.mark.system
def test_one_that_hangs_is_replaced(
    crew: crews.Crew, make_application: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = make_application("hangs", init=NOTE, run=FLAG + "time.sleep(600)")
    works = [work(make_application("well")), work(hangs)]
    expect_whole(crew.run(works))
    flag = hangs / "flag"
    flag.touch()
    monkeypatch.setattr(crew, "settings", replace(crew.settings, timeout_s=1.0))
    well, hanging = crew.run(works).co_runners
    assert (well.failure, well.times_s) == (None, [])
    assert hanging.failure == "hangs tiny: did not end a job within 1 s (the time limit)"
    (process,) = noted(hangs)
    assert is_gone(process)
    flag.unlink()
    monkeypatch.undo()
    expect_whole(crew.run(works))
    assert len(noted(hangs)) == 2


@pytest.mark.system
def test_little_time_is_a_note(
    crew: crews.Crew, make_application: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = work(make_application(run="time.sleep(0.1)"))
    crew.run([slow])
    monkeypatch.setattr(crew, "settings", replace(crew.settings, timeout_s=0.6, jobs=11))
    mix = crew.run([slow])
    assert not mix.failed
    (note,) = mix.notes
    assert note.startswith("own tiny: expected 11 whole jobs while all run, found ")
    assert mix.co_runners[0].times_s


@pytest.mark.system
def test_a_process_that_died_or_was_interrupted_is_replaced(
    crew: crews.Crew, make_application: Folder
) -> None:
    folder = make_application(init=NOTE)

    def interrupt(jobs: int, elapsed_s: float) -> None:
        raise KeyboardInterrupt

    crew.run([work(folder)])
    (first,) = noted(folder)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    with pytest.raises(KeyboardInterrupt):
        crew.run([work(folder)], interrupt)
    assert len(noted(folder)) == 2
    assert all(map(is_gone, noted(folder)))
    expect_whole(crew.run([work(folder)]))


@pytest.mark.system
@pytest.mark.parametrize("limit", ["_most", "memory_bytes"])  # That of this machine, or of its container
def test_too_many_processes_are_ended(
    crew: crews.Crew, make_application: Folder, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (make_application(name, init=NOTE) for name in ("first", "second"))
    crew.run([work(first)])
    target, value = (crew, 1) if limit == "_most" else (crews, lambda: 1 << 20)
    monkeypatch.setattr(target, limit, value)
    crew.run([work(second)])
    assert all(map(is_gone, noted(first)))
    assert not any(map(is_gone, noted(second)))


def test_what_this_machine_lacks_is_no_failure_of_a_member(
    crew: crews.Crew, make_application: Folder
) -> None:
    folder = make_application(init="raise MissingExtraError('suite', 'checking')")
    with pytest.raises(MissingExtraError, match=r"pip install 'crosscast\[suite\]'"):
        crew.run([work(folder)])
    assert "works: expected a co-runner at least, found none" in refusal(crew.run, [])
    assert "runs: expected at least 1, found 0" in refusal(corun.JobWork, LaunchFile("launches.toml"), 0)


@pytest.mark.system
def test_threads_are_limited_where_the_device_allows(make_application: Folder) -> None:
    device = devices()[0]
    folder = make_application(
        init="Path(__file__ + '.threads').write_text(os.environ['POCL_MAX_PTHREAD_COUNT'])"
    )
    with crews.Crew(device, replace(QUICK, sensor="none", threads=1)) as crew:
        mix = crew.run([work(folder)])
    assert (mix.failed, mix.sharing, mix.powers_w) == (False, {"threads": 1}, {})
    assert (folder / "driver.py.threads").read_text() == "1"
    too_many = replace(QUICK, threads=device.compute_units + 1)
    assert "threads: expected at most" in refusal(crews.Crew, device, too_many)
    with pytest.raises(UnsupportedError, match="threads: expected a CPU device of PoCL"):
        crews.Crew(replace(device, id="nvidia:0", type="gpu"), replace(QUICK, threads=1))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET])
def test_only_nvidia_shares_by_a_daemon_that_listens(folder: Path, kind: socket.SocketKind) -> None:
    there = {"CUDA_MPS_PIPE_DIRECTORY": str(folder)}
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(str(folder / "control"))
        server.listen(1)
        assert crews.sharing("nvidia:1", environment=there) == {"sharing": "mps"}
        assert crews.sharing("pocl:0", environment=there) == {}
    # The socket outlives it.
    assert (folder / "control").is_socket()
    assert crews.sharing("nvidia:0", environment=there) == {"sharing": "time-slicing"}
    assert crews.sharing("amd:0", environment=there) == {}
    assert crews.sharing("pocl:0", 2) == {"threads": 2}
    assert crews.sharing("nvidia:0", 1, there) == {"sharing": "time-slicing", "threads": 1}


def test_a_pipe_is_a_daemon_while_it_is_read_and_another_file_is_none(folder: Path) -> None:
    control = folder / "control"
    assert not crews.mps_runs(folder / "missing")
    assert not crews.mps_runs(folder)
    os.mkfifo(control)
    assert not crews.mps_runs(folder)
    reader = os.open(control, os.O_RDONLY | os.O_NONBLOCK)
    assert crews.mps_runs(folder)
    os.close(reader)
    control.unlink()
    control.write_text("")
    assert not crews.mps_runs(folder)
