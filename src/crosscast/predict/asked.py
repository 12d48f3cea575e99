"""From profiles of launches to the kernels that a model is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.grid import Profiles
from crosscast.predict.toolchain import Toolchain, toolchain_of
from crosscast.profile import METRICS, Profile

__all__ = ["Asked", "kernels_of"]


@dataclass(frozen=True)
class Asked:
    """Kernels that a model is asked about.

    Parameters
    ----------
    profiles
        Their profiles.
    toolchains
        For each, what its profiles were made with.
    """

    profiles: Profiles
    toolchains: tuple[tuple[Toolchain, ...], ...]


def kernels_of(profiles: Sequence[Profile], *, invocations: int | None = None) -> Asked:
    """Put the launches of each kernel together.

    Metrics are means over a kernel's launches in which they are defined, as `crosscast.join` has them.

    Parameters
    ----------
    profiles
        Profiles of launches. Those that agree in application, kernel, size and program are invocations of one
        kernel.
    invocations
        How often each kernel is launched in a run; by default as often as it is among the profiles.

    Raises
    ------
    InputError
        If there is no profile, or the number of invocations is below 1.
    """
    if not profiles:
        raise InputError("profiles: expected at least one, found none")
    if invocations is not None and invocations < 1:
        raise InputError(f"invocations: expected at least 1, found {invocations}")
    launches: dict[tuple[str, str, str, str], list[Profile]] = {}
    for each in profiles:
        program = str(each.program.get("sha256") or "")
        key = (each.application or "", each.kernel, each.size or "", program)
        launches.setdefault(key, []).append(each)
    counts = [invocations or len(group) for group in launches.values()]
    return Asked(
        Profiles(
            tuple(key[0] for key in launches),
            tuple(key[1] for key in launches),
            tuple(key[2] for key in launches),
            np.stack([_means(group) for group in launches.values()]),
            np.array(counts, dtype=np.int64),
        ),
        tuple(tuple(sorted({toolchain_of(each.program) for each in group})) for group in launches.values()),
    )


def _means(launches: Sequence[Profile]) -> Reals:
    values = np.array(
        [[_number(each, metric.name) for metric in METRICS] for each in launches], dtype=np.float64
    )
    defined = ~np.isnan(values)
    sums, counts = np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0)
    means: Reals = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return means


def _number(profile: Profile, name: str) -> float:
    value = profile.metrics.get(name)
    return np.nan if value is None else float(value)
