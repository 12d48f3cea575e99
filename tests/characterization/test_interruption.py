"""Ctrl-C reaches the caller after native code, not in the middle of it."""

import signal
import threading

import pytest

from crosscast.characterization.interruption import interruption_deferred


def test_ctrl_c_is_delivered_after_the_block() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interruption_deferred():
        signal.raise_signal(signal.SIGINT)
        done.append("all of the block")
    assert done
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_wins_over_the_error_that_it_caused() -> None:
    with pytest.raises(KeyboardInterrupt), interruption_deferred():
        signal.raise_signal(signal.SIGINT)
        raise OSError("the compiler was interrupted too")


def test_the_result_of_a_function_is_kept() -> None:
    assert interruption_deferred()(lambda: 3)() == 3


def test_threads_need_no_deferring() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def body() -> None:
        with interruption_deferred():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert seen == [before]
