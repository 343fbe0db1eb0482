"""The context of a run: defaults, the host's values, the client's, each field checked by its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from ag_ui.core import RunAgentInput
from pydantic import BaseModel

from runcast.adapters import InvalidInput
from runcast.adapters.langgraph.intake.run_context import client_configurable, client_input, run_context


@dataclass(kw_only=True)
class Defaults:
    model: Annotated[str, {"kind": "llm"}] = "small"
    limit: int = 3


@dataclass
class Needed:
    user: str


class Typed(TypedDict, total=False):
    user: str


class Model(BaseModel):
    user: str = "ann"


class Unknown:
    """A type that pydantic has no schema for."""


@dataclass
class Holding:
    thing: Unknown
    name: str = ""


def asked(**props: Any) -> RunAgentInput:
    return RunAgentInput(thread_id="t", run_id="r", messages=[], tools=[], context=[], forwarded_props=props)


def test_a_schema_is_filled_by_its_defaults_then_the_host_then_the_client():
    assert run_context(Defaults, None, None) == Defaults()
    assert run_context(Defaults, {"limit": 5}, asked()) == Defaults(limit=5)
    given = asked(context={"limit": 7}, configurable={"model": "big", "limit": 6, "other": 1})
    assert run_context(Defaults, {"limit": 5}, given) == Defaults(model="big", limit=7)
    assert run_context(Typed, None, asked(context={"user": "bob"})) == {"user": "bob"}
    assert run_context(Model, None, None) == Model()


def test_without_a_schema_values_pass_as_they_are():
    assert run_context(None, None, asked()) is None
    assert run_context(None, {"a": 1}, asked(context={"b": 2})) == {"a": 1, "b": 2}
    assert run_context(Defaults, Defaults(limit=1), asked(context={"limit": 2})) == Defaults(limit=1)
    assert run_context(dict, None, None) is None


@pytest.mark.parametrize(
    ("schema", "context", "sentence"),
    [
        (Defaults, {"modle": "x"}, "context has no field 'modle'; its fields are limit, model"),
        (Defaults, {"limit": "many"}, "context field 'limit': "),
        (Model, {"user": 7}, "context field 'user': "),
        (Model, {"model_config": 7}, "its fields are user"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_with_its_field(schema: Any, context: Any, sentence: str):
    with pytest.raises(InvalidInput, match=sentence):
        run_context(schema, None, asked(context=context))


def test_fields_without_a_default_are_an_error_only_where_something_was_given():
    assert run_context(Needed, None, asked()) is None
    assert run_context(Needed, {"user": "ann"}, None) == Needed("ann")


def test_a_schema_that_pydantic_does_not_know_is_left_to_langgraph():
    assert run_context(Holding, {"name": "x"}, None) == {"name": "x"}


def test_the_client_sets_no_key_that_places_the_run():
    held = {"thread_id": "other", "checkpoint_id": "1", "__pregel_send": 1, "model_name": "gpt"}
    assert client_configurable(asked(configurable=held)) == {"model_name": "gpt"}
    assert client_configurable(asked()) == {}


def test_a_client_that_sets_no_channel_needs_no_schema():
    assert client_input(asked(), lambda: pytest.fail("nothing was given that needs it")) == {}
