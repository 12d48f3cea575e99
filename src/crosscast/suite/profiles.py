"""Profiles of applications: a queue whose device is the characterizing engine.

Measuring does not import this, and starts twice as fast without.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from crosscast.characterization import frontend, run
from crosscast.kernel import Argument, Kernel, Launch, Program
from crosscast.profile import Profile
from crosscast.suite.application import Application, Array, check_result, expect_arguments


def profiles_of(application: Application, size: str, *, options: run.Options | None = None) -> list[Profile]:
    """Run an application once and return the profile of each of its launches, in order.

    The result is checked, as it is on a device.

    Parameters
    ----------
    application
        A problem, ready to run.
    size
        Name of its size, for the profiles.
    options
        How to run each launch.

    Returns
    -------
    list of Profile
        A profile of each launch, in order.

    Raises
    ------
    LaunchError
        If an argument of a launch is not as it should be.
    KernelFault
        If a kernel fails.
    CheckFailed
        If the result is wrong.
    MissingExtraError
        If the library that the check compares with is not installed.
    """
    queue = _Engine(application, size, options or run.Options())
    application.run(queue)
    check_result(application)
    return queue.profiles


class _Engine:
    """A queue whose device is the characterizing engine: arrays are its buffers."""

    def __init__(self, application: Application, size: str, options: run.Options) -> None:
        self.profiles: list[Profile] = []
        self._program = Program.from_file(application.source_path(), options=application.options)
        self._application = application.name
        self._arrays = application.arrays
        self._size = size
        self._options = options
        self._invocations: Counter[str] = Counter()

    def write(self, *arrays: Array) -> None:
        """Do nothing: the engine works on the arrays."""

    def read(self, *arrays: Array) -> None:
        """Do nothing: the engine works on the arrays."""

    def launch(
        self, kernel: str, global_size: tuple[int, ...], local_size: tuple[int, ...], *args: Argument
    ) -> None:
        """Characterize a launch."""
        parameters = frontend.parameters(self._program, kernel)
        expect_arguments(kernel, args, self._arrays, len(parameters))
        launch = Launch(Kernel(self._program, kernel), global_size, local_size, args)
        profile = run.characterize_launch(launch, invocation=self._invocations[kernel], options=self._options)
        self._invocations[kernel] += 1
        self.profiles.append(replace(profile, application=self._application, size=self._size))
