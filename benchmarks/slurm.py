"""What the hook adds to `sbatch` on private Slurms: `python -m benchmarks.slurm`.

Jobs are held and do nothing; each cluster has its turn.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from crosscast.commands.service import hook_files
from support.service import running
from support.slurm import Partition, SlurmCluster, missing, starting

_COMMENT = "--comment=crosscast:srad/small*1000000"


def submitted_s(cluster: SlurmCluster) -> float:
    start = time.perf_counter()
    cluster.submit(_COMMENT, "--hold")
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    jobs = parser.parse_args().jobs
    if lacks := missing():
        raise SystemExit(lacks)
    partition = Partition("cpu", default=True)
    with tempfile.TemporaryDirectory() as name, starting() as start:
        folder = Path(name)
        place = folder / "p.sock"
        for file in hook_files("slurm", folder / "hooks"):
            file.write()
        (folder / "hooks" / "cli_filter.lua").unlink()
        config = folder / "hooks" / "crosscast" / "config.lua"
        config.write_text(config.read_text().replace("/run/crosscast/predict.sock", str(place)))
        plain, hooked = start(partition), start(partition, hooks=folder / "hooks")
        names = ("no hook", "hook", "hook, no service")
        found: dict[str, list[float]] = {name: [] for name in names}
        with running("--model", "opencl-15-devices", "--socket", place, there=place):
            for _ in range(jobs):
                found["no hook"].append(submitted_s(plain))
                found["hook"].append(submitted_s(hooked))
            log = (hooked.home / "log" / "slurmctld.log").read_text()
            print(f"not annotated: {log.count('the job stays as it was')} of {jobs}")
        found["hook, no service"] = [submitted_s(hooked) for _ in range(jobs)]
        base = statistics.median(found["no hook"])
        print(f"{'sbatch, ms':18} {'median':>8} {'ratio':>6} {'most':>8}   load {os.getloadavg()[0]:.1f}")
        for name, seconds in found.items():
            median = statistics.median(seconds)
            print(f"{name:18} {1e3 * median:8.1f} {median / base:6.2f} {1e3 * max(seconds):8.1f}")


if __name__ == "__main__":
    main()
