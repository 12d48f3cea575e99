"""Import of pyarrow, with an error that says how to install it where it is missing."""

from __future__ import annotations

from crosscast.errors import importing

with importing("parquet", "a table in a Parquet file"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

__all__ = ["pa", "pc", "pq"]
