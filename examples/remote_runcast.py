"""One runcast casts an agent of another: a page in front, the agent behind, each with a log of its own.

    uvicorn remote_runcast:app --port 9000
    runcast attach "http://localhost:9000/agents/parrot?token=…"     # with the token that the first one logs

Install: `pip install "runcast[remote,cli]"`.

Look at: stop the front in the middle of an answer. The agent's own host finishes it; the front can ask again.
"""

from collections.abc import AsyncIterator

from ag_ui.core import Event, RunAgentInput, TextMessageChunkEvent

from runcast.app import Cast


async def parrot(input: RunAgentInput) -> AsyncIterator[Event]:
    said = input.messages[-1].content
    yield TextMessageChunkEvent(message_id=f"m-{input.run_id}", role="assistant", delta=f"You said: {said}")


cast = Cast.open("memory://", agents=[parrot])
app = cast.asgi()


if __name__ == "__main__":
    print("Start it with: uvicorn remote_runcast:app --port 9000")
