"""The command ``crosscast``: parsing, dispatch, and errors as one sentence with an exit code.

A command is imported on use, and their list imports nothing.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import crosscast
from crosscast.errors import CrosscastError, InputError

if TYPE_CHECKING:
    import cyclopts

_ABOUT = "Predict run time and power on devices and configurations you have not measured."

COMMANDS = {
    "characterize": (
        "profiles:Characterize",
        "Profile each kernel launch of FILE, independently of any device.",
    ),
    "capture": (
        "profiles:Capture",
        "Run a program, unchanged, and record its kernel launches and transfers.",
    ),
    "embed": (
        "profiles:Embed",
        "Write the profiles of a kernel's launches into its source as a comment, and into a SPIR-V module.",
    ),
    "doctor": (
        "machine:Doctor",
        "Check this installation and machine: compiler, extras, OpenCL, caches, models, sensors, load.",
    ),
    "devices": (
        "machine:devices_app",
        "List the devices of this machine, say what is known of a device, and compare two.",
    ),
    "measure": ("machine:measure_app", "Measure the kernels of WHAT on an OpenCL device, in repeated runs."),
    "corun": (
        "machine:corun_app",
        "Profile applications, measure mixes that share a device, and translate times between devices.",
    ),
    "compare": (
        "profiles:Compare",
        "Compare two profiles, datasets, models or schedules, and fail where a change is too large.",
    ),
    "dataset": ("dataset:app", "Import, build, merge and describe datasets."),
    "train": (
        "evaluate:train_app",
        "Train a model, cross-validate it by application, and save it with a card of its errors.",
    ),
    "models": (
        "evaluate:Models",
        "List the models that come with Crosscast and your own, or say all about one.",
    ),
    "calibrate": (
        "machine:Calibrate",
        "Measure a device of this machine, so that forecasts, verdicts and choices know it by its name.",
    ),
    "predict": (
        "predict:predict_app",
        "Predict run time, relative time, or slowdowns of co-runners, with prediction intervals.",
    ),
    "explain": (
        "profiles:Explain",
        "Say what bounds a kernel on a device: memory, compute, launch or latency; why, and what to try.",
    ),
    "tune": (
        "predict:Tune",
        "Rank the variants of a kernel by forecast time on devices, or measure the most promising here.",
    ),
    "choose": (
        "predict:choose_app",
        "Choose device, clocks, caps or threads for a kernel under a power cap, from two sample runs.",
    ),
    "colocate": (
        "predict:ColocateJobs",
        "Recommend which jobs to co-locate on a device, for the least total time (docs/corun.md).",
    ),
    "evaluate": (
        "evaluate:evaluate_app",
        "Evaluate models on held-out data, beside trivial baselines, with bootstrap intervals.",
    ),
    "reproduce": (
        "evaluate:Reproduce",
        "Reproduce the tables and figures of a published study, beside our models where they apply.",
    ),
    "serve": (
        "cluster:Serve",
        "Answer forecasts, choices and co-location plans over a Unix socket or TCP (docs/service.md).",
    ),
    "hooks": ("cluster:hooks_app", "Write hooks for Slurm, units for systemd, or a dashboard for Grafana."),
    "report": (
        "profiles:WriteReport",
        "Report on a recorded program, or write a page about a dataset and how well its times are predicted.",
    ),
    "simulate": (
        "cluster:simulate_app",
        "Simulate a cluster: scheduling policies on a trace of jobs, or placements of jobs on machines.",
    ),
}
"""Where each command is declared, and the first sentence of its help, in the order of a project's work."""


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
        app.command(f"crosscast.cli.{definition}", name=name)
    app.command("crosscast.cli.machine:install_completion", name="--install-completion")
    return app


_UNIT = re.compile(r"_(s|w|bytes)$")


def in_options(error: InputError, app: cyclopts.App, words: Sequence[str]) -> str:
    """Write an error with the name of the option instead of the field that it sets."""
    text, field = str(error), error.where or error.field
    # Messages of subclasses, such as faults of kernels, begin with names in the user's data.
    if type(error) is not InputError or field is None or (error.where and error.field):
        return text
    if field in words[len(app.parse_commands(words)[0]) :]:
        # The field is a file with the name of an option.
        return text
    options = _options(app, words)
    plain = _UNIT.sub("", field.replace("-", "_"))
    for name in (field, plain, f"{plain}s"):
        if name in options:
            return f"{options[name]}{text.removeprefix(field)}"
    return text


def _options(app: cyclopts.App, words: Sequence[str]) -> dict[str, str]:
    """Options and arguments of a command, by the fields that they set and by their names."""
    chain, apps, _ = app.parse_commands(words)
    if not chain or not apps[-1].default_command:
        return {}
    arguments = [argument for argument in apps[-1].assemble_argument_collection() if argument.name != "*"]
    names = [name for argument in arguments for name in argument.names]
    by_name = {name.lstrip("-").replace("-", "_"): name for name in names}
    return by_name | {argument.field_info.name: argument.name for argument in arguments}


def misuse(error: cyclopts.CycloptsError, app: cyclopts.App, words: Sequence[str]) -> str:
    """Write one sentence about an unknown command or option, with the expected ones."""
    typed, apps, others = app.parse_commands(words)
    command = " ".join(("crosscast", *typed))
    if type(error).__name__ == "UnknownCommandError" and typed:
        *known, last = [name for name in apps[-1] if name[0] != "-" and "_" not in name]
        word = repr(others[0]) if others else "nothing"
        return f"{command}: expected {', '.join(known)} or {last}, found {word}: see {command} --help"
    if type(error).__name__ == "MissingArgumentError" and error.argument is not None:
        return _missing(error.argument, command, words)
    if type(error).__name__ == "UnusedCliTokensError" and error.unused_tokens:
        word = error.unused_tokens[0]
        return f"{command}: expected no more arguments, found {word!r}: see {command} --help"
    return " ".join(str(error).split())


def _missing(argument: cyclopts.Argument, command: str, words: Sequence[str]) -> str:
    """Write that an argument is missing, or the value of an option that is there."""
    given = next((number for number, word in enumerate(words) if word in argument.names), None)
    if given is None:
        return f"{argument.name} is missing: see {command} --help"
    value = next(iter(words[given + 1 :]), None)
    if value is None:
        return f"{words[given]}: expected a value, found none"
    return f"{words[given]}: expected a value, found {value!r}: write {words[given]}={value} if it is one"


INTERRUPTED = 130
TERMINATED = 143
BAD_USAGE = 2
_OF_ONE_THREAD = (["choose"], ["colocate"], ["predict"])
_LISTED: tuple[list[str], ...] = ([], ["--help"], ["-h"], ["--version"])
_FULL = (errno.ENOSPC, errno.EDQUOT)
_PLAINLY = "crosscast.plainly"
_OF_PATHS = (errno.EACCES, errno.ENAMETOOLONG, errno.ELOOP)
"""Errors of paths for which `pathlib` raises where it is asked whether there is a file."""

_PLAIN = str.maketrans({"µ": "u", "×": "x", "·": ".", "—": "-", "–": "-", "≥": ">", "≤": "<", "→": ">"})


class _Terminated(BaseException):
    """Raised by SIGTERM, with the same clean-up as after Ctrl-C."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code.

    Parameters
    ----------
    argv
        The words after ``crosscast``; by default those of this process.

    Returns
    -------
    int
        0 if all went well, 2 for wrong input, 1 if this machine cannot do it or a part of the work
        failed, 3 if a condition of ``compare`` holds, 130 after Ctrl-C, 143 after SIGTERM.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in _OF_ONE_THREAD:
        # Starting threads of linear algebra takes longer than their work here.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    codecs.register_error(_PLAINLY, _plainly)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors=_PLAINLY)
    try:
        with _raising_terminated():
            if words in _LISTED:
                print(crosscast.__version__ if "--version" in words else listed())
                code = 0
            else:
                code = _run(words)
        # Flushed now, so that errors are handled here and not by Python at exit.
        sys.stdout.flush()
        return code
    except CrosscastError as error:
        return _fail(str(error), error.exit_code)
    except MemoryError:
        return _fail("this machine has not enough memory for the arguments of this launch", 1)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except _Terminated:
        return _fail("terminated", TERMINATED)
    except BrokenPipeError:
        # The reader closed the pipe; Python would complain again at exit.
        _drop_output()
    except OSError as error:
        if error.errno in _OF_PATHS and error.filename:
            return _fail(f"{error.filename}: cannot use this path ({error.strerror})", BAD_USAGE)
        if not _is_full(error):
            raise
        _drop_output()
        return _fail(f"cannot write what was found ({error.strerror})", 1)
    return 0


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that the output's encoding lacks by like ones of ASCII."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode("ascii", "replace").decode(), error.end


def _run(words: Sequence[str]) -> int:
    """Parse a command and run it."""
    # Imported here, so that `import crosscast.cli` stays as fast as `import crosscast`.
    import importlib
    import logging

    import cyclopts

    from crosscast.cli.options import TYPED, WORK, Typed

    app = command_line()
    TYPED.set(Typed(words))
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(logging.Formatter("crosscast: warning: %(message)s"))
    try:
        chosen = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        if (work := WORK.get(type(chosen))) is None:
            return 0
        code: int | None = importlib.import_module("crosscast.commands.output").run(chosen, work)
    except cyclopts.CycloptsError as error:
        return _fail(misuse(error, app, words), BAD_USAGE)
    except InputError as error:
        return _fail(in_options(error, app, words), 1 if _is_full(error) else error.exit_code)
    return code or 0


@contextmanager
def _raising_terminated() -> Iterator[None]:
    """Make SIGTERM raise an exception as Ctrl-C does, so that files are closed and workers ended."""

    def terminate(*_: object) -> None:
        # A second one ends the process at once.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise _Terminated

    # Only the main thread may set handlers, and the caller's handler must stay.
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _is_full(error: BaseException | None) -> bool:
    """Whether an error was caused by a full disk or a quota, rather than by the command line."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__
    return False


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    """Print an error after what was printed before, also where nobody reads that any more."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop_output()
        if _is_full(error):
            message, code = f"cannot write what was found ({error.strerror})", 1
    print(f"crosscast: {message}", file=sys.stderr)
    return code
