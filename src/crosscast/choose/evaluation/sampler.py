"""What chooses sample configurations."""

from __future__ import annotations

from collections.abc import Callable

from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["Sampler"]

Sampler = Callable[[Surfaces, int], tuple[int, ...]]
"""Chooses the sample configurations by the training kernels and a seed."""
