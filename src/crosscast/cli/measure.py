"""``crosscast measure``: the time, and where a sensor works the energy, of launches on a device."""

from __future__ import annotations

import json as json_format
import sys
from typing import TYPE_CHECKING, Literal

from crosscast.cli.options import Flag, Whole
from crosscast.cli.progress import StatusLine
from crosscast.cli.subject import subject_of
from crosscast.errors import InputError
from crosscast.units import format_seconds

if TYPE_CHECKING:
    from crosscast.measure.settings import Settings

__all__ = ["measure"]


def measure(
    what: str,
    /,
    *,
    device: str | None = None,
    size: Literal["tiny", "small", "medium", "large"] | None = None,
    min_runs: Whole = 50,
    min_time: float = 2.0,
    warmups: Whole = 2,
    repeats: Whole = 1,
    sensor: str = "auto",
    timeout: float = 600.0,
    json: Flag = False,
) -> None:
    """Measure the kernels of WHAT on an OpenCL device, again and again.

    WHAT is a launch file (`.toml`, `.sim`), or with `--size` an application: one of the suite (bfs, cfd,
    crc, csr, dwt, fft, gem, hmm, kmeans, lud, nqueens, nw, srad, swat) or a folder of your own
    (docs/suite.md). A run writes the buffers and launches the kernels; runs are repeated until there are
    enough of them and enough time has passed. Times are those of the device's own timer.

    Parameters
    ----------
    what
        Launch file, or name or folder of an application.
    device
        Id of the device, as `crosscast devices` shows it; by default the first one.
    size
        Size of the application's problem.
    min_runs
        Runs to record at least.
    min_time
        Seconds that the recorded runs take at least.
    warmups
        Runs before those that are recorded.
    repeats
        Processes that measure the same, one after another.
    sensor
        `auto`, `none`, `rapl`, `nvml` or `replay:PATH`.
    timeout
        Longest time of a process, in seconds.
    json
        Print one JSON object, with every recorded time.
    """
    subject = subject_of(what, size)
    # Imported here: `--help` needs no OpenCL.
    from crosscast.measure.child import run_job
    from crosscast.measure.jobs import SessionJob
    from crosscast.measure.opencl.devices import devices, find
    from crosscast.measure.settings import Settings
    from crosscast.report.measurement import Measurement, print_measurement

    if repeats < 1:
        raise InputError(f"--repeats: expected at least 1, found {repeats}")
    settings = Settings(min_runs, min_time, warmups, timeout, sensor)
    target = devices()[0] if device is None else find(device)
    answers = []
    for repeat in range(repeats):
        with _Status(what, settings) as status:
            answers.append(run_job(SessionJob(subject, target.id, settings, repeat), timeout, status))
    measurement = Measurement.of(target.id, target.name, answers, sensor)
    if json:
        print(json_format.dumps(measurement.to_dict(), allow_nan=False))
    else:
        print_measurement(measurement, sys.stdout)


class _Status(StatusLine):
    """Says how many runs there are."""

    def __init__(self, what: str, settings: Settings) -> None:
        super().__init__(sys.stderr)
        self._what = what
        self._settings = settings

    def __call__(self, runs: int, elapsed_s: float) -> None:
        """Show the state if it is time to."""
        if self.is_due(elapsed_s):
            least, seconds = self._settings.min_runs, format_seconds(self._settings.min_time_s)
            done = f"{runs} runs in {format_seconds(elapsed_s)}"
            self.show(f"{self._what}: {done}, of at least {least} in {seconds}")
