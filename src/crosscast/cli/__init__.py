"""The command ``crosscast``: parsing, dispatch, and errors as one sentence with an exit code."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import crosscast
from crosscast.cli.app import command_line, listed
from crosscast.errors import CrosscastError, InputError

if TYPE_CHECKING:
    import cyclopts

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
    plain = _UNIT.sub("", field)
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
    if type(error).__name__ == "UnknownCommandError" and typed:
        command = " ".join(("crosscast", *typed))
        *known, last = [name for name in apps[-1] if name[0] != "-" and "_" not in name]
        word = repr(others[0]) if others else "nothing"
        return f"{command}: expected {', '.join(known)} or {last}, found {word}: see {command} --help"
    return " ".join(str(error).split())


INTERRUPTED = 130
TERMINATED = 143
BAD_USAGE = 2
_OF_ONE_THREAD = (["choose"], ["colocate"], ["predict"])
_LISTED: tuple[list[str], ...] = ([], ["--help"], ["-h"], ["--version"])
_FULL = (errno.ENOSPC, errno.EDQUOT)


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
    try:
        with _raising_terminated():
            code = _print_list(words) if words in _LISTED else _run(words)
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
        if not _is_full(error):
            raise
        _drop_output()
        return _fail(f"cannot write what was found ({error.strerror})", 1)
    return 0


def _print_list(words: Sequence[str]) -> int:
    """Print the list of commands, or the version, without the parser."""
    print(crosscast.__version__ if "--version" in words else listed())
    return 0


def _run(words: Sequence[str]) -> int:
    """Parse a command and run it."""
    # Imported here, so that `import crosscast.cli` stays as fast as `import crosscast`.
    import cyclopts

    from crosscast.cli.dispatch import TYPED, Typed

    app = command_line()
    TYPED.set(Typed(words))
    try:
        code = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except cyclopts.CycloptsError as error:
        return _fail(misuse(error, app, words), BAD_USAGE)
    except InputError as error:
        return _fail(in_options(error, app, words), 1 if _is_full(error) else error.exit_code)
    return code if isinstance(code, int) else 0


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
    sys.stdout.flush()
    print(f"crosscast: {message}", file=sys.stderr)
    return code
