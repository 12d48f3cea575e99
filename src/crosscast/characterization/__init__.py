"""Characterize kernels: from a launch to its architecture-independent profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from crosscast.errors import LaunchError

if TYPE_CHECKING:
    from crosscast.kernel import Argument, Kernel, Launch
    from crosscast.profile import Profile

__all__ = ["characterize", "default_local_size"]

_DEFAULT_GROUP = 64


def characterize(
    kernel: Kernel | Launch,
    global_size: int | Sequence[int] | None = None,
    local_size: int | Sequence[int] | None = None,
    args: Sequence[Argument] = (),
    *,
    global_offset: int | Sequence[int] = (),
    threads: int | None = None,
    check_bounds: bool = False,
    timeout_s: float = 600.0,
    memory_limit: int | None = None,
    host_time: bool = False,
    sample_groups: int | Literal["all", "auto"] = "all",
) -> Profile:
    """Run one kernel launch and return its architecture-independent profile.

    Parameters
    ----------
    kernel
        The kernel to launch with the sizes and arguments below; or a complete `Launch`, which then
        is the only argument.
    global_size
        Work-items in 1 to 3 dimensions; a number for one dimension.
    local_size
        Work-items of a work-group in as many dimensions; by default `default_local_size`.
    args
        One argument for each kernel parameter: NumPy arrays are buffers and hold the kernel's
        output afterwards, NumPy scalars (or arrays, for vectors and structs) are values, `Local` is
        local memory, `Image` an image, `Sampler` a sampler, ``None`` a null buffer.
    global_offset
        Offset of the global ids; zeros if empty.
    threads
        Threads that run work-groups; by default two at most, as each has separate counters. The
        profile does not depend on it.
    check_bounds
        Check each access against its buffer and report the first that is out of bounds.
    timeout_s
        Longest run of the kernel, in seconds.
    memory_limit
        Most memory of the process that runs the kernel, in bytes.
    host_time
        Also measure the kernel's time on this machine, on one thread and without instrumentation:
        `launch["host"]` of the profile. It is absent if a run would take over 10 s, and for kernels with
        operations of warps or sub-groups.
    sample_groups
        Run this many work-groups, spread over the launch, and extrapolate their counts: exactly if groups
        are alike, otherwise within the error in `launch["sampled"]` of the profile. Arrays do not change
        then. ``"auto"`` does so if the whole launch would take over 20 s or over 4 GiB of memory.

    Returns
    -------
    Profile
        Its metrics, timing, launch, program and environment.

    Raises
    ------
    LaunchError
        If the sizes or arguments do not fit the kernel.
    CompileError
        If the compiler refuses the program.
    UnsupportedError
        If the program uses what cannot be characterized.
    KernelFault
        If the kernel fails while it runs, or does not end in time.
    """
    # Imported here: `import crosscast.characterization` must not pull in the compiler.
    from crosscast.characterization import engine

    engine.start()
    from crosscast.characterization import run

    launch = _as_launch(kernel, global_size, local_size, args, global_offset)
    options = run.Options(
        threads=threads,
        check_bounds=check_bounds,
        timeout_s=timeout_s,
        memory_limit=memory_limit,
        host_time=host_time,
        sample_groups=sample_groups,
    )
    return run.characterize_launch(launch, options=options)


def default_local_size(global_size: Sequence[int]) -> tuple[int, ...]:
    """Return the work-group size for a launch without one.

    In each dimension, the first one first, the largest divisor of the global size that keeps the
    work-group at 64 work-items or fewer.

    Examples
    --------
    >>> default_local_size([1000]), default_local_size([8, 512]), default_local_size([97])
    ((50,), (8, 8), (1,))
    """
    remaining = _DEFAULT_GROUP
    sizes = []
    for extent in global_size:
        size = next(n for n in range(min(remaining, max(extent, 1)), 0, -1) if extent % n == 0)
        sizes.append(size)
        remaining //= size
    return tuple(sizes)


def _as_launch(
    kernel: Kernel | Launch,
    global_size: int | Sequence[int] | None,
    local_size: int | Sequence[int] | None,
    args: Sequence[Argument],
    global_offset: int | Sequence[int],
) -> Launch:
    """Unify the two ways to call `characterize`."""
    # Imported here, as the compiler runs without NumPy.
    from crosscast.kernel import Kernel, Launch, as_sizes

    if isinstance(kernel, Launch):
        if global_size is not None or local_size is not None or len(args) > 0:
            raise LaunchError("a Launch holds its sizes and arguments: pass it alone")
        return kernel
    if not isinstance(kernel, Kernel):
        raise LaunchError(f"characterize takes a Kernel or one Launch, found {type(kernel).__name__}")
    if global_size is None:
        raise LaunchError.of(where=kernel.name, problem="the global size is missing")
    extent = as_sizes(kernel, "global size", global_size)
    group = default_local_size(extent) if local_size is None else as_sizes(kernel, "local size", local_size)
    offset = as_sizes(kernel, "global offset", global_offset)
    return Launch(kernel, extent, group, tuple(args), offset)
