"""Profiles from any file that has some, or from launches that are characterized now."""

from __future__ import annotations

import json
from pathlib import Path

from crosscast.characterization.embedding.entry import profile_of
from crosscast.characterization.embedding.reading import read_content, read_embedded
from crosscast.cli.datasets import dataset_named
from crosscast.errors import InputError
from crosscast.profile import Profile
from crosscast.tables.profiles import from_row, read_csv, read_parquet

__all__ = ["Recorded", "read_profiles"]


Recorded = dict[tuple[str, str, str], dict[str, float]]
"""Median times in seconds by application, kernel and size, and by device."""


def read_profiles(path: Path) -> tuple[list[Profile], Recorded]:
    """Read the profiles of a file or dataset, or make those of a launch file's launches.

    Returns
    -------
    tuple
        The profiles, and the times that a dataset has for them.

    Raises
    ------
    InputError
        If the file cannot be read, holds no profile, or a launch cannot be characterized.
    """
    if path.is_dir() or str(path) == "bundled":
        return _of_dataset(path)
    if path.suffix in (".parquet", ".csv"):
        profiles = read_parquet(path) if path.suffix == ".parquet" else read_csv(path)
        if not profiles:
            raise InputError(f"{path}: expected profiles, found an empty table")
        return profiles, {}
    if path.suffix in (".json", ".jsonl"):
        return _of_json(path), {}
    # Imported here: stored profiles need none of it.
    from crosscast.characterization.launchfiles.launches import LAUNCH_FILES

    return (_characterized(path) if path.suffix in LAUNCH_FILES else list(read_embedded(path))), {}


def _of_dataset(folder: Path) -> tuple[list[Profile], Recorded]:
    from crosscast.predict.time.data import recorded_times

    dataset = dataset_named(folder)
    if dataset.profiles.num_rows == 0:
        raise InputError(f"{folder}: expected a dataset with profiles, found none")
    return [from_row(row) for row in dataset.profiles.to_pylist()], recorded_times(dataset)


def _characterized(path: Path) -> list[Profile]:
    # Imported here: the engine brings the compiler.
    from crosscast.characterization.engine import runtime_objects

    runtime_objects.start()
    from crosscast.characterization.launchfiles.launches import read_launches
    from crosscast.characterization.run import Options
    from crosscast.cli.running import run_launch

    launches = read_launches(path)
    return [run_launch(launch, number, Options()) for number, launch in enumerate(launches)]


def _of_json(path: Path) -> list[Profile]:
    """Profiles of JSON: one object, a list, or one a line, as ``crosscast characterize`` prints them."""
    try:
        text = read_content(path).decode()
        entries = _values(text)
        if not entries:
            raise ValueError("found none")
        return [profile_of(entry, number) for number, entry in enumerate(entries)]
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected profiles as characterize --json prints them ({error})") from error


def _values(text: str) -> list[object]:
    try:
        whole = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return whole if isinstance(whole, list) else [whole]
