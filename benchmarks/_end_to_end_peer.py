"""A program that runs a graph and shows it to sockets, in a process of its own: a `Cast`, or what one writes by hand.

Run as `python -m benchmarks._end_to_end_peer cast|bare STORE`; prints its port. On stdin: `run STEPS THREAD` runs the
graph once and answers with the moments at which its node finished, as JSON: nanoseconds of CLOCK_MONOTONIC, which is
one clock for all processes of a machine.

By hand means: `graph.astream`, and `websockets.broadcast` of what it gives, with no log, no redaction and no way back.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from contextlib import suppress
from typing import Any, Protocol, TypedDict

from ag_ui.core import RunAgentInput, UserMessage
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from websockets.asyncio.server import ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed

from benchmarks._hub_peer import LIMITS, envelope
from benchmarks._langgraph_load import CountingModel
from runcast.adapters.langgraph import LangGraphAdapter
from runcast.app import Cast
from runcast.app.serve import serving
from runcast.broadcast import Hub

TOKENS = 5
PAUSE = (
    0.01,
    0.04,
)  # seconds between two ends of the node: whatever is done every so often is met at any phase


class Rounds(TypedDict, total=False):
    round: int


def stamping(steps: int, ends: list[int]) -> Any:
    """A node that speaks a few tokens and notes when it is done, so many times over."""
    model, rng = CountingModel(count=TOKENS), random.Random(3)

    async def work(state: Rounds) -> Any:
        await asyncio.sleep(rng.uniform(*PAUSE))
        await model.ainvoke([HumanMessage("go on")])
        ends.append(time.monotonic_ns())
        return {"round": state.get("round", 0) + 1}

    builder = StateGraph(Rounds).add_node("work", work).add_edge(START, "work")
    builder.add_conditional_edges(
        "work", lambda state: "work" if state.get("round", 0) < steps else "__end__", ["work", "__end__"]
    )
    return builder.compile(checkpointer=InMemorySaver())


class Program(Protocol):
    """Runs a graph and shows it."""

    async def run(self, steps: int, thread: str, count: int = 1) -> list[int]:
        """Run so many graphs at once; returns the moments of the first one's node."""
        ...


class WithCast:
    """Everything a user gets: log, redaction, envelopes, replay, over uvicorn."""

    def __init__(self, store: str) -> None:
        hub = Hub("1001", "app-key", "app-secret", public=True, prefix="agent.", limits=LIMITS)
        self.cast = Cast.open(store, hub=hub)

    async def run(self, steps: int, thread: str, count: int = 1) -> list[int]:
        ends: list[int] = []
        adapter = LangGraphAdapter(stamping(steps, ends), config={"recursion_limit": steps + 10})
        said = RunAgentInput(
            thread_id=thread,
            run_id=f"run-{thread}",
            messages=[UserMessage(id="u", content="go")],
        )
        result = await (await self.cast.start(adapter, said)).result()
        if result.status != "completed":
            raise RuntimeError(f"the run ended as {result.status}: {result.error}")
        return ends

    async def serve(self) -> None:
        async with serving(self.cast, self.cast.asgi(authorize=lambda user, thread_id: True)) as url:
            print(url.rpartition(":")[2], flush=True)
            await obey(self)


class ByHand:
    """The shortest program that shows a graph's tokens and steps to whoever is connected."""

    def __init__(self, store: str) -> None:
        self.connections: set[ServerConnection] = set()

    async def run(self, steps: int, thread: str, count: int = 1) -> list[int]:
        ends: list[int] = []
        config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": steps + 10}
        parts = stamping(steps, ends).astream({"round": 0}, config, stream_mode=["messages", "updates"])
        async for mode, part in parts:
            kind = "agent.stream.chunk" if mode == "messages" else "agent.step.completed"
            text = part[0].content if mode == "messages" else str(part)
            said = {
                **envelope(200_000).to_dict(),
                "type": kind,
                "payload": {"chunk": text, "rest": "x" * 200},
            }
            broadcast(self.connections, json.dumps(said))
        return ends

    async def handle(self, websocket: ServerConnection) -> None:
        self.connections.add(websocket)
        with suppress(ConnectionClosed):
            async for _ in websocket:
                pass
        self.connections.discard(websocket)

    async def serve(self) -> None:
        async with serve(self.handle, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
            print(next(iter(server.sockets)).getsockname()[1], flush=True)
            await obey(self)


async def obey(program: Program) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    async for line in reader:
        match line.decode().split():
            case ["run", steps, thread, *more]:
                print(json.dumps(await program.run(int(steps), thread, *map(int, more))), flush=True)
            case _:
                return


if __name__ == "__main__":
    asyncio.run({"cast": WithCast, "bare": ByHand}[sys.argv[1]](sys.argv[2]).serve())
