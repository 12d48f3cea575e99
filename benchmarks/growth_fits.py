"""Growth of fits with what they learn from: seconds of a processor, for mixes of applications.

``python -m benchmarks.growth_fits`` fits the default model of co-running to more and more mixes of 66 made-up
applications, and prints the exponent from one row to the next.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

import numpy as np

from benchmarks.table import text_table
from benchmarks.verdict import Verdict
from crosscast.data.corun import Bag, CoRuns, Member, Solo
from crosscast.prediction.corun.process import Process

_APPLICATIONS, _INPUTS = 22, 3
_MIXES = (350, 700, 1388, 3000, 10_000)
_MOST_S = {1388: 10.0, 10_000: 60.0}


def made_mixes(count: int, largest: int = 3) -> CoRuns:
    """Mixes of two and three that want more of a device than there is, with noise."""
    random = np.random.default_rng(0)
    used = random.uniform(0.2, 1.0, (_APPLICATIONS * _INPUTS, 2))
    runs = [
        Solo(
            f"application {place // _INPUTS}", f"size {place % _INPUTS}", "gpu", 1.0 + place,
            features={"utilisation": float(one), "memory_utilisation": float(other)},
        )
        for place, (one, other) in enumerate(used)
    ]  # fmt: skip
    mixes = []
    for number in range(count):
        chosen = random.choice(len(runs), 2 + (number % 4 == 0 and largest > 2))
        wanted = used[chosen].sum(axis=0)
        slow = np.maximum(1.0, wanted.max()) * (1 + 0.1 * used[chosen, 1])
        slow *= np.exp(random.normal(0, 0.05, len(chosen)))
        members = tuple(Member(runs[place], float(each)) for place, each in zip(chosen, slow, strict=True))
        mixes.append(Bag(f"mix {number}", "gpu", members, fits=True))
    return CoRuns("made up", tuple(runs), tuple(mixes))


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mixes", type=int, nargs="*", default=_MIXES)
    rows, verdicts, before = [], [], None
    for count in parser.parse_args().mixes:
        mixes = made_mixes(count)
        start = time.process_time()
        Process().fit(mixes, 0)
        taken = time.process_time() - start
        slope = "" if before is None else f"{math.log(taken / before[1]) / math.log(count / before[0]):.2f}"
        before = count, taken
        rows.append([str(count), str(sum(len(each.members) for each in mixes.bags)), f"{taken:.1f}", slope])
        if count in _MOST_S:
            most = _MOST_S[count]
            verdicts.append(
                Verdict(f"a fit of {count:,} mixes <= {most:g} s", f"{taken:.1f} s", taken <= most)
            )
    print(text_table(["mixes", "rows", "seconds", "exponent"], rows), end="\n\n")
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
