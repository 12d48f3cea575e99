"""The command, with the engine and the compiler: what it reads, prints, writes and leaves alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crosscast.characterization import run
from crosscast.characterization.embedding.files import read_embedded
from crosscast.characterization.embedding.spirv import compile_module
from crosscast.data.profiles import read_parquet, write_parquet
from crosscast.kernel import Program
from support.commands import Command, Output

SOURCE = """kernel void k(global int *a) { a[get_global_id(0)] *= N; }
kernel void l(global int *a) { *a = 1; }
"""
LAUNCH = """source = "k.cl"
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
    return Command.of("embed")


@pytest.fixture
def table(command: Command, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> Path:
    """A table with the profile of the launch; from then on, nothing may run."""
    del command
    Command.of("characterize").text(capsys, "k.toml", "--parquet", "k.parquet")
    monkeypatch.setattr(run, "characterize_launch", pytest.fail)
    return Path("k.parquet")


def names() -> set[str]:
    return {path.name for path in Path().iterdir()}


def test_source_and_module_are_written_beside_the_source(command: Command, capsys: Output) -> None:
    told = "wrote k.profiled.cl and k.profiled.spv with the profiles of k (2 launches), l\n"
    assert command.text(capsys, "both.toml") == told
    assert Path("k.cl").read_text() == SOURCE
    profiles = read_embedded("k.profiled.cl")
    assert [(p.kernel, p.invocation) for p in profiles] == [("k", 0), ("l", 1), ("k", 2)]
    assert read_embedded("k.profiled.spv") == profiles


def test_json_says_what_was_written(command: Command, capsys: Output) -> None:
    answer = command.answer(capsys, "k.toml")
    written = (answer["source"], answer["spirv"], answer["no_spirv"])
    assert written == ("k.profiled.cl", "k.profiled.spv", None)
    (embedded,) = read_embedded("k.profiled.cl")
    assert answer["profiles"][0]["metrics"] == embedded.metrics
    assert embedded.metrics["work_items"] == 64
    assert embedded.program["options"] == ["-DN=3", "-O3"]


def test_a_copy_that_was_edited_is_left_alone(command: Command, table: Path, capsys: Output) -> None:
    command.text(capsys, "k.toml", "--profiles", table, "--spirv", "none")
    assert not Path("k.profiled.spv").exists()
    edited = Path("k.profiled.cl").read_text() + "// mine\n"
    Path("k.profiled.cl").write_text(edited)
    told = command.refusal(capsys, "k.toml", "--profiles", table)
    assert "k.profiled.cl: expected no file, or one as crosscast embed wrote it" in told
    assert Path("k.profiled.cl").read_text() == edited


def test_profiles_of_a_table_need_no_run(command: Command, table: Path) -> None:
    for file in ("k.cl", "k.toml"):
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
    assert answer["spirv"] is None and "has no SPIR-V for" in answer["no_spirv"]
    assert output.err == f"crosscast: no SPIR-V module is written: {answer['no_spirv']}\n"
    assert not Path("k.profiled.spv").exists()


def test_a_module_of_another_kernel_is_not_written(command: Command, table: Path, capsys: Output) -> None:
    Path("m.spv").write_bytes(compile_module(Program(b"kernel void other(global int *a) { *a = 1; }")))
    before = names()
    told = command.refusal(capsys, "k.cl", "--profiles", table, "--spirv", "m.spv")
    assert "m.spv: expected a module with the kernel 'k', found other" in told
    assert names() == before


def test_a_kernel_that_fails_writes_nothing(command: Command, capsys: Output) -> None:
    Path("k.cl").write_text("kernel void k(global int *a) { a[1 << 30] = N; }\n")
    assert "k: " in command.refusal(capsys, "k.toml")
    assert names() == {"k.cl", "k.toml", "both.toml"}
