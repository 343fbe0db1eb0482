"""Events as parts: over LangChain's own translation of chunks, cut anywhere, and block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models._compat_bridge import chunks_to_events
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGenerationChunk

from runcast.adapters import RunIds
from runcast.adapters.langgraph import LangGraphTranslator
from runcast.adapters.langgraph.intake.stream_events import StreamEvents
from runcast.adapters.langgraph.stream.parts import RUN_MARK, TOKEN, Aside
from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.fakes import calls, piece

META = {"run_id": "m", RUN_MARK: "m", "langgraph_checkpoint_ns": "answer:1", "langgraph_node": "answer"}
START = {"event": "message-start", "role": "ai", "id": "lc_run--m"}


def event(method: str, data: Any, *ns: str) -> dict[str, Any]:
    return {
        "type": "event",
        "method": method,
        "params": {"namespace": list(ns), "timestamp": 0, "data": data},
    }


def message(*events: dict[str, Any]) -> list[dict[str, Any]]:
    return [event("messages", (each, META)) for each in events]


def by(kind: str, index: int, **fields: Any) -> dict[str, Any]:
    """A block's event: its delta, or its start or finish."""
    held = "delta" if kind == "content-block-delta" else "content"
    return {"event": kind, "index": index, held: fields}


def parts(events: Sequence[Any], **settings: Any) -> list[Any]:
    reader = StreamEvents(**settings)
    return [part for each in events for part in reader.parts(each)]


def chunks(events: Sequence[Any]) -> list[Any]:
    return [part["data"][0] for part in parts(events)]


text = st.text(alphabet="ab{ ", min_size=1, max_size=3)
pieces = st.one_of(
    text.map(lambda t: AIMessageChunk(content=[{"type": "text", "text": t, "index": 7}])),
    text.map(lambda t: AIMessageChunk(content=[{"type": "reasoning", "reasoning": t, "index": 8}])),
    st.tuples(st.integers(0, 2), text).map(lambda it: calls(piece(None, it[1], None, it[0]))),
)


@given(st.lists(pieces, max_size=8), st.integers(0, 40), st.sampled_from(["finish", "cancel", "fail"]))
def test_whatever_a_model_sends_comes_through_and_may_be_cut_anywhere(given: Any, cut: int, end: str):
    opening = [calls(*(piece(f"tool{n}", "", f"c{n}", n) for n in range(3)))]
    sent = [*opening, *given]
    events = message(
        *chunks_to_events((ChatGenerationChunk(message=m) for m in sent), message_id="lc_run--m")
    )
    came = chunks(events)
    for kind, field in (("text", "text"), ("reasoning", "reasoning")):
        assert _text(came, kind, field) == _text(sent, kind, field)
    for index, at in enumerate(range(3)):
        theirs = "".join(
            e.get("args") or "" for m in sent for e in m.tool_call_chunks or () if e["index"] == at
        )
        ours = "".join(e.get("args") or "" for c in came for e in c.tool_call_chunks if e["index"] == index)
        assert ours == theirs
    assert came[-1].chunk_position == "last"
    translator = LangGraphTranslator(RunIds("t", "r"))
    told = translator.start()
    for part in parts(events[:cut]):
        told += translator.feed(part)
    told += translator.fail(RuntimeError("torn")) if end == "fail" else getattr(translator, end)()
    assert not verify(told)


def _text(found: Sequence[Any], kind: str, field: str) -> str:
    said = ""
    for each in found:
        if isinstance(each.content, str):
            said += each.content if kind == "text" else ""
        else:
            said += "".join(block[field] for block in each.content if block["type"] == kind)
    return said


def test_what_no_delta_brought_comes_with_the_finish():
    whole = {"type": "tool_call", "id": "c1", "name": "add", "args": {"a": 1}}
    image = {"type": "image", "base64": "aGk="}
    signed = {"type": "reasoning", "reasoning": "hmmm", "extras": {"signature": "S"}}
    found = chunks(
        message(
            START,
            by("content-block-start", 0, type="reasoning", reasoning=""),
            by("content-block-delta", 0, type="reasoning-delta", reasoning="hm"),
            by("content-block-start", 1, **{**whole, "args": {}}),
            by("content-block-start", 2, type="image"),
            by("content-block-delta", 2, type="data-delta", data="aGk="),
            by("content-block-start", 3, type="tool_call_chunk", id=None, name=None),
            by("content-block-delta", 3, type="tool-call-delta", args='{"b"'),
            by("content-block-finish", 0, **signed),
            by("content-block-finish", 1, **whole),
            by("content-block-finish", 2, **image),
            by("content-block-finish", 3, type="invalid_tool_call", id="c2", name="x", args='{"b":'),
            by("content-block-finish", 4, type="text", text="late", annotations=[1]),
            {"event": "unheard-of"},
            {"event": "message-finish"},
        )
    )
    assert [each.content for each in found if each.content] == [
        [{"type": "reasoning", "reasoning": "hm", "index": 0}],
        [{**signed, "reasoning": "mm", "index": 0}],
        [image],
        [{"type": "text", "text": "late", "annotations": [1], "index": 4}],
    ]
    assert [entry for each in found for entry in each.tool_call_chunks] == [
        {"index": 1, "id": "c1", "name": "add"},
        {"index": 3, "args": '{"b"'},
        {"index": 1, "id": "c1", "name": "add", "args": '{"a": 1}'},
        {"index": 3, "id": "c2", "name": "x", "args": ":"},
    ]


@pytest.mark.parametrize("reasons", [True, False])
def test_the_end_has_usage_facts_and_what_no_block_had(reasons: bool):
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    start = {**START, "metadata": {"provider": "deepseek", "model": "r1"}}
    thought = [by("content-block-start", 0, type="reasoning")] if reasons else []
    end = {
        "event": "message-finish",
        "usage": usage,
        "metadata": {"finish_reason": "stop"},
        "additional_kwargs": {"reasoning_content": "hm", "other": 1},
    }
    [last] = chunks(message(start, *thought, end))
    beside = {} if reasons else {"reasoning_content": "hm"}
    facts = {"model_provider": "deepseek", "model_name": "r1", "finish_reason": "stop"}
    assert (last.usage_metadata, last.response_metadata) == (usage, facts)
    assert last.additional_kwargs == {**beside, "other": 1}


def test_messages_of_tools_and_of_nobody_are_no_models():
    tool = {**START, "role": "tool"}
    assert not chunks(message(tool, by("content-block-delta", 0, type="text-delta", text="x")))
    assert not parts([event("messages", (None, META))])
    assert not parts([event("messages", (AIMessageChunk(content="all of it"), META))])
    own = event("messages", (AIMessage("whole"), {}))
    assert [part["data"][0].content for part in parts([own])] == ["whole"]


def token(word: str, run: str = "m") -> dict[str, Any]:
    meta = {RUN_MARK: run}
    return event("custom", Aside(TOKEN, {"chunk": AIMessageChunk(content=word), "metadata": meta}))


def test_tokens_are_shown_unless_their_message_comes_as_events():
    end = event("custom", Aside("llm_end", {"run_id": "m"}))
    kinds = [part["type"] for part in parts([token("a"), token("b"), token("c"), end])]
    assert kinds == ["messages", "messages", "messages", "custom"]
    assert [part["type"] for part in parts([token("a"), end])] == ["messages", "custom"]
    assert [part["type"] for part in parts([end])] == ["custom"]
    twice = [token("a"), *message(START), token("b"), *message({"event": "message-finish"})]
    assert [chunk.content for chunk in chunks(twice)] == [""]


def test_results_come_from_the_tasks_that_returned_them():
    old, new, unnamed = (ToolMessage(id, tool_call_id=id, id=id or None) for id in ("old", "new", ""))
    begun = {"id": "1", "name": "tools", "input": {"messages": [old]}}
    ended = {"id": "1", "name": "tools", "result": {"messages": [old, new, unnamed]}}
    saved = event("checkpoints", {"metadata": {"step": 4}}, "sub:9")
    found = parts([saved, event("tasks", begun, "sub:9"), event("tasks", ended, "sub:9")])
    assert [part["type"] for part in found] == ["checkpoints", "tasks", "messages", "messages", "tasks"]
    said, meta = found[2]["data"]
    assert (said.id, found[2]["ns"]) == ("new", ("sub:9",))
    assert meta == {
        "langgraph_node": "tools",
        "langgraph_checkpoint_ns": "sub:9|tools:1",
        "langgraph_step": 5,
    }
    unsaved = parts([event("tasks", ended)])
    assert "langgraph_step" not in unsaved[0]["data"][1]


def test_only_what_the_translator_reads_passes():
    assert not parts([event("lifecycle", {}), event("debug", {})])
    assert not parts([event("tools", {"event": "tool-started"})])
    delta = {"event": "tool-output-delta", "tool_call_id": "c1", "delta": 1}
    inner = event("values", {}, "sub:1")
    assert [part["type"] for part in parts([event("tools", delta), event("custom", 1), inner])] == [
        *("tools", "custom", "values")
    ]
    assert not parts([inner], subgraphs=False)
