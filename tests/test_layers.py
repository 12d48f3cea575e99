"""Imports go down the layers of the house only, and never in a circle."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from support.sources import PATHS, ROOT, source_of

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


MODULES = {module_name(path): path for path in PATHS}


def imports_of(module: str, with_types: bool) -> set[str]:
    """Modules of the package that one imports; with those for type checkers only, or without."""
    every = [
        each
        for each in source_of(MODULES[module]).imports
        if each.module in MODULES and (with_types or not each.is_for_types)
    ]
    plain = {each.module for each in every if not each.names}
    named = {(each.module, f"{each.module}.{name}") for each in every for name in each.names}
    return (plain | {whole if whole in MODULES else own for own, whole in named}) - {module}


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
    assert not [
        module
        for module, path in MODULES.items()
        if any(each.is_relative for each in source_of(path).imports)
    ]


def test_no_module_is_a_box_for_everything() -> None:
    boxes = {"util", "utils", "helpers", "misc", "common_utils"}
    assert not [module for module in MODULES if module.rsplit(".", 1)[-1] in boxes]


def test_a_name_of_a_class_means_one_thing() -> None:
    modules: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for name in source_of(path).classes:
            modules.setdefault(name, []).append(module)
    assert not {name: every for name, every in modules.items() if len(every) > 1}


def test_no_except_catches_everything() -> None:
    broad = [
        f"{module}:{line}"
        for module, path in MODULES.items()
        for line, types in source_of(path).handlers
        if not types or "'Exception'" in types or "'BaseException'" in types
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
