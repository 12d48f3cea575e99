"""Find the best variants of a kernel on devices in one call, `crosscast.tune`.

Spaces are written in the T1 format of auto-tuners, and results in their T4 format. Both are
JSON; `crosscast.tuning.space_files` names their source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from crosscast.data.files import cache_home, make_folder
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.tuning.profiling import Begin, Profiler, Progress
from crosscast.tuning.ranking import PROFILES, Ranking, model_for, rank
from crosscast.tuning.space_files import AXES, LANGUAGES, T1_TYPE, T1_VERSION, TYPES, read_space
from crosscast.tuning.spaces import Space, Variant


def t4_of(
    variants: Sequence[Variant],
    times: Mapping[int, Sequence[float]],
    failed: Mapping[int, str],
    forecasts: Sequence[Mapping[str, float]] = (),
) -> dict[str, object]:
    """Write results in the T4 format, of version 1.0.0: `times` in seconds and `failed` by a variant's index.

    A failure is ``compile``, ``runtime``, ``timeout`` or ``correctness``; `forecasts`, in seconds by name,
    are written as measurements beside the time.
    """
    results = []
    for number, variant in enumerate(variants):
        runs = [1e3 * seconds for seconds in times.get(number, ())]
        median = sorted(runs)[len(runs) // 2] if runs else None
        measurements = [] if median is None else [{"name": "time", "value": median, "unit": "ms"}]
        if forecasts:
            measurements += [
                {"name": name, "value": 1e3 * value, "unit": "ms"}
                for name, value in forecasts[number].items()
            ]
        # Of a variant that did not run it is not known whether it is correct.
        checked = {"invalidity": failed.get(number, "correct"), "correctness": int(number not in failed)}
        results.append(
            {
                "configuration": dict(variant),
                "objectives": ["time"],
                "times": {"runtimes": runs},
                **(checked if runs or number in failed else {}),
                "measurements": measurements,
            }
        )
    return {"schema_version": "1.0.0", "results": results, "metadata": {"timeunit": "milliseconds"}}


def t1_of(space: Space, name: str) -> dict[str, object]:
    """Write a space in the T1 format, with its sizes as expressions; refuse what T1 cannot say."""
    rule = space.rule
    cuda, standard = rule.program.is_cuda, rule.program.standard
    total, local = (rule.sizes[name] for name in (("grid", "block") if cuda else ("global", "local")))
    if not local:
        raise InputError.of(where=rule.where, field="local", expected="the local size, for T1", found="none")
    dims = AXES[: max(len(total), len(local))]
    language = {form: name for name, form in LANGUAGES.items()}.get(rule.program.form, "OpenCL")
    version = f"-std={standard}" if cuda else f"-cl-std={'CL' * standard[0].isdigit()}{standard}"
    return {
        "General": {"BenchmarkName": name, "FormatVersion": T1_VERSION, "OutputFormat": "JSON"},
        "ConfigurationSpace": {
            "TuningParameters": [
                {"Name": each, "Type": _kind(values), "Values": str(list(values)), "Default": values[0]}
                for each, values in space.parameters.items()
            ],
            "Conditions": [
                {"Expression": each.text, "Parameters": sorted(each.names)} for each in space.constraints
            ],
        },
        "KernelSpecification": {
            "Language": language if language != "HIP" else "CUDA",
            "CompilerOptions": [*rule.program.options, version],
            "BenchmarkName": name,
            "KernelName": rule.kernel,
            "KernelFile": str(Path(rule.program.label).absolute()),
            **rule.constants,
            "GlobalSizeType": "CUDA" if cuda else "OpenCL",
            "GlobalSize": dict(zip_longest(dims, (each.text for each in total), fillvalue="1")),
            "LocalSize": dict(zip_longest(dims, (each.text for each in local), fillvalue="1")),
            **({} if rule.shared is None else {"SharedMemory": rule.shared.text}),
            "Arguments": [
                _t1_argument(each, f"{rule.where}: arg[{number}]")
                for number, each in enumerate(rule.arguments)
            ],
        },
    }


def _kind(values: Sequence[object]) -> str:
    kinds = {type(each) for each in values}
    return "int" if kinds <= {int, bool} else "string" if str in kinds else "float"


def _t1_argument(table: Mapping[str, object], where: str) -> dict[str, object]:
    content = {name: value for name, value in table.items() if name not in ("name", "read_only", "seed")}
    local = content.pop("local", None)
    if local is not None:
        size = {"Size": str(local), "TypeSize": 1, "FillType": "Constant"}
        return {"Type": "int8", "MemoryType": "Vector", "MemType": "Local", **size}
    kind = str(content.pop("type", "none"))
    name = {of: name for name, of in TYPES.items() if name != "bool"}.get(kind, kind)
    if TYPES.get(name, name) != kind or not T1_TYPE.fullmatch(name):
        raise InputError.of(where=where, field="type", expected="a type that T1 has", found=kind)
    fill = content.pop("fill", "zeros" if "length" in content else None)
    match fill, sorted(content):
        case None, ["value"]:
            return {"Type": name, "MemoryType": "Scalar", "FillValue": content["value"]}
        case ("zeros", ["length"]) | ("constant", ["length", "value"]):
            filled = {"FillType": "Constant", "FillValue": content.get("value", 0)}
        case "uniform", ["length"]:
            filled = {"FillType": "Random", "FillValue": 1.0}
        case _:
            found = ", ".join(table)
            raise InputError.of(
                where=where, expected="a number, or zeros, one number or uniform ones, for T1", found=found
            )
    return {"Type": name, "MemoryType": "Vector", "Size": str(content["length"]), **filled}


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
    begin: Begin = lambda variants, seconds: None,
) -> Ranking:
    """Rank the variants of a kernel by the times that are forecast for them on devices.

    ``crosscast tune`` calls this function. A notebook shows its result as a table.

    Parameters
    ----------
    source
        The kernel's file.
    space
        File of the space, in TOML or in the T1 format of Kernel Tuner; or a space that was read, of which
        parameters and constraints are taken, and the launch from its file.
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
        Called after each variant that was profiled or measured, and while many are forecast.
    begin
        Called with the number of variants and the seconds that the ranking takes roughly.

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
    read = read_space(space.where if isinstance(space, Space) else space, source, kernel)
    # The launch of a space that was read is that of another source, or of none.
    space = replace(space, kernel=read.kernel, launches=read.launches) if isinstance(space, Space) else read
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
        begin=begin,
    )
    if not measure:
        return ranking
    name = hashlib.sha256(f"{profiler.name} {device.id} {device.driver}".encode()).hexdigest()[:32]
    journal = Journal(folder / f"{name}-times.jsonl")
    return measured_search(ranking, device, measure, journal, within=within, progress=progress)
