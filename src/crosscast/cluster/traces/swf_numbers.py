"""The numbers of lines in the Standard Workload Format: fast where all is well, line by line where not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crosscast.cluster.jobs import Integers, Reals
from crosscast.cluster.traces.swf_fields import FIELDS, SwfField
from crosscast.cluster.traces.swf_text import Block
from crosscast.errors import InputError

__all__ = ["checked", "numbers_of", "refuse_line"]

_COUNT = len(FIELDS)
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SPACES = re.compile(rb"[ \t\r]+")
_MOST = 2.0**53
"""Beyond it, numbers are not whole any more."""

_POWERS = 10.0 ** np.arange(14, -1, -1)
"""Of the digits of whole numbers that are exact: 15 of them, the first one first."""
_MISSING = np.frombuffer(b"-1", dtype=np.uint8)

_IS_PART = np.zeros(256, dtype=np.bool_)
_IS_PART[np.frombuffer(b"0123456789.+-eE", dtype=np.uint8)] = True
_IS_SPACE = np.zeros(256, dtype=np.bool_)
_IS_SPACE[np.frombuffer(b" \t\r\n", dtype=np.uint8)] = True
_WHOLE = [place for place, field in enumerate(FIELDS) if field.is_whole]
_STRICT = np.array([field.is_strict for field in FIELDS])


def numbers_of(text: bytes) -> Reals | None:
    """Numbers of lines, of shape ``(k, 18)``; ``None`` if not each line is 18 numbers and nothing else."""
    letters = np.frombuffer(text, dtype=np.uint8)
    is_part = _IS_PART[letters]
    if not (is_part | _IS_SPACE[letters]).all():
        return None
    line_ends = np.flatnonzero(letters == ord("\n"))
    edges = np.flatnonzero(is_part[1:] != is_part[:-1]) + 1
    if is_part[:1].any():
        edges = np.concatenate(([0], edges))
    # Text ends with the end of a line, so what begins ends.
    starts, ends = edges[::2], edges[1::2]
    if len(starts) != _COUNT * len(line_ends):
        return None
    first, last = starts[::_COUNT], starts[_COUNT - 1 :: _COUNT]
    if (last > line_ends).any() or (first[1:] < line_ends[:-1]).any():
        return None
    try:
        return _parsed(text, letters, starts, ends).reshape(len(line_ends), _COUNT)
    except ValueError:
        return None


def _parsed(text: bytes, letters: npt.NDArray[np.uint8], starts: Integers, ends: Integers) -> Reals:
    """Numbers of words: whole ones of one length all at once, as most are, and others one by one.

    Raises
    ------
    ValueError
        If a word is no number.
    """
    numbers = np.empty(len(starts))
    lengths = ends - starts
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        words = np.flatnonzero(lengths == length)
        others = words
        if length <= len(_POWERS):
            # Below 0 wraps around: what is no digit is above 9.
            digits = letters[starts[words][:, None] + np.arange(length)] - np.uint8(ord("0"))
            numbers[words] = digits @ _POWERS[-length:]
            others = words[(digits > 9).any(axis=1)]
        if length == len(_MISSING):
            is_missing = (letters[starts[others][:, None] + np.arange(length)] == _MISSING).all(axis=1)
            numbers[others[is_missing]] = -1
            others = others[~is_missing]
        for word in others.tolist():
            numbers[word] = float(text[starts[word] : ends[word]])
    return numbers


def refuse_line(path: Path, block: Block) -> InputError:
    """Error about the first line of a block that is not 18 numbers.

    Parameters
    ----------
    path
        The file.
    block
        Lines of which `numbers_of` could make nothing.
    """
    for line, text in zip(block.lines.tolist(), block.texts(), strict=True):
        words = _SPACES.split(text.strip(b" \t\r"))
        for place, word in enumerate(words[:_COUNT]):
            if not _NUMBER.fullmatch(word):
                found = word[:40].decode("utf-8", errors="replace")
                return _error(path, line, place, "a number", repr(found))
        if len(words) != _COUNT:
            return InputError(f"{path}: line {line}: expected {_COUNT} fields, found {len(words)}")
    raise AssertionError("refuse_line: every line is well formed")  # pragma: no cover


def checked(path: Path, block: Block, numbers: Reals, last_submit: float) -> Reals:
    """Check the numbers of a block and take what is missing out of them.

    Parameters
    ----------
    path
        The file, for messages.
    block
        The lines.
    numbers
        Their numbers, of shape ``(k, 18)``; changed in place.
    last_submit
        The last submit time before them.

    Returns
    -------
    ndarray of shape (k, 18)
        In the units of the columns; not a number where nothing is known.

    Raises
    ------
    InputError
        If a time or a number of processors is negative but not −1, a number too large, a whole number has a
        fraction, or a job is submitted before one of a line above.
    """
    missing = numbers == -1
    negative = numbers < 0
    _refuse(path, block, numbers, negative & ~missing & _STRICT, "at least 0, or -1 where nothing is known")
    _refuse(path, block, numbers, ~(np.abs(numbers) <= _MOST), "a number of at most 2^53")
    fractions = np.zeros(numbers.shape, dtype=np.bool_)
    fractions[:, _WHOLE] = numbers[:, _WHOLE] != np.floor(numbers[:, _WHOLE])
    _refuse(path, block, numbers, fractions & ~negative, "a whole number")
    numbers[negative] = np.nan
    # Only the first of the parts of a job that was stopped in between has a submit time.
    submits = np.fmax.accumulate(np.concatenate(([last_submit], numbers[:, 1])))
    early = numbers[:, 1] < submits[:-1]
    if early.any():
        row = int(np.argmax(early))
        latest = f"at least {submits[row]:.15g}, as in a line before"
        raise _error(path, int(block.lines[row]), 1, latest, f"{numbers[row, 1]:.15g}")
    for place, field in enumerate(FIELDS):
        if field.unit != 1:
            numbers[:, place] *= field.unit
    return numbers


def _refuse(path: Path, block: Block, numbers: Reals, wrong: npt.NDArray[np.bool_], expected: str) -> None:
    if wrong.any():
        row, place = (int(index) for index in np.unravel_index(np.argmax(wrong), wrong.shape))
        raise _error(path, int(block.lines[row]), place, expected, f"{numbers[row, place]:.15g}")


def _error(path: Path, line: int, place: int, expected: str, found: str) -> InputError:
    field: SwfField = FIELDS[place]
    return InputError(
        f"{path}: line {line}: field {place + 1} ({field.title}): expected {expected}, found {found}"
    )
