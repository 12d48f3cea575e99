"""Cyclic redundancy check of a buffer."""

from __future__ import annotations

import numpy as np

from crosscast.suite.application import Application, Array, Parameters, Queue, expect_equal

_POLYNOMIAL = 0xEDB88320


def _byte_table() -> Array:
    """Remainder of each byte value, ``(256,)``."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


class Crc(Application):
    """CRC-32 of a buffer, by look-up tables for eight bytes at a time ("slicing by 8").

    After M. E. Kounavis and F. L. Berry, *Novel table lookup-based algorithms for high-performance CRC
    generation*, 2008. One work-item reads the whole buffer, as in the published suite. Dwarf:
    combinational logic. The device must be little-endian, as the host is.
    """

    name = "crc"
    kernels = ("crc32_slice8",)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        length = parameters["bytes"]
        self.data = np.frombuffer(np.random.default_rng(seed).bytes(length), np.uint8).copy()
        self.table = _byte_table()
        self.crc = np.zeros(1, np.uint32)
        self.arrays = (self.data, self.table, self.crc)
        self._length = np.uint32(length)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """All that the table and the result leave; no more than 32 bits can count."""
        return {"bytes": min(nbytes - 4 * 256 - 4, (1 << 32) - 1)}

    def run(self, queue: Queue) -> None:
        """Read the buffer once."""
        queue.write(self.data, self.table)
        queue.launch("crc32_slice8", (1,), (1,), self.data, self._length, self.table, self.crc)
        queue.read(self.crc)

    def check(self) -> None:
        """Compare with zlib's."""
        import zlib

        expect_equal("CRC-32", self.crc, np.array([zlib.crc32(self.data.data)], np.uint32))
