"""The command with a replaced engine: what it reads, prints, writes and refuses.

What `--arg` means: each form is a table of a launch file, or refused with its text.

`crosscast characterize` on CUDA kernels: options of grids, and those that are OpenCL's.
"""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import frontend, run
from crosscast.cli import main
from crosscast.commands import output as outputs
from crosscast.commands.launch import parse_argument
from crosscast.errors import InputError, KernelFault
from crosscast.kernel import Launch, Local, Parameter
from crosscast.profile import Profile
from support.commands import Output
from support.examples import one_in

Command = Callable[..., int]
ProfileMaker = Callable[..., Profile]


class Engine:
    """Stands in for the engine: notes launches, doubles float buffers, fails on demand."""

    def __init__(self, make_profile: ProfileMaker) -> None:
        self.make_profile = make_profile
        self.launches: list[Launch] = []
        self.options: list[Any] = []
        self.failure: BaseException | None = None
        self.fail_at = 0
        self.progress: tuple[float, ...] = ()

    def __call__(self, launch: Launch, *, invocation: int = 0, options: run.Options) -> Profile:
        if self.failure is not None and invocation == self.fail_at:
            raise self.failure
        self.launches.append(launch)
        self.options.append(options)
        for elapsed_s in self.progress:
            assert options.progress is not None
            options.progress(run.Progress(5, 10, elapsed_s))
        for argument in launch.args:
            if isinstance(argument, np.ndarray) and argument.dtype == np.float32:
                np.multiply(argument, 2, out=argument)
        profile = self.make_profile(launch.kernel.name, invocation)
        published = (("Opcode", "Compute", 8), ("Unique Read/Write Ratio", "Memory", 1 / 3))
        return replace(profile, printed="printed\n", published=published if options.published else ())


@pytest.fixture
def engine(make_profile: ProfileMaker, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The replaced engine; every kernel has one buffer `a`."""
    engine = Engine(make_profile)
    monkeypatch.setattr(run, "characterize_launch", engine)
    monkeypatch.setattr(
        frontend, "parameters", lambda program, kernel: (Parameter("a", "float*", "global", 8),)
    )
    monkeypatch.setattr(frontend, "kernel_names", lambda program: tuple(program.content.decode().split()))
    return engine


@pytest.fixture
def command(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`crosscast characterize` with the given words, in a folder with one file of each kind."""
    del engine
    monkeypatch.chdir(tmp_path)
    Path("k.cl").write_text("k")
    Path("two.cl").write_text("first second")
    Path("k.sim").write_text("k.cl k 4 1 1 2 1 1\n<size=8 fill=1.5 dump>\n")
    arg = '[[arg]]\ntype = "float"\nlength = 2\n'
    Path("k.toml").write_text(f'source = "k.cl"\nkernel = "k"\nglobal = 4\n{arg}')
    Path("three.toml").write_text(
        f'source = "k.cl"\nkernel = "k"\nglobal = 4\n{arg}[[launch]]\n[[launch]]\nkernel = "l"\n[[launch]]\n'
    )
    return lambda *words: main(["characterize", *map(str, words)])


@pytest.mark.parametrize("more", [(), ("--all",)], ids=["summary", "all"])
def test_a_launch_file_gives_a_summary_and_all_the_table_of_metrics(
    command: Command, capsys: Output, more: tuple[str, ...]
) -> None:
    assert command("k.toml", *more) == 0
    out = capsys.readouterr().out
    assert out.startswith("printed\nk, launch 0\n")
    assert "\n  work         7 instructions, 1 a work-item\n" in out
    assert ("\n  total_instruction_count " in out) == bool(more)


def test_json_is_one_object_a_launch(command: Command, capsys: Output) -> None:
    assert command("three.toml", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["kernel"], row["invocation"]) for row in rows] == [("k", 0), ("l", 1), ("k", 2)]
    assert {"metrics", "timing_s", "environment", "launch", "program"} <= set(rows[0])
    assert rows[0]["printed"] == "printed\n"


def test_csv_is_one_row_a_launch(command: Command, capsys: Output) -> None:
    assert command("three.toml", "--csv") == 0
    output = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(output.out)))
    assert [row["kernel"] for row in rows] == ["k", "l", "k"]
    assert rows[0]["opcode"] == "7"
    assert "printed" in output.err


def test_a_simulator_file_prints_its_dumps_between_printf_and_table(command: Command, capsys: Output) -> None:
    assert command("k.sim") == 0
    dump = "printed\n\nArgument 'a': 8 bytes\n  a[0] = 3\n  a[1] = 3\n\n"
    assert capsys.readouterr().out.startswith(dump + "k, launch 0")


def test_a_program_gets_its_launch_from_the_options(command: Command, engine: Engine) -> None:
    words = "--global 8,4 --local 4,2 --offset 1,0 -DN=3 -D M -I inc --option -cl-mad-enable --std 2.0"
    assert (
        command("k.cl", *words.split(), "--arg", "float:8:constant:3", "--arg", "local:64", "--arg", "int=5")
        == 0
    )
    (launch,) = engine.launches
    assert (launch.global_size, launch.local_size, launch.global_offset) == ((8, 4), (4, 2), (1, 0))
    assert launch.kernel.program.options == ("-DN=3", "-DM", "-Iinc", "-cl-mad-enable")
    assert launch.kernel.program.standard == "2.0"
    buffer, local, value = launch.args
    assert isinstance(buffer, np.ndarray)
    assert buffer.tolist() == [6] * 8
    assert local == Local(64)
    assert value == 5


def test_options_reach_the_engine(command: Command, engine: Engine) -> None:
    assert command("k.toml", "--check-bounds", "--threads", 2, "--timeout", 5, "--memory-limit", "1G") == 0
    (options,) = engine.options
    assert (options.threads, options.check_bounds, options.timeout_s) == (2, True, 5.0)
    assert (options.memory_limit, options.published) == (1 << 30, False)


@pytest.mark.parametrize(
    ("text", "asked"), [(None, "all"), ("all", "all"), ("0", "all"), ("auto", "auto"), ("4096", 4096)]
)
def test_some_work_groups_are_asked_for(
    command: Command, engine: Engine, text: str | None, asked: int | str
) -> None:
    assert command("k.toml", *([] if text is None else ["--sample-groups", text])) == 0
    assert [options.sample_groups for options in engine.options] == [asked]


def test_a_sample_and_reads_beyond_a_buffer_are_said(
    command: Command, engine: Engine, capsys: Output, make_profile: ProfileMaker
) -> None:
    profile = make_profile("k", 0)
    error = {"instructions": 0.0, "distinct_bytes": 0.012}
    doubtful = {
        "sampled": {"groups": 512, "of": 16384, "error": error, "because": "asked"},
        "read_beyond": {"a": {"before": 0, "behind": 8}},
    }
    engine.make_profile = lambda *_: replace(profile, launch={**profile.launch, **doubtful})
    assert command("k.toml", "--sample-groups", 512) == 0
    output = capsys.readouterr()
    assert (
        "\n  sample       512 of 16,384 work-groups ran; counts are extended: instructions exact, "
        in output.out
    )
    assert "Those of a sample are as exact as it says" in output.out
    assert output.err == (
        "crosscast: warning: k reads up to 8 bytes behind the end of a, where a device may have anything: "
        "zeros were read; --check-bounds tells the work-item and the line\n"
    )


def test_compat_writes_the_published_files(command: Command, tmp_path: Path, capsys: Output) -> None:
    for _ in range(2):
        assert command("k.toml", "--aiwc", ".") == 0
    text = "metric,category,count\nOpcode,Compute,8\nUnique Read/Write Ratio,Memory,0.3333\n"
    assert Path("aiwc_k_0.csv").read_text() == text
    assert not Path("aiwc_k_1.csv").exists(), "a second run is no second invocation"
    assert command("three.toml", "--aiwc", "new/folder") == 0
    kept = Path("new/folder/aiwc_kl_7.csv")
    kept.write_text("another kernel's")
    assert command("three.toml", "--aiwc", "new/folder") == 0
    assert command("k.toml", "--aiwc", "new/folder") == 0
    names = sorted(path.name for path in Path("new/folder").iterdir())
    assert names == ["aiwc_k_0.csv", "aiwc_kl_7.csv", "aiwc_l_0.csv"]
    assert "wrote aiwc_k_0.csv" in capsys.readouterr().err


def test_parquet_and_plot_are_written(command: Command) -> None:
    assert command("three.toml", "--parquet", "p.parquet", "--plot", "k.png", "--json") == 0
    assert Path("p.parquet").read_bytes().startswith(b"PAR1")
    assert Path("k.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_finished_is_shown_when_a_later_launch_fails(
    command: Command, engine: Engine, capsys: Output
) -> None:
    engine.failure, engine.fail_at = KernelFault("l: division by zero"), 1
    assert command("three.toml", "--parquet", "p.parquet") == 2
    output = capsys.readouterr()
    assert "k, launch 0" in output.out
    assert output.err.endswith("crosscast: l: division by zero\n")
    assert Path("p.parquet").exists()


def test_interruption_keeps_what_is_finished(command: Command, engine: Engine, capsys: Output) -> None:
    engine.failure, engine.fail_at = KeyboardInterrupt(), 2
    assert command("three.toml") == 130
    output = capsys.readouterr()
    assert "l, launch 1" in output.out
    assert output.err == "crosscast: interrupted\n"


def test_no_memory_for_the_arguments_is_a_sentence(command: Command, engine: Engine, capsys: Output) -> None:
    engine.failure = MemoryError()
    assert command("k.toml") == 1
    assert "not enough memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [("pyarrow", "--parquet p.parquet", "parquet"), ("matplotlib", "--plot k.png", "report")],
)
def test_a_missing_extra_is_said_before_anything_runs(
    command: Command,
    engine: Engine,
    capsys: Output,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    words: str,
    extra: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    assert command("k.toml", *words.split()) == 2
    assert f"pip install 'crosscast[{extra}]'" in capsys.readouterr().err
    assert not engine.launches


def test_a_file_that_can_no_longer_be_written_is_a_sentence(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(outputs, "check_file", lambda *_: Path("taken.parquet").mkdir())
    assert command("k.toml", "--json", "--parquet", "taken.parquet") == 2
    output = capsys.readouterr()
    assert json.loads(output.out)["kernel"] == "k"
    assert "--parquet: cannot write taken.parquet" in output.err


FORMS = {
    "int=512": "type = 'int', value = 512",
    "uint=0xff": "type = 'uint', value = 255",
    "double=-1.5e3": "type = 'double', value = -1500.0",
    "float4=1,2,3,4": "type = 'float4', value = [1, 2, 3, 4]",
    "float:16": "type = 'float', length = 16",
    "float:16:uniform": "type = 'float', length = 16, fill = 'uniform'",
    "int:16:uniform:-3:3": "type = 'int', length = 16, fill = 'uniform', low = -3, high = 3",
    "float:16:normal:0:2": "type = 'float', length = 16, fill = 'normal', mean = 0, sd = 2",
    "int:16:arange:5": "type = 'int', length = 16, fill = 'arange', start = 5",
    "half:16:constant:0.5": "type = 'half', length = 16, fill = 'constant', value = 0.5",
    "float@a=b:c.npy": "type = 'float', file = 'a=b:c.npy'",
    "local:1024": "local = 1024",
    "null": "null = true",
    "sampler": "sampler = {}",
    "sampler:clamp:linear": "sampler = {addressing = 'clamp', linear = true}",
    "image:uchar:RGBA:4x8": "image = {type = 'uchar', channel_order = 'RGBA', shape = [4, 8]}",
    "image:float:R:9:uniform:0:2": (
        "image = {type = 'float', channel_order = 'R', shape = [9], fill = 'uniform', low = 0, high = 2}"
    ),
}


@pytest.mark.parametrize("text", FORMS)
def test_each_form_is_a_table_of_a_launch_file(text: str) -> None:
    assert dict(parse_argument(text).items()) == tomllib.loads(f"arg = {{{FORMS[text]}}}")["arg"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected TYPE=VALUE"),
        ("512", "expected TYPE=VALUE"),
        ("=512", "expected TYPE=VALUE"),
        ("int=many", "expected a number, found 'many'"),
        ("int=", "expected a number, found ''"),
        ("float:many", "expected a number, found 'many'"),
        ("float:16:random", "fill: expected one of zeros"),
        ("float:16:uniform:0:1:2", "uniform takes at most 2 numbers"),
        ("float:16:zeros:1", "zeros takes at most 0 numbers"),
        ("local:", "expected a number"),
        ("image:uchar", "expected image:TYPE:ORDER:SHAPE"),
    ],
)
def test_other_forms_are_refused_with_their_text(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_argument(text)
    assert str(caught.value).startswith(f"--arg {text}: ")


EXAMPLE = Path(__file__).parents[2] / "examples" / "saxpy.cu"
ARGUMENTS = ("--arg", "int=1024", "--arg", "float=2", "--arg", "float:1024:uniform", "--arg", "float:1024")


def test_a_kernel_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--kernel", "saxpy<float>", "--grid", "4", "--block", "256", "--json")
    assert main(["characterize", str(EXAMPLE), *words, *ARGUMENTS]) == 0
    profile = json.loads(capsys.readouterr().out)
    assert profile["program"]["form"] == "cuda"
    assert profile["metrics"]["work_items"] == 1024


def test_a_refused_kernel_does_not_stop_the_other_launches_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels = "bad", "good", "worse"
    bodies = (f"__global__ void {k}(int *x) {{ *x = {k}(1); }}" for k in kernels if k != "good")
    source = "\n".join([*bodies, "__global__ void good(int *x) { *x = 1; }"])
    (tmp_path / "k.cu").write_text(source)
    launches = (f'[[launch]]\nkernel = "{k}"\ngrid = 1\nblock = 32\n' for k in kernels)
    argument = '[[arg]]\ntype = "int"\nlength = 32\n'
    (tmp_path / "k.toml").write_text(f'source = "k.cu"\n{argument}{"".join(launches)}')
    for command in (["characterize"], ["predict", "time", "--devices", "gtx1080"]):
        assert main([*command, str(tmp_path / "k.toml"), "--json"]) == 2
        output = capsys.readouterr()
        answer = json.loads(output.out)
        assert [each["kernel"] for each in answer.get("kernels", [answer])] == ["good"]
        assert "warning: " in output.err
        assert "refused the kernel bad" in output.err.partition("refused the kernel worse")[0]
    (tmp_path / "k.toml").write_text(f'source = "k.cu"\nkernel = "bad"\ngrid = 1\nblock = 32\n{argument}')
    assert main(["predict", "time", str(tmp_path / "k.toml")]) == 2
    assert "refused the kernel bad" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("__global__ void k(other_t *x) {}", "none that can be compiled (k: "),
        ("__device__ int f() { return 1; }", "none\n"),
        (
            "template <int N> __global__ void k(int *x) {}",
            "none but templates, which are named with their arguments: 'k<N>'",
        ),
    ],
)
def test_it_says_why_a_program_has_no_kernel(source: str, found: str, tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "k.cu"
    path.write_text(f"#include <other.h>\n{source}\n")
    assert main(["characterize", str(path), "--grid", "1", "--block", "1"]) == 2
    error = capsys.readouterr().err
    assert f"expected one kernel in {path}, found {found}" in error
    assert ("headers that were not found: other.h" in error) == found.startswith("none that")


ROOT = Path(__file__).parents[2]

SOURCE = """
kernel void show(global float *a) { printf("%d: %.1f\\n", (int)get_global_id(0), a[get_global_id(0)]); }
kernel void wait(global volatile float *a) { while (a[0] == 0) a[1] += 1; }
"""


@pytest.mark.parametrize("name", one_in(4, ["matmul", "vecadd", "reduce", "histogram"]))
def test_the_examples_run_within_bounds(name: str, capsys: Output) -> None:
    assert main(["characterize", str(ROOT / f"examples/{name}.toml"), "--check-bounds", "--json"]) == 0
    for line in capsys.readouterr().out.splitlines():
        row = json.loads(line)
        metrics = row["metrics"]
        assert metrics["total_memory_footprint"] <= metrics["total_reads"] + metrics["total_writes"]
        assert {"compile", "instrument", "run", "metrics"} <= set(row["timing_s"])


def test_interruption_stops_the_kernel_and_keeps_what_is_finished(tmp_path: Path) -> None:
    (tmp_path / "k.cl").write_text(SOURCE)
    (tmp_path / "k.toml").write_text(
        'source = "k.cl"\nkernel = "show"\nglobal = 1\n[[arg]]\ntype = "float"\nlength = 2\n'
        '[[launch]]\n[[launch]]\nkernel = "wait"\n'
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "crosscast", "characterize", "k.toml", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert child.stdout is not None
    first = json.loads(child.stdout.readline())
    child.send_signal(signal.SIGINT)
    rest, errors = child.communicate(timeout=30)
    assert first["kernel"] == "show"
    assert (rest, errors, child.returncode) == ("", "crosscast: interrupted\n", 130)
