"""How to run a launch, beyond the launch itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crosscast.errors import LaunchError

MOST_THREADS = 256


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    groups_done: int
    groups_total: int
    elapsed_s: float


@dataclass(frozen=True)
class Options:
    """How to run, beyond the launch itself."""

    # Threads that run work-groups. Each has counters of its own, as large as the buffers; if not given, two
    # where the buffers are small, otherwise one
    threads: int | None = None
    check_bounds: bool = False  # Check every access
    timeout_s: float = 600.0  # Longest run, in seconds
    # Most memory of buffers and counters, in bytes; what the machine has if not given
    memory_limit: int | None = None
    published: bool = False  # Also compute the published tool's own numbers
    progress: Callable[[Progress], None] | None = None  # Called now and then while the kernel runs

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= MOST_THREADS:
            raise LaunchError(f"threads must be from 1 to {MOST_THREADS}, found {self.threads}")
        if self.timeout_s <= 0:
            raise LaunchError(f"the time limit must be positive, found {self.timeout_s} s")
        if self.memory_limit is not None and self.memory_limit < 1:
            raise LaunchError(f"the memory limit must be positive, found {self.memory_limit} bytes")
