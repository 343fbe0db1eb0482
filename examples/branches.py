"""A conversation kept in a log: closed, restored after a reload, continued, and branched from an earlier run.

Give it the URL of a store: `python branches.py sqlite:///trip.db`, `memory://`, `postgresql://user@host/name`.

Install: `pip install runcast`.

Look at: what run3 sees, which is run1 and nothing of run2.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

from ag_ui.core import (
    Event,
    Message,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    UserMessage,
)

from runcast.slim import RunLog, fold, open_store

THREAD = "trip"


def agent(run_id: str, history: list[Message], question: str, answer: str) -> Iterator[Event]:
    """Any agent: it is sent what was said so far and a question, and streams its answer."""
    asked = UserMessage(id=f"{run_id}-user", role="user", content=question)
    given = RunAgentInput(
        thread_id=THREAD,
        run_id=run_id,
        messages=[*history, asked],
        tools=[],
        context=[],
        state={},
        forwarded_props={},
    )
    yield RunStartedEvent(thread_id=THREAD, run_id=run_id, input=given)
    yield TextMessageStartEvent(message_id=f"{run_id}-answer", role="assistant")
    for word in answer.split(" "):
        yield TextMessageContentEvent(message_id=f"{run_id}-answer", delta=f"{word} ")
    yield TextMessageEndEvent(message_id=f"{run_id}-answer")
    yield RunFinishedEvent(thread_id=THREAD, run_id=run_id)


async def said(log: RunLog, run_id: str | None = None) -> list[Message]:
    """What a page shows after a reload: the stream that restores the run, folded."""
    return fold(await log.restore(THREAD, run_id)).messages


async def main(url: str) -> dict[str, list[str]]:
    """Three runs in two sessions; answers what each of them can see."""
    store = open_store(url)

    async with RunLog(store) as log:  # the session happens, and the process ends
        for event in agent("run1", [], "Capital of France?", "Paris it is"):
            await log.append(THREAD, event)

    async with RunLog(store) as log:  # the page is reloaded, and the conversation goes on
        first = await said(log)
        for event in agent("run2", first, "And of the UK?", "That is London"):
            await log.append(THREAD, event)

        await log.branch(THREAD, from_run="run1", run_id="run3")  # back to the first answer, and elsewhere
        for event in agent("run3", first, "And of Japan?", "That is Tokyo"):
            await log.append(THREAD, event)

        for run in await log.runs(THREAD):
            entries = run.last_seq - run.first_seq + 1
            print(f"{run.run_id}: {run.edge} of {run.parent}, {run.status}, {entries} entries")
        seen = {
            run_id: [str(message.content) for message in await said(log, run_id)]
            for run_id in ("run1", "run2", "run3")
        }

        asked = await log.input(
            THREAD, "run3"
        )  # exactly what the agent was sent, though stored without what was known
        assert asked is not None
        assert asked.messages[:-1] == first

    for run_id, contents in seen.items():
        print(f"{run_id} sees: {' / '.join(contents)}")
    return seen


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///trip.db"))
