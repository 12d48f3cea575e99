"""Profiles and datasets that commands name: of a file, or of launches that are characterized now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.characterization.launchfiles.launchfile import LAUNCH_FILES
from crosscast.cli.launch_options import LAUNCH, LaunchOptions
from crosscast.errors import InputError
from crosscast.forecasting import profiles as inputs
from crosscast.forecasting.profiles import Recorded
from crosscast.kernel import Launch
from crosscast.profile import Profile

if TYPE_CHECKING:
    from crosscast.data.dataset import Dataset
    from crosscast.data.times import LaunchTables


def read_profiles(path: Path, launch: LaunchOptions = LAUNCH) -> tuple[list[Profile], Recorded]:
    """Read the profiles of a file or dataset, or make those of launches, with progress.

    A program is launched as the command line says, if it does; else it is read for embedded profiles.
    """
    if not launch.described:
        if path.suffix in LAUNCH_FILES:
            _start_engine()
        return inputs.read_profiles(path, lambda each, number: _characterized(each, number, launch))
    _start_engine()
    # Imported here: stored profiles need no compiler.
    from crosscast.commands.launch import read_inputs

    launches = read_inputs(path, launch).launches
    return [_characterized(each, number, launch) for number, each in enumerate(launches)], {}


def _characterized(launch: Launch, number: int, options: LaunchOptions) -> Profile:
    # Imported here: stored profiles need no compiler.
    from crosscast.characterization.run import Options
    from crosscast.commands.launch import run_launch

    return run_launch(launch, number, Options(sample_groups=options.sampled("auto")))


def _start_engine() -> None:
    # Imported here: the engine brings the compiler.
    from crosscast.characterization.engine import runtime_objects

    runtime_objects.start()


def only_named(profiles: list[Profile], application: str | None, kernel: str | None) -> list[Profile]:
    """Those of an application and a kernel; all for ``None``."""
    found = _only("--application", application, profiles, [each.application or "" for each in profiles])
    return _only("--kernel", kernel, found, [each.kernel for each in found])


def _only(option: str, name: str | None, profiles: list[Profile], names: Sequence[str]) -> list[Profile]:
    """Those of a name; all for ``None``."""
    if name is None:
        return profiles
    if name not in names:
        raise InputError.of(
            where=option, expected=f"one of {', '.join(dict.fromkeys(names))}", found=repr(name)
        )
    return [profile for profile, label in zip(profiles, names, strict=True) if label == name]


def data_named(folder: Path, question: str) -> Dataset | LaunchTables:
    """What models of a question learn from: a dataset, or tables of times with the launches of each."""
    # Imported here: stored profiles need no tables.
    from crosscast.data.dataset import dataset_named
    from crosscast.data.times import has_launch_times, read_launch_tables

    if question == "time" and has_launch_times(folder):
        return read_launch_tables(folder)
    return dataset_named(folder)
