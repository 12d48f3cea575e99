"""Domains of power: which are parts of others, and which together are a whole device."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["NODE", "whole_of"]

NODE = "node"
"""Domain of a machine's whole power."""

_PLATFORM = "psys"
"""RAPL's name of a platform, whose packages are its domains ``package-0`` and so on."""


def whole_of(domains: Collection[str]) -> list[str]:
    """Find the domains whose powers sum to that of the device.

    Parameters
    ----------
    domains
        All that it has.

    Returns
    -------
    list of str
        ``node`` if it is there; else those that are inside no other one.

    Examples
    --------
    >>> whole_of(["package-0", "package-0/dram", "gpu"]), whole_of(["gpu", "node"])
    (['package-0', 'gpu'], ['node'])
    """
    if NODE in domains:
        return [NODE]
    return [name for name in domains if not any(outer in domains for outer in _outer(name))]


def _outer(domain: str) -> list[str]:
    """Names of the domains that a domain may be inside of: ``a`` and ``a/b`` of ``a/b/c``."""
    parts = domain.split("/")
    platform = [_PLATFORM] if domain.startswith("package-") else []
    return [*platform, *("/".join(parts[:count]) for count in range(1, len(parts)))]
