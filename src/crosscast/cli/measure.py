"""``crosscast measure`` with its stressors, and how people name what is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import cyclopts

from crosscast.cli.launch import LAUNCH, OfLaunch, launch_file
from crosscast.cli.options import OUTPUT, JsonFlag, Output, Whole, print_json, tell, warn_about
from crosscast.cli.running import StatusLine
from crosscast.units import format_bytes, format_bytes_per_second, format_seconds, parse_bytes

if TYPE_CHECKING:
    from crosscast.prediction.time.forecast import TimeForecast


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
    against_forecast: str | None = None,
    launch: OfLaunch = LAUNCH,
    output: Output = OUTPUT,
) -> None:
    """Measure the kernels of WHAT on an OpenCL device, in repeated runs.

    WHAT is a launch file (`.toml`, `.sim`), or a program with the launch options of `crosscast characterize`
    (`--global`, `--arg`, `-D`, ...); or with `--size` an application: one of the suite (bfs, cfd, crc, csr,
    dwt, fft, gem, hmm, kmeans, lud, nqueens, nw, srad, swat) or a folder of your own (docs/suite.md). A run
    writes the buffers and launches the kernels; runs are repeated until there are enough of them and enough
    time has passed. Times are those of the device's own timer.

    Parameters
    ----------
    what
        Launch file, or name or folder of an application.
    device
        Id of the device, as `crosscast devices` shows it; by default the first one.
    size
        Size of the application's problem.
    min_runs
        Minimum number of recorded runs.
    min_time
        Minimum total time of the recorded runs, in seconds.
    warmups
        Warm-up runs before the recorded ones.
    repeats
        Number of processes that repeat the measurement, one after another.
    sensor
        Energy sensor: `auto`, `none`, `rapl`, `nvml` or `replay:PATH`.
    timeout
        Time limit of a process, in seconds.
    against_forecast
        Name of this device in a model or the catalogue (`crosscast devices --catalogue`), or of one that was
        calibrated: its times are forecast first, and shown beside the measured ones.
    """
    output.check()
    # Imported here: `--help` needs no OpenCL.
    from crosscast.measure.measurement import measure_times
    from crosscast.report.dataset import measurement_report

    beside = None
    with launch_file(what, launch) as path:
        if against_forecast is not None:
            # First, as a name that nobody knows is said before the work.
            forecast = _forecast(path, size, against_forecast, timeout)
        with _Status(what, min_runs, min_time) as status:
            measurement = measure_times(
                path,
                device,
                size=size,
                min_runs=min_runs,
                min_time=min_time,
                warmups=warmups,
                repeats=repeats,
                sensor=sensor,
                timeout=timeout,
                progress=status,
            )
    if against_forecast is not None:
        from crosscast.forecasting import beside_measured

        beside = beside_measured(forecast, {each.kernel: each.median_s for each in measurement.kernels})
    told = {} if beside is None else {"against_forecast": {"device": against_forecast, **beside.to_dict()}}
    output.show(lambda: measurement.to_dict() | told, lambda: measurement_report(measurement, beside))


def _forecast(path: str, size: str | None, device: str, timeout_s: float) -> TimeForecast:
    """Times of what will be measured, forecast for a device."""
    from crosscast.characterization.engine.child import Options
    from crosscast.forecasting import predict
    from crosscast.measure.measurement import subject_of
    from crosscast.measure.subjects import characterized

    profiles = characterized(subject_of(path, size), Options(timeout_s=timeout_s, sample_groups="auto"))
    forecast = predict(profiles, devices=[device])
    warn_about(zip(forecast.labels, forecast.warnings, strict=True))
    return forecast


class _Status(StatusLine):
    """Shows how many runs there are."""

    def __init__(self, what: str, min_runs: int, min_time_s: float) -> None:
        super().__init__()
        self._what = what
        self._wanted = f"at least {min_runs} in {format_seconds(min_time_s)}"

    def __call__(self, runs: int, elapsed_s: float) -> None:
        """Show the state if it is time to."""
        self.show(
            elapsed_s, lambda: f"{self._what}: {runs} runs in {format_seconds(elapsed_s)}, of {self._wanted}"
        )


_UNKNOWN_CACHE = 64 << 20


def stressor(
    level: str, /, *, seconds: float = 10.0, image: str | None = None, json: JsonFlag = False
) -> None:
    """Run a stressor, a microbenchmark that contends for memory, on one core of the CPU, without OpenCL.

    For applications that Crosscast does not start itself: run one beside them for each core to be kept busy,
    and divide their time beside it by their time in isolation.

    Parameters
    ----------
    level
        `low`, `medium` or `high`, by the misses of the last-level cache.
    seconds
        How long it runs, from when it prints `ready`.
    image
        Bytes of each of its four images, such as `32MiB`; by default those of the last-level cache.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.measure import host_state
    from crosscast.measure.stressors import host_run

    caches = host_state.caches()
    nbytes = parse_bytes(image) if image else caches.l3 or caches.l2 or _UNKNOWN_CACHE
    found = host_run(level, nbytes, seconds, lambda: tell("ready"))
    if json:
        print_json({**vars(found), "image_bytes": nbytes})
        return
    print(
        f"{found.level}: {format_bytes_per_second(found.bandwidth_bytes_per_s)} on one core for "
        f"{format_seconds(found.elapsed_s)}; 4 images of {format_bytes(nbytes)}"
    )


app = cyclopts.App(name="measure")
app.default(measure)
app.command(stressor)
