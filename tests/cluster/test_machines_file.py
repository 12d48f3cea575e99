from pathlib import Path

import pytest

from crosscast.cluster.jobs import Machine, read_machines
from crosscast.errors import InputError


def read(folder: Path, text: str) -> list[Machine]:
    path = folder / "machines.toml"
    path.write_text(text, encoding="utf-8")
    return read_machines(path)


def test_machines_have_what_their_tables_say(tmp_path: Path) -> None:
    assert read(
        tmp_path,
        """
        [[machine]]
        name = "quartz"
        nodes = 2988

        [[machine]]
        name = "lassen"
        procs = 795
        gpu = true
        device = "v100"
        """,
    ) == [Machine("quartz", 2988), Machine("lassen", 795, has_gpu=True, device="v100")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "machines: expected at least one, found none"),
        ("machine = 3", "machine: expected tables, each under"),
        ("[[machine]]\nprocs = 3", r"machine\[0\]: name is missing, expected a text"),
        ("[[machine]]\nname = 3\nprocs = 3", r"machine\[0\]: name: expected a text, found 3"),
        ("[[machine]]\nname = 'a'", r"machine\[0\]: expected procs or nodes, found neither"),
        (
            "[[machine]]\nname = 'a'\nprocs = 1\nnodes = 1",
            r"machine\[0\]: expected procs or nodes, found both",
        ),
        ("[[machine]]\nname = 'a'\nprocs = 0", r"procs: expected a whole number of at least 1, found 0"),
        ("[[machine]]\nname = 'a'\nnodes = 1.5", r"nodes: expected a whole number of at least 1, found 1.5"),
        ("[[machine]]\nname = 'a'\nprocs = 1\ngpu = 'yes'", "gpu: expected true or false, found 'yes'"),
        (
            "[[machine]]\nname = 'a'\nprocs = 1\ngpus = 4",
            r"machine\[0\]: unknown key 'gpus', expected one of name",
        ),
        ("[[machine]]\nname = 'a'\nprocs = 1\n[[machines]]\nname = 'b'", "unknown key 'machines'"),
        (
            "[[machine]]\nname = 'a'\nprocs = 1\n[[machine]]\nname = 'a'\nprocs = 2",
            "machines: expected each name once, found 'a' more than once",
        ),
        ("machine = [", "expected machines in TOML"),
        ("a = " + "[" * 100_000, "expected machines in TOML"),
        ("a = " + "1" * 5000, "expected machines in TOML"),
        ("#" * (1 << 20) + "#", "expected machines in at most 1 MiB, found more"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        read(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path / 'machines.toml'}: ")


def test_a_file_that_is_no_text_or_absent_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "machines.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="expected machines in TOML"):
        read_machines(path)
    with pytest.raises(InputError, match=r"cannot read the machines \(No such file or directory\)"):
        read_machines(tmp_path / "none.toml")
