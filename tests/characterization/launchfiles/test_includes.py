"""A source with its includes inside is what the compiler's own preprocessor makes of it and its files."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crosscast
from crosscast.characterization.launchfiles.includes import self_contained
from crosscast.characterization.launchfiles.launchfile import write_launch
from crosscast.errors import UnsupportedError
from crosscast.kernel import Kernel, Launch, Program
from support.examples import examples
from support.refusals import refusals

NAMES = ("a.h", "b.h", "in/c.h", "in/d.h", "far/e.h")


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Includes of any of the files, in quotes or not, in comments or texts or not, among other lines."""
    name = draw(st.sampled_from([*NAMES, "c.h", "e.h", "none.h"]))
    include = f"# include <{name}> // {name}" if draw(st.booleans()) else f'#include "{name}"'
    if name == "none.h":
        return f"#ifdef NEVER\n{include}\n#endif"
    forms = ("{}", "{}", "/* {}\n{} */", "// {}", 'char *s = "/*";\n{}\nchar *t = "*/";')
    return draw(st.sampled_from(forms)).replace("{}", include)


@st.composite
def files(draw: st.DrawFn) -> dict[str, str]:
    found = {}
    for number, name in enumerate((*NAMES, "k.cl")):
        body = "\n".join([f"int v{number};", *draw(st.lists(lines(), max_size=3)), f"int w{number};"])
        guard = draw(st.sampled_from(("#pragma once\n{}", "#ifndef G{n}\n#define G{n}\n{}\n#endif")))
        found[name] = guard.replace("{n}", str(number)).replace("{}", body)
    return found


def preprocessed(path: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "ziglang", "cc", "-x", "c", "-E", "-P", *options, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@settings(examples(15, fast=5), derandomize=True)
@given(files())
def test_it_is_what_the_preprocessor_sees(
    tmp_path_factory: pytest.TempPathFactory, contents: dict[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    options = tuple(f"-I{folder / each}" for each in ("in", "far"))
    whole = self_contained(Program.from_file(folder / "k.cl", options=("-DX=1", *options)))
    assert whole.options == ("-DX=1",)
    alone = tmp_path_factory.mktemp("alone") / "k.cl"
    alone.write_bytes(whole.content)
    assert preprocessed(alone) == preprocessed(folder / "k.cl", f"-I{folder}", *options)


def test_a_launch_file_needs_no_folder_of_where_it_was_made(tmp_path: Path) -> None:
    (tmp_path / "here" / "inc").mkdir(parents=True)
    (tmp_path / "here" / "inc" / "scale.h").write_text('#include "near.h"\n')
    (tmp_path / "here" / "inc" / "near.h").write_text("#define SCALE 3.0f\n")
    source = tmp_path / "here" / "k.cl"
    source.write_text("#include <scale.h>\nkernel void k(global float *x) { *x *= SCALE; }")
    program = Program.from_file(source, options=[f"-I{tmp_path / 'here' / 'inc'}"])
    launch = Launch(Kernel(program, "k"), (1,), (1,), (np.ones(1, np.float32),))
    (tmp_path / "there").mkdir()
    write_launch(launch, tmp_path / "there" / "k.toml")
    for each in sorted((tmp_path / "here").rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()
    (read,) = crosscast.read_launches(tmp_path / "there" / "k.toml")
    crosscast.characterize(read.kernel, read.global_size, read.local_size, read.args)
    assert np.asarray(read.args[0]).tolist() == [3.0]


@refusals("source header sentence")
def test_what_cannot_be_inside_is_refused(tmp_path: Path, source: str, header: str, sentence: str) -> None:
    (tmp_path / "h.h").write_text(header)
    (tmp_path / "k.cl").write_text(source)
    with pytest.raises(UnsupportedError, match=sentence):
        self_contained(Program.from_file(tmp_path / "k.cl", options=[f"-I{tmp_path}"]))
