"""The extras of the package: those listed in pyproject.toml, and `all`, which is every one of them.

They stand under `[tool.hatch.metadata.hooks.custom.extras]`, because a static `[project.optional-dependencies]` would
have to list every name a second time in `all`.
"""

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Extras(MetadataHookInterface):
    """Fills in `optional-dependencies`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the extras, and `all`."""
        extras: dict[str, list[str]] = self.config["extras"]
        metadata["optional-dependencies"] = {**extras, "all": [f"{metadata['name']}[{','.join(extras)}]"]}
