"""Tokens, and limits on the size, time and number of requests."""

import threading

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from crosscast.service import app as app_module
from crosscast.service.app import application
from crosscast.service.gate import Limits
from crosscast.service.models import Served
from crosscast.service.questions import Endpoint
from support.service import OVER_TCP, InProcess

TOKEN = "0123456789abcdef"
ASKED = {"profile": "bfs/tiny"}


@pytest.fixture(scope="module")
def served() -> Served:
    return Served(["opencl-15-devices"], ["bundled"])


def over_tcp(served: Served) -> InProcess:
    return InProcess(application(served, lambda: (b"another token, too", TOKEN.encode())), OVER_TCP)


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}"]
)
def test_without_a_good_token_tcp_is_refused(served: Served, header: str | None) -> None:
    headers = {} if header is None else {"authorization": header}
    service = over_tcp(served)
    for path in ("/v1/predict", "/v1/models", "/metrics", "/docs", "/openapi.json", "/nothing"):
        found = service.ask(path, ASKED, headers=headers)
        assert (found.code, found.headers["www-authenticate"]) == (401, "Bearer")


def test_a_stranger_learns_from_health_only_that_it_is_ready(served: Served) -> None:
    assert over_tcp(served).ask("/health").json == {"ready": True}


def test_a_server_of_unknown_kind_needs_a_token(served: Served) -> None:
    app = application(served, lambda: ())
    assert InProcess(app, None).ask("/v1/predict", ASKED).code == 401  # type: ignore[arg-type]


@pytest.mark.parametrize("declared", ["100000000", "9" * 30, "-1", "x"])
def test_a_large_request_is_refused_before_it_is_read(served: Served, declared: str) -> None:
    found = InProcess(application(served, lambda: ())).ask(
        "/v1/predict", parts=[b"{"], headers={"content-length": declared}
    )
    assert (found.code, found.headers["connection"]) == (413, "close")
    assert "at most 1,048,576 bytes" in found.error


def test_a_large_request_of_undeclared_size_is_refused(served: Served) -> None:
    service = InProcess(application(served, lambda: (), Limits(body_bytes=1000)))
    assert service.ask("/v1/predict", parts=[b"x" * 400] * 3).code == 413


def test_a_request_that_drips_is_refused(served: Served) -> None:
    service = InProcess(application(served, lambda: (), Limits(body_s=0.05)))
    found = service.ask("/v1/predict", parts=[b"{"] * 10, gap_s=0.02)
    assert (found.code, found.headers["connection"]) == (408, "close")


def test_answers_that_take_too_long_are_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def slow(*_: object) -> tuple[int, bytes]:
        go_on.wait(20)
        return 200, b"{}"

    monkeypatch.setattr(app_module, "_answered", slow)
    service = InProcess(application(served, lambda: (), Limits(answer_s=0.05, requests=2)))
    try:
        assert [service.ask("/v1/predict", {"level": n}).code for n in range(3)] == [504, 504, 503]
        assert 'crosscast_refusals_total{why="time"} 2.0' in service.ask("/metrics").body.decode()
    finally:
        go_on.set()


def test_an_error_of_ours_does_not_show_its_text(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from crosscast.errors import EnvironmentFault

    def fails(*_: object) -> object:
        raise EnvironmentFault("no space in /var/secret")

    monkeypatch.setattr(Endpoint, "answered", fails)
    found = InProcess(application(served, lambda: ())).ask("/v1/predict", ASKED)
    assert found.code == 500
    assert "secret" not in found.error


def test_comparing_tokens_takes_all_of_them(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    import hmac

    compared = list[bytes]()
    original = hmac.compare_digest

    def noted(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return original(one, other)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    over_tcp(served).ask("/v1/models", headers={"authorization": "Bearer another token, too"})
    assert len(compared) == 2
