"""Write spaces in the T1 format of auto-tuners, and results in their T4 format.

Both are JSON; `crosscast.tuning.space_files` names their source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosscast.tuning.space_files import AXES, LANGUAGES, T1_VERSION, TYPES
from crosscast.tuning.spaces import Space, Variant


def t4_of(
    variants: Sequence[Variant],
    times: Mapping[int, Sequence[float]],
    failed: Mapping[int, str],
    forecasts: Sequence[Mapping[str, float]] = (),
) -> dict[str, object]:
    """Write results in the T4 format, of version 1.0.0.

    Parameters
    ----------
    variants
        Variants of the results.
    times
        Measured times of a variant's runs in seconds, by its index.
    failed
        Why a variant has no times, by its index: ``compile``, ``runtime``, ``timeout`` or ``correctness``.
    forecasts
        For each variant, forecast seconds by name, written as measurements beside the time.
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
        results.append(
            {
                "configuration": dict(variant),
                "objectives": ["time"],
                "times": {"runtimes": runs},
                "invalidity": failed.get(number, "correct"),
                "correctness": 1 if number not in failed else 0,
                "measurements": measurements,
            }
        )
    return {"schema_version": "1.0.0", "results": results, "metadata": {"timeunit": "milliseconds"}}


def t1_of(space: Space, name: str) -> dict[str, object]:
    """Write a space in the T1 format, with its sizes as expressions."""
    rule = space.rule
    cuda = rule.program.is_cuda
    total, local = (rule.sizes[name] for name in (("grid", "block") if cuda else ("global", "local")))
    language = {form: name for name, form in LANGUAGES.items()}.get(rule.program.form, "OpenCL")
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
            "CompilerOptions": list(rule.program.options),
            "BenchmarkName": name,
            "KernelName": rule.kernel,
            "KernelFile": rule.program.label,
            "GlobalSizeType": "CUDA" if cuda else "OpenCL",
            "GlobalSize": {axis: each.text for axis, each in zip(AXES, total, strict=False)},
            "LocalSize": {axis: each.text for axis, each in zip(AXES, local, strict=False)},
            "Arguments": [_t1_argument(each) for each in rule.arguments],
        },
    }


def _kind(values: Sequence[object]) -> str:
    kinds = {type(each) for each in values}
    return "int" if kinds <= {int, bool} else "string" if str in kinds else "float"


def _t1_argument(table: Mapping[str, object]) -> dict[str, object]:
    names = {each: name for name, each in TYPES.items() if name != "bool"}
    kind = names.get(str(table.get("type", "float")), str(table.get("type", "float")))
    if "length" not in table:
        return {"Type": kind, "MemoryType": "Scalar", "FillValue": table.get("value", 0)}
    random = table.get("fill", "zeros") not in ("zeros", "constant")
    return {
        "Type": kind,
        "MemoryType": "Vector",
        "FillType": "Random" if random else "Constant",
        "Size": str(table["length"]),
        "FillValue": table.get("value", 1.0 if random else 0.0),
    }
