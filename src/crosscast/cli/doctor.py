"""``crosscast doctor``: what works on this machine, what is missing, and what to do about it."""

from __future__ import annotations

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.options import OUTPUT, Flag, Output

__all__ = ["doctor"]


@runs(lambda: commands.doctor.doctor)
def doctor(*, warm: Flag = False, output: Output = OUTPUT) -> None:
    """Check this installation and machine: compiler, extras, OpenCL, caches, models, sensors, load.

    Exit code 1 if kernels cannot be characterized; what else is missing limits only what it says.

    Parameters
    ----------
    warm
        First compile all that is otherwise compiled when it is first used: about 20 seconds, once.
    """
