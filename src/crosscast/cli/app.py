"""The commands of ``crosscast``; each is imported on use, and the list of commands imports nothing."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

import crosscast

if TYPE_CHECKING:
    import cyclopts

__all__ = ["COMMANDS", "command_line", "listed"]

_ABOUT = "Predict run time and power on devices and configurations you have not measured."

COMMANDS = {
    "characterize": (
        "crosscast.cli.profiles:characterize",
        "Profile each kernel launch of FILE, independently of any device.",
    ),
    "capture": (
        "crosscast.cli.profiles:capture",
        "Run a program, unchanged, and record its kernel launches and transfers.",
    ),
    "embed": (
        "crosscast.cli.profiles:embed",
        "Write the profiles of a kernel's launches into its source as a comment, and into a SPIR-V module.",
    ),
    "doctor": (
        "crosscast.cli.machine:doctor",
        "Check this installation and machine: compiler, extras, OpenCL, caches, models, sensors, load.",
    ),
    "devices": (
        "crosscast.cli.machine:devices_app",
        "List the devices of this machine, say what is known of a device, and compare two.",
    ),
    "measure": (
        "crosscast.cli.machine:measure_app",
        "Measure the kernels of WHAT on an OpenCL device, in repeated runs.",
    ),
    "corun": (
        "crosscast.cli.corun:app",
        "Profile applications, measure mixes that share a device, and translate times between devices.",
    ),
    "compare": (
        "crosscast.cli.profiles:compare",
        "Compare two profiles, datasets, models or schedules, and fail where a change is too large.",
    ),
    "dataset": (
        "crosscast.cli.dataset:app",
        "Import, build, merge and describe datasets.",
    ),
    "train": (
        "crosscast.cli.models:train_app",
        "Train a model, cross-validate it by application, and save it with a card of its errors.",
    ),
    "models": (
        "crosscast.cli.models:models",
        "List the models that come with Crosscast and your own, or say all about one.",
    ),
    "calibrate": (
        "crosscast.cli.machine:calibrate",
        "Measure a device of this machine, so that forecasts, verdicts and choices know it by its name.",
    ),
    "predict": (
        "crosscast.cli.predict:app",
        "Predict run time, relative time, or slowdowns of co-runners, with prediction intervals.",
    ),
    "explain": (
        "crosscast.cli.profiles:explain",
        "Say what bounds a kernel on a device: memory, compute, launch or latency; why, and what to try.",
    ),
    "tune": (
        "crosscast.cli.decide:tune",
        "Rank the variants of a kernel by forecast time on devices, or measure the most promising here.",
    ),
    "choose": (
        "crosscast.cli.decide:choose_app",
        "Choose device, clocks, caps or threads for a kernel under a power cap, from two sample runs.",
    ),
    "colocate": (
        "crosscast.cli.decide:colocate",
        "Recommend which jobs to co-locate on a device, for the least total time (docs/corun.md).",
    ),
    "evaluate": (
        "crosscast.cli.evaluate:app",
        "Evaluate models on held-out data, beside trivial baselines, with bootstrap intervals.",
    ),
    "reproduce": (
        "crosscast.cli.evaluate:reproduce_app",
        "Reproduce the tables and figures of a published study, beside our models where they apply.",
    ),
    "serve": (
        "crosscast.cli.service:serve",
        "Answer forecasts, choices and co-location plans over a Unix socket or TCP (docs/service.md).",
    ),
    "hooks": (
        "crosscast.cli.service:hooks_app",
        "Write hooks for Slurm, units for systemd, or a dashboard for Grafana.",
    ),
    "report": (
        "crosscast.cli.service:report",
        "Report on a recorded program, or write a page about a dataset and how well its times are predicted.",
    ),
    "simulate": (
        "crosscast.cli.simulate:app",
        "Simulate a cluster: scheduling policies on a trace of jobs, or placements of jobs on machines.",
    ),
}
"""Definition of each command, and the first sentence of its help, in the order of a project's work."""


def listed() -> str:
    """Write the help of ``crosscast`` without the parser of command lines, which takes long to import."""
    width, first = shutil.get_terminal_size().columns, max(map(len, COMMANDS)) + 4
    lines = ["Usage: crosscast COMMAND [OPTIONS]", "", *textwrap.wrap(_ABOUT, width), "", "Commands:"]
    for name, (_, text) in COMMANDS.items():
        lines += textwrap.wrap(
            text,
            max(width, 2 * first),
            initial_indent=f"  {name}".ljust(first),
            subsequent_indent=" " * first,
        )
    ends = (
        "crosscast COMMAND --help shows the options of a command, crosscast --version the version; "
        "crosscast --install-completion lets the Tab key complete both."
    )
    return "\n".join([*lines, "", *textwrap.wrap(ends, width)])


def command_line() -> cyclopts.App:
    """Make the command line, in which a command is imported on use."""
    import cyclopts

    app = cyclopts.App(
        name="crosscast",
        help=_ABOUT,
        version=crosscast.__version__,
        help_format="markdown",
        # `main` reports interrupts with its own message and exit code.
        suppress_keyboard_interrupt=False,
    )
    for name, (definition, _) in COMMANDS.items():
        app.command(definition, name=name)
    app.command("crosscast.cli.machine:install_completion", name="--install-completion")
    return app
