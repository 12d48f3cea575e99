"""The command ``crosscast``: parses, calls, prints; errors are one sentence and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from crosscast.errors import CrosscastError

__all__ = ["main"]

INTERRUPTED = 130
BAD_USAGE = 2
_FULL = (errno.ENOSPC, errno.EDQUOT)


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
        failed, 130 after Ctrl-C.
    """
    # Imported here so that `import crosscast.cli` stays as quick as `import crosscast`.
    import cyclopts

    from crosscast.cli.app import app

    try:
        code = app(
            list(sys.argv[1:] if argv is None else argv),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        # Now, so that what goes wrong is said here and not by Python at exit.
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except cyclopts.CycloptsError as error:
        return _fail(" ".join(str(error).split()), BAD_USAGE)
    except CrosscastError as error:
        return _fail(str(error), error.exit_code)
    except MemoryError:
        return _fail("this machine has not enough memory for the arguments of this launch", 1)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has seen enough; Python would complain again at exit.
        _drop_output()
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _drop_output()
        return _fail(f"cannot write what was found ({error.strerror})", 1)
    return 0


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    sys.stdout.flush()
    print(f"crosscast: {message}", file=sys.stderr)
    return code
