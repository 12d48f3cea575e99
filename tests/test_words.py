"""The words of the field in documents, help and docstrings: those that once stood there instead stay out."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.sources import PATHS, source_of

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

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
            yield f"{path.relative_to(ROOT)}, line {number}", line


def docstrings() -> Iterator[tuple[str, str]]:
    """Docstrings, those of commands with their help, too, and texts that stand alone below a constant."""
    for path in PATHS:
        for line, text in source_of(path).texts:
            yield f"{path.relative_to(ROOT)}, line {line}", " ".join(text.split())


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
        f"{path.relative_to(ROOT)}, line {line}: {name}" for path, line, name in named if name in NO_NAMES
    ]
