"""A queue of pyopencl whose launches are regions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration
from crosscast.measure.opencl import TIMES_COMMANDS, duration_s
from crosscast.measure.regions.history import History, Metering
from crosscast.measure.regions.key import Chooser, RegionKey, arguments_of, site_of
from crosscast.measure.regions.recorder import Apply, Recorder


class ProfiledQueue:
    """Launches kernels on a command queue, and records each launch as a run of a region.

    A launch waits for what the queue holds, then for the kernel, so that time and energy are the kernel's
    own. Everything else goes to the queue as it is.

    Parameters
    ----------
    queue
        A ``pyopencl.CommandQueue``. If it has profiling, times are those of the device's timer; else of the
        host, launch and all.
    history, selector, configuration, apply, sensors, counters, callers
        As of `Profiled`.

    Raises
    ------
    InputError
        If arguments do not go together, or the file cannot be a history.
    """

    def __init__(
        self,
        queue: Any,
        *,
        history: History | str | Path | None = None,
        selector: Chooser | None = None,
        configuration: Configuration | None = None,
        apply: Apply | None = None,
        sensors: str | Metering = "auto",
        counters: Sequence[str] = (),
        callers: int = 0,
    ) -> None:
        self.queue = queue
        self._has_timer = bool(queue.properties & TIMES_COMMANDS)
        self._recorder = Recorder(history, selector, configuration, apply, sensors, counters)
        self._callers = callers

    def __getattr__(self, name: str) -> Any:
        if name == "queue":  # An object that is being copied has none yet.
            raise AttributeError(name)
        return getattr(self.queue, name)

    @property
    def history(self) -> History:
        """Where launches are recorded."""
        return self._recorder.history

    def launch(
        self,
        kernel: Any,
        global_size: Sequence[int],
        local_size: Sequence[int] | None,
        *args: Any,
        **options: Any,
    ) -> Any:
        """Launch a kernel and wait for its end.

        The run's key has the kernel's name, and the sizes before the arguments.
        """
        sizes = tuple(global_size), None if local_size is None else tuple(local_size)
        arguments = arguments_of((*sizes, *args))
        key = RegionKey(kernel.function_name, arguments, site_of(sys._getframe(1), self._callers))
        self.queue.finish()
        with self._recorder.begin(key) as running:
            event = kernel(self.queue, global_size, local_size, *args, **options)
            event.wait()
            if self._has_timer:
                # Some devices' timers go back now and then; the host's does not.
                device_s = duration_s(event)
                running.device_s = device_s if device_s >= 0 else None
        return event
