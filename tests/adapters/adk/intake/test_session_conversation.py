"""The conversation of a session: rewinds, compaction, snapshots, and messages both ways (cases 57, 58, 60)."""

from __future__ import annotations

import base64
import random
import sys
from typing import Any

import pytest
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    AudioPart,
    DataSource,
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
from google.adk.apps._configs import EventsCompactionConfig
from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from runcast.adapters.adk import (
    AdkOptions,
    AdkTranslator,
    contents,
    events_from_messages,
    messages_from_events,
    open_interrupts,
)
from runcast.adapters.run_frame import RunIds
from tests.adapters.adk.fakes import agent, call, calls, text
from tests.adapters.adk.stage import Stage, kinds, texts, wire
from tests.e2e.oracle import Oracle


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


@pytest.mark.oracle
async def test_case_57_rewound_turns_are_gone_from_the_snapshot(oracle: Oracle):
    root = agent("root", text("one"), text("two"), text("three"), text("four"))
    stage = Stage(root, options=AdkOptions(messages_snapshot="end"))
    for words in ("a", "b", "c"):
        await stage.say(words)
    session = await stage.session()
    assert session is not None
    second = [event.invocation_id for event in session.events if event.author == "user"][1]
    await stage.runner.rewind_async(user_id="user", session_id="t1", rewind_before_invocation_id=second)
    assert [it.content for it in await stage.messages()] == ["a", "one"]
    await stage.say("d")
    client = await stage.check(oracle)
    assert [words for _, words in texts(client)] == ["a", "one", "d", "four"]


def test_case_57_a_rewind_to_nowhere_takes_only_itself_away():
    said = [spoken("user", "a", 1), spoken("root", "b", 2)]
    said.append(Event(author="user", actions=EventActions(rewind_before_invocation_id="nowhere")))
    assert [it.content for it in messages_from_events(said)] == ["a", "b"]


def spoken(author: str, words: str, at: float, **given: Any) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=words)])
    return Event(
        author=author, content=content, timestamp=at, id=f"e{at:g}", invocation_id=f"i{at:g}", **given
    )


class Brief(BaseEventsSummarizer):
    """Sums up whatever it is given."""

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        summary = types.Content(role="model", parts=[types.Part(text=f"{len(events)} events")])
        span = EventCompaction(
            start_timestamp=events[0].timestamp,
            end_timestamp=events[-1].timestamp,
            compacted_content=summary,
        )
        return Event(author="user", actions=EventActions(compaction=span), invocation_id="c")


@pytest.mark.oracle
async def test_case_58_a_compaction_changes_what_the_model_sees_not_what_people_saw(oracle: Oracle):
    config = EventsCompactionConfig(summarizer=Brief(), compaction_interval=2, overlap_size=0)
    stage = Stage(agent("root", text("one"), text("two"), text("three")), events_compaction_config=config)
    for words in ("a", "b", "c"):
        await stage.say(words)
    client = await stage.check(oracle)
    assert [words for _, words in texts(client)] == ["a", "one", "b", "two", "c", "three"]
    session = await stage.session()
    assert session is not None
    assert any(event.actions.compaction for event in session.events)
    short = messages_from_events(session.events, root="root", compacted=True)
    assert len(short) < 6
    assert "events" in str(short[0].content)
    assert short[-1].content == "three"


def test_case_58_a_summary_inside_another_is_dropped():
    def summed(start: float, end: float, words: str) -> Event:
        content = types.Content(role="model", parts=[types.Part(text=words)])
        span = EventCompaction(start_timestamp=start, end_timestamp=end, compacted_content=content)
        return Event(author="user", id=words, timestamp=end + 0.5, actions=EventActions(compaction=span))

    said = [spoken("user", "a", 1), spoken("root", "b", 2), summed(1, 2, "small"), spoken("user", "c", 3)]
    said += [summed(1, 3, "large"), spoken("root", "d", 4)]
    assert [it.content for it in messages_from_events(said)] == ["a", "b", "c", "d"]
    assert [it.content for it in messages_from_events(said, compacted=True)] == ["large", "d"]


@pytest.mark.oracle
@pytest.mark.parametrize("limit", [None, 3, 2, 0])
async def test_one_snapshot_before_the_end_with_the_ids_that_were_streamed(oracle: Oracle, limit: int | None):
    options = AdkOptions(messages_snapshot="end", snapshot_messages=limit)
    stage = Stage(agent("root", calls(call("look")), text("done"), tools=[look]), options=options)
    run = await stage.say("hi")
    assert kinds(run).count("MESSAGES_SNAPSHOT") == 1
    assert kinds(run)[-2:] == ["MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    held = [it.id for it in run[-2].messages]  # type: ignore[union-attr]
    streamed = [it.id for it in await stage.messages()]
    assert held == {None: streamed, 3: streamed[1:], 2: streamed[3:], 0: []}[limit]
    if limit is None:
        await stage.check(oracle)


async def test_a_broken_run_has_its_snapshot_too():
    stage = Stage(
        agent("root", [*text("half"), ValueError("x")]), options=AdkOptions(messages_snapshot="end")
    )
    run = await stage.say("hi")
    assert kinds(run)[-2:] == ["MESSAGES_SNAPSHOT", "RUN_ERROR"]


# ------------------------------------------------------------------ messages both ways

WORDS = st.text(max_size=12)
IDS = st.integers(0, 10**6)
SIGNED = st.none() | st.binary(min_size=1, max_size=6).map(lambda it: base64.b64encode(it).decode())
JSONS = st.dictionaries(
    st.text(max_size=4), st.none() | st.booleans() | st.integers(-5, 5) | WORDS, max_size=3
)


def sources(mime: str) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.binary(max_size=9).map(
            lambda it: DataSource(value=base64.b64encode(it).decode(), mime_type=f"{mime}/x")
        ),
        st.just(UrlSource(value="https://x.test/f", mime_type=f"{mime}/x")),
    )


PARTS = st.lists(
    st.one_of(
        WORDS.map(lambda it: TextPart(text=it)),
        sources("image").map(lambda it: ImagePart(source=it)),
        sources("audio").map(lambda it: AudioPart(source=it)),
        sources("video").map(lambda it: VideoPart(source=it)),
        sources("application").map(lambda it: DocumentPart(source=it)),
    ),
    max_size=3,
)


@st.composite
def turns(draw: Any, number: int) -> list[Message]:
    """A question, perhaps a thought, an answer with calls, and their results."""
    said: list[Message] = [UserMessage(id=f"u{number}", content=draw(st.one_of(WORDS, PARTS)))]
    names = draw(st.lists(st.sampled_from(["a", "b"]), max_size=2))
    called = [
        ToolCall(
            id=f"c{number}-{n}",
            function=FunctionCall(name=name, arguments=compact(draw(JSONS))),
            **given_(draw(SIGNED)),
        )
        for n, name in enumerate(names)
    ]
    words = draw(WORDS)
    if words or called:
        if draw(st.booleans()):
            thought = draw(WORDS.filter(str.strip))  # a blank one is not shown
            said.append(ReasoningMessage(id=f"m{number}-reasoning", content=thought, **given_(draw(SIGNED))))
        fields: dict[str, Any] = {}
        if words:
            fields |= {"content": words, **given_(draw(SIGNED))}
        if called:
            fields["tool_calls"] = called
        said.append(AssistantMessage(id=f"m{number}", **fields))
        said += [
            ToolMessage(id=f"t{number}-{n}", tool_call_id=it.id, content=draw(WORDS | JSONS.map(compact)))
            for n, it in enumerate(called)
        ]
    return said


def given_(signature: str | None) -> dict[str, Any]:
    return {} if signature is None else {"encrypted_value": signature}


def compact(value: Any) -> str:
    import orjson

    return orjson.dumps(value).decode()


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_messages_become_events_and_messages_again(data: st.DataObject):
    said = [it for number in range(data.draw(st.integers(0, 3))) for it in data.draw(turns(number))]
    events = [
        Event.model_validate_json(it.model_dump_json()) for it in events_from_messages(said, author="root")
    ]
    assert [wire(it) for it in messages_from_events(events, root="root")] == [wire(it) for it in said]
    assert contents(said) == [it.content for it in events_from_messages(said)]


def test_what_only_one_side_can_say():
    said: list[Message] = [
        SystemMessage(id="s", content="be brief"),
        ActivityMessage(id="a", activity_type="PLAN", content={"x": 1}),
        UserMessage(id="u", content=[ImagePart(source=FileSource(value="files/1", provider="gemini"))]),
        AssistantMessage(id="m", content="hm", encrypted_value="not base64!"),
        ToolMessage(
            id="t", tool_call_id="c9", content=[TextPart(text="a"), TextPart(text="b")], error="broke"
        ),
        ToolMessage(id="t2", tool_call_id="c8", content="", error="broke"),
    ]
    user, model, failed, empty = contents(said)
    assert user.parts is not None
    assert user.parts[0].file_data == types.FileData(file_uri="files/1")
    assert model.parts is not None
    assert model.parts[0].thought_signature is None
    assert failed.parts is not None
    answer = failed.parts[0].function_response
    assert answer is not None
    assert answer.response == {"error": "broke", "result": "a\nb"}
    assert empty.parts is not None
    assert empty.parts[0].function_response.response == {"error": "broke"}  # type: ignore[union-attr]


def test_contents_of_a_foreign_session_become_messages():
    pdf = types.Part(file_data=types.FileData(file_uri="gs://b/x"))
    odd = types.Part(video_metadata=types.VideoMetadata(fps=1.0))
    blob = types.Part(inline_data=types.Blob(data=b"x"))
    said = [
        Event(
            id="e1",
            author="user",
            content=types.Content(role="user", parts=[types.Part(text="see"), pdf, odd, blob]),
        ),
        Event(
            id="e2", author="root", content=types.Content(role="model", parts=[call("f", {"x": 1}, id="c1")])
        ),
        Event(id="e3", author="user", content=reply("c1", {"result": None})),
        Event(id="e4", author="user", content=reply("c1", {"result": [1]})),
        Event(id="e5", author="user"),
    ]
    made = [wire(it) for it in messages_from_events(said)]
    assert [part["type"] for part in made[0]["content"]] == ["text", "document", "document"]
    assert [(it["id"], it.get("content")) for it in made[1:]] == [
        ("e2", None),
        ("c1:answer", ""),
        ("e4:c1", "[1]"),
    ]


def reply(call_id: str, response: dict[str, Any]) -> types.Content:
    answer = types.FunctionResponse(id=call_id, name="f", response=response)
    return types.Content(role="user", parts=[types.Part(function_response=answer)])


def test_a_result_of_a_call_nobody_made_comes_last():
    said = [Event(id="e1", author="root", content=reply("c7", {"x": 1})), spoken("root", "b", 2)]
    assert [it.role for it in messages_from_events(said)] == ["tool", "assistant"]


def test_open_questions_survive_in_the_session_and_end_with_the_next_message():
    asked = spoken("root", "", 1)
    asked.content = types.Content(role="model", parts=[call("ask", {}, id="c1"), call("ask", {}, id="c2")])
    asked.long_running_tool_ids = {"c1", "c2"}
    partial = asked.model_copy(update={"partial": True})
    assert [it.id for it in open_interrupts([partial, asked])] == ["c1", "c2"]
    answered = Event(author="user", content=reply("c1", {}))
    assert [it.id for it in open_interrupts([asked, answered])] == ["c2"]
    assert [it.id for it in open_interrupts([asked, answered, asked])] == ["c2", "c1"]
    assert open_interrupts([asked, spoken("user", "never mind", 2)]) == []
    (first, _) = open_interrupts([asked], owners={"c1": "sub"})
    assert first.subagent_run_id == "sub"
    assert open_interrupts([asked], skip={"ask"}) == []


def test_a_toolset_that_must_log_in_has_no_call():
    asked = spoken("root", "", 1)
    args = {"functionCallId": "_adk_toolset_auth_x", "authConfig": {"list": [{"token": "t", "kept": 1}]}}
    asked.content = types.Content(role="model", parts=[call("adk_request_credential", args, id="c1")])
    asked.long_running_tool_ids = {"c1"}
    (interrupt,) = open_interrupts([asked])
    assert interrupt.tool_call_id is None
    assert interrupt.metadata == {"runcast": {"value": {"list": [{"kept": 1}]}}}


# ------------------------------------------------------------------ size


def test_case_60_the_translators_state_does_not_grow_with_the_chunks():
    def size(chunks: int) -> int:
        translator = AdkTranslator(RunIds("t", "r"), root="root")
        translator.start()
        words = random.Random(1)
        for _ in range(chunks):
            part = types.Part(text=f"{words.random()} ")
            translator.feed(
                Event(id="e", author="root", partial=True, content=types.Content(role="model", parts=[part]))
            )
        return deep(translator, set())

    assert size(5_000) <= size(50) * 1.05


def test_streams_that_never_end_are_forgotten_within_a_bound():
    translator = AdkTranslator(RunIds("t", "r"), root="root")
    translator.start()
    small = 0
    for number in range(1_000):
        content = types.Content(role="model", parts=[types.Part(text="x")])
        translator.feed(Event(id=f"e{number}", author="custom", partial=True, content=content))
        if number == 100:
            small = deep(translator, set())
    assert deep(translator, set()) <= small * 1.2


def deep(value: Any, seen: set[int]) -> int:
    """Bytes held by an object and all it refers to."""
    if id(value) in seen or isinstance(value, type) or callable(value):
        return 0
    seen.add(id(value))
    held = sys.getsizeof(value)
    if isinstance(value, dict):
        return held + sum(deep(it, seen) for pair in value.items() for it in pair)
    if isinstance(value, (list, tuple, set, frozenset)):
        return held + sum(deep(it, seen) for it in value)
    inner = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
    return held + deep(getattr(value, "__dict__", {}), seen) + sum(deep(it, seen) for it in inner)
