"""Imports go down the layers of the house only, and never in a circle."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import crosscast

ROOT = Path(crosscast.__file__).parent

LAYERS = {
    "arrays": 0,
    "errors": 0,
    "results": 0,
    "fields": 0,
    "units": 0,
    "profile": 0,
    "data": 1,
    "environment": 0,
    "kernel": 1,
    "device": 1,
    "devices": 1,
    "configuration": 1,
    "tracing": 2,
    "characterization": 2,
    "measure": 2,
    "suite": 2,
    "prediction": 3,
    "evaluation": 4,
    "decide": 5,
    "studies": 6,
    "cluster": 6,
    "tuning": 6,
    "calibration": 6,
    "answers": 6,
    "executor": 1,
    "comparison": 6,
    "device_comparison": 6,
    "forecasting": 6,
    "application_forecast": 6,
    "questions": 6,
    "report": 7,
    "service": 8,
    "cli": 9,
    "__main__": 10,
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(node: ast.AST) -> Iterator[str]:
    """Modules of the package that a tree imports, for type checkers only excepted."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in MODULES)
    elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name if name in MODULES else str(node.module) for name in names)
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imports_of(module: str) -> set[str]:
    return set(imported(tree_of(module))) - {module}


def layer(module: str) -> int:
    # The root package itself imports nothing until it is asked for a name.
    return 0 if module == "crosscast" else LAYERS[module.split(".")[1]]


def test_every_room_has_a_layer() -> None:
    assert {name.split(".")[1] for name in MODULES if name != "crosscast"} <= set(LAYERS)


def test_imports_go_down_only() -> None:
    wrong = [
        f"{module} imports {target}"
        for module in MODULES
        if module != "crosscast"
        for target in imports_of(module)
        if layer(target) > layer(module)
    ]
    assert not wrong


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {module: imports_of(module) for module in MODULES if module != "crosscast"}
    TopologicalSorter(graph).prepare()


def test_imports_are_absolute() -> None:
    relative = [
        module
        for module in MODULES
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not relative


def test_no_module_is_a_box_for_everything() -> None:
    boxes = {"util", "utils", "helpers", "misc", "common_utils"}
    assert not [module for module in MODULES if module.rsplit(".", 1)[-1] in boxes]


def test_no_except_catches_everything() -> None:
    broad = [
        f"{module}:{node.lineno}"
        for module in MODULES
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or "'Exception'" in ast.dump(node.type)
            or "'BaseException'" in ast.dump(node.type)
        )
    ]
    assert not broad


def test_the_table_for_contributors_has_every_room_at_its_layer() -> None:
    path = ROOT.parents[1] / "CONTRIBUTING.md"
    if not path.exists():
        pytest.skip("no checkout")
    rows = re.findall(r"^\| (\d) \| (.+) \|$", path.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {room: int(number) for number, rooms in rows for room in re.findall(r"`(\w+)/?`", rooms)}
    rooms = {name.split(".")[1] for name in MODULES if name != "crosscast"} - {"__main__"}
    assert listed == {room: LAYERS[room] for room in rooms}


def test_files_that_documentation_names_are_there() -> None:
    root = ROOT.parents[1]
    pages = [path for path in (*root.glob("*.md"), *root.glob("docs/**/*.md")) if path.name != "CHANGELOG.md"]
    if not pages:
        pytest.skip("no checkout")
    there = {
        str(path)
        for folder in ("src", "tests", "benchmarks", "examples")
        for path in (root / folder).rglob("*.py")
    }
    missing = [
        f"{path.relative_to(root)}: {name}"
        for path in pages
        for name in re.findall(r"[`(/ ]((?:\w+/)*\w+\.py)\b", path.read_text(encoding="utf-8"))
        if not any(each.endswith(f"/{name}") for each in there)
    ]
    assert not missing
