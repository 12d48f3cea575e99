"""What `crosscast` exports, and that documentation and examples need nothing else."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import crosscast

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
