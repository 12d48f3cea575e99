"""The columns by which records, sessions and energy say what was measured, where, and in which process."""

from __future__ import annotations

from crosscast.tables.schema import Column

__all__ = ["APPLICATION", "CONFIGURATION", "DEVICE", "REPEAT", "SIZE"]

APPLICATION = Column("application", "text", title="application", required=True)
SIZE = Column("size", "text", title="problem size", required=True)
DEVICE = Column("device", "text", title="key of the device in the table of devices", required=True)
CONFIGURATION = Column(
    "configuration", "json", title="settings of the device; {} for its defaults", required=True
)
REPEAT = Column("repeat", "integer", "count", "number of the process, from 0", required=True, least=0)
