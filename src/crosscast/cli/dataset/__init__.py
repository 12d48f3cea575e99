"""``crosscast dataset``: what is done with whole datasets."""

from __future__ import annotations

import cyclopts

from crosscast.cli.dataset.build import build
from crosscast.cli.dataset.describe import describe
from crosscast.cli.dataset.importing import (
    aiwc,
    aiwc2018,
    crosscast_format,
    gpu_dvfs,
    gpu_power_limit,
    multicore_energy,
    powercap,
    rajaperf,
    rodinia9,
    runs,
)
from crosscast.cli.dataset.importing_corun import gavel_pairs, lucid, miso
from crosscast.cli.dataset.importing_counters import caliper, hpctoolkit, ncu, perf

__all__ = ["app"]

app = cyclopts.App(name="dataset", help="Import, build and describe datasets.")

imports = cyclopts.App(name="import", help="Import others' data, or our own past versions, into the tables.")
imports.command(aiwc2018)
imports.command(aiwc)
imports.command(powercap)
# Named, else words would be joined with dashes.
imports.command(multicore_energy, name="multicore_energy")
imports.command(gpu_power_limit, name="gpu_power_limit")
imports.command(gpu_dvfs, name="gpu_dvfs")
imports.command(rajaperf)
imports.command(rodinia9)
imports.command(gavel_pairs, name=("gavel-pairs", "gavel_pairs"))
imports.command(lucid)
imports.command(miso)
imports.command(hpctoolkit)
imports.command(caliper)
imports.command(perf)
imports.command(ncu)
imports.command(runs)
imports.command(crosscast_format, name="crosscast")
app.command(build)
app.command(imports)
app.command(describe)
