"""What is to be measured, as a person names it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.measure.subjects import LaunchFile, SuiteProblem

__all__ = ["subject_of"]


def subject_of(what: str, size: str | None) -> LaunchFile | SuiteProblem:
    """Find what a person names: a launch file, or an application at a size.

    Parameters
    ----------
    what
        Launch file, or name or folder of an application.
    size
        Size of the application's problem.

    Raises
    ------
    InputError
        If there is no such thing, or a size is missing or too much.
    MissingExtraError
        If an application needs what is not installed.
    """
    from crosscast.characterization.launchfiles.launches import LAUNCH_FILES
    from crosscast.measure.needs import expect_installed
    from crosscast.measure.subjects import LaunchFile, SuiteProblem, fitted
    from crosscast.suite.registry import application, names
    from crosscast.suite.sizes import working_set

    path = Path(what)
    if path.suffix in LAUNCH_FILES and not path.is_dir():
        if size is not None:
            raise InputError(f"--size: {what} is a launch file, whose sizes are what they are")
        return LaunchFile(str(path))
    if path.is_file() and what not in names():
        raise InputError(
            f"{what}: expected an application or a launch file ({', '.join(LAUNCH_FILES)}), which names a "
            "source and says what to launch, found neither"
        )
    kind = application(what)
    if size is None:
        raise InputError(f"{what}: an application needs --size (tiny, small, medium or large)")
    expect_installed([what])
    nbytes = working_set(size)
    return SuiteProblem(what, size, fitted(kind, nbytes), seed=0, most_bytes=nbytes)
