"""Commands in documentation are understood: each has its options, and no other."""

import re
import shlex
from pathlib import Path

import pytest

from crosscast.cli.app import app_for

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    path
    for path in (ROOT / "README.md", ROOT / "Makefile", *sorted((ROOT / "docs").glob("*.md")))
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
        chain, apps, left = app_for(words).parse_commands(words)
        assert chain, command
        assert apps[-1].default_command or not left or left[0].startswith(("-", "...")), command
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        if apps[-1].default_command:
            known = {name for each in apps[-1].assemble_argument_collection() for name in each.names}
            assert options <= known, command
