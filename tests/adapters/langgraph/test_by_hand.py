"""The translator driven by hand, over the stream modes it asks for; and the package without its extra."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from langchain_core.messages import AIMessage

from runcast.adapters import RunIds, translate, translate_sync
from runcast.adapters.langgraph import CHECKPOINTS, STREAM_MODES, LangGraphTranslator
from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.fakes import calls, piece, say
from tests.adapters.langgraph.scenes.book import agent
from tests.adapters.langgraph.scenes.tools import chatty
from tests.adapters.langgraph.stage import types

HELLO = {"messages": [("user", "hi")]}
GIVEN: Any = {"stream_mode": [*STREAM_MODES, CHECKPOINTS], "subgraphs": True, "version": "v2"}
WHERE: Any = {"configurable": {"thread_id": "t"}}


async def test_the_graphs_own_stream_is_enough():
    graph = agent([calls(piece("chatty", "{}", "c1"))], say("do", "ne"), tools=[chatty])
    stream = graph.astream(HELLO, WHERE, **GIVEN)
    events = [event async for event in translate(stream, LangGraphTranslator(RunIds("t", "r")))]
    assert not verify(events)
    told = [event for event in events if event.type == "CUSTOM"]
    assert [(event.name, event.value["delta"]) for event in told] == [
        ("langgraph.tool-output-delta", {"at": at}) for at in range(3)
    ]
    assert "TOOL_CALL_RESULT" in types(events)
    assert events[-1].metadata["runcast"]["framework"]["checkpoint_id"]


def test_the_older_form_of_parts_is_understood():
    said = (AIMessage("whole", id="m1"), {"langgraph_checkpoint_ns": "n:1"})
    events = list(translate_sync([((), "messages", said)], LangGraphTranslator(RunIds("t", "r"))))
    assert "TEXT_MESSAGE_CONTENT" in types(events)


def test_a_missing_extra_is_one_clear_sentence():
    script = "import sys; sys.modules['langgraph'] = None; import runcast.adapters.langgraph"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert said.returncode != 0
    assert 'pip install "runcast[langgraph]"' in said.stderr
