"""Crosscast as the benchmarks run it: a case in, the profile and what is wrong with the outputs out."""

from __future__ import annotations

from dataclasses import dataclass

import crosscast
from benchmarks.kernels import Case, LocalBytes, Workload


@dataclass(frozen=True)
class Measured:
    """One characterization of a workload.

    Parameters
    ----------
    profile
        The profile.
    fault
        What is wrong with the kernel's outputs; ``None`` if nothing is.
    """

    profile: crosscast.Profile
    fault: str | None


def characterize(case: Case, workload: Workload, *, threads: int | None) -> Measured:
    """Characterize a workload on fresh copies of its outputs.

    Raises
    ------
    crosscast.errors.CrosscastError
        If Crosscast cannot.
    """
    args = workload.fresh_args()
    profile = crosscast.characterize(
        crosscast.Kernel.from_source(case.source, case.function),
        global_size=workload.global_size,
        local_size=workload.local_size,
        args=[crosscast.Local(arg.nbytes) if isinstance(arg, LocalBytes) else arg for arg in args],
        threads=threads,
    )
    return Measured(profile, workload.fault(args))
