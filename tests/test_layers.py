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
    "device": 0,
    "errors": 0,
    "kernel": 1,
    "results": 1,
    "units": 1,
    "profile": 2,
    "data": 3,
    "characterization": 4,
    "devices": 4,
    "data/sources": 5,
    "prediction": 5,
    "suite": 5,
    "data/counters": 6,
    "measure": 6,
    "decide": 7,
    "tracing": 7,
    "evaluation": 8,
    "forecasting": 8,
    "cluster": 9,
    "service": 9,
    "tuning": 9,
    "comparison": 10,
    "api": 9,
    "report": 11,
    "studies": 12,
    "cli": 13,
    "commands": 14,
    "__main__": 15,
}
"""Rank of each room. A folder that stands here with its parent, `data/sources`, is a room of its own."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(node: ast.AST, with_types: bool) -> Iterator[str]:
    """Modules of the package that a tree imports; with those for type checkers only, or without."""
    if not with_types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in MODULES)
    elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name if name in MODULES else str(node.module) for name in names)
    for child in ast.iter_child_nodes(node):
        yield from imported(child, with_types)


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imports_of(module: str, with_types: bool) -> set[str]:
    return set(imported(tree_of(module), with_types)) - {module}


def room(module: str) -> str:
    _, *folders = module.split(".")
    whole = "/".join(folders[:2])
    return whole if whole in LAYERS else folders[0]


ROOMS = {room(name) for name in MODULES if name != "crosscast"}


def test_every_room_has_a_layer() -> None:
    assert set(LAYERS) == ROOMS


def test_rooms_import_lower_rooms_only() -> None:
    # The root package itself imports nothing until it is asked for a name.
    wrong = [
        f"{module} imports {target}"
        for module in MODULES
        if module != "crosscast"
        for target in imports_of(module, with_types=True) - {"crosscast"}
        if room(target) != room(module) and LAYERS[room(target)] >= LAYERS[room(module)]
    ]
    assert not wrong


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {module: imports_of(module, with_types=False) for module in MODULES if module != "crosscast"}
    TopologicalSorter(graph).prepare()


def test_the_engine_runs_kernels_without_what_instruments_them() -> None:
    engine, *upper = (f"crosscast.characterization.{each}" for each in ("engine", "instrumentation", "run"))
    wrong = [
        f"{module} imports {target}"
        for module in MODULES
        if module.startswith(engine)
        for target in imports_of(module, with_types=True)
        if target.startswith(tuple(upper))
    ]
    assert not wrong


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


def test_a_name_of_a_class_means_one_thing() -> None:
    modules: dict[str, list[str]] = {}
    for module in MODULES:
        for node in tree_of(module).body:
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(module)
    assert not {name: every for name, every in modules.items() if len(every) > 1}


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
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", path.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {
        room: int(number) for number, rooms in rows for room in re.findall(r"`(\w+(?:/\w+)?)/?`", rooms)
    }
    assert listed == {name: rank for name, rank in LAYERS.items() if name != "__main__"}


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
