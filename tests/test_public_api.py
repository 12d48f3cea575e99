"""What `crosscast` exports, what a type checker knows of it, and that importing it brings nothing else."""

import ast
import doctest
import importlib
import inspect
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, assert_type, get_overloads

import pytest

import crosscast
from crosscast import api, evaluate, load_model, train
from crosscast.data.dataset import Dataset
from crosscast.data.times import LaunchTables
from crosscast.evaluation.configuration.evaluation import ConfigurationEvaluation
from crosscast.evaluation.corun.evaluation import CoRunEvaluation
from crosscast.evaluation.relative.evaluation import RelativeEvaluation
from crosscast.evaluation.time.launch_times import LaunchEvaluation
from crosscast.evaluation.time.scores import TimeEvaluation
from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.relative.artefact import TrainedRelativeModel
from crosscast.prediction.time.artefact import TrainedTimeModel
from crosscast.prediction.time.launch_model import TrainedLaunchTimes
from support.sources import PATHS
from support.sources import ROOT as PACKAGE

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
OF_DRIVERS = {"expect_close", "whole_groups"}  # For drivers of applications
CALLABLE = [name for name in crosscast.__all__ if callable(getattr(crosscast, name))]


def test_public_names_are_few_and_there_and_others_are_attribute_errors() -> None:
    assert all(getattr(crosscast, name) is not None for name in crosscast.__all__)
    assert dir(crosscast) == sorted(set(crosscast.__all__))
    assert len(crosscast.__all__) <= 52
    assert not hasattr(crosscast, "charactrize")


@pytest.mark.parametrize("name", CALLABLE)
def test_public_names_say_what_they_do(name: str) -> None:
    text = inspect.getdoc(getattr(crosscast, name)) or ""
    assert text
    if inspect.isfunction(getattr(crosscast, name)) and name not in OF_DRIVERS:
        assert "Parameters\n---" in text
        assert "Returns\n---" in text
        assert "Raises\n---" in text


def submodules_in(code: str) -> list[str]:
    """Modules of the package below `crosscast` that code imports."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            found += [module] if module else [alias.name for alias in node.names]
    return [name for name in found if name.startswith("crosscast.")]


def python_blocks(text: str) -> list[str]:
    """Blocks of Python in a document; of a session, what is typed."""
    blocks = []
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        typed = [line[4:] for line in block.splitlines() if line.startswith((">>> ", "... "))]
        blocks.append("\n".join(typed) if typed else block)
    return blocks


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_import_crosscast_alone(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not [name for block in python_blocks(text) for name in submodules_in(block)]
    # Also where a block is not said to be of Python.
    assert not re.findall(r"^(?:>>> )?(?:from|import) crosscast\.\w", text, re.MULTILINE)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_import_crosscast_alone(path: Path) -> None:
    assert not submodules_in(path.read_text(encoding="utf-8"))


def test_every_place_says_the_same_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {crosscast.__version__}\n" in citation
    first = re.search(r"^## (\S+) \((\S+)\)$", changes, re.MULTILINE)
    assert first is not None
    assert first[1] == crosscast.__version__
    assert f"\ndate-released: {first[2]}\n" in citation


def _typed(dataset: Dataset, tables: LaunchTables) -> None:
    """Not run: each line is an error of mypy if the type is another."""
    assert_type(train(dataset), TrainedTimeModel)
    assert_type(train(dataset, "time", level=0.8), TrainedTimeModel)
    assert_type(train(tables, "time"), TrainedLaunchTimes)
    assert_type(train(dataset, model="terms"), TrainedLaunchTimes)
    assert_type(train(dataset, "relative", devices=["cpu"]), TrainedRelativeModel)
    assert_type(train(dataset, "configuration", power_domain="gpu"), TrainedConfigurationModel)
    assert_type(train(dataset, "corun", device="gpu"), TrainedCoRunModel)
    assert_type(evaluate(dataset), TimeEvaluation)
    assert_type(evaluate(dataset, "time", ["combined"], "leave-kernel-out", probes=[1]), TimeEvaluation)
    assert_type(evaluate(tables, folds="leave-source-out"), LaunchEvaluation)
    assert_type(evaluate(dataset, models=["terms"]), LaunchEvaluation)
    assert_type(evaluate(dataset, "relative", weights="rows"), RelativeEvaluation)
    assert_type(evaluate(dataset, "configuration", max_retunes=2), ConfigurationEvaluation)
    assert_type(evaluate(dataset, "corun", probes=[0, 3]), CoRunEvaluation)
    assert_type(load_model("model", "relative"), TrainedRelativeModel)
    assert_type(load_model("model", "configuration"), TrainedConfigurationModel)
    assert_type(load_model("model", "corun"), TrainedCoRunModel)


@pytest.mark.parametrize("name", api.QUESTIONS)
@pytest.mark.parametrize("function", [api.train, api.evaluate])
def test_keywords_that_a_type_checker_knows_are_the_options_of_the_question(function: Any, name: str) -> None:
    question = api.QUESTIONS[name]
    options = question.training_options if function is api.train else question.evaluation_options
    known = {each.name: each.default for each in fields(options)}
    found: dict[str, Any] = {}
    for overload in get_overloads(function):
        signature = inspect.signature(overload)
        if signature.parameters["question"].annotation == f"Literal['{name}']":
            keywords = [p for p in signature.parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
            found |= {p.name: p.default for p in keywords if p.name not in ("model", "models", "folds")}
    assert found == known


HEAVY = (
    "numpy llvmlite rich matplotlib pyarrow cyclopts ziglang scipy sklearn threadpoolctl pyopencl pynvml "
    "cuda numba xgboost caliperreader hatchet rustworkx networkx fastapi uvicorn prometheus_client"
).split()
COMMANDS = (
    "characterize, choose configuration, colocate, corun profile, embed, evaluate relative, measure, "
    "predict time, report, serve, reproduce johnston2018, simulate policies, train corun"
).split(", ")


HELP = [[*name.split(), "--help"] for name in COMMANDS]


def modules_after(code: str) -> set[str]:
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("code", "needed"),
    [
        ("import crosscast", ()),
        ("import crosscast as c; c.Launch(c.Kernel.from_source('x', 'k'), (4,), (2,))", ("numpy",)),
        ("from crosscast.cli import main; assert not main([])", ()),
        ("from crosscast.cli import main; assert not main(['--help']) and not main(['--version'])", ()),
        (f"from crosscast.cli import main\nfor line in {HELP}: assert not main(line)", ("rich", "cyclopts")),
    ],
)
def test_nothing_heavy_is_imported_that_is_not_needed(code: str, needed: tuple[str, ...]) -> None:
    assert modules_after(code).isdisjoint(set(HEAVY) - set(needed))


def test_a_simulation_brings_no_other_room() -> None:
    path = str(Path(__file__).parents[1] / "examples/made-cluster.swf")
    loaded = modules_after(
        f"from crosscast.cli import main\nmain(['simulate', 'policies', {path!r}, '--json'])"
    )
    loaded = {name for name in loaded if name.startswith("crosscast")}
    assert len(loaded) <= 50
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert rooms.isdisjoint({"characterization", "decide", "measure", "prediction", "tuning"})
    # Intervals over weeks, and where work runs, are as of all evaluations; their modules need nothing else.
    evaluation = {name for name in loaded if name.startswith("crosscast.evaluation.")}
    assert evaluation == {"crosscast.evaluation.executor", "crosscast.evaluation.resampling"}


WITH_EXAMPLES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PATHS
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_docstring_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
