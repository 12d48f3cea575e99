"""What a kernel printed, from the records that the runtime wrote.

A record is the number of the call of ``printf``, the number of its arguments, and the arguments,
each with its length. All numbers have 8 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crosscast.characterization.engine.printf import render

__all__ = ["printed"]

_SPACE = re.compile(r" addrspace\(\d+\)")


def printed(data: bytes, calls: Sequence[Sequence[str]]) -> str:
    """Text of all calls, in order.

    Parameters
    ----------
    data
        The records.
    calls
        Types of the arguments of each call of ``printf`` in the program, the format's included.
    """
    reader = _Reader(data)
    texts = []
    while reader.more:
        call, count = reader.word(), reader.word()
        format_string = reader.content()
        values = []
        for type_ in calls[call][1:count]:
            reader.word()  # whether the content is that of a string: `render` knows from the format
            values.append((_SPACE.sub("", type_), reader.content()))
        texts.append(render(format_string, values))
    return "".join(texts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._position = data, 0

    @property
    def more(self) -> bool:
        return self._position < len(self._data)

    def word(self) -> int:
        return int.from_bytes(self._take(8), "little")

    def content(self) -> bytes:
        return self._take(self.word())

    def _take(self, length: int) -> bytes:
        self._position += length
        return self._data[self._position - length : self._position]
