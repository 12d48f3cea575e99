"""The text of a trace, plain or compressed, in blocks of lines: no file is in memory as a whole."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from crosscast.cluster.jobs import Integers
from crosscast.errors import InputError

__all__ = ["Block", "SwfText"]

_BLOCK = 1 << 20
"""Several times as fast as larger ones, which the memory next to the processor does not hold."""
_LONGEST_LINE = 64 << 10
_MOST_BYTES = 4 << 30
"""Of the text, however little of it a compressed file is."""
_MOST_COMMENTS = 4 << 20
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Block:
    """Some lines in a row.

    Parameters
    ----------
    text
        The lines, each with its end.
    lines
        Number of each in the file.
    """

    text: bytes
    lines: Integers

    def texts(self) -> list[bytes]:
        """Its lines without their ends."""
        return self.text.split(b"\n")[:-1]


@dataclass
class SwfText:
    """A file whose lines are jobs or comments.

    Parameters
    ----------
    path
        The file; what is compressed with gzip is known by its first bytes.
    comments
        The comments that were met so far.
    """

    path: Path
    comments: list[str] = field(default_factory=list)
    _passed: int = 0

    def blocks(self) -> Iterator[Block]:
        """Its lines, in blocks.

        Raises
        ------
        InputError
            If the file cannot be read or decompressed, is larger than 4 GiB, or has a line that no trace has.
        """
        total, line, rest = 0, 1, b""
        with _opened(self.path) as file:
            for piece in self._pieces(file):
                total += len(piece)
                if total > _MOST_BYTES:
                    raise InputError(
                        f"{self.path}: expected a trace of at most {_MOST_BYTES >> 30} GiB, found more"
                    )
                text = rest + piece
                end = text.rfind(b"\n") + 1
                text, rest = text[:end], text[end:]
                if len(rest) > _LONGEST_LINE:
                    line += text.count(b"\n")
                    raise InputError(
                        f"{self.path}: line {line}: expected 18 numbers, found more than "
                        f"{_LONGEST_LINE >> 10} KiB without an end of line"
                    )
                if text:
                    yield _block(text, line)
                    line += text.count(b"\n")
            if rest:
                yield _block(rest + b"\n", line)

    def _pieces(self, file: BinaryIO) -> Iterator[bytes]:
        try:
            while piece := file.read(_BLOCK):
                yield piece
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{self.path}: cannot read the trace ({error})") from error

    def jobs_of(self, block: Block) -> Block:
        """The block without its comments, which are kept, and its empty lines.

        Raises
        ------
        InputError
            If there are too many of them.
        """
        texts, lines = [], []
        for line, text in zip(block.lines.tolist(), block.texts(), strict=True):
            inside = text.strip()
            if inside and not inside.startswith(b";"):
                texts.append(text)
                lines.append(line)
                continue
            self._passed += len(text) + 1
            if inside:
                self.comments.append(_decoded(inside))
        if self._passed > _MOST_COMMENTS:
            raise InputError(
                f"{self.path}: expected a line for each job, found {self._passed} bytes of other lines"
            )
        return Block(b"".join(text + b"\n" for text in texts), np.array(lines, dtype=np.int64))


def _block(text: bytes, line: int) -> Block:
    return Block(text, np.arange(line, line + text.count(b"\n")))


def _decoded(comment: bytes) -> str:
    try:
        return comment.decode("utf-8")
    except UnicodeDecodeError:
        # As older traces are written; any bytes can be read so.
        return comment.decode("latin-1")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot read the trace ({error.strerror})") from error
    with file:
        try:
            is_gzip = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
        except OSError as error:
            raise InputError(f"{path}: cannot read the trace ({error.strerror})") from error
        if path.suffix == ".gz" and not is_gzip:
            raise InputError(f"{path}: expected a file compressed with gzip, found something else")
        yield cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_gzip else file
