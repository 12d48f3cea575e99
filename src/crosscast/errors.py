"""Every exception Crosscast raises on purpose.

.. code-block:: text

    CrosscastError                      one clear sentence; the command line prints it
    ├── InputError                      the caller's data or arguments; exit code 2
    │   ├── CompileError                the kernel compiler refused the source (carries its diagnostics)
    │   ├── UnsupportedError            a construct that Crosscast refuses before running
    │   ├── LaunchError                 sizes or arguments that do not fit the kernel
    │   └── KernelFault                 the kernel itself failed while it ran
    │       └── KernelTimeout           ... or did not end in time
    ├── CheckFailed                     an application's result on a device is wrong; exit code 1
    ├── DeviceFault                     a device failed, or was lost, in the middle of a run; exit code 1
    ├── SensorFault                     a sensor failed, or was lost, while it sampled; exit code 1
    ├── MissingExtraError               an optional part is not installed; exit code 2
    └── EnvironmentFault                this machine cannot do it (no toolchain, no memory); exit code 1
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Self


class CrosscastError(Exception):
    """Base of all errors that Crosscast raises on purpose.

    The message is one sentence that names the file, field or argument, what was
    expected and what was found.
    """

    exit_code = 1


class InputError(CrosscastError):
    """The input (a file, an argument, a kernel) is wrong.

    Parameters
    ----------
    message
        One sentence; `of` builds it from its parts where they are known.

    Attributes
    ----------
    where, field, expected, found
        The wrong file or argument, the wrong part of it, the expected and the actual content; ``None`` where
        only a message was given.

    Examples
    --------
    >>> print(InputError.of(where="model/card.json", field="seed", expected="a whole number", found=-1))
    model/card.json: seed: expected a whole number, found -1
    """

    exit_code = 2
    where: str | None = None
    field: str | None = None
    expected: str | None = None
    found: str | None = None

    @classmethod
    def of(
        cls,
        *,
        where: object = None,
        field: str | None = None,
        expected: str | None = None,
        found: object = None,
        problem: str | None = None,
    ) -> Self:
        """Make the error with a sentence built from its parts; parts that are ``None`` are left out.

        Parameters
        ----------
        where
            The wrong file, argument or other input.
        field
            The part of it that is wrong.
        expected
            The expected content.
        found
            The actual content; text is shown as it is, any other value by its ``repr``.
        problem
            A problem other than unexpected content, such as a file that cannot be written.
        """
        location = [str(part) for part in (where, field) if part is not None]
        value = found if found is None or isinstance(found, str) else repr(found)
        clauses = (
            None if expected is None else f"expected {expected}",
            None if value is None else f"found {value}",
            problem,
        )
        facts = [clause for clause in clauses if clause is not None]
        error = cls(": ".join([*location, ", ".join(facts)] if facts else location))
        error.where, error.field = None if where is None else str(where), field
        error.expected, error.found = expected, value
        return error

    def within(self, where: str) -> Self:
        """Copy the error with `where` in front of its sentence, such as the label of the task that failed."""
        error = copy.copy(self)
        error.args = (f"{where}: {self}", *self.args[1:])
        error.where = where if self.where is None else f"{where}: {self.where}"
        return error


def expect_known(
    names: str | Iterable[str],
    known: Collection[str],
    *,
    where: object = None,
    field: str | None = None,
    words: str = "one of",
) -> None:
    """Raise InputError unless one or several names are known; `words` are before these in the message."""
    # Callers from Python may give what is no name at all, such as a list.
    known = list(known)
    for name in [names] if isinstance(names, str) or not isinstance(names, Iterable) else names:
        if name not in known:
            expected = f"{words} {', '.join(known)}"
            raise InputError.of(where=where, field=field, expected=expected, found=repr(name))


class CompileError(InputError):
    """The kernel compiler refused the program; the message holds its diagnostics."""


class UnsupportedError(InputError):
    """The program uses a construct that Crosscast refuses before running anything."""


class LaunchError(InputError):
    """The launch does not fit the kernel: sizes, or the number, type or size of arguments."""


class KernelFault(InputError):
    """The kernel failed while running: bad access, division by zero, divergent barrier, limits."""


class KernelTimeout(KernelFault):
    """The kernel did not end within the time limit."""


class ImplausibleError(InputError):
    """A measured value is so far from what is possible that its unit, or what it is of, must be wrong."""


class CheckFailed(CrosscastError):
    """The result of an application is not what another implementation computes."""


class DeviceFault(CrosscastError):
    """A device failed, or was lost, in the middle of a run."""


class SensorFault(CrosscastError):
    """A sensor failed, or was lost, while it sampled; the run that it sampled then has no energy."""


class MissingExtraError(CrosscastError):
    """An optional part of Crosscast is not installed.

    Parameters
    ----------
    extra
        Name of the extra, as in ``crosscast[extra]``.
    purpose
        Its purpose, as a noun phrase.
    """

    exit_code = 2

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs an optional part: pip install 'crosscast[{extra}]'")
        self.extra = extra
        self._purpose = purpose

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        """Pickle the two arguments; by default Python would rebuild the error from its message alone."""
        return type(self), (self.extra, self._purpose)


@contextmanager
def importing(extra: str, purpose: str) -> Iterator[None]:
    """Turn a failing import into an error that names the extra and what it is needed for.

    Parameters
    ----------
    extra, purpose
        As those of `MissingExtraError`.

    Raises
    ------
    MissingExtraError
        If a package is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(extra, purpose) from error


class EnvironmentFault(CrosscastError):
    """This machine or installation cannot do what was asked."""
