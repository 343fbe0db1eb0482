"""How a host recognises a LangGraph graph, and the graphs of a `langgraph.json`, without importing LangGraph."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from runcast.adapters.adapter import Adapter
from runcast.adapters.errors import InvalidInput
from runcast.adapters.frameworks import Framework, Hosting, Project, defined_in
from runcast.slim.values.type_guards import as_list, as_mapping

UNNAMED = ("", "LangGraph")  # LangGraph's name for a graph that was compiled without one
FILE = "langgraph.json"
NOT_APPLIED = {
    "auth": "give --authorize and --identify instead",
    "checkpointer": "runcast keeps checkpoints beside its log, or compile the graph with a checkpointer",
    "store": "runcast keeps the store beside its log, or compile the graph with one",
    "http": "it is ignored",
    "ui": "it is ignored",
}


def read_project(path: Path) -> Project | None:
    """The graphs of a `langgraph.json`, or of the folder it is in; None for anything else."""
    file = path / FILE if path.is_dir() else path
    if file.suffix != ".json" or not file.is_file():
        return None
    settings = as_mapping(_json(file))
    graphs = as_mapping(settings.get("graphs"))
    if not graphs:
        raise InvalidInput(f'{file} names no graphs: add "graphs": {{"agent": "./agent.py:graph"}}')
    root = file.resolve().parent
    return Project(
        {name: _target(root, name, value) for name, value in graphs.items()},
        paths=_folders(root, settings),
        env=_environment(root, settings.get("env")),
        notes=[
            f"{file.name}: `{key}` is not applied; {why}"
            for key, why in NOT_APPLIED.items()
            if settings.get(key)
        ],
    )


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidInput(f"{file} is not JSON: {error}") from error


def _target(root: Path, name: str, value: Any) -> str:
    target = value if isinstance(value, str) else as_mapping(value).get("path")
    if not isinstance(target, str) or ":" not in target:
        raise InvalidInput(f"graph {name!r} is not path.py:name in {FILE}")
    module, _, attribute = target.rpartition(":")
    return f"{root / module}:{attribute}" if module.endswith(".py") else target


def _folders(root: Path, settings: Mapping[str, Any]) -> list[Path]:
    """The local dependencies, each with its `src`; packages have to be installed."""
    named = [root / each for each in as_list(settings.get("dependencies")) if str(each).startswith(".")]
    found = [folder for each in (root, *named) for folder in (each.resolve(), each.resolve() / "src")]
    return [folder for folder in dict.fromkeys(found) if folder.is_dir()]


def _environment(root: Path, env: Any) -> dict[str, str]:
    if isinstance(env, str):
        from dotenv import dotenv_values

        return {name: value for name, value in dotenv_values(root / env).items() if value is not None}
    return {str(name): str(value) for name, value in as_mapping(env).items()}


def _wrap(graph: Any, name: str | None) -> Adapter:
    from runcast.adapters.langgraph import LangGraphAdapter

    if hasattr(graph, "compile"):  # a builder
        graph = graph.compile()
    own = getattr(graph, "name", None)
    if name is None and isinstance(own, str) and own not in UNNAMED:
        name = own
    return LangGraphAdapter(graph) if name is None else LangGraphAdapter(graph, name=name)


def _host(graph: Any, hosting: Hosting) -> AbstractAsyncContextManager[Adapter]:
    from runcast.adapters.langgraph.hosting import hosted

    return hosted(graph, hosting)


FRAMEWORK = Framework(
    name="LangGraph",
    extra="langgraph",
    distributions=("langgraph", "langgraph-checkpoint-sqlite"),
    agents="a LangGraph graph",
    recognises=lambda agent: defined_in(agent, "langgraph"),
    wrap=_wrap,
    project=read_project,
    host=_host,
)
