"""The command, with the engine and the compiler: what it reads, prints, writes and leaves alone."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crosscast.characterization import run
from crosscast.characterization.embedding.files import read_embedded
from crosscast.characterization.embedding.spirv import compile_module
from crosscast.cli import main
from crosscast.data.profiles import read_parquet, write_parquet
from crosscast.kernel import Program
from crosscast.profile import Profile
from support.commands import Output

Command = Callable[..., int]

SOURCE = (
    "kernel void k(global int *a) { a[get_global_id(0)] *= N; }\nkernel void l(global int *a) { *a = 1; }\n"
)
LAUNCH = """
source = "k.cl"
kernel = "k"
global = 64
options = ["-DN=3"]
[[arg]]
type = "int"
length = 64
"""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`crosscast embed` with the given words, in a folder with a source and its launch file."""
    monkeypatch.chdir(tmp_path)
    Path("k.cl").write_text(SOURCE)
    Path("k.toml").write_text(LAUNCH)
    Path("both.toml").write_text(LAUNCH + '[[launch]]\n[[launch]]\nkernel = "l"\n[[launch]]\n')
    return lambda *words: main(["embed", *map(str, words)])


@pytest.fixture
def table(command: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table with the profile of the launch; from then on, nothing may run."""
    del command
    assert main(["characterize", "k.toml", "--parquet", "k.parquet"]) == 0

    def fail(*_: object, **__: object) -> Profile:
        raise AssertionError("a kernel was run")

    monkeypatch.setattr(run, "characterize_launch", fail)
    return Path("k.parquet")


def names() -> set[str]:
    return {path.name for path in Path().iterdir()}


def test_source_and_module_are_written_beside_the_source(command: Command, capsys: Output) -> None:
    assert command("both.toml") == 0
    assert capsys.readouterr().out == (
        "wrote k.profiled.cl and k.profiled.spv with the profiles of k (2 launches), l\n"
    )
    assert Path("k.cl").read_text() == SOURCE
    profiles = read_embedded("k.profiled.cl")
    assert [(p.kernel, p.invocation) for p in profiles] == [("k", 0), ("l", 1), ("k", 2)]
    assert read_embedded("k.profiled.spv") == profiles


def test_json_says_what_was_written(command: Command, capsys: Output) -> None:
    assert command("k.toml", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["source"], answer["spirv"], answer["no_spirv"]) == (
        "k.profiled.cl",
        "k.profiled.spv",
        None,
    )
    (embedded,) = read_embedded("k.profiled.cl")
    assert answer["profiles"][0]["metrics"] == embedded.metrics
    assert embedded.metrics["work_items"] == 64
    assert embedded.program["options"] == ["-DN=3", "-O3"]


def test_no_module_is_written_if_none_is_asked_for(command: Command, table: Path) -> None:
    assert command("k.toml", "--profiles", table, "--spirv", "none") == 0
    assert Path("k.profiled.cl").exists()
    assert not Path("k.profiled.spv").exists()


def test_a_copy_that_was_edited_is_left_alone(command: Command, table: Path, capsys: Output) -> None:
    assert command("k.toml", "--profiles", table) == 0
    with Path("k.profiled.cl").open("a") as file:
        file.write("// mine\n")
    assert command("k.toml") == 2
    assert "k.profiled.cl: expected no file, or one as crosscast embed wrote it" in capsys.readouterr().err
    assert Path("k.profiled.cl").read_text().endswith("// mine\n")


@pytest.mark.parametrize("file", ["k.cl", "k.toml"])
def test_profiles_of_a_table_need_no_run(command: Command, table: Path, file: str) -> None:
    assert command(file, "--profiles", table, "--out", "out.cl") == 0
    (embedded,) = read_embedded("out.cl")
    assert embedded.metrics["work_items"] == 64
    # The module is compiled with the options of the profile: the source needs -DN.
    assert read_embedded("out.spv") == (embedded,)


def test_profiles_with_other_options_share_no_module(command: Command, table: Path, capsys: Output) -> None:
    (one,) = read_parquet(table)
    write_parquet([one, replace(one, program={**one.program, "options": ["-DN=4"]})], "two.parquet")
    assert command("k.cl", "--profiles", "two.parquet") == 0
    assert "no SPIR-V module is written: k.cl: its profiles were made with" in capsys.readouterr().err
    assert len(read_embedded("k.profiled.cl")) == 2
    assert not Path("k.profiled.spv").exists()


def test_a_builtin_without_spirv_leaves_the_module_out(command: Command, capsys: Output) -> None:
    Path("k.cl").write_text("kernel void k(global int *a) { mem_fence(CLK_GLOBAL_MEM_FENCE); *a = N; }\n")
    assert command("k.toml", "--json") == 0
    output = capsys.readouterr()
    answer = json.loads(output.out)
    assert answer["spirv"] is None
    assert "has no SPIR-V for" in answer["no_spirv"]
    assert output.err == f"crosscast: no SPIR-V module is written: {answer['no_spirv']}\n"
    assert not Path("k.profiled.spv").exists()


def test_a_module_of_another_kernel_is_not_written(command: Command, table: Path, capsys: Output) -> None:
    Path("m.spv").write_bytes(compile_module(Program(b"kernel void other(global int *a) { *a = 1; }")))
    before = names()
    assert command("k.cl", "--profiles", table, "--spirv", "m.spv") == 2
    assert "m.spv: expected a module with the kernel 'k', found other" in capsys.readouterr().err
    assert names() == before


def test_a_kernel_that_fails_writes_nothing(command: Command, capsys: Output) -> None:
    Path("k.cl").write_text("kernel void k(global int *a) { a[1 << 30] = N; }\n")
    assert command("k.toml") == 2
    assert "k: " in capsys.readouterr().err
    assert names() == {"k.cl", "k.toml", "both.toml"}
