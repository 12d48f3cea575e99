"""Find the best variants of a kernel on devices in one call, `crosscast.tune`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from crosscast.data.files import cache_home, make_folder
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.tuning.profiling import Profiler, Progress
from crosscast.tuning.ranking import PROFILES, Ranking, model_for, rank
from crosscast.tuning.space_files import read_space
from crosscast.tuning.spaces import Space

__all__ = ["tune"]


def tune(
    source: str | Path,
    space: str | Path | Space,
    devices: Sequence[str | Device] = (),
    *,
    kernel: str | None = None,
    model: str | Path | None = None,
    profiles: int = PROFILES,
    measure: int = 0,
    within: float = 0.02,
    on: str | None = None,
    level: float = 0.9,
    seed: int = 0,
    jobs: int = 2,
    cache: str | Path | None = None,
    progress: Progress = lambda state: None,
) -> Ranking:
    """Rank the variants of a kernel by the times that are forecast for them on devices.

    ``crosscast tune`` calls this function. A notebook shows its result as a table.

    Parameters
    ----------
    source
        The kernel's file.
    space
        File of the space, in TOML or in the T1 format of Kernel Tuner; or a space that was read.
    devices
        Names of devices of the model or the catalogue, or descriptions.
    kernel
        The kernel's name, if the space does not name it.
    model
        Name or folder of a model of times that takes whole profiles; by default one that was calibrated on
        one of the devices, or else the bundled one.
    profiles
        Number of variants to profile; counts of the others are estimated from these.
    measure
        Largest number of variants to measure on a device of this machine, on which the forecasts are then
        conditioned; none by default. An interrupted call resumes when it is repeated.
    within
        Measuring ends when no variant is likely to be faster by this share of the time.
    on
        Id of the device that measures, as ``crosscast devices`` shows it; by default the first. It replaces
        `devices`.
    level
        Probability of the intervals.
    seed
        Seed of random choices.
    jobs
        Number of variants that are profiled at the same time.
    cache
        Folder for profiles and measured times; by default one in the user's cache.
    progress
        Called after each variant that was profiled or measured.

    Returns
    -------
    Ranking
        A row for each variant and device, the fastest first, also as ``to_pandas()`` and ``to_dict()``.

    Raises
    ------
    InputError
        If a file is not as expected, no variant is valid, or none can be profiled or runs.
    DeviceFault
        If the device that measures fails several times one after another.
    MissingExtraError
        If an optional part is missing, such as OpenCL for measuring.

    Examples
    --------
    >>> import crosscast
    >>> ranking = crosscast.tune("kernel.cl", "space.toml", ["rtx-a4000"])  # doctest: +SKIP
    >>> ranking.to_pandas().head(10)  # doctest: +SKIP
    """
    if measure < 0:
        raise InputError.of(where="measure", expected="at least 0", found=measure)
    if not 0 <= within < 1:
        raise InputError.of(where="within", expected="a share of the time from 0 to 1", found=within)
    if not 0 < level < 1:
        raise InputError.of(where="level", expected="a number between 0 and 1", found=level)
    if measure and devices:
        raise InputError.of(
            where="devices",
            expected="none with measure: variants are measured on this machine (on)",
            found=len(devices),
        )
    if not measure and not devices:
        raise InputError.of(where="devices", expected="at least one device", found="none")
    space = read_space(space, source, kernel) if isinstance(space, str | Path) else space
    rule = space.rule
    if measure and rule.program.form != "opencl-c":
        raise InputError.of(
            where=source,
            expected="OpenCL C to be measured here; Kernel Tuner measures others (docs/tuning.md)",
            found=rule.program.language,
        )
    folder = make_folder(cache_home() / "tuning" if cache is None else cache, "cache")
    profiler = Profiler(rule, jobs, folder=folder)
    if measure:
        # Imported here: forecasts need no OpenCL.
        from crosscast.tuning.measuring import Journal, here, measured_search

        device, description = here(on)
        devices = [description]
    times, descriptions = model_for(model, devices)
    ranking = rank(
        space,
        descriptions,
        times,
        profiler=profiler,
        profiles=profiles,
        seed=seed,
        level=level,
        progress=progress,
    )
    if not measure:
        return ranking
    name = hashlib.sha256(f"{profiler.name} {device.id} {device.driver}".encode()).hexdigest()[:32]
    journal = Journal(folder / f"{name}-times.jsonl")
    return measured_search(ranking, device, measure, journal, within=within, progress=progress)
