"""``crosscast --install-completion``: completion of commands and options with the Tab key."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from crosscast.cli.app import command_line
from crosscast.errors import InputError

__all__ = ["install_completion"]


def install_completion(
    *, shell: Literal["bash", "zsh", "fish"] | None = None, output: Path | None = None
) -> None:
    """Let the Tab key complete commands and options: writes a script for the shell, which its start loads.

    Parameters
    ----------
    shell
        The shell; by default the one that runs this.
    output
        Where to write the script instead, which nothing loads then.
    """
    from cyclopts.completion.detect import ShellDetectionError

    try:
        path = command_line().install_completion(shell=shell, output=output, add_to_startup=output is None)
    except ShellDetectionError as error:
        raise InputError.of(
            where="--shell", expected="bash, zsh or fish", found="no shell that runs this"
        ) from error
    except OSError as error:
        raise InputError(f"--output: cannot write {error.filename} ({error.strerror})") from error
    print(f"wrote {path}; a new shell completes crosscast", file=sys.stderr)
