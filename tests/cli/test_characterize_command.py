"""``crosscast characterize``, with a replaced engine and the real one, what `--arg` means, and ``embed``."""

import csv
import io
import json
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import frontend, run
from crosscast.characterization.embedding import read_embedded
from crosscast.characterization.spirv import compile_module
from crosscast.cli import main
from crosscast.commands import output as outputs
from crosscast.commands.launch import parse_argument
from crosscast.data.profiles import read_parquet, write_parquet
from crosscast.errors import KernelFault
from crosscast.kernel import Launch, Local, Parameter, Program
from crosscast.profile import Profile
from support.commands import Command, Output
from support.examples import one_in
from support.refusals import refusal

ProfileMaker = Callable[..., Profile]
EXAMPLES = Path(__file__).parents[2] / "examples"


class Engine:
    """Stands in for the engine: notes launches, doubles float buffers, fails on demand."""

    def __init__(self, make_profile: ProfileMaker) -> None:
        self.make_profile = make_profile
        self.launches: list[Launch] = []
        self.options: list[Any] = []
        self.failure: BaseException | None = None
        self.fail_at = 0

    def __call__(self, launch: Launch, *, invocation: int = 0, options: run.Options) -> Profile:
        if self.failure is not None and invocation == self.fail_at:
            raise self.failure
        self.launches.append(launch)
        self.options.append(options)
        for argument in launch.args:
            if isinstance(argument, np.ndarray) and argument.dtype == np.float32:
                np.multiply(argument, 2, out=argument)
        profile = self.make_profile(launch.kernel.name, invocation)
        published = (("Opcode", "Compute", 8), ("Unique Read/Write Ratio", "Memory", 1 / 3))
        return replace(profile, printed="printed\n", published=published if options.published else ())


@pytest.fixture
def engine(make_profile: ProfileMaker, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The replaced engine; every kernel has one buffer `a`."""
    engine, parameters = Engine(make_profile), (Parameter("a", "float*", "global", 8),)
    monkeypatch.setattr(run, "characterize_launch", engine)
    monkeypatch.setattr(frontend, "parameters", lambda program, kernel: parameters)
    monkeypatch.setattr(
        frontend,
        "load",
        lambda program: SimpleNamespace(kernel_names=program.content.decode().split(), compiled=None),
    )
    return engine


@pytest.fixture
def command(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`crosscast characterize` with the given words, in a folder with one file of each kind."""
    del engine
    monkeypatch.chdir(tmp_path)
    Path("k.cl").write_text("k")
    Path("k.sim").write_text("k.cl k 4 1 1 2 1 1\n<size=8 fill=1.5 dump>\n")
    launch = 'source = "k.cl"\nkernel = "k"\nglobal = 4\n[[arg]]\ntype = "float"\nlength = 2\n'
    Path("k.toml").write_text(launch)
    Path("three.toml").write_text(f'{launch}[[launch]]\n[[launch]]\nkernel = "l"\n[[launch]]\n')
    return Command.of("characterize")


def test_a_launch_file_gives_a_summary_and_all_the_table_of_metrics(command: Command, capsys: Output) -> None:
    for more in ((), ("--all",)):
        out = command.text(capsys, "k.toml", *more)
        assert out.startswith("printed\nk, launch 0\n")
        assert "\n  work         7 instructions, 1 a work-item\n" in out
        assert ("\n  total_instruction_count " in out) == bool(more)
    dump = "printed\n\nArgument 'a': 8 bytes\n  a[0] = 3\n  a[1] = 3\n\n"
    assert command.text(capsys, "k.sim").startswith(dump + "k, launch 0")


def test_json_is_one_object_and_csv_one_row_a_launch(command: Command, capsys: Output) -> None:
    rows = [json.loads(line) for line in command.text(capsys, "three.toml", "--json").splitlines()]
    assert [(row["kernel"], row["invocation"]) for row in rows] == [("k", 0), ("l", 1), ("k", 2)]
    assert {"metrics", "timing_s", "environment", "launch", "program"} <= set(rows[0])
    assert rows[0]["printed"] == "printed\n"
    assert command("three.toml", "--csv", "--parquet", "p.parquet", "--plot", "k.png") == 0
    output = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(output.out)))
    assert [row["kernel"] for row in rows] == ["k", "l", "k"]
    assert rows[0]["opcode"] == "7"
    assert "printed" in output.err
    assert Path("p.parquet").read_bytes().startswith(b"PAR1")
    assert Path("k.png").read_bytes().startswith(b"\x89PNG")


def test_a_program_gets_its_launch_from_the_options(command: Command, engine: Engine) -> None:
    words = "--global 8,4 --local 4,2 --offset 1,0 -DN=3 -D M -I inc --option -cl-mad-enable --std 2.0"
    words += " --arg float:8:constant:3 --arg local:64 --arg int=5"
    assert command("k.cl", *words.split()) == 0
    (launch,) = engine.launches
    assert (launch.global_size, launch.local_size, launch.global_offset) == ((8, 4), (4, 2), (1, 0))
    assert launch.kernel.program.options == ("-DN=3", "-DM", "-Iinc", "-cl-mad-enable")
    assert launch.kernel.program.standard == "2.0"
    buffer, *others = launch.args
    assert isinstance(buffer, np.ndarray)
    assert buffer.tolist() == [6] * 8
    assert others == [Local(64), 5]


def test_options_reach_the_engine(command: Command, engine: Engine) -> None:
    assert command("k.toml", "--check-bounds", "--threads", 2, "--timeout", 5, "--memory-limit", "1G") == 0
    (options,) = engine.options
    assert (options.threads, options.check_bounds, options.timeout_s) == (2, True, 5.0)
    assert (options.memory_limit, options.published, options.sample_groups) == (1 << 30, False, "all")
    for text, asked in (("all", "all"), ("0", "all"), ("auto", "auto"), ("4096", 4096)):
        assert command("k.toml", "--sample-groups", text) == 0
        assert engine.options[-1].sample_groups == asked


def test_a_sample_and_reads_beyond_a_buffer_are_said(
    command: Command, engine: Engine, capsys: Output, make_profile: ProfileMaker
) -> None:
    profile, error = make_profile("k", 0), {"instructions": 0.0, "distinct_bytes": 0.012}
    sampled = {"groups": 512, "of": 16384, "error": error, "because": "asked"}
    doubtful = {"sampled": sampled, "read_beyond": {"a": {"before": 0, "behind": 8}}}
    engine.make_profile = lambda *_: replace(profile, launch={**profile.launch, **doubtful})
    assert command("k.toml", "--sample-groups", 512) == 0
    output = capsys.readouterr()
    assert "\n  sample       512 of 16,384 work-groups ran; counts are extended: instructions" in output.out
    assert output.err == (
        "crosscast: warning: k reads up to 8 bytes behind the end of a, where a device may have anything: "
        "zeros were read; --check-bounds tells the work-item and the line\n"
    )


def test_compat_writes_the_published_files(command: Command, capsys: Output) -> None:
    for _ in range(2):
        assert command("k.toml", "--aiwc", ".") == 0
    text = "metric,category,count\nOpcode,Compute,8\nUnique Read/Write Ratio,Memory,0.3333\n"
    assert Path("aiwc_k_0.csv").read_text() == text
    assert not Path("aiwc_k_1.csv").exists(), "a second run is no second invocation"
    assert command("three.toml", "--aiwc", "new/folder") == 0
    Path("new/folder/aiwc_kl_7.csv").write_text("another kernel's")
    assert command("three.toml", "--aiwc", "new/folder") == command("k.toml", "--aiwc", "new/folder") == 0
    names = sorted(path.name for path in Path("new/folder").iterdir())
    assert names == ["aiwc_k_0.csv", "aiwc_kl_7.csv", "aiwc_l_0.csv"]
    assert "wrote aiwc_k_0.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (KernelFault("l: division by zero"), 2, "crosscast: l: division by zero\n"),
        (KeyboardInterrupt(), 130, "crosscast: interrupted\n"),
        (MemoryError(), 1, "not enough memory"),
    ],
)
def test_what_is_finished_is_shown_when_a_later_launch_fails(
    command: Command, engine: Engine, capsys: Output, failure: BaseException, code: int, said: str
) -> None:
    engine.failure, engine.fail_at = failure, 1
    assert command("three.toml", "--parquet", "p.parquet") == code
    output = capsys.readouterr()
    assert "k, launch 0" in output.out
    assert said in output.err
    assert Path("p.parquet").exists()


def test_a_missing_extra_is_said_before_anything_runs(
    command: Command, engine: Engine, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("pyarrow", "matplotlib"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    for words, extra in (("--parquet p.parquet", "parquet"), ("--plot k.png", "report")):
        assert f"pip install 'crosscast[{extra}]'" in command.refusal(capsys, "k.toml", *words.split())
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
    "image:float:R:9:uniform:0": (
        "image = {type = 'float', channel_order = 'R', shape = [9], fill = 'uniform', low = 0}"
    ),
}


@pytest.mark.parametrize("text", FORMS)
def test_each_form_is_a_table_of_a_launch_file(text: str) -> None:
    assert dict(parse_argument(text).items()) == tomllib.loads(f"arg = {{{FORMS[text]}}}")["arg"]


WRONG_FORMS = {
    **dict.fromkeys(["", "512", "=512"], "expected TYPE=VALUE"),
    "int=many": "expected a number, found 'many'",
    "int=": "expected a number, found ''",
    "float:many": "expected a number, found 'many'",
    "local:": "expected a number",
    "float:16:random": "fill: expected one of zeros",
    "float:16:uniform:0:1:2": "uniform takes at most 2 numbers",
    "float:16:zeros:1": "zeros takes at most 0 numbers",
    "image:uchar": "expected image:TYPE:ORDER:SHAPE",
}


@pytest.mark.parametrize("text", WRONG_FORMS)
def test_other_forms_are_refused_with_their_text(text: str) -> None:
    told = refusal(parse_argument, text)
    assert told.startswith(f"--arg {text}: ") and WRONG_FORMS[text] in told


def test_a_kernel_on_the_command_line(capsys: Output) -> None:
    words = "--kernel saxpy<float> --grid 4 --block 256 --arg int=1024 --arg float=2"
    words += " --arg float:1024:uniform --arg float:1024"
    profile = Command.of("characterize").answer(capsys, EXAMPLES / "saxpy.cu", *words.split())
    assert profile["program"]["form"] == "cuda"
    assert profile["metrics"]["work_items"] == 1024
    assert profile["launch"]["local_size"] == [256]


def test_a_refused_kernel_does_not_stop_the_other_launches_of_a_file(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "k.toml"
    bodies = (f"__global__ void {k}(int *x) {{ *x = {k}(1); }}\n" for k in ("bad", "worse"))
    (tmp_path / "k.cu").write_text("".join([*bodies, "__global__ void good(int *x) { *x = 1; }"]))
    launches = [f'[[launch]]\nkernel = "{k}"\n' for k in ("bad", "good", "worse")]
    launch = 'source = "k.cu"\ngrid = 1\nblock = 32\n[[arg]]\ntype = "int"\nlength = 32\n'
    path.write_text("".join([launch, *launches]))
    for command in (["characterize"], ["predict", "time", "--devices", "gtx1080"]):
        assert main([*command, str(path), "--json"]) == 2
        output = capsys.readouterr()
        answer = json.loads(output.out)
        assert [each["kernel"] for each in answer.get("kernels", [answer])] == ["good"]
        assert "warning: " in output.err
        assert "refused the kernel bad" in output.err.partition("refused the kernel worse")[0]
    path.write_text(launch + launches[0])
    assert main(["predict", "time", str(path)]) == 2
    assert "refused the kernel bad" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("__global__ void k(other_t *x) {}", "none that can be compiled (k: "),
        ("__device__ int f() { return 1; }", "none"),
        ("template <int N> __global__ void k(int *x) {}", "none but templates, which are named with their"),
    ],
)
def test_it_says_why_a_program_has_no_kernel(source: str, found: str, tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "k.cu"
    path.write_text(f"#include <other.h>\n{source}\n")
    error = Command.of("characterize").refusal(capsys, path, "--grid", "1", "--block", "1")
    expected = f"expected one kernel in {path}, found {found}"
    assert error.endswith(expected) if found == "none" else expected in error
    assert ("headers that were not found: other.h" in error) == found.startswith("none that")


SOURCE = """
kernel void show(global float *a) { printf("%d: %.1f\\n", (int)get_global_id(0), a[get_global_id(0)]); }
kernel void wait(global volatile float *a) { while (a[0] == 0) a[1] += 1; }
"""


@pytest.mark.parametrize("name", one_in(4, ["matmul", "vecadd", "reduce", "histogram"]))
def test_the_examples_run_within_bounds(name: str, capsys: Output) -> None:
    words = (EXAMPLES / f"{name}.toml", "--check-bounds", "--json")
    for line in Command.of("characterize").text(capsys, *words).splitlines():
        row = json.loads(line)
        metrics = row["metrics"]
        assert metrics["total_memory_footprint"] <= metrics["total_reads"] + metrics["total_writes"]
        assert {"compile", "instrument", "run", "metrics"} <= set(row["timing_s"])


def test_interruption_stops_the_kernel_and_keeps_what_is_finished(tmp_path: Path) -> None:
    (tmp_path / "k.cl").write_text(SOURCE)
    launch = 'source = "k.cl"\nkernel = "show"\nglobal = 1\n[[arg]]\ntype = "float"\nlength = 2\n'
    (tmp_path / "k.toml").write_text(f'{launch}[[launch]]\n[[launch]]\nkernel = "wait"\n')
    words = [sys.executable, "-u", "-m", "crosscast", "characterize", "k.toml", "--json"]
    child = subprocess.Popen(words, cwd=tmp_path, stdout=PIPE, stderr=PIPE, text=True)
    assert child.stdout is not None
    first = json.loads(child.stdout.readline())
    child.send_signal(signal.SIGINT)
    rest, errors = child.communicate(timeout=30)
    assert first["kernel"] == "show"
    assert (rest, errors, child.returncode) == ("", "crosscast: interrupted\n", 130)


EMBEDDED = """kernel void k(global int *a) { a[get_global_id(0)] *= N; }
kernel void l(global int *a) { *a = 1; }
"""
OF_EMBEDDED = """source = "k.cl"
kernel = "k"
global = 64
options = ["-DN=3"]
[[arg]]
type = "int"
length = 64
"""


@pytest.fixture
def embed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`crosscast embed` with the given words, in a folder with a source and its launch file."""
    monkeypatch.chdir(tmp_path)
    Path("k.cl").write_text(EMBEDDED)
    Path("k.toml").write_text(OF_EMBEDDED)
    Path("both.toml").write_text(OF_EMBEDDED + '[[launch]]\n[[launch]]\nkernel = "l"\n[[launch]]\n')
    return Command.of("embed")


@pytest.fixture
def table(embed: Command, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> Path:
    """A table with the profile of the launch; from then on, nothing may run."""
    del embed
    Command.of("characterize").text(capsys, "k.toml", "--parquet", "k.parquet")
    monkeypatch.setattr(run, "characterize_launch", pytest.fail)
    return Path("k.parquet")


def names() -> set[str]:
    return {path.name for path in Path().iterdir()}


def test_source_and_module_are_written_beside_the_source(embed: Command, capsys: Output) -> None:
    told = "wrote k.profiled.cl and k.profiled.spv with the profiles of k (2 launches), l\n"
    assert embed.text(capsys, "both.toml") == told
    assert Path("k.cl").read_text() == EMBEDDED
    profiles = read_embedded("k.profiled.cl")
    assert [(p.kernel, p.invocation) for p in profiles] == [("k", 0), ("l", 1), ("k", 2)]
    assert read_embedded("k.profiled.spv") == profiles


def test_json_says_what_was_written(embed: Command, capsys: Output) -> None:
    answer = embed.answer(capsys, "k.toml")
    written = (answer["source"], answer["spirv"], answer["no_spirv"])
    assert written == ("k.profiled.cl", "k.profiled.spv", None)
    (embedded,) = read_embedded("k.profiled.cl")
    assert answer["profiles"][0]["metrics"] == embedded.metrics
    assert embedded.metrics["work_items"] == 64
    assert embedded.program["options"] == ["-DN=3", "-O3"]


def test_a_copy_that_was_edited_is_left_alone(embed: Command, table: Path, capsys: Output) -> None:
    embed.text(capsys, "k.toml", "--profiles", table, "--spirv", "none")
    assert not Path("k.profiled.spv").exists()
    edited = Path("k.profiled.cl").read_text() + "// mine\n"
    Path("k.profiled.cl").write_text(edited)
    told = embed.refusal(capsys, "k.toml", "--profiles", table)
    assert "k.profiled.cl: expected no file, or one as crosscast embed wrote it" in told
    assert Path("k.profiled.cl").read_text() == edited


def test_profiles_of_a_table_need_no_run(embed: Command, table: Path) -> None:
    for file in ("k.cl", "k.toml"):
        assert embed(file, "--profiles", table, "--out", "out.cl") == 0
        (embedded,) = read_embedded("out.cl")
        assert embedded.metrics["work_items"] == 64
        # The module is compiled with the options of the profile: the source needs -DN.
        assert read_embedded("out.spv") == (embedded,)


def test_profiles_with_other_options_share_no_module(embed: Command, table: Path, capsys: Output) -> None:
    (one,) = read_parquet(table)
    write_parquet([one, replace(one, program={**one.program, "options": ["-DN=4"]})], "two.parquet")
    assert embed("k.cl", "--profiles", "two.parquet") == 0
    assert "no SPIR-V module is written: k.cl: its profiles were made with" in capsys.readouterr().err
    assert len(read_embedded("k.profiled.cl")) == 2
    assert not Path("k.profiled.spv").exists()


def test_a_builtin_without_spirv_leaves_the_module_out(embed: Command, capsys: Output) -> None:
    Path("k.cl").write_text("kernel void k(global int *a) { mem_fence(CLK_GLOBAL_MEM_FENCE); *a = N; }\n")
    assert embed("k.toml", "--json") == 0
    output = capsys.readouterr()
    answer = json.loads(output.out)
    assert answer["spirv"] is None and "has no SPIR-V for" in answer["no_spirv"]
    assert output.err == f"crosscast: no SPIR-V module is written: {answer['no_spirv']}\n"
    assert not Path("k.profiled.spv").exists()


def test_a_module_of_another_kernel_is_not_written(embed: Command, table: Path, capsys: Output) -> None:
    Path("m.spv").write_bytes(compile_module(Program(b"kernel void other(global int *a) { *a = 1; }")))
    before = names()
    told = embed.refusal(capsys, "k.cl", "--profiles", table, "--spirv", "m.spv")
    assert "m.spv: expected a module with the kernel 'k', found other" in told
    assert names() == before


def test_a_kernel_that_fails_writes_nothing(embed: Command, capsys: Output) -> None:
    Path("k.cl").write_text("kernel void k(global int *a) { a[1 << 30] = N; }\n")
    assert "k: " in embed.refusal(capsys, "k.toml")
    assert names() == {"k.cl", "k.toml", "both.toml"}
