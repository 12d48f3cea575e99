"""Print the tests of what the last commit, or merge, touched, by folder; nothing where Git cannot tell."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHOLE = {"pyproject.toml": "tests/test_distribution.py", "examples": "tests/test_notebooks.py"}


def changed() -> list[str]:
    """Paths that differ from the first parent of the last commit."""
    command = ["git", "diff", "--name-only", "HEAD^1", "HEAD"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return done.stdout.splitlines()


def tests_of(path: str) -> str | None:
    """The folder of tests of a file's room, or the file of tests of what is no room."""
    parts = Path(path).parts
    if parts[0] in WHOLE:
        return WHOLE[parts[0]]
    room = parts[2] if parts[:2] == ("src", "crosscast") and len(parts) > 3 else None
    if parts[0] == "tests" and len(parts) > 2:
        room = parts[1]
    return f"tests/{room}" if room else None


if __name__ == "__main__":
    found = {each for path in changed() if (each := tests_of(path)) and (ROOT / each).exists()}
    sys.stdout.write(" ".join(sorted(found)))
