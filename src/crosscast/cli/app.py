"""The commands of ``crosscast``; each is imported when it is typed."""

from __future__ import annotations

from collections.abc import Sequence

import cyclopts

import crosscast

__all__ = ["COMMANDS", "app_for"]

COMMANDS = {
    "characterize": (
        "crosscast.cli.characterize:characterize",
        "Profile each kernel launch of FILE, independently of any device.",
    ),
    "choose": (
        "crosscast.cli.choose:app",
        "Choose device, clocks, caps or threads for a kernel under a power cap, from two sample runs.",
    ),
    "colocate": (
        "crosscast.cli.colocate:colocate",
        "Recommend which jobs to co-locate on a device, for the least total time (docs/corun-pairing.md).",
    ),
    "corun": (
        "crosscast.cli.corun:app",
        "Profile applications, measure mixes that share a device, and translate times.",
    ),
    "dataset": ("crosscast.cli.dataset:app", "Import, build, merge and describe datasets."),
    "devices": (
        "crosscast.cli.measure:devices",
        "List the OpenCL devices of this machine, with what their drivers say and the sensors that work.",
    ),
    "embed": (
        "crosscast.cli.embed:embed",
        "Write the profiles of a kernel's launches into its source as a comment, and into a SPIR-V module.",
    ),
    "evaluate": (
        "crosscast.cli.evaluate:app",
        "Evaluate models on held-out data, beside trivial baselines, with bootstrap intervals.",
    ),
    "measure": (
        "crosscast.cli.measure:app",
        "Measure the kernels of WHAT on an OpenCL device, again and again.",
    ),
    "predict": (
        "crosscast.cli.predict:app",
        "Predict run time, relative time, or slowdowns of co-runners, with prediction intervals.",
    ),
    "report": (
        "crosscast.cli.report:report",
        "Write a page about a dataset, and how well the times of its kernels are predicted.",
    ),
    "reproduce": (
        "crosscast.cli.reproduce:app",
        "Reproduce the tables and figures of a published study, beside our models where they apply.",
    ),
    "simulate": (
        "crosscast.cli.simulate:app",
        "Simulate how a cluster works off jobs: scheduling policies on a trace, or placements on machines.",
    ),
    "train": (
        "crosscast.cli.train:app",
        "Train a model, cross-validate it by application, and save it with a card of its errors.",
    ),
}
"""Where each command is, and the first sentence of its help: the list of commands imports none of them."""


def app_for(words: Sequence[str]) -> cyclopts.App:
    """The command line, of which only the command that is typed is imported."""
    app = cyclopts.App(
        name="crosscast",
        help="Predict run time and power on devices and configurations you have not measured.",
        version=crosscast.__version__,
        # The list alone has no markup, and needs no parser of it.
        help_format="markdown" if any(word in COMMANDS for word in words) else "plaintext",
        # `main` says it in its own words, with its own exit code.
        suppress_keyboard_interrupt=False,
    )
    for name, (place, text) in COMMANDS.items():
        # A help given here would stand for the command's own, which says more.
        app.command(place, name=name, help=None if name in words else text)
    return app
