"""The cases of an evaluation: kernels under power caps, each with the choice of an oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.configuration.data import KernelAt, Surfaces, pareto_frontier

Weighting = Literal["time", "equal"]
"""Weighting of the kernels of a program: see `cases_of`."""


class LeftOut(NamedTuple):
    """A kernel without cases, and the reason."""

    kernel: KernelAt
    reason: str


@dataclass(frozen=True, eq=False)
class Cases:
    """Kernels at a size under a cap: `m` cases (Bailey et al. 2014, section V-B).

    The caps are the powers on the kernel's true Pareto frontier, where the oracle's choices lie.
    """

    kernel: Integers  # `(m,)` Kernel, by its row in the surfaces
    power_cap: Reals  # `(m,)` Cap in watts: the oracle's power
    oracle: Integers  # `(m,)` The configuration that the oracle chooses
    oracle_time_s: Reals  # `(m,)` Its time in seconds
    share: Reals  # `(m,)` Weight within the program; those of a program sum to 1
    programs: tuple[str, ...]  # Names of the `p` applications that have cases, sorted
    program: Integers  # `(m,)` Application, an index into `programs`
    left_out: tuple[LeftOut, ...]  # Kernels without cases

    def __len__(self) -> int:
        return len(self.kernel)

    @property
    def within_programs(self) -> Reals:
        """``(p, m)`` Weight of each case within each program; 0 in others."""
        weights = np.zeros((len(self.programs), len(self)))
        weights[self.program, np.arange(len(self))] = self.share
        return weights


def check_weighting(weighting: str) -> None:
    """Raise an `InputError` unless the weighting is known."""
    if weighting not in get_args(Weighting):
        expected = f"one of {', '.join(get_args(Weighting))}"
        raise InputError.of(field="weighting", expected=expected, found=repr(weighting))


def cases_of(
    surfaces: Surfaces, samples: Sequence[int], rows: Flags | None = None, weighting: Weighting = "time"
) -> Cases:
    """Return the cases of kernels with runs at all samples and two or more configurations on their frontier.

    Sizes of a program weigh equally, and in a size kernels by the time at the first sample, as published
    (section V-D); or (`equal`) all kernels at a size equally. Caps weigh equally within a kernel.
    """
    check_weighting(weighting)
    kernels, frontiers, left_out = [], [], []
    for row in np.flatnonzero(np.ones(len(surfaces.kernels)) if rows is None else rows).tolist():
        frontier = pareto_frontier(surfaces.time_s[row], surfaces.power_w[row])
        lacking = [number for number in samples if not surfaces.known[row, number]]
        if lacking:
            reason = f"no run at the sample configuration {surfaces.space.configurations[lacking[0]]}"
        elif len(frontier) < 2:
            reason = f"{len(frontier)} configuration on its frontier"
        else:
            kernels.append(row)
            frontiers.append(frontier)
            continue
        left_out.append(LeftOut(surfaces.kernels[row], reason))
    at = [surfaces.kernels[row] for row in kernels]
    weights = np.ones(len(kernels))
    if weighting == "time" and kernels:
        times = surfaces.time_s[kernels, samples[0]]
        weights = _scaled(times, [f"{each.application}\0{each.size}" for each in at])
    weights = _scaled(weights, [each.application for each in at])
    counts = np.array([len(each) for each in frontiers], np.int64)
    kernel = np.repeat(np.array(kernels, np.int64), counts)
    oracle = np.concatenate([np.zeros(0, np.int64), *frontiers])
    programs, program = np.unique([surfaces.kernels[row].application for row in kernel], return_inverse=True)
    return Cases(
        kernel,
        surfaces.power_w[kernel, oracle],
        oracle,
        surfaces.time_s[kernel, oracle],
        np.repeat(weights / np.maximum(counts, 1), counts),
        tuple(programs.tolist()),
        program.astype(np.int64),
        tuple(left_out),
    )


def _scaled(weights: Reals, groups: Sequence[str]) -> Reals:
    """Scale weights to a sum of 1 in each group."""
    scaled = np.zeros(len(weights))
    for group in set(groups):
        inside = np.array(groups) == group
        scaled[inside] = weights[inside] / weights[inside].sum()
    return scaled


def joined(parts: Sequence[Cases]) -> Cases:
    """Concatenate the cases of parts that have no program in common."""
    names = [part.programs[index] for part in parts for index in part.program.tolist()]
    programs, program = np.unique(names, return_inverse=True)
    left_out = tuple(sorted(each for part in parts for each in part.left_out))
    columns = ("kernel", "power_cap", "oracle", "oracle_time_s", "share")
    kernel, power_cap, oracle, oracle_time_s, share = (
        np.concatenate([getattr(part, name) for part in parts]) for name in columns
    )
    return Cases(
        kernel,
        power_cap,
        oracle,
        oracle_time_s,
        share,
        tuple(programs.tolist()),
        program.astype(np.int64),
        left_out,
    )


def by_input(cases: Cases, surfaces: Surfaces) -> Cases:
    """Return the cases with each size of a program as a program of its own, named by both."""
    at = [surfaces.kernels[row] for row in cases.kernel]
    names = [f"{each.application} {each.size}" for each in at]
    programs, program = np.unique(names, return_inverse=True)
    share = _scaled(cases.share, names)
    return replace(cases, share=share, programs=tuple(programs.tolist()), program=program.astype(np.int64))
