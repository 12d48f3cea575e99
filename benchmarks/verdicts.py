"""How measured times compare with the limits of verdicts: ``python -m benchmarks.verdicts DATASET``.

DATASET is a folder with profiles and times on devices, as ``crosscast dataset import aiwc2018`` makes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from benchmarks.table import text_table
from crosscast.data.dataset import read_dataset
from crosscast.data.profiles import from_row
from crosscast.devices.launch_work import amounts_of
from crosscast.devices.limits import BOUNDS
from crosscast.devices.roofline import Verdict, verdict_of
from crosscast.errors import InputError
from crosscast.prediction.time.datasets import devices_of, recorded_times
from crosscast.profile import Profile

Found = list[tuple[Verdict, float]]


def judged(folder: Path) -> Found:
    """Verdicts with the median measured times, where data sheet and profile have what they need."""
    dataset = read_dataset(folder)
    devices, times = devices_of(dataset), recorded_times(dataset)
    profiles: dict[tuple[str, str, str], Profile] = {}
    for row in dataset.profiles.to_pylist():
        profile = from_row(row)
        profiles.setdefault((profile.application or "", profile.kernel, profile.size or ""), profile)
    found: Found = []
    for names, profile in profiles.items():
        amounts = amounts_of(profile)
        for device, time_s in times.get(names, {}).items() if amounts is not None else ():
            assert amounts is not None
            try:
                found.append((verdict_of(amounts, devices[device]), time_s))
            except InputError:
                continue
    return found


def row_of(label: str, found: Found) -> Sequence[str]:
    """Number of times, how many are above the limit, quantiles of time over limit, rank correlation."""
    limits = np.array([max(verdict.limits_s.values()) for verdict, _ in found])
    times = np.array([time_s for _, time_s in found])
    low, middle, high = np.quantile(times / limits, (0.05, 0.5, 0.95))
    above, correlation = (times > limits).mean(), spearmanr(limits, times).statistic
    return [
        label,
        str(len(found)),
        f"{100 * above:.0f} %",
        f"{low:.2g}",
        f"{middle:.2g}",
        f"{high:.2g}",
        f"{correlation:.2f}",
    ]


def main() -> int:
    """Print the table."""
    found = judged(Path(sys.argv[1]))
    rows = [row_of("all", found)]
    for kind in ("cpu", "gpu", "accelerator"):
        own = [each for each in found if each[0].device.type == kind]
        rows += [row_of(kind, own)] if own else []
    for bound in BOUNDS:
        own = [each for each in found if each[0].bound == bound]
        rows += [row_of(f"bound by {bound}", own)] if own else []
    heads = ["", "times", "above the limit", "5 %", "median", "95 %", "rank correlation"]
    print("Measured time over the longest limit:\n")
    print(text_table(heads, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
