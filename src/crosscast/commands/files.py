"""Reading of profiles for commands, with launches characterized on the fly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from pathlib import Path

from crosscast import forecasting
from crosscast.characterization.embedding import has_embedded
from crosscast.cli.options import LAUNCH, LaunchOptions
from crosscast.commands.output import warn
from crosscast.errors import CompileError, InputError, UnsupportedError
from crosscast.forecasting import Recorded
from crosscast.kernel import CUDA_SUFFIXES, LAUNCH_FILES, Launch
from crosscast.prediction.trained import format_names
from crosscast.profile import Profile

_MOST_NAMED = 20


def read_profiles(
    path: Path,
    launch: LaunchOptions = LAUNCH,
    *,
    optimize: bool = False,
    refused: list[CompileError | UnsupportedError] | None = None,
) -> tuple[list[Profile], Recorded]:
    """Read the profiles of a file or dataset, or characterize launches, with progress.

    A program is launched as the command line describes; without a launch, its embedded profiles are read, or
    launches in the host code of a CUDA or HIP program. Several kernels of a file are an application of its
    name. With `optimize` OpenCL C is compiled as drivers do.
    Errors of refused kernels are added to `refused`, if given and others are not refused.
    """

    def characterize(item: Launch, number: int) -> Profile:
        # Imported here, as below: stored profiles need no compiler.
        from crosscast.characterization.engine.child import Options
        from crosscast.commands.launch import run_launch

        sampled = launch.sampled("auto")
        return run_launch(item, number, Options(optimize=optimize, sample_groups=sampled))

    launches = _launches(path, launch)
    if launches is None:
        return forecasting.read_profiles(path, characterize, warn)
    profiles: list[Profile] = []
    errors: list[CompileError | UnsupportedError] = []
    for number, item in enumerate(launches):
        try:
            profiles.append(characterize(item, number))
        except (CompileError, UnsupportedError) as error:
            errors.append(error)
            if refused is None:
                raise
    if errors and not profiles:
        raise errors[0]
    if refused is not None:
        refused += errors
    return forecasting.as_application(profiles, path), {}


def _launches(path: Path, launch: LaunchOptions) -> Sequence[Launch] | None:
    """Launches to characterize; ``None`` if a file or folder has profiles or is a trace."""
    if not launch.described:
        of_host = path.suffix in CUDA_SUFFIXES and path.is_file() and not has_embedded(path)
        if path.suffix not in LAUNCH_FILES and not of_host:
            return None
        # The name of a kernel selects among the launches of a file.
        launch = launch if of_host else LAUNCH
    # Imported here, as the engine imports the compiler.
    from crosscast.characterization import engine
    from crosscast.commands.launch import read_inputs

    engine.start()
    return read_inputs(path, launch)[0]


def only_named(profiles: list[Profile], application: str | None, kernel: str | None) -> list[Profile]:
    """Select the profiles of an application and a kernel; ``None`` selects all."""
    applications = [profile.application or "" for profile in profiles]
    profiles = list(compress(profiles, mask_of("--application", application, applications)))
    return list(compress(profiles, mask_of("--kernel", kernel, [profile.kernel for profile in profiles])))


def mask_of(option: str, name: str | None, names: Sequence[str]) -> list[bool]:
    """Which of the names are one that is there; ``None`` is each of them."""
    known = list(dict.fromkeys(filter(None, names)))
    if name is not None and not known:
        raise InputError.of(where=option, expected="profiles that have such a name", found="none")
    if name is not None and name not in known:
        expected = f"one of {format_names(known, _MOST_NAMED)}"
        raise InputError.of(where=option, expected=expected, found=repr(name))
    return [name in (None, other) for other in names]
