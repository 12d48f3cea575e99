"""Numbers for the keys of rows, so that rows can be grouped and looked up with arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from crosscast.tables.arrow import Table
from crosscast.tables.library import pa

__all__ = ["Numbers", "distinct", "key_numbers"]

Numbers = npt.NDArray[np.int64]


def key_numbers(tables: Sequence[Table], names: Sequence[str]) -> list[Numbers]:
    """Number the keys of the rows of several tables.

    Parameters
    ----------
    tables
        One or more tables with these columns.
    names
        Columns that make up the key; none of numbers that are not whole. Empty cells are equal.

    Returns
    -------
    list of arrays
        For each table, a number a row: equal where keys are equal, in all tables, and from 0 without
        a gap over all of them.
    """
    numbers = np.zeros(sum(table.num_rows for table in tables), dtype=np.int64)
    for name in names:
        chunks = [chunk for table in tables for chunk in table.column(name).chunks]
        cells = pa.chunked_array(chunks, type=tables[0].schema.field(name).type)
        encoded = cells.combine_chunks().dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        numbers = np.unique(numbers * len(encoded.dictionary) + codes, return_inverse=True)[1]
    return np.split(numbers, np.cumsum([table.num_rows for table in tables])[:-1])


def distinct(table: Table, names: Sequence[str]) -> tuple[Table, Numbers]:
    """Keys of a table, each once, and for each row of the table its key's row among them."""
    (numbers,) = key_numbers([table], names)
    first = np.unique(numbers, return_index=True)[1]
    return table.select(names).take(pa.array(first)), numbers
