"""Jobs of a real Slurm are annotated and placed by the service, and accepted as they are without it."""

import json
import os
import re
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from crosscast.cli import main
from support.service import running
from support.slurm import Partition, SlurmCluster, missing, starting

pytestmark = pytest.mark.system

if lacks := missing():
    pytest.skip(lacks, allow_module_level=True)

COMMENT = "--comment=crosscast:srad/small*1000000"
PARTS = (
    Partition("cpu", default=True, nodes=1),
    Partition("gpu", nodes=1, most_minutes=600),
    Partition("small", nodes=1, most_minutes=3),
)
CONFIG = """return {{ socket = "{socket}", devices = {{ gtx1080 = "gpu", ["i7-6700k"] = "cpu" }},
  set_partition = {act}, set_time_limit = {act}, factor = 1.5 }}"""


def hooks(folder: Path, place: Path, act: bool = True) -> Path:
    assert main(["hooks", "install", "slurm", "--dir", str(folder)]) == 0
    config = CONFIG.format(socket=place, act=str(act).lower())
    (folder / "crosscast" / "config.lua").write_text(config)
    (folder / "cli_filter.lua").unlink()
    return folder


@pytest.fixture(scope="module")
def clusters() -> Iterator[Callable[..., SlurmCluster]]:
    with starting() as start:
        yield start


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cc-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Path]:
    place = folder / "p.sock"
    with running("--model", "opencl-15-devices", "--socket", place, there=place):
        yield place


@pytest.fixture(scope="module")
def placing(clusters: Callable[..., SlurmCluster], folder: Path, service: Path) -> SlurmCluster:
    return clusters(*PARTS, hooks=hooks(folder / "placing", service))


@pytest.fixture(scope="module")
def annotating(clusters: Callable[..., SlurmCluster], folder: Path, service: Path) -> SlurmCluster:
    return clusters(*PARTS, hooks=hooks(folder / "annotating", service, act=False))


def place_of(job: dict[str, str]) -> tuple[str, str]:
    return job["Partition"], job["TimeLimit"]


AS_IT_WAS = ("cpu", "01:00:00")


def test_a_job_runs_where_it_is_fastest_with_a_limit_of_the_interval(
    placing: SlurmCluster, folder: Path
) -> None:
    job = placing.job(placing.submit(COMMENT))
    note = dict(re.findall(r"(\w+)=(\S+)", job["AdminComment"]))
    assert (job["Partition"], note["device"]) == ("gpu", "gtx1080")
    assert 0 < float(note["low_s"]) < float(note["time_s"]) < float(note["high_s"])
    days, hours, minutes, _ = map(int, re.split("[-:]", f"0-{job['TimeLimit']}")[-4:])
    limit = days * 1440 + hours * 60 + minutes
    assert limit == pytest.approx(1.5 * float(note["high_s"]) / 60, abs=1.2)
    # It runs, and its steps are not asked about.
    placing.run(
        "sbatch", "--wait", "-o", folder / "out", COMMENT, "--wrap", "srun printenv SLURM_JOB_PARTITION"
    )
    assert (folder / "out").read_text().strip() == "gpu"


def test_what_the_user_and_the_partition_say_stands(placing: SlurmCluster) -> None:
    job = placing.job(placing.submit(COMMENT, "-p", "cpu", "-t", "7"))
    assert place_of(job) == ("cpu", "00:07:00")
    assert "device=i7-6700k" in job["AdminComment"]
    huge = "--comment=crosscast:srad/small*1000000000"
    assert placing.job(placing.submit(huge, "--hold"))["TimeLimit"] == "10:00:00"
    # Nothing is known of a device of this one.
    job = placing.job(placing.submit(COMMENT, "-p", "small", "-t", "2"))
    assert (job["Partition"], "AdminComment" in job) == ("small", False)


def test_by_default_a_job_is_annotated_only_and_other_comments_change_nothing(
    annotating: SlurmCluster,
) -> None:
    job = annotating.job(annotating.submit(COMMENT))
    assert place_of(job) == AS_IT_WAS
    assert "device=i7-6700k" in job["AdminComment"]
    wrong = ("not/there", "srad/small'; os.exit()", "%s%n*9", "")
    for comment in ("", "nothing", *(f"crosscast:{each}" for each in wrong)):
        plain = annotating.job(annotating.submit(f"--comment={comment}"))
        assert plain["Partition"] == "cpu"
        assert ("AdminComment" in plain) == comment.startswith("crosscast:srad/small")


def test_the_filter_of_commands_places_jobs_without_the_controller(
    clusters: Callable[..., SlurmCluster], folder: Path, service: Path
) -> None:
    own = hooks(folder / "filter", service)
    main(["hooks", "install", "slurm", "--dir", str(own)])
    (own / "job_submit.lua").unlink()
    cluster = clusters(*PARTS, hooks=own)
    job = cluster.job(cluster.submit(COMMENT, "--hold"))
    assert job["Partition"] == "gpu"
    assert job["TimeLimit"] not in ("01:00:00", "UNLIMITED")
    assert "AdminComment" not in job
    job = cluster.job(cluster.submit(COMMENT, "-p", "cpu", "-t", "7", "--hold"))
    assert place_of(job) == ("cpu", "00:07:00")
    assert cluster.run("srun", COMMENT, "printenv", "SLURM_JOB_PARTITION").strip() == "gpu"


def test_caps_that_the_service_chooses_are_in_the_comment_for_the_prolog(
    clusters: Callable[..., SlurmCluster], folder: Path
) -> None:
    place = folder / "caps.sock"
    own = hooks(folder / "caps", place)
    config = own / "crosscast" / "config.lua"
    config.write_text(config.read_text().replace("factor", "power_cap_w = 250, factor"))
    cluster = clusters(*PARTS, hooks=own)
    devices = [{"device": "gtx1080", "time_s": 60.0, "low_s": 30.0, "high_s": 120.0}]
    chosen = {"settings": {"cpu_cap_w": 90.0, "gpu_cap_w": 150.4, "other": 1}}
    with answering(place, ok({"job": {"devices": devices}, "configuration": chosen, "power_w": 240.5})):
        job = cluster.job(cluster.submit(COMMENT, "--hold"))
        assert job["Comment"] == "crosscast:srad/small*1000000 cpu_cap_w=90 gpu_cap_w=150"
        assert "power_w=240.5" in job["AdminComment"]
        job = cluster.job(cluster.submit(f"{COMMENT} gpu_cap_w=111", "--hold"))
        assert job["Comment"] == "crosscast:srad/small*1000000 gpu_cap_w=111"


@contextmanager
def answering(place: Path, content: bytes, gap_s: float = 0.0, accepts: bool = True) -> Iterator[None]:
    """A service that says what it should not."""
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(place))
        opened.listen(5 if accepts else 0)

        def answer() -> None:
            while True:
                try:
                    asked, _ = opened.accept()
                except OSError:
                    return
                with asked:
                    try:
                        asked.recv(65536)
                        for part in content if gap_s else [content]:
                            asked.sendall(bytes([part]) if isinstance(part, int) else part)
                            time.sleep(gap_s)
                    except OSError:
                        continue

        if accepts:
            threading.Thread(target=answer, daemon=True).start()
        try:
            yield
        finally:
            opened.shutdown(socket.SHUT_RDWR)
            place.unlink()


def ok(value: object) -> bytes:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def job(**changed: object) -> bytes:
    device = {"device": "gtx1080", "time_s": 60.0, "low_s": 30.0, "high_s": 120.0, **changed}
    return ok({"job": {"devices": [{**device, "device": "i7-6700k"}, device]}})


BAD = {
    "garbage": b"\x00\xff nonsense",
    "nothing": b"",
    "an error": b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}",
    "no JSON": ok(b"{"),
    "a list": ok([]),
    "no job": ok({"kernels": []}),
    "cut off": job()[:-30],
    "longer than it says": job() + b" ",
    "another device": job(device="abacus"),
    "a text for a time": job(time_s="60"),
    "null": job(time_s=None),
    "NaN": job(time_s=float("nan")),
    "a negative time": job(time_s=-1, low_s=-2),
    "limits that cross": job(low_s=90),
    "a device of a list": job(device=[]),
    "endless": ok(b" " * (1 << 20)),
}


@pytest.fixture(scope="module")
def alone(clusters: Callable[..., SlurmCluster], folder: Path) -> SlurmCluster:
    """A cluster whose hooks ask at a socket where tests answer."""
    return clusters(*PARTS, hooks=hooks(folder / "alone", folder / "alone.sock"))


def check_as_it_was(cluster: SlurmCluster) -> None:
    found = cluster.job(cluster.submit(COMMENT, "--hold"))
    assert place_of(found) == AS_IT_WAS
    assert "AdminComment" not in found


def test_a_good_answer_is_taken_and_a_bad_one_never(alone: SlurmCluster, folder: Path) -> None:
    with answering(folder / "alone.sock", job()):
        assert "time_s=60" in alone.job(alone.submit(COMMENT, "--hold"))["AdminComment"]
    for content in BAD.values():
        with answering(folder / "alone.sock", content):
            check_as_it_was(alone)
        # A new controller has no pause.
        alone.restart()


def test_absent_full_slow_or_dripping_it_costs_little_and_once(alone: SlurmCluster, folder: Path) -> None:
    place = folder / "alone.sock"
    with ExitStack() as undo:

        def full() -> None:
            undo.enter_context(answering(place, b"", accepts=False))
            for _ in range(3):
                waits = undo.enter_context(socket.socket(socket.AF_UNIX))
                waits.setblocking(False)
                waits.connect_ex(str(place))

        cases: tuple[Callable[[], object], ...] = (
            lambda: None,
            full,
            lambda: undo.enter_context(answering(place, b"HTTP/1.1 200 OK\r\n" + b" " * 500, gap_s=0.02)),
            lambda: undo.enter_context(answering(place, ok({}), gap_s=5)),
        )
        for prepare in cases:
            alone.restart()
            prepare()
            for _ in range(3):
                check_as_it_was(alone)
            log = (alone.home / "log" / "slurmctld.log").read_text().splitlines()
            told = [line for line in log if "crosscast: " in line][-3:]
            assert ["paused after a failure" in line for line in told] == [False, True, True]
            undo.close()


def test_a_thousand_jobs_while_the_service_restarts(alone: SlurmCluster, folder: Path) -> None:
    """A hundred by default; CROSSCAST_JOBS says how many."""
    jobs, ended = int(os.environ.get("CROSSCAST_JOBS", "100")), threading.Event()
    alone.restart()

    def restarts() -> None:
        while not ended.is_set():
            with answering(folder / "alone.sock", job()):
                ended.wait(0.3)
            ended.wait(0.05)

    service = threading.Thread(target=restarts)
    service.start()
    with ThreadPoolExecutor(8) as clients:
        numbers = set(clients.map(lambda _: alone.submit(COMMENT, "--hold"), range(jobs)))
    ended.set()
    service.join()
    assert len(numbers) == jobs
    kinds = {
        (*place_of(found), "time_s=60" in found.get("AdminComment", "")) for found in map(alone.job, numbers)
    }
    # All of an answer, or nothing of it.
    assert kinds <= {(*AS_IT_WAS, False), ("cpu", "00:03:00", True)}
