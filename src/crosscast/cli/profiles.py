"""Profiles from any file that has some, or from launches that are characterized now."""

from __future__ import annotations

import json
from pathlib import Path

from crosscast.characterization.embedding.entry import profile_of
from crosscast.characterization.embedding.reading import read_content, read_embedded
from crosscast.characterization.launchfiles.launches import LAUNCH_FILES, read_launches
from crosscast.errors import InputError
from crosscast.profile import Profile
from crosscast.tables.profiles import read_csv, read_parquet

__all__ = ["read_profiles"]


def read_profiles(path: Path) -> list[Profile]:
    """Read the profiles of a file, or make those of a launch file's launches.

    Raises
    ------
    InputError
        If the file cannot be read, holds no profile, or a launch cannot be characterized.
    """
    if path.is_dir():
        raise InputError(
            f"{path}: expected a launch file, a kernel's source or module, or profiles, found a folder"
        )
    if path.suffix in LAUNCH_FILES:
        return _characterized(path)
    if path.suffix in (".parquet", ".csv"):
        profiles = read_parquet(path) if path.suffix == ".parquet" else read_csv(path)
        if not profiles:
            raise InputError(f"{path}: expected profiles, found an empty table")
        return profiles
    return _of_json(path) if path.suffix in (".json", ".jsonl") else list(read_embedded(path))


def _characterized(path: Path) -> list[Profile]:
    # Imported here: the engine brings the compiler.
    from crosscast.characterization.engine import runtime_objects

    runtime_objects.start()
    from crosscast.characterization.run import Options
    from crosscast.cli.running import run_launch

    launches = read_launches(path)
    return [run_launch(launch, number, Options()) for number, launch in enumerate(launches)]


def _of_json(path: Path) -> list[Profile]:
    """Profiles of JSON: one object, a list, or one a line, as ``crosscast characterize`` prints them."""
    try:
        text = read_content(path).decode()
        entries = _values(text)
        return [profile_of(entry, number) for number, entry in enumerate(entries)]
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected profiles as characterize --json prints them ({error})") from error


def _values(text: str) -> list[object]:
    try:
        whole = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return whole if isinstance(whole, list) else [whole]
