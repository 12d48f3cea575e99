import subprocess
import sys
from pathlib import Path

import pytest

from crosscast.data.files import locked
from crosscast.errors import InputError

HOLD = """
import sys, time
from pathlib import Path
from crosscast.data.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_refused_until_the_first_has_gone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match="another process is writing this dataset"), locked(tmp_path):
            pass
        other.kill()
    with locked(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_the_lock_goes_with_an_error_too(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locked(tmp_path / "new"):
        raise KeyError
    with locked(tmp_path / "new"):
        assert (tmp_path / "new").is_dir()


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file: cannot make the folder"), locked(tmp_path / "file"):
        pass
