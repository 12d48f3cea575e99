"""pyarrow, or the sentence that says how to get it."""

from __future__ import annotations

from crosscast.errors import importing

with importing("parquet", "a table in a Parquet file"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

__all__ = ["pa", "pc", "pq"]
