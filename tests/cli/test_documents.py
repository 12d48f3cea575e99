"""Commands in documentation are understood: each has its options, and no other; what pages show comes out."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from crosscast.cli import main
from crosscast.cluster import ORDERS
from crosscast.cluster.placements import PLACEMENTS
from support.commands import Command, Output, arguments_of, shared_command_line
from support.examples import one_in

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    path
    for path in (ROOT / "README.md", ROOT / "Makefile", *sorted((ROOT / "docs").rglob("*.md")))
    if path.exists()
]


def commands_in(text: str) -> list[str]:
    """Commands of blocks and recipes, and those in running text, without comments."""
    whole = text.replace("\\\n", " ")
    lines = re.findall(r"^(?:\$ |\t\$\(BIN\)/)?(crosscast .*)$", whole, re.MULTILINE)
    spans = re.findall(r"`(crosscast [^`]*)`", " ".join(text.split()))
    # One is the name of a format.
    found = [re.sub(r" +#.*| \[.*", "", each) for each in (*lines, *spans)]
    return [each for each in found if each != "crosscast model"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_are_understood(path: Path) -> None:
    for command in commands_in(path.read_text(encoding="utf-8")):
        words = [word for word in shlex.split(command)[1:] if word != "--help"]
        words = words[: words.index("--")] if "--" in words else words  # what follows is another program's
        chain, apps, left = shared_command_line().parse_commands(words)
        assert chain, command
        assert apps[-1].default_command or not left or left[0].startswith(("-", "...")), command
        options = {word.partition("=")[0] for word in words if word.startswith("--")} - set(chain)
        if apps[-1].default_command:
            known = {name for each in arguments_of(*chain) for name in each.names}
            assert options <= known | set(chain), command


SCHEDULING, RESULTS = (ROOT / "docs" / f"scheduling{rest}.md" for rest in ("", "-results"))
IN_JSON = (
    "policy queue backfill jobs makespan_s average_bounded_slowdown mean_wait_s median_wait_s wait_p95_s "
    "utilisation simulation_s jobs_per_s machines users trace placement makespan_interval on_fastest "
    "average_bounded_slowdown_interval work_over_least makespan_against runs workload least_makespan_s"
).split()


@pytest.mark.skipif(not SCHEDULING.exists(), reason="no checkout")
def test_options_orders_placements_and_names_in_json_are_there() -> None:
    text, results = (path.read_text(encoding="utf-8") for path in (SCHEDULING, RESULTS))
    assert [name for name in (*ORDERS, *PLACEMENTS, *IN_JSON) if f"`{name}`" not in text] == []
    # A line of a table of results for each.
    assert [name for name in PLACEMENTS if results.count(f"\n{name} ") != 1] == []
    of_jobs = {"--job-seconds", "--job-procs", "--job-source", "--gpu-applications"}
    assert {name for each in arguments_of("evaluate", "jobs") for name in each.names} >= of_jobs
    assert [option for option in of_jobs if f"`{option} " not in results] == []


@pytest.mark.skipif(not SCHEDULING.exists(), reason="no checkout")
def test_its_example_in_python_does_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = doctest.testfile(str(SCHEDULING), module_relative=False)
    assert done.attempted > 0 and done.failed == 0


README = ROOT / "README.md"
SESSIONS = (
    re.findall(r"^\$ (crosscast .*?[^\\])\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    if README.exists()
    else []
)


@pytest.mark.parametrize(("command", "output"), SESSIONS, ids=lambda text: text.split()[1])
def test_what_the_readme_shows_is_what_comes_out(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(ROOT)
    printed = Command().text(capsys, *shlex.split(command.replace("\\\n", ""))[1:]).splitlines()
    for line in output.splitlines():
        assert line in printed or re.fullmatch(r"  \.\.\. and \d+ more", line), line


def test_the_readme_is_short_and_begins_with_a_forecast() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert next(place for place, line in enumerate(lines) if line.startswith("Recommended: ")) <= 50


TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
QUICK = ("characterize", "predict", "models", "simulate policies", "choose sample")
MADE_BEFORE = ("fft.json", "model/", "runs.csv --power-cap", "--devices mine")


@pytest.mark.parametrize("path", one_in(9, TUTORIALS), ids=lambda path: path.stem)
def test_quick_commands_of_a_tutorial_work(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Output
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for words in re.findall(r"^crosscast (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
        if words.startswith(QUICK) and not any(made in words for made in MADE_BEFORE):
            assert main(shlex.split(words)) == 0, capsys.readouterr().err


PAGE = ROOT / "docs" / "cuda.md"


@pytest.fixture(scope="module")
def page() -> str:
    if not PAGE.exists():
        pytest.skip("no checkout")
    return PAGE.read_text(encoding="utf-8")


def test_commands_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for source in re.findall(r"```cuda\n(.*?)```", page, re.DOTALL):
        (tmp_path / source.split()[1]).write_text(source)
    commands = re.findall(r"^crosscast (.*)$", page, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        assert main(shlex.split(command)) == 0


def test_the_python_runs(page: str) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(text, names)
    assert (names["x"] == 2).all()  # type: ignore[attr-defined]


def test_options_of_the_table_are_taken(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(
        "#include <hip/hip_runtime.h>\n"
        "template <int N> __global__ void k(int *o) { o[hipThreadIdx_x] = N + warpSize + __CUDA_ARCH__; }"
    )
    options = "--option=-use_fast_math --option=-fmad=false --option=-mwavefrontsize64 -D__CUDA_ARCH__=7"
    words = f"--kernel k<3> --grid 1 --block 64 --std c++20 --arg int:64 {options}"
    assert main(["characterize", str(tmp_path / "k.hip"), *words.split()]) == 0
