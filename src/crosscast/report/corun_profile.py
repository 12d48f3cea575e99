"""The profile of an application on a terminal: alone, and beside each microbenchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rich.text import Text

from crosscast.measure.corun.calibration import Calibration
from crosscast.report.console import console_on
from crosscast.report.number_table import number_table, print_table
from crosscast.report.numbers import NONE
from crosscast.tables.corun.solo import Solo
from crosscast.units import format_bytes, format_count, format_seconds

__all__ = ["CoRunProfile", "print_corun_profile"]

_MIX = {
    "mix_sse": "vectors",
    "mix_alu": "integers",
    "mix_mem": "memory",
    "mix_fp": "reals",
    "mix_stack": "stack",
    "mix_string": "copies",
    "mix_shift": "shifts and multiplications",
    "mix_control": "control",
}
_MISSES = {
    "llc_miss": "last-level cache",
    "l1_miss": "first-level cache",
    "dtlb_miss": "TLB",
    "branch_miss": "branch predictor",
}


@dataclass(frozen=True)
class CoRunProfile:
    """A profile, and how it was made.

    Parameters
    ----------
    solo
        What is known of the application.
    device
        Id of the device.
    device_name
        Its name.
    calibration
        The microbenchmarks there.
    notes
        What went wrong without ending it, as sentences.
    file
        Where it was written to.
    """

    solo: Solo
    device: str
    device_name: str
    calibration: Calibration
    notes: Sequence[str]
    file: Path

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        solo = self.solo
        return {
            "application": solo.application,
            "size": solo.size,
            "device": {"id": self.device, "key": solo.device, "name": self.device_name},
            "runs": solo.runs,
            "time_s": solo.time_s,
            "power_w": solo.power_w,
            "memory_bytes": solo.memory_bytes,
            "features": dict(solo.features),
            "microbenchmarks": self.calibration.to_dict(),
            "notes": list(self.notes),
            "file": str(self.file),
        }


def print_corun_profile(profile: CoRunProfile, stream: TextIO) -> None:
    """Print what was measured alone, and below it a row for each microbenchmark.

    Parameters
    ----------
    profile
        What was measured.
    stream
        Where to print.
    """
    console = console_on(stream)
    console.print(Text(f"{profile.solo.name} on {profile.device} ({profile.device_name})", style="bold"))
    for line in _lines(profile.solo):
        console.print(Text(line), soft_wrap=True)
    table = number_table("beside", ("slowdown", "slowdown of the other", "fairness", "power"))
    for level in profile.calibration.levels:
        table.add_row(level.name, *_cells(profile.solo, level.name))
    print_table(console, "beside each microbenchmark", table)
    console.print(Text(profile.calibration.sentence), soft_wrap=True)
    for doubt in (*profile.calibration.doubts, *profile.notes):
        console.print(Text(f"warning: {doubt}"), soft_wrap=True)


def _cells(solo: Solo, level: str) -> list[str]:
    texts = []
    for name in (f"slowdown_{level}", f"inflicted_{level}", f"fairness_{level}"):
        value = solo.features.get(name)
        texts.append(NONE if value is None else f"{value:.3f}")
    return [*texts, _power(solo.features.get(f"power_{level}_w"))]


def _power(power_w: float | None) -> str:
    return NONE if power_w is None else f"{power_w:.4g} W"


def _lines(solo: Solo) -> list[str]:
    features = solo.features
    runs = "1 run" if solo.runs == 1 else f"{format_count(solo.runs)} runs"
    lines = [f"a job of {runs}: {format_seconds(solo.time_s or 0.0)} alone"]
    lines.append(
        "power: no sensor (crosscast devices says why)"
        if solo.power_w is None
        else f"power {_power(solo.power_w)}"
    )
    if solo.memory_bytes is not None:
        lines.append(f"memory {format_bytes(solo.memory_bytes)}")
    if "utilisation" in features:
        lines.append(f"cores used {100 * features['utilisation']:.0f} %")
    mix = [f"{title} {_percent(features[name])}" for name, title in _MIX.items() if features.get(name)]
    lines.append(f"instructions: {', '.join(mix)}" if mix else "instructions: not characterized")
    counted = [
        f"misses of the {title} {_percent(features[name])}"
        for name, title in _MISSES.items()
        if name in features
    ]
    if "ipc" in features:
        counted.insert(0, f"{features['ipc']:.3g} instructions a cycle")
    lines.append(
        f"CPU counters: {', '.join(counted)}"
        if counted
        else "CPU counters: none that work here (crosscast devices says why)"
    )
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
