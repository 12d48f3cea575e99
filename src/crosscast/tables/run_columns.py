"""Names of the columns of runs on configurations, in tables that people and programs write."""

from __future__ import annotations

__all__ = ["DEVICE", "KERNEL", "POWER", "TIME", "TIMES", "domain_column"]

KERNEL = ("application", "kernel", "size")
"""What ran."""

DEVICE = "device"
"""Where."""

TIME = "time_s"
TIMES = (TIME, "runtime_s")
"""How long it took, in seconds; the first that a row has counts."""

POWER = "power_w"
"""Mean power of the whole device meanwhile, in watts."""


def domain_column(domain: str) -> str:
    """Column of the power of a domain.

    Examples
    --------
    >>> domain_column("package-0")
    'package-0_w'
    """
    return f"{domain}_w"
