"""Scenes of state: reducers, commands, every kind of value, patches that add up."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from itertools import pairwise
from typing import Annotated, Any

from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Overwrite
from pydantic import BaseModel

from runcast.adapters.langgraph import LangGraphOptions
from tests.adapters.langgraph.scenes.book import scene
from tests.adapters.langgraph.stage import Stage, types


class State(MessagesState):
    items: Annotated[list[Any], operator.add]
    total: Annotated[int, operator.add]
    note: Any


def steps(*nodes: Any, state: Any = State, **settings: Any) -> Any:
    """Nodes one after the other."""
    builder = StateGraph(state)
    names = [f"n{at}" for at in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        builder.add_node(name, node)
    builder.add_edge(START, names[0])
    for before, after in pairwise(names):
        builder.add_edge(before, after)
    settings.setdefault("checkpointer", InMemorySaver())
    return builder.compile(**settings)


def gives(update: Any) -> Any:
    async def node(state: Any) -> Any:
        return update

    return node


def deltas(stage: Stage) -> list[Any]:
    return [each for event in stage.runs[-1] if event.type == "STATE_DELTA" for each in event.delta]


@scene("39_reducers")
async def reducers(stage: Stage) -> None:
    stage.play(steps(gives({"items": [1], "total": 10}), gives({"items": [2], "total": 10})))
    events = await stage.send("hi")
    assert types(events).count("STATE_SNAPSHOT") == 1
    assert [(each.op, each.path) for each in deltas(stage)][-2:] == [
        ("add", "/items/-"),
        ("replace", "/total"),
    ]
    await stage.holds()
    await stage.send("again")
    await stage.holds()


@scene("39_overwrite_and_command")
async def overwrite(stage: Stage) -> None:
    over = gives({"items": Overwrite(["fresh"])})
    stage.play(
        steps(gives({"items": [1, 2]}), over, gives(Command(update={"note": "by command", "total": 1})))
    )
    await stage.send("hi")
    await stage.holds()


class Pydantic(BaseModel):
    messages: Annotated[list[Any], operator.add] = []
    name: str = ""
    tags: list[str] = []


@scene("39_pydantic_state")
async def pydantic_state(stage: Stage) -> None:
    async def named(state: Pydantic) -> Any:
        return {"name": "Ada", "tags": [*state.tags, "x"]}

    stage.play(steps(named, gives({"tags": ["x", "y"]}), state=Pydantic))
    await stage.send("hi")
    await stage.holds()


@dataclass
class Data:
    messages: Annotated[list[Any], operator.add] = field(default_factory=list[Any])
    name: str = ""


@scene("39_dataclass_state")
async def dataclass_state(stage: Stage) -> None:
    stage.play(steps(gives({"name": "Ada"}), gives({"name": "Eve"}), state=Data))
    await stage.send("hi")
    await stage.holds()


@scene("40_inner_runnables_do_not_leak")
async def no_leak(stage: Stage) -> None:
    async def node(state: State) -> Any:
        await RunnableLambda(lambda _: {"note": "leaked", "unknown": 1}).ainvoke({})
        return {"note": "kept"}

    stage.play(steps(node))
    await stage.send("hi")
    assert "leaked" not in str(stage.runs)
    await stage.holds()


class Color(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    label: str


VALUES: dict[str, Any] = {
    "when": datetime(2026, 1, 2, tzinfo=UTC),
    "raw": b"\xff\xfe",
    "set": {"b", "a"},
    "color": Color.RED,
    "point": Point(1, "p"),
    "model": Pydantic(name="inner"),
    "nan": float("nan"),
    "lone": "\ud800",
    "tuple": (1, 2),
    7: "number key",
    "what": operator.add,
}


@scene("41_values_json_cannot_say")
async def odd_values(stage: Stage) -> None:
    stage.play(steps(gives({"note": VALUES}), gives({"items": [b"ok", {1, 2}]}), checkpointer=None))
    await stage.send("hi")
    if stage.oracle:
        note = stage.view["state"]["note"]
        assert (note["when"], note["raw"]) == ("2026-01-02T00:00:00+00:00", "//4=")
        assert (note["set"], note["color"], note["point"]) == (["a", "b"], "red", {"x": 1, "label": "p"})
        assert (note["nan"], note["tuple"], note["7"]) == ("nan", [1, 2], "number key")


@scene("42_patches_add_up")
async def patches(stage: Stage) -> None:
    notes: list[Any] = [
        {"a/b": 1, "c~d": {"e": [1, 2, 3]}},
        {"a/b": 2, "c~d": {"e": [1, 2, 3, 4]}},
        {"c~d": {"e": [1, 3, 4], "f": None}},
        {"c~d": {"e": [0, 1, 3, 4], "f": False}, "": "empty key"},
        [1, 2, {"x": 1}],
        [1, 2, {"x": True}],
        None,
    ]
    stage.play(steps(*(gives({"note": each}) for each in notes)))
    await stage.send("hi")
    paths = {each.path for each in deltas(stage)}
    assert {"/note/a~1b", "/note/c~0d/e/-", "/note/c~0d/f"} <= paths
    await stage.holds()


@scene("42_changed_in_place")
async def in_place(stage: Stage) -> None:
    async def start(state: State) -> Any:
        return {"note": {"log": []}}

    async def append(state: State) -> Any:
        state["note"]["log"].append(len(state["note"]["log"]))  # wrong of the node, and common
        return {"note": state["note"]}

    stage.play(steps(start, append, append))
    await stage.send("hi")
    await stage.holds()


@scene("61_client_cannot_set_state")
async def forged(stage: Stage) -> None:
    class Guarded(MessagesState):
        role: str
        theme: str

    stage.play(
        steps(gives({}), state=Guarded),
        options=LangGraphOptions(input_state_keys={"theme"}, forwarded_keys={"theme"}),
    )
    await stage.send("hi", state={"role": "admin", "theme": "dark"}, forwarded_props={"role": "root", "x": 1})
    await stage.holds()
    if stage.oracle:
        assert stage.view["state"] == {"theme": "dark"}
    await stage.send("hi", state={}, forwarded_props={"theme": "light"})
    if stage.oracle:
        assert stage.view["state"] == {"theme": "light"}


@scene("42_keys_on_show")
async def keys_on_show(stage: Stage) -> None:
    stage.play(steps(gives({"items": [1], "note": "private"})), state_keys={"items"})
    await stage.send("hi")
    assert "private" not in str(stage.runs)
    await stage.holds(state={"items": [1]})
