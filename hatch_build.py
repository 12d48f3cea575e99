"""Build hook: the runtime's object files come with the package, so that a first forecast compiles none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RuntimeObjects(BuildHookInterface[Any]):
    """Compile the runtime into the source tree, where editable installs find it, too."""

    def dependencies(self) -> list[str]:
        """Return the pinned compiler, whose version is part of the objects' names."""
        return [each for each in self.metadata.core.dependencies if each.startswith("ziglang")]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; without objects the package does so when it is first used."""
        sys.path.insert(0, str(Path(self.root, "src")))
        from crosscast.characterization import engine
        from crosscast.errors import CrosscastError

        try:
            engine.build(for_others=version != "editable")
        except (CrosscastError, OSError) as error:
            self.app.display_warning(f"the runtime is not compiled ahead: {error}")
