"""Options of a command that are on or off."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

__all__ = ["Flag"]

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""Off unless it is there; there is no ``--no-`` form, and help does not say that it is off."""
