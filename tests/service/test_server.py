"""The service as a process: its sockets, signals and life."""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

from crosscast.service.server import Tokens, unix_socket
from support.commands import Command, Output
from support.corun_models import constant
from support.processes import wait_until
from support.refusals import refusal, refusals
from support.service import ask, post, running
from support.slurm import free_ports

SERVE = Command.of("serve --model opencl-mixes --profiles bundled-corun")
ASKED = {"jobs": ["bfs/small", "fft/small"]}
TOKEN = "0123456789abcdef"


@pytest.fixture
def place() -> Iterator[Path]:
    # The path of a socket is short, and those of pytest may not be.
    with tempfile.TemporaryDirectory(prefix="cc-") as folder:
        yield Path(folder) / "p.sock"


def test_its_socket_is_for_owner_and_group_and_goes_with_it(place: Path, tmp_path: Path) -> None:
    constant(tmp_path / "mixes", 1.25)
    words = ("--model", tmp_path / "mixes", "--model", "opencl-mixes", "--profiles", "bundled-corun")
    with running(*words, "--socket", place, there=place) as service:
        assert stat.S_IMODE(place.stat().st_mode) == 0o660
        assert ask(place, post("/v1/colocate", ASKED)).startswith(b"HTTP/1.1 200")
        # A model that is replaced is read again, while it answers.
        constant(tmp_path / "mixes", 1.5)
        service.send_signal(signal.SIGHUP)
        wait_until(lambda: b'"refused":{}' in ask(place, b"GET /health HTTP/1.0\r\n\r\n"))
        with ThreadPoolExecutor(4) as threads:
            answers = [threads.submit(ask, place, post("/v1/colocate", ASKED)) for _ in range(80)]
            for _ in range(3):
                service.send_signal(signal.SIGHUP)
                time.sleep(0.1)
        assert all(each.result().startswith(b"HTTP/1.1 200") for each in answers)
        service.send_signal(signal.SIGTERM)
        assert service.wait(30) == 0
    assert not place.exists()


@pytest.mark.system
def test_sigterm_finishes_requests_that_have_begun(place: Path) -> None:
    with running(*SERVE.before[1:], "--socket", place, there=place) as service:
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(20)
            asked.connect(str(place))
            request = post("/v1/colocate", ASKED)
            asked.sendall(request[:-5])
            time.sleep(0.3)
            service.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            assert service.poll() is None
            asked.sendall(request[-5:])
            assert asked.recv(12) == b"HTTP/1.1 200"
        assert service.wait(30) == 0


def test_over_tcp_it_wants_a_token_of_the_file(tmp_path: Path) -> None:
    tokens, (port,) = tmp_path / "tokens", free_ports(1)
    tokens.write_text(f"# ours\n{TOKEN}\n")
    tokens.chmod(0o640)
    words = ("--bind", f"127.0.0.1:{port}", "--token-file", tokens)
    with running(*SERVE.before[1:], *words) as service:
        place = ("127.0.0.1", port)
        assert ask(place, post("/v1/colocate", ASKED)).startswith(b"HTTP/1.1 401")
        assert b'{"ready":true}' in ask(place, b"GET /health HTTP/1.0\r\n\r\n")
        good = f"Authorization: Bearer {TOKEN}"
        assert ask(place, post("/v1/colocate", ASKED, good)).startswith(b"HTTP/1.1 200")
        head = b"POST /v1/predict HTTP/1.1\r\nHost: c\r\nContent-Length: 100000000\r\n"
        assert ask(place, head + good.encode() + b"\r\n\r\n").startswith(b"HTTP/1.1 413")
        tokens.write_text("short\n")
        service.send_signal(signal.SIGHUP)
        health = f"GET /health HTTP/1.0\r\n{good}\r\n\r\n".encode()
        wait_until(lambda: b"tokens of at least 16 characters" in ask(place, health))
        tokens.write_text("another-token-that-is-new\n")
        service.send_signal(signal.SIGHUP)
        wait_until(lambda: ask(place, post("/v1/colocate", ASKED, good)).startswith(b"HTTP/1.1 401"))


@pytest.mark.system
def test_a_socket_that_systemd_hands_over_is_used_and_stays(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        opened.bind(str(place))
        opened.listen()
        notify = place.with_name("n.sock")
        told.bind(str(notify))
        told.settimeout(60)
        # The number of the process is known in it only.
        script = (
            f"import os, sys; os.dup2({opened.fileno()}, 3); os.environ |= dict(LISTEN_FDS='1', "
            f"LISTEN_PID=str(os.getpid()), NOTIFY_SOCKET={str(notify)!r}); from crosscast.cli import main; "
            f"sys.exit(main({[*SERVE.before]!r}))"
        )
        with subprocess.Popen(
            [sys.executable, "-c", script], pass_fds=[opened.fileno()], stderr=subprocess.DEVNULL
        ) as service:
            try:
                assert told.recv(100) == b"READY=1"
                assert ask(place, post("/v1/colocate", ASKED)).startswith(b"HTTP/1.1 200")
                service.send_signal(signal.SIGTERM)
                assert service.wait(30) == 0
                assert told.recv(100) == b"STOPPING=1"
            finally:
                if service.poll() is None:
                    service.kill()
        assert place.exists()


def test_a_stale_socket_is_replaced_and_one_that_is_used_is_not(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    before = os.umask(0o022)
    try:
        with unix_socket(place) as opened:
            assert os.umask(0o022) == 0o022
            assert opened.getsockname()
            assert "that nobody uses, found a service at" in refusal(unix_socket(place).__enter__)
            with socket.socket(socket.AF_UNIX) as asked:
                asked.connect(str(place))
    finally:
        os.umask(before)
    assert list(place.parent.iterdir()) == []


def test_a_socket_of_another_service_stays_when_this_one_ends(place: Path) -> None:
    with unix_socket(place):
        place.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(place))
    assert place.exists()


def test_wrong_options_are_named(tmp_path: Path, place: Path, capsys: Output) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    tokens.chmod(0o600)
    place.write_text("mine")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = f"127.0.0.1:{taken.getsockname()[1]}"
        for words, said in (
            ((), "--socket: expected a path, or --bind with --token-file, found neither"),
            (("--bind", "127.0.0.1:1"), "--token-file: expected a file of tokens"),
            (("--socket", tmp_path / ("x" * 120)), "--socket: expected a path of at most 107 bytes"),
            (("--socket", tmp_path / "none" / "p.sock"), "--socket: cannot make"),
            (("--socket", place), "expected no file"),
            (("--bind", busy, "--token-file", tokens), "cannot listen at"),
        ):
            assert said in SERVE.refusal(capsys, *words)
    for bind in ("127.0.0.1", "8750", ":8750", "127.0.0.1:²", "127.0.0.1:99999"):
        said = SERVE.refusal(capsys, "--bind", bind, "--token-file", tokens)
        assert "--bind: expected HOST:PORT" in said
    assert place.read_text() == "mine"


@refusals("mode content said")
def test_a_file_of_tokens_is_checked(tmp_path: Path, mode: int, content: str, said: str) -> None:
    path = tmp_path / "tokens"
    assert "cannot read" in refusal(Tokens, path)
    path.write_text(content)
    path.chmod(mode)
    assert said in refusal(Tokens, path)
