"""Profiles of all inputs of a forecast: launches, files, datasets and traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from crosscast.characterization.embedding.files import read_content, read_embedded
from crosscast.characterization.embedding.payload import profile_of
from crosscast.characterization.launchfiles.launchfile import LAUNCH_FILES, read_launches
from crosscast.data.profiles import from_row, read_csv, read_parquet
from crosscast.errors import InputError
from crosscast.kernel import Launch
from crosscast.profile import Profile

Recorded = dict[tuple[str, str, str], dict[str, float]]
"""Median times in seconds by application, kernel and size, and by device."""

KernelInput = str | Path | Profile | Launch
"""Inputs of a forecast that have profiles or can be characterized."""


def profiles_of(kernels: KernelInput, *, optimize: bool = True) -> tuple[list[Profile], Recorded]:
    """Profiles of an input of a forecast, and measured times if it is a dataset."""
    if isinstance(kernels, Profile):
        return [kernels], {}
    if isinstance(kernels, Launch):
        return [characterized(kernels, optimize=optimize)], {}
    return read_profiles(Path(kernels), partial(characterized, optimize=optimize))


def characterized(launch: Launch, number: int = 0, *, optimize: bool = True) -> Profile:
    """Characterize a launch, by default as drivers compile it."""
    # Imported here: the engine brings the compiler, and stored profiles need none of it.
    from crosscast.characterization.run import Options, characterize_launch

    return characterize_launch(
        launch, invocation=number, options=Options(optimize=optimize, sample_groups="auto")
    )


STORED = (".json", ".jsonl", ".csv", ".parquet")
"""Files of profiles that ``crosscast characterize`` wrote."""


def read_profiles(
    path: Path,
    characterize: Callable[[Launch, int], Profile] = characterized,
    left_out: Callable[[str], None] = lambda _: None,
) -> tuple[list[Profile], Recorded]:
    """Read the profiles of a file, dataset or trace, or characterize a launch file's launches.

    `left_out` is told of each launch of a trace that is refused.
    """
    if path.is_dir():
        # Imported here: stored profiles need none of it.
        from crosscast.tracing.trace import is_trace

        return (_of_trace(path, characterize, left_out), {}) if is_trace(path) else _of_dataset(path)
    if str(path) == "bundled":
        return _of_dataset(path)
    if path.suffix in (".parquet", ".csv"):
        profiles = read_parquet(path) if path.suffix == ".parquet" else read_csv(path)
        if not profiles:
            raise InputError(f"{path}: expected profiles, found an empty table")
        return profiles, {}
    if path.suffix in (".json", ".jsonl"):
        return _of_json(path), {}
    if path.suffix in LAUNCH_FILES:
        launches = enumerate(read_launches(path))
        return as_application([characterize(launch, number) for number, launch in launches], path), {}
    try:
        return list(read_embedded(path)), {}
    except InputError as error:
        raise InputError(
            f"{error}; to characterize it now, say its launch (--global 1024 --arg ...)"
        ) from error


def as_application(profiles: list[Profile], path: Path) -> list[Profile]:
    """Make several kernels that a file launches an application of its name, unless they are of one."""
    if len({profile.kernel for profile in profiles}) < 2:
        return profiles
    return [replace(profile, application=profile.application or path.stem) for profile in profiles]


def _of_trace(
    folder: Path, characterize: Callable[[Launch, int], Profile], left_out: Callable[[str], None]
) -> list[Profile]:
    """Profiles of the classes of a trace's launches."""
    # Imported here: stored profiles need none of it.
    from crosscast.tracing.summary import Trace, replayed, represented, summary_of

    summary = summary_of(Trace(folder))
    results = replayed(summary, characterize)
    profiles = [
        replace(
            each.profile,
            launch={
                **each.profile.launch,
                "recorded": {**each.profile.launch["recorded"], "stands_for": count},
            },
        )
        for count, each in zip(represented(summary, results), results, strict=True)
        if each.profile is not None
    ]
    if not profiles:
        refused = next((each.refused for each in results), "it has no launches")
        raise InputError(
            f"{folder}: expected a trace with a launch that can be run again, found none: {refused}"
        )
    for launch_class, result in zip(summary.classes, results, strict=True):
        if result.refused:
            left_out(f"{launch_class.kernel} {launch_class.size_label}: {result.refused}")
    return profiles


def _of_dataset(folder: Path) -> tuple[list[Profile], Recorded]:
    # Imported here: datasets need pyarrow, and a kernel's forecast does not.
    from crosscast.data.dataset import dataset_named
    from crosscast.prediction.time.grids import recorded_times

    dataset = dataset_named(folder)
    if dataset.profiles.num_rows == 0:
        raise InputError(f"{folder}: expected a dataset with profiles, found none")
    return [from_row(row) for row in dataset.profiles.to_pylist()], recorded_times(dataset)


def _of_json(path: Path) -> list[Profile]:
    """Profiles of JSON: one object, a list, or one per line, as ``crosscast characterize`` prints them."""
    try:
        text = read_content(path).decode()
        entries = _values(text)
        if not entries:
            raise ValueError("found none")
        return [profile_of(entry, number) for number, entry in enumerate(entries)]
    except (ValueError, RecursionError, InputError) as error:
        raise InputError(f"{path}: expected profiles as characterize --json prints them ({error})") from error


def _values(text: str) -> list[object]:
    try:
        value = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return value if isinstance(value, list) else [value]
