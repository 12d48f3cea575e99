"""How a device is shared, found in folders like those of MPS."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from crosscast.measure.corun.crew import mps_runs, sharing


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
