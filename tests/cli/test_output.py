"""Standard output that is closed, or a disk that is full, at the other end of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

VECADD = Path(__file__).parents[2] / "examples/vecadd.toml"
FORMS = pytest.mark.parametrize("form", [(), ("--json",)], ids=["table", "json"])


def characterize(form: tuple[str, ...], stdout: int) -> tuple[int, str]:
    words = [sys.executable, "-m", "crosscast", "characterize", str(VECADD), *form]
    run = subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    return run.returncode, run.stderr


@FORMS
def test_a_reader_that_has_seen_enough_is_no_error(form: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert characterize(form, writing) == (0, "")
    finally:
        os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@FORMS
def test_a_full_disk_is_one_sentence(form: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        code, text = characterize(form, full.fileno())
    assert code == 1
    assert text == "crosscast: cannot write what was found (No space left on device)\n"
