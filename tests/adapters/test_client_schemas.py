"""Schemas for clients: every field as far as a schema can express it, and nothing of the hidden ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, Required

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import core_schema
from typing_extensions import TypedDict

from runcast.adapters.client_schemas import object_schema, value_schema


class Odd:
    """A type that no schema can express."""


@dataclass
class Inner:
    key: str


class Hidden(BaseModel):
    secret_plan: str


class State(TypedDict):
    topic: Annotated[str, "of the talk"]
    count: NotRequired[int]
    inner: list[Inner]
    hidden: list[Hidden]
    odd: Odd


class Node(BaseModel):
    children: list[Node] = []


@dataclass
class Context:
    model: str = field(default="m", metadata={"description": "which model"})
    made: object = field(default_factory=object)
    odd: object = Odd()


def test_a_field_that_no_schema_expresses_hides_no_other():
    found = object_schema([State])
    assert found is not None
    assert list(found["properties"]) == ["topic", "count", "inner", "hidden", "odd"]
    assert found["properties"]["topic"]["type"] == "string"
    assert found["properties"]["count"]["type"] == "integer"
    assert found["properties"]["odd"] == {}
    assert "count" not in found["required"]


def test_definitions_that_only_hidden_fields_use_are_left_out():
    found = object_schema([State], lambda name: name != "hidden")
    assert found is not None
    assert list(found["$defs"]) == ["Inner"]
    assert "secret_plan" not in str(found)


def test_descriptions_and_defaults_travel_and_a_default_that_is_no_json_does_not():
    found = object_schema([Context])
    assert found is not None
    assert found["properties"]["model"] == {
        "default": "m", "description": "which model", "title": "Model", "type": "string"
    }  # fmt: skip
    assert "default" not in found["properties"]["odd"]
    assert "required" not in found


def test_a_class_that_holds_itself_is_described_once():
    found = object_schema([Node])
    assert found is not None
    assert list(found["properties"]) == ["children"]
    assert list(found["$defs"]) == ["Node"]


def test_classes_are_merged_and_the_last_one_wins():
    class Later(BaseModel):
        topic: int = Field(default=1, title="Number")

    found = object_schema([State, Later])
    assert found is not None
    assert found["properties"]["topic"]["title"] == "Number"
    assert "inner" in found["properties"]
    assert found["title"] == "Later"


def test_what_is_no_class_with_fields_has_no_schema():
    unresolved: Any = TypedDict("unresolved", {"field": "Nowhere"})  # noqa: F821
    for kind in (None, 5, dict, str, Odd, Callable[[], int], {"type": "object"}, unresolved):
        assert object_schema([kind]) is None, kind
    assert object_schema([State], lambda name: False) is None
    assert value_schema(Odd) == {}


@given(st.sets(st.sampled_from(list(State.__annotations__))))
def test_only_what_is_shown_is_in_a_schema(shown: set[str]):
    found = object_schema([State], shown.__contains__)
    assert set(found["properties"] if found else ()) == shown
    assert set(found.get("required", ()) if found else ()) <= shown


class Plain(TypedDict, total=False):
    """What a talk is about."""

    topic: Required[Annotated[str, "of the talk"]]
    count: int
    again: list[Plain]
    inner: Inner
    hidden: list[Hidden]


class Whole(TypedDict, total=False):
    """What a talk is about."""

    topic: Required[Annotated[str, "of the talk"]]
    """The topic."""
    count: int
    again: list[Whole]
    inner: Inner
    hidden: list[Hidden]


Whole.__pydantic_config__ = ConfigDict(use_attribute_docstrings=True)  # type: ignore[attr-defined]  # pydantic's own way
Titled: Any = TypedDict("Titled", {"topic": NotRequired[str], "inner": Inner, "hidden": Hidden})
Titled.__pydantic_config__ = ConfigDict(title="A talk", str_max_length=9)


@given(st.sampled_from([Plain, Whole, Titled]), st.data())
def test_fields_that_are_not_shown_change_nothing_of_the_others(kind: Any, data: st.DataObject):
    shown = data.draw(st.sets(st.sampled_from(list(kind.__annotations__)), min_size=1))
    every, part = object_schema([kind]), object_schema([kind], shown.__contains__)
    assert every is not None
    assert part is not None
    assert (part["title"], part["type"]) == (every["title"], "object")
    assert part.get("description") == every.get("description")
    assert part["properties"] == {
        name: every["properties"][name] for name in every["properties"] if name in shown
    }
    assert part.get("required", []) == [name for name in every["required"] if name in shown]
    assert part.get("$defs", {}).items() <= every["$defs"].items()


def test_a_field_that_is_not_shown_is_not_even_read():
    made: list[str] = []

    class Heavy:
        """As the messages of a graph, whose schema takes a hundred milliseconds of Python's lock."""

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            made.append("heavy")
            return core_schema.any_schema()

    kind: Any = TypedDict("kind", {"messages": list[Heavy], "topic": str})
    found = object_schema([kind], lambda name: name != "messages")
    assert found is not None
    assert list(found["properties"]) == ["topic"]
    assert object_schema([kind], lambda name: False) is None
    assert not made
    assert object_schema([kind]) is not None
    assert made
