"""The sources as texts: layers, words of the field, and faults to try."""

import re
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from benchmarks.mutants import PACKAGE, Mutant, mutants

from support.sources import PATHS, ROOT, source_of

CHECKOUT = ROOT.parents[1]
if not (CHECKOUT / "CONTRIBUTING.md").exists():
    pytest.skip("no checkout", allow_module_level=True)

_ROWS = re.findall(
    r"^\| (\d+) \| (.+) \|$", (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE
)
LAYERS = {room: int(rank) for rank, rooms in _ROWS for room in re.findall(r"`(\w+(?:/\w+)?)/?`", rooms)}
"""Rank of each room. A folder that stands there with its parent, `data/sources`, is a room of its own."""


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


ROOMS = {room(name) for name in MODULES if name not in ("crosscast", "crosscast.__main__")}


def test_every_room_has_a_layer() -> None:
    assert set(LAYERS) == ROOMS


def test_rooms_import_lower_rooms_only() -> None:
    # The root package itself imports nothing until it is asked for a name.
    wrong = [
        f"{module} imports {target}"
        for module in MODULES
        if module not in ("crosscast", "crosscast.__main__")
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


def test_imports_are_absolute_and_no_module_is_a_box_for_everything() -> None:
    boxes = {"util", "utils", "helpers", "misc", "common_utils"}
    relative = [
        name for name, path in MODULES.items() if any(each.is_relative for each in source_of(path).imports)
    ]
    assert not relative
    assert not [name for name in MODULES if name.rsplit(".", 1)[-1] in boxes]


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


def test_files_that_documentation_names_are_there() -> None:
    folders = ("src", "tests", "benchmarks", "examples")
    there = [str(path) for folder in folders for path in (CHECKOUT / folder).rglob("*.py")]
    missing = [
        f"{path.relative_to(CHECKOUT)}: {name}"
        for path in (*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md"))
        if path.name != "CHANGELOG.md"
        for name in re.findall(r"[`(/ ]((?:\w+/)*\w+\.py)\b", path.read_text(encoding="utf-8"))
        if not any(each.endswith(f"/{name}") for each in there)
    ]
    assert not missing


DOCUMENTS = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]

INSTEAD = {
    r"hangs? together": "are correlated",
    r"by lot\b": "at random",
    r"comes? along": "is bundled",
    r"of one's own": "your own",
    r"What came of it": "Results",
    r"a \w+ that is none": "raise InputError unless ...",
    r"(an objective|a \w+) (that )?there is not": "raise InputError unless ...",
    r"Whom each": "say what it is",
    r"leave-bag-out": "leave-mix-out",
    r"[Ss]olo runs?": "isolated run",
    r"\*\*Bags?\*\*": "mix",
}
"""Expressions, and what is written instead."""
ANY = re.compile("|".join(INSTEAD))


BEGIN_NOT = re.compile(r"(What|The same|All of it|Everything|Those of|Some of)\b")
NO_NAMES = {"told", "said", "there", "place", "places"}


def lines_of_documents() -> Iterator[tuple[str, str]]:
    for path in DOCUMENTS:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            yield f"{path.relative_to(CHECKOUT)}, line {number}", line


def docstrings() -> Iterator[tuple[str, str]]:
    """Docstrings, those of commands with their help, too, and texts that stand alone below a constant."""
    for path in PATHS:
        for line, text in source_of(path).texts:
            yield f"{path.relative_to(CHECKOUT)}, line {line}", " ".join(text.split())


@pytest.mark.parametrize("texts", (lines_of_documents, docstrings))
def test_words_that_were_given_up_stay_out(texts: Callable[[], Iterator[tuple[str, str]]]) -> None:
    assert not [
        f"{where}: {match[0]!r}: write {instead!r}"
        for where, text in texts()
        if ANY.search(text)
        for words, instead in INSTEAD.items()
        if (match := re.search(words, text))
    ]


def test_docstrings_begin_with_what_they_describe() -> None:
    assert not [f"{where}: {text[:60]}" for where, text in docstrings() if BEGIN_NOT.match(text)]


def test_variables_are_named_after_what_they_hold() -> None:
    named = ((path, line, name) for path in PATHS for line, name in source_of(path).names)
    assert not [
        f"{path.relative_to(CHECKOUT)}, line {line}: {name}" for path, line, name in named if name in NO_NAMES
    ]


@pytest.mark.parametrize("mutant", list(mutants()), ids=lambda mutant: f"{mutant.file}: {mutant.new}"[:80])
def test_a_fault_changes_text_that_its_file_has_once(mutant: Mutant) -> None:
    assert (PACKAGE / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
