"""LangGraph's two streams behind one adapter: which is read, and what each costs the graph."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import RunAgentInput, UserMessage
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.stream import StreamTransformer

from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.adapters.langgraph.graph_stream import GraphStream
from runcast.adapters.langgraph.options import Stream
from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.fakes import FakeModel, StreamingModel, say
from tests.adapters.langgraph.scenes.book import chat
from tests.adapters.langgraph.stage import Stage, over_both_streams


def deltas(events: list[Any]) -> list[str]:
    return [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"]


def opened(graph: Any, stream: Stream = "auto", *, local: bool = True) -> GraphStream:
    return GraphStream(graph, LangGraphOptions(stream=stream), stores=True, local=local)


class Later:
    """A graph of a LangGraph that yields no parts any more."""

    stream_transformers = ()

    def astream(self, input: Any, config: Any) -> Any: ...


def test_parts_are_read_where_there_are_any():
    graph = chat(say("hi"))
    assert opened(graph).version == "v2"
    assert opened(graph, "v3").version == "v3"
    assert opened(Later()).version == "v3"
    assert opened(object(), local=False).version == "v2"


def test_a_graph_without_events_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match='leave LangGraphOptions\\(stream="auto"\\)'):
        opened(object(), "v3", local=False)


@over_both_streams
async def test_why_parts_are_the_default(stream: Stream):
    """Reading events changes what the graph's nodes receive and what its state keeps."""
    stage = Stage(stream=stream).play(chat(say("Hel", "lo")))
    assert deltas(await stage.send("hi")) == ["Hel", "lo"]
    state = await stage.graph.aget_state({"configurable": {"thread_id": "t"}})
    blocks = [{"type": "text", "text": "Hello", "index": 0}]
    assert state.values["messages"][-1].content == ("Hello" if stream == "v2" else blocks)


def streaming_itself(model: Any) -> Any:
    """A node that reads its model's stream, as many do to cut it or count it."""

    async def answer(state: MessagesState) -> Any:
        async for _ in model.astream(state["messages"]):
            pass
        return {"messages": [AIMessage("in the state", id="s1")]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    return builder.compile(checkpointer=InMemorySaver())


@over_both_streams
@pytest.mark.parametrize("words", [["one"], ["one ", "two"], ["one ", "two ", "three"]])
async def test_a_model_that_a_node_streams_itself_is_shown_by_token(stream: Stream, words: list[str]):
    events = await Stage(stream=stream).play(streaming_itself(StreamingModel(turns=[say(*words)]))).send("hi")
    assert deltas(events) == [*words, "in the state"]


@over_both_streams
async def test_half_an_answer_of_such_a_model_is_shown_before_the_error(stream: Stream):
    broken = [AIMessageChunk(content="half"), ConnectionError("gone")]
    events = await Stage(stream=stream).play(streaming_itself(StreamingModel(turns=[broken]))).send("hi")
    assert deltas(events) == ["half"]
    assert events[-1].type == "RUN_ERROR"


@over_both_streams
async def test_a_silent_model_stays_silent(stream: Stream):
    model = StreamingModel(turns=[say("not ", "for clients")]).with_config(tags=["nostream"])
    events = await Stage(stream=stream).play(streaming_itself(model)).send("hi")
    assert deltas(events) == ["in the state"]


class Reporting(FakeModel):
    """Reports its tokens to LangChain itself, before it yields them, as langchain-openai does."""

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for message in self._next(messages):
            chunk = ChatGenerationChunk(message=message.model_copy())
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


@pytest.mark.parametrize("words", [["one"], ["one ", "two"], ["one ", "two ", "three"]])
async def test_no_token_is_shown_twice(words: list[str]):
    async def answer(state: MessagesState) -> Any:
        return {"messages": [await Reporting(turns=[say(*words)]).ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    events = await Stage(stream="v3").play(builder.compile(checkpointer=InMemorySaver())).send("hi")
    assert deltas(events) == words


@over_both_streams
def test_a_synchronous_run(stream: Stream):
    def answer(state: MessagesState) -> Any:
        return {"messages": [StreamingModel(turns=[say("Hel", "lo")]).invoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    adapter = LangGraphAdapter(
        builder.compile(checkpointer=InMemorySaver()), options=LangGraphOptions(stream=stream)
    )
    asked = RunAgentInput(thread_id="t", run_id="r", messages=[UserMessage(id="u", content="hi")])
    events = list(adapter.run_sync(asked))
    assert not verify(events)
    assert deltas(events) == ["Hel", "lo"]
    assert adapter.stats()["active"] == 0


class Breaking(StreamTransformer):
    """A transformer of the application's own that leaves an event nobody can read."""

    def init(self) -> dict[str, Any]:
        return {}

    def process(self, event: Any) -> bool:
        if event["method"] == "messages":
            event["params"]["data"] = None
        return True


async def test_an_event_that_cannot_be_read_is_reported_and_the_run_goes_on():
    graph = chat(say("lost"))
    graph.stream_transformers = (Breaking,)
    events = await Stage(stream="v3").play(graph).send("hi")
    assert "runcast.untranslated" in [event.name for event in events if event.type == "CUSTOM"]
    assert deltas(events) == ["lost"]  # the state has it
    assert events[-1].outcome.type == "success"
