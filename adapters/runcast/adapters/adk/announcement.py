"""How a host recognises an ADK agent, App or Runner, and the agents of a folder, without importing ADK."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from runcast.adapters.adapter import Adapter
from runcast.adapters.frameworks import Framework, Project, defined_in

SOURCES = ("agent.py", "__init__.py")
YAML = "root_agent.yaml"


def read_project(path: Path) -> Project | None:
    """The agent of a folder, or those of the folders in it; None where there is none."""
    if not path.is_dir():
        return None
    folder = path.resolve()
    found = [folder] if _is_agent(folder) else [each for each in sorted(folder.iterdir()) if _is_agent(each)]
    loaders: dict[str, str | Callable[[], Any]] = {each.name: partial(_load, each) for each in found}
    return Project(loaders, paths=[found[0].parent]) if found else None


def _is_agent(folder: Path) -> bool:
    if not folder.is_dir() or folder.name.startswith((".", "__")):
        return False
    texts = (folder / name for name in SOURCES)
    named = any(
        "root_agent" in file.read_text(encoding="utf-8", errors="replace") for file in texts if file.is_file()
    )
    return named or (folder / YAML).is_file() or _has_app(folder / SOURCES[0])


def _has_app(file: Path) -> bool:
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    return "google.adk" in text and "app = " in text


def _load(folder: Path) -> Any:
    """The folder's `app` or `root_agent`, with its `.env` loaded; the app has the folder's name, as ADK's own servers do."""
    from google.adk.apps import App
    from google.adk.cli.utils.agent_loader import AgentLoader

    from runcast.adapters.adk import AdkAdapter

    found = AgentLoader(str(folder.parent)).load_agent(folder.name)
    return found if isinstance(found, App) else AdkAdapter(found, app_name=folder.name)


def _wrap(agent: Any, name: str | None) -> Adapter:
    from runcast.adapters.adk import AdkAdapter

    return AdkAdapter(agent)  # an ADK agent has a name of its own


FRAMEWORK = Framework(
    name="ADK",
    extra="adk",
    distributions=("google-adk",),
    agents="an ADK agent, App or Runner",
    recognises=lambda agent: defined_in(agent, "google.adk"),
    wrap=_wrap,
    project=read_project,
)
