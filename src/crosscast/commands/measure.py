"""``crosscast measure`` with its stressors, and how people name what is measured."""

from __future__ import annotations

from typing import Literal

from crosscast import forecasting
from crosscast.characterization.engine.child import Options
from crosscast.commands.launch import launch_file
from crosscast.commands.launch_options import LaunchOptions
from crosscast.commands.options import Output, print_json, tell, warn_about
from crosscast.commands.output import check_output, show
from crosscast.commands.status import StatusLine
from crosscast.measure import host_state
from crosscast.measure.measurement import measure_times, subject_of
from crosscast.measure.stressors import host_run
from crosscast.measure.subjects import characterized
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.report.dataset import measurement_report
from crosscast.units import format_bytes, format_bytes_per_second, format_seconds, parse_bytes


def measure(
    what: str,
    /,
    *,
    device: str | None,
    size: Literal["tiny", "small", "medium", "large"] | None,
    min_runs: int,
    min_time: float,
    repeats: int,
    sensor: str,
    timeout: float,
    against_forecast: str | None,
    launch: LaunchOptions,
    output: Output,
) -> None:
    """Run ``crosscast measure``."""
    check_output(output)

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
                repeats=repeats,
                sensor=sensor,
                timeout=timeout,
                progress=status,
            )
    if against_forecast is not None:
        beside = forecasting.beside_measured(
            forecast, {each.kernel: each.median_s for each in measurement.kernels}
        )
    told = {} if beside is None else {"against_forecast": {"device": against_forecast, **beside.to_dict()}}
    show(output, lambda: measurement.to_dict() | told, lambda: measurement_report(measurement, beside))


def _forecast(path: str, size: str | None, device: str, timeout_s: float) -> TimeForecast:
    """Times of what will be measured, forecast for a device."""
    profiles = characterized(subject_of(path, size), Options(timeout_s=timeout_s, sample_groups="auto"))
    forecast = forecasting.predict(profiles, devices=[device])
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


def stressor(level: str, /, *, seconds: float, image: str | None, json: bool) -> None:
    """Run ``crosscast measure stressor``."""
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
