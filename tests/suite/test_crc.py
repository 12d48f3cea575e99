"""Cyclic redundancy check: any length, and that the check sees a wrong one."""

import pytest

from crosscast.errors import CheckFailed
from crosscast.suite.crc.driver import Crc
from crosscast.suite.registry import profiles_of


@pytest.mark.parametrize("nbytes", [8 << 10, 50_001, 8 << 20])
def test_the_working_set_is_what_was_asked_for(nbytes: int) -> None:
    assert Crc(Crc.fit(nbytes), seed=0).nbytes == nbytes


@pytest.mark.parametrize("length", [1, 7, 8, 9, 1023, 1024])
def test_buffers_that_are_no_multiple_of_eight_bytes_are_read_to_their_end(length: int) -> None:
    profiles_of(Crc({"bytes": length}, seed=1), "odd")  # checks


def test_a_changed_bit_fails_the_check() -> None:
    application = Crc({"bytes": 1000}, seed=2)
    profiles_of(application, "odd")
    application.data[777] ^= 4
    with pytest.raises(CheckFailed, match="CRC-32"):
        application.check()
