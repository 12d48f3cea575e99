"""pyarrow, or the sentence that says how to get it."""

from __future__ import annotations

from crosscast.errors import MissingExtraError

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtraError("parquet", "a table in a Parquet file") from error

__all__ = ["pa", "pc", "pq"]
