"""Bags on a real device, of applications that are well, and of some that are not."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from crosscast.errors import InputError, MissingExtraError, UnsupportedError
from crosscast.measure.corun.crew import Crew, Work, mps_runs, sharing
from crosscast.measure.corun.mix_run import CoRunSettings, MixRun
from crosscast.measure.opencl import devices
from crosscast.measure.sensors import ReplaySensor
from crosscast.measure.subjects import SuiteProblem
from support.processes import NOTE, is_gone, noted

Folder = Callable[..., Path]
QUICK = CoRunSettings(round_s=0.02, window_s=0.1, jobs=2, rounds=2)
FLAG = "if Path(__file__).with_name('flag').exists(): "


def work(folder: Path, runs: int | None = 1) -> Work:
    return Work(SuiteProblem(str(folder), "tiny", {"items": 1024}, 0), runs)


def flag(folder: Path) -> Path:
    return folder / "flag"


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """A crew beside a sensor that sees 10 W at all times."""
    recording = tmp_path_factory.mktemp("sensor") / "watts.csv"
    recording.write_text("domain,time_s,energy_j\nall,0,0\nall,1000,10000\n")
    with Crew(devices()[-1], replace(QUICK, sensor=f"replay:{recording}")) as crew:
        yield crew


def expect_whole(bag: MixRun, jobs: int = QUICK.jobs) -> None:
    assert not bag.failed
    assert bag.notes == []
    # A recording is read by the clock, some microseconds after the time that the reading carries.
    assert bag.powers_w == {"all": pytest.approx(10.0, rel=1e-3)}
    assert len(bag.mix_times_s) == QUICK.rounds
    assert bag.overlap is not None
    assert 0 <= bag.overlap <= 1
    for member in bag.co_runners:
        assert member.memory_bytes == 8192
        assert len(member.times_s) >= jobs
        assert member.cpu_s is not None and min(member.cpu_s, *member.times_s) > 0
        assert all(value >= 0 for value in member.counters.values())


def test_an_application_alone_and_twice_at_the_same_time(crew: Crew, make_application: Folder) -> None:
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
    assert [member.runs for member in twice.co_runners] == [alone.co_runners[0].runs] * 2
    expect_whole(crew.run([work(folder, 7)]))
    assert len(noted(folder)) == 2, "one process for each, which stay"


def test_jobs_are_as_many_runs_as_asked_also_when_the_sensor_goes_away(
    crew: Crew, make_application: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    short = tmp_path / "short.csv"
    short.write_text("domain,time_s,energy_j\nall,0,0\nall,0.01,1\n")
    monkeypatch.setattr(crew, "_sensor", ReplaySensor(short))
    count = "Path(__file__ + '.runs').write_text(str(self.count))"
    folder = make_application(check=count)
    bag = crew.run([work(folder, 5)])
    runs = int((folder / "driver.py.runs").read_text())
    (member,) = bag.co_runners
    assert member.runs == 5
    # A warm-up, the jobs of the loop, the last of which may have been stopped, and those of the rounds.
    assert runs >= 1 + 5 * (len(member.times_s) + QUICK.rounds)
    assert len(member.times_s) >= QUICK.jobs
    assert (bag.powers_w, bag.notes) == ({}, [f"replay: {short} ends after 0.01 s"])


def test_members_of_unequal_length_run_until_the_slowest_has_enough(
    crew: Crew, make_application: Folder
) -> None:
    slow = make_application("slow", run="time.sleep(0.1)")
    # What it says fills a pipe that nobody empties.
    quick = make_application("quick", run="os.write(1, b'noise' * 4000)")
    bag = crew.run([work(slow), work(quick)])
    expect_whole(bag)
    slow_s, quick_s = (member.times_s for member in bag.co_runners)
    assert len(quick_s) > len(slow_s)
    assert min(slow_s) > 0.1
    assert bag.overlap is not None
    assert bag.overlap < 0.5
    assert min(bag.mix_times_s) > 0.1


def test_a_member_that_crashes_leaves_the_others_what_they_have(
    crew: Crew, make_application: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    well = make_application("well")
    ill = make_application("ill", run="time.sleep(0.002)\n        if self.count > 200: os.abort()")
    monkeypatch.setattr(crew, "settings", replace(crew.settings, window_s=50.0))
    bag = crew.run([work(ill), work(well)])
    first, second = bag.co_runners
    assert first.failure == "ill tiny: the process that measured was killed by SIGABRT"
    assert (first.times_s, first.runs, first.memory_bytes) == ([], 1, 8192)
    assert second.failure is None
    assert second.times_s
    assert (bag.failed, bag.mix_times_s, bag.overlap) == (True, [], None)
    monkeypatch.undo()
    expect_whole(crew.run([work(well)]))


def test_members_that_do_not_start_are_marked_and_the_others_are_not(
    crew: Crew, make_application: Folder
) -> None:
    works = [
        work(make_application("well")),
        work(make_application("crashing", kernels=("crash",))),
        work(make_application("unbuilt", source="kernel void twice(global int *a) { a[0] = oops; }"), None),
        work(make_application("raising", init="1 / 0")),
    ]
    bag = crew.run(works)
    failures = [member.failure or "" for member in bag.co_runners]
    assert failures[0] == ""
    assert "crashing tiny: the process that measured was killed by SIG" in failures[1]
    assert "refuses it" in failures[2]
    assert "raising tiny: the process that measured ended with code 1: ZeroDivisionError" in failures[3]
    assert not any("\n" in failure for failure in failures)
    assert [member.runs for member in bag.co_runners] == [1, 1, None, 1]
    assert [member.memory_bytes for member in bag.co_runners] == [8192, None, None, None]
    assert not any(member.times_s for member in bag.co_runners)
    assert (bag.mix_times_s, bag.overlap, bag.powers_w) == ([], None, {})


def test_a_wrong_result_spoils_its_own_times_only(crew: Crew, make_application: Folder) -> None:
    wrong = make_application("wrong", check="if self.count > 1: raise CheckFailed('first at 3')")
    bag = crew.run([work(wrong), work(make_application("well"))])
    first, second = bag.co_runners
    assert (first.failure, first.times_s) == ("first at 3", [])
    assert second.failure is None
    assert len(second.times_s) >= QUICK.jobs
    assert bag.mix_times_s == []


def test_a_member_that_hangs_is_given_up_and_replaced(
    crew: Crew, make_application: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = make_application("hangs", init=NOTE, run=FLAG + "time.sleep(600)")
    works = [work(make_application("well")), work(hangs)]
    expect_whole(crew.run(works))
    flag(hangs).touch()
    monkeypatch.setattr(crew, "settings", replace(crew.settings, timeout_s=1.0))
    well, hanging = crew.run(works).co_runners
    assert (well.failure, well.times_s) == (None, [])
    assert hanging.failure == "hangs tiny: did not end a job within 1 s (the time limit)"
    (process,) = noted(hangs)
    assert is_gone(process)
    flag(hangs).unlink()
    monkeypatch.undo()
    expect_whole(crew.run(works))
    assert len(noted(hangs)) == 2


def test_too_little_time_is_a_note(
    crew: Crew, make_application: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = work(make_application(run="time.sleep(0.1)"))
    crew.run([slow])
    monkeypatch.setattr(crew, "settings", replace(crew.settings, timeout_s=1.0, jobs=50))
    bag = crew.run([slow])
    assert not bag.failed
    (note,) = bag.notes
    assert note.startswith("own tiny: expected 50 whole jobs while all run, found ")
    assert bag.co_runners[0].times_s


def test_a_process_that_died_while_it_waited_is_replaced_and_one_that_is_interrupted_too(
    crew: Crew, make_application: Folder
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


def test_the_process_that_waited_longest_ends_where_there_are_too_many(
    crew: Crew, make_application: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (make_application(name, init=NOTE) for name in ("first", "second"))
    crew.run([work(first)])
    monkeypatch.setattr(crew, "_most", 1)
    crew.run([work(second)])
    assert all(map(is_gone, noted(first)))
    assert not any(map(is_gone, noted(second)))


def test_what_this_machine_lacks_is_no_failure_of_a_member(crew: Crew, make_application: Folder) -> None:
    folder = make_application(init="raise MissingExtraError('suite', 'checking')")
    with pytest.raises(MissingExtraError, match=r"pip install 'crosscast\[suite\]'"):
        crew.run([work(folder)])


def test_a_bag_has_members(crew: Crew) -> None:
    with pytest.raises(InputError, match="works: expected a co-runner at least, found none"):
        crew.run([])


def test_threads_are_limited_where_the_device_allows(make_application: Folder) -> None:
    device = devices()[0]
    folder = make_application(
        init="Path(__file__ + '.threads').write_text(os.environ['POCL_MAX_PTHREAD_COUNT'])"
    )
    with Crew(device, replace(QUICK, sensor="none", threads=1)) as crew:
        bag = crew.run([work(folder)])
    assert not bag.failed
    assert (bag.sharing, bag.powers_w) == ({"threads": 1}, {})
    assert (folder / "driver.py.threads").read_text() == "1"
    with pytest.raises(InputError, match="threads: expected at most"):
        Crew(device, replace(QUICK, threads=device.compute_units + 1))
    with pytest.raises(UnsupportedError, match="threads: expected a CPU device of PoCL"):
        Crew(replace(device, id="nvidia:0", type="gpu"), replace(QUICK, threads=1))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with TemporaryDirectory() as name:
        yield Path(name)


def listening(path: Path, kind: socket.SocketKind) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(str(path))
    server.listen(1)
    return server


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET])
def test_a_daemon_that_listens_runs_and_one_that_ended_does_not(
    folder: Path, kind: socket.SocketKind
) -> None:
    with listening(folder / "control", kind):
        assert mps_runs(folder)
    # The socket outlives it.
    assert (folder / "control").is_socket()
    assert not mps_runs(folder)


def test_a_pipe_that_is_read_is_a_daemon_and_one_that_is_not_is_none(folder: Path) -> None:
    os.mkfifo(folder / "control")
    assert not mps_runs(folder)
    reader = os.open(folder / "control", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert mps_runs(folder)
    finally:
        os.close(reader)


def test_other_files_are_no_daemon(folder: Path) -> None:
    assert not mps_runs(folder)
    (folder / "control").write_text("")
    assert not mps_runs(folder)
    assert not mps_runs(folder / "missing")


def test_only_nvidia_has_more_than_one_way(folder: Path) -> None:
    there = {"CUDA_MPS_PIPE_DIRECTORY": str(folder)}
    assert sharing("pocl:0", environment=there) == sharing("amd:0", environment=there) == {}
    assert sharing("nvidia:0", environment=there) == {"sharing": "time-slicing"}
    with listening(folder / "control", socket.SOCK_STREAM):
        assert sharing("nvidia:1", environment=there) == {"sharing": "mps"}
        assert sharing("pocl:0", environment=there) == {}


def test_a_limit_of_threads_is_part_of_the_way(folder: Path) -> None:
    there = {"CUDA_MPS_PIPE_DIRECTORY": str(folder)}
    assert sharing("pocl:0", 2) == {"threads": 2}
    assert sharing("nvidia:0", 1, there) == {"sharing": "time-slicing", "threads": 1}
