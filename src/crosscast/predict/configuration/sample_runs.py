"""Runs at the sample configurations, which every model starts from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Flags
from crosscast.errors import InputError
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["sample_places", "sampled"]


def sampled(surfaces: Surfaces, samples: Sequence[int]) -> Surfaces:
    """The kernels that ran at all sample configurations: only of these can be learned.

    Raises
    ------
    InputError
        If there is no sample configuration, or no such kernel.
    """
    if not samples:
        raise InputError("samples: expected at least one sample configuration, found none")
    there: Flags = np.all(surfaces.known[:, list(samples)], axis=1)
    if not there.any():
        names = "; ".join(str(surfaces.space.configurations[each]) for each in samples)
        raise InputError(f"{surfaces.label}: expected a kernel that ran at all samples ({names}), found none")
    return surfaces.take(there)


def sample_places(space: Space, samples: Sequence[int], observed: Observed) -> list[int]:
    """Which of a kernel's runs are those at the sample configurations.

    Raises
    ------
    InputError
        If one is missing, or its time or power is not above 0.
    """
    places = []
    for number in samples:
        place = observed.place(number)
        if place is None:
            raise InputError(
                f"samples: expected a run at {space.configurations[number]}, found none there"
                f" among {len(observed)}"
            )
        for what, value in (("time", observed.time_s[place]), ("power", observed.power_w[place])):
            if not 0 < value < np.inf:
                raise InputError(
                    f"samples: expected a {what} above 0 at {space.configurations[number]}, found {value:g}"
                )
        places.append(place)
    return places
