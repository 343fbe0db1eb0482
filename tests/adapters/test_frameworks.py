"""Frameworks announce themselves in their own folder, and are recognised without being imported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from langgraph.graph import START, MessagesState, StateGraph

import runcast.adapters
from runcast.adapters.frameworks import Framework, defined_in, frameworks

FOLDERS = Path(runcast.adapters.__file__).parent

ANOTHER = """
from runcast.adapters.frameworks import Framework

FRAMEWORK = Framework("Another", "another", ("another",), "another agent", lambda agent: agent == "it", lambda agent, name: agent)
"""

NOTHING_LOADED = """
import sys
from runcast.adapters.frameworks import frameworks

assert not any(framework.recognises(object()) for framework in frameworks())
print([name for name in sys.modules if name.split(".")[0] in ("langgraph", "langchain_core", "google")])
"""


@pytest.fixture
def another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder more in which `runcast.adapters` looks for frameworks."""
    (tmp_path / "another").mkdir()
    (tmp_path / "another" / "announcement.py").write_text(ANOTHER)
    monkeypatch.setattr(runcast.adapters, "__path__", [*runcast.adapters.__path__, str(tmp_path)])
    frameworks.cache_clear()
    yield
    frameworks.cache_clear()


def graph():
    return StateGraph(MessagesState).add_node("n", lambda state: {}).add_edge(START, "n").compile(name="mine")


def of(name: str) -> Framework:
    return next(framework for framework in frameworks() if framework.name == name)


def test_every_folder_with_an_adapter_announces_itself():
    adapters = {path.parent.name for path in FOLDERS.glob("*/adapter.py")}
    assert {path.parent.name for path in FOLDERS.glob("*/announcement.py")} == adapters
    assert len(frameworks()) == len(adapters)


def test_a_new_folder_is_found_by_looking(another: None):
    assert of("Another").recognises("it")
    assert "LangGraph" in [framework.name for framework in frameworks()]


def test_looking_for_a_framework_loads_none_of_them():
    found = subprocess.run([sys.executable, "-c", NOTHING_LOADED], capture_output=True, check=True, text=True)
    assert found.stdout.strip() == "[]"


def test_a_graph_is_recognised_and_runs_under_its_own_name_or_a_given_one():
    agent = graph()
    assert [framework.name for framework in frameworks() if framework.recognises(agent)] == ["LangGraph"]
    assert of("LangGraph").wrap(agent, None).name == "mine"
    assert of("LangGraph").wrap(agent, "yours").name == "yours"


def test_a_class_belongs_to_the_package_it_or_a_parent_of_it_is_defined_in():
    assert defined_in(graph(), "langgraph")
    assert defined_in(Path(), "pathlib")
    assert not defined_in(graph(), "lang")
    assert not defined_in(object(), "langgraph")
