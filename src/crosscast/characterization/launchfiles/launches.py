"""Launches from a file in either of the two formats."""

from __future__ import annotations

from pathlib import Path

from crosscast.characterization.launchfiles import launchfile, simfile
from crosscast.kernel import Launch

LAUNCH_FILES = (".toml", ".sim")
"""How names of launch files end."""


def read_launches(path: str | Path) -> list[Launch]:
    """Read the launches of a launch file (TOML) or of Oclgrind's simulator file (``.sim``).

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    list of Launch
        The launches, in order; buffers are shared where the file says so.

    Raises
    ------
    InputError
        If the file cannot be read or something in it is wrong; the message says where.
    """
    if Path(path).suffix == ".sim":
        return [simfile.read(path).launch]
    return launchfile.read(path)
