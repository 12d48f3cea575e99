"""Vectors of a dataset as options ask for them, and what is left out where they do not say."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from crosscast.cli.words import words_of

if TYPE_CHECKING:
    from crosscast.predict.relative.data import Vectors
    from crosscast.tables.dataset import Dataset

__all__ = ["relative_vectors"]

_MOST_NAMED = 8


def relative_vectors(dataset: Dataset, devices: str | None, sources: str | None) -> Vectors:
    """Runs or profiles with the times of their work on several devices; see `vectors_of`.

    Devices that nobody asked to leave out are told on standard error.

    Parameters
    ----------
    dataset
        The dataset.
    devices, sources
        Keys with commas between; ``None`` where nothing was typed.

    Raises
    ------
    InputError
        As `vectors_of`.
    """
    from crosscast.predict.relative.observed import devices_left_out, vectors_of
    from crosscast.predict.warnings import listed

    vectors = vectors_of(
        dataset,
        devices=None if devices is None else words_of("--devices", devices),
        sources=None if sources is None else words_of("--sources", sources),
    )
    left_out = devices_left_out(dataset, vectors) if devices is None else ()
    if left_out:
        print(
            f"crosscast: warning: devices without times of all this work are left out: "
            f"{listed(left_out, _MOST_NAMED)}; --devices takes others",
            file=sys.stderr,
        )
    return vectors
