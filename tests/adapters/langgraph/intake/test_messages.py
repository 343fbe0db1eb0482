"""Messages both ways: every role, every part, losslessly where both sides can say it."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    AudioPart,
    DataSource,
    DeveloperMessage,
    DocumentPart,
    FileSource,
    FunctionCall,
    ImagePart,
    Message,
    ReasoningMessage,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UrlSource,
    UserMessage,
    VideoPart,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
)
from langchain_core.messages import ToolMessage as LangChainTool
from langchain_core.messages.utils import convert_to_openai_messages
from pydantic import BaseModel

from runcast.adapters import InvalidInput
from runcast.adapters.langgraph import to_agui, to_langchain

words = st.text(string.printable + "é漢😀", max_size=12)
ids = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=8)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda deeper: st.lists(deeper, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(words, values, max_size=3)
mimes = st.sampled_from(("image/png", "audio/wav", "application/pdf"))


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the optional fields."""
    return st.fixed_dictionaries({}, optional=fields)


def made(
    kind: type[BaseModel], some: st.SearchStrategy[dict[str, Any]], **always: st.SearchStrategy[Any]
) -> Any:
    return st.builds(lambda extra, **fields: kind(**fields, **extra), some, **always)


nothing = st.just(dict[str, Any]())
sources = st.one_of(
    made(DataSource, nothing, value=st.just("aGk="), mime_type=mimes),
    made(UrlSource, maybe(mime_type=mimes), value=st.just("https://example.org/x")),
    made(FileSource, maybe(provider=ids, mime_type=mimes), value=ids),
)
part_extras = maybe(id=ids, metadata=objects)
parts = st.one_of(
    made(TextPart, part_extras, text=words),
    *(made(kind, part_extras, source=sources) for kind in (ImagePart, AudioPart, VideoPart, DocumentPart)),
)
contents = words | st.lists(parts, max_size=3)
extras = maybe(metadata=objects, encrypted_value=words, subagent_run_id=ids)
named = maybe(metadata=objects, encrypted_value=words, subagent_run_id=ids, name=ids)
arguments = st.one_of(objects.map(json.dumps), objects.map(lambda it: json.dumps(it, indent=1)), words)
tool_calls = made(
    ToolCall,
    maybe(encrypted_value=words, metadata=objects),
    id=ids,
    function=made(FunctionCall, nothing, name=ids, arguments=arguments),
)
messages: st.SearchStrategy[Message] = st.one_of(
    made(UserMessage, named, id=ids, content=contents),
    made(SystemMessage, named, id=ids, content=words),
    made(DeveloperMessage, named, id=ids, content=words),
    made(ToolMessage, extras, id=ids, tool_call_id=ids, content=contents),
    made(ToolMessage, extras, id=ids, tool_call_id=ids, content=contents, error=words.filter(bool)),
    made(AssistantMessage, named, id=ids, content=words | st.none()),
    made(
        AssistantMessage,
        named,
        id=ids,
        content=words,
        tool_calls=st.lists(tool_calls, min_size=1, max_size=4, unique_by=lambda call: call.id),
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(messages, max_size=4))
def test_there_and_back_is_the_same(sent: list[Message]):
    held = to_langchain(sent)
    assert all(isinstance(message, BaseMessage) for message in held)
    back = to_agui(held)
    assert [dump(message) for message in back] == [dump(message) for message in sent]


@settings(max_examples=50, deadline=None)
@given(st.lists(messages, max_size=4))
def test_what_langchain_stores_survives_its_own_serialiser(sent: list[Message]):
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    serde = JsonPlusSerializer()
    stored = serde.loads_typed(serde.dumps_typed(to_langchain(sent)))
    assert [dump(message) for message in to_agui(stored)] == [dump(message) for message in sent]


def dump(message: Message) -> Any:
    return message.model_dump(mode="json", by_alias=True)


def test_a_models_view_of_multimodal_content():
    image = ImagePart(source=DataSource(value="aGk=", mime_type="image/png"))
    [message] = to_langchain([UserMessage(id="u", content=[TextPart(text="see"), image])])
    assert [block["type"] for block in message.content_blocks] == ["text", "image"]
    assert (
        convert_to_openai_messages([message])[0]["content"][1]["image_url"]["url"]
        == "data:image/png;base64,aGk="
    )


def test_calls_are_calls_for_a_model():
    good = ToolCall(id="c1", function=FunctionCall(name="add", arguments='{"a": 1}'))
    bad = ToolCall(id="c2", function=FunctionCall(name="add", arguments='{"a": '))
    silent = ToolCall(id="c3", function=FunctionCall(name="now", arguments=""))
    [message] = to_langchain([AssistantMessage(id="a", tool_calls=[good, bad, silent])])
    assert isinstance(message, AIMessage)
    assert [(call["id"], call["args"]) for call in message.tool_calls] == [("c1", {"a": 1}), ("c3", {})]
    assert [call["id"] for call in message.invalid_tool_calls] == ["c2"]


def test_an_error_is_one_for_the_graph():
    [message] = to_langchain([ToolMessage(id="r", tool_call_id="c1", content="no", error="broken")])
    assert isinstance(message, LangChainTool)
    assert message.status == "error"


def test_the_clients_own_pictures_go_to_no_model():
    pictures = [
        ReasoningMessage(id="1", content="hm"),
        ActivityMessage(id="2", activity_type="PLAN", content={}),
    ]
    assert to_langchain(pictures) == []


def test_a_role_nobody_knows_is_refused():
    odd = UserMessage(id="1", content="hi").model_copy(update={"role": "wizard"})
    with pytest.raises(InvalidInput, match="wizard"):
        to_langchain([type("Odd", (), {**odd.__dict__})()])


@pytest.mark.parametrize(
    ("message", "role", "content"),
    [
        (ChatMessage("x", role="user", id="1"), "user", "x"),
        (ChatMessage("x", role="system", id="1"), "system", "x"),
        (ChatMessage("x", role="developer", id="1"), "developer", "x"),
        (ChatMessage("x", role="critic", id="1"), "assistant", "x"),
        (FunctionMessage("42", name="add", id="1"), "tool", "42"),
        (
            AIMessage(
                [{"type": "text", "text": "a"}, "b", {"type": "refusal", "refusal": "c"}, {"type": "x"}],
                id="1",
            ),
            "assistant",
            "abc",
        ),
        (
            LangChainTool([{"odd": 1}], tool_call_id="c", id="1"),
            "tool",
            [{"type": "text", "text": '{"odd": 1}'}],
        ),
        (LangChainTool("no", tool_call_id="c", id="1", status="error"), "tool", "no"),
    ],
)
def test_messages_of_other_makes(message: Any, role: str, content: Any):
    [found] = to_agui([message])
    assert dump(found)["role"] == role
    assert dump(found)["content"] == content


def test_a_removal_is_no_message():
    assert to_agui([RemoveMessage(id="1")]) == []


def test_a_message_of_an_unknown_type_is_the_assistants():
    class Whisper(BaseMessage):
        type: str = "whisper"

    [found] = to_agui([Whisper(content="psst", id="1")])
    assert (found.role, found.content) == ("assistant", "psst")


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            ("image", "url", "https://example.org/a.png"),
        ),
        ({"type": "image_url", "image_url": "data:image/png;base64,aGk="}, ("image", "data", "aGk=")),
        (
            {"type": "image", "source_type": "base64", "data": "aGk=", "mime_type": "image/png"},
            ("image", "data", "aGk="),
        ),
        (
            {"type": "image", "source_type": "url", "url": "https://example.org"},
            ("image", "url", "https://example.org"),
        ),
        ({"type": "file", "source_type": "id", "id": "f1"}, ("document", "file", "f1")),
        ({"type": "audio", "base64": "aGk="}, ("audio", "data", "aGk=")),
        ({"type": "video", "file_id": "f2"}, ("video", "file", "f2")),
    ],
)
def test_media_in_every_spelling(block: Any, part: tuple[str, str, str]):
    [message] = to_agui([HumanMessage([block], id="1")])
    [found] = dump(message)["content"]
    assert (found["type"], found["source"]["type"], found["source"]["value"]) == part


@pytest.mark.parametrize(
    "block", [{"type": "image_url", "image_url": None}, {"type": "image"}, {"type": "text"}]
)
def test_media_without_a_source_stays_readable(block: Any):
    [message] = to_agui([HumanMessage([block], id="1")])
    assert json.loads(dump(message)["content"][0]["text"]) == block
