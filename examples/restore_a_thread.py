"""A conversation is streamed, kept, closed, and brought back small; then it branches from an earlier run.

Writes three runs as a producer streams them, token by token, to a JSON Lines file, reads them back as after a
reload, checks them, and restores the branch alone. Prints what each way of keeping them weighs.

Install: `pip install runcast`.

Look at: the table, and the restored conversation, which has nothing of the sibling branch.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ag_ui.core import (
    Event,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserMessage,
)

from runcast.slim import checkpoint, compact, decode, encode, fold, verify

THREAD = "trip"
SIGHTS = {
    "Paris": "The Louvre opens at nine; the queue at the pyramid is shortest from the Carrousel entrance. "
    "Walk on through the Tuileries, cross to the Musée d'Orsay, and keep the evening for the river.",
    "London": "Take the Thames Clipper from Westminster to Greenwich, climb to the Observatory for noon, "
    "and come back through Borough Market before it closes at five.",
    "Tokyo": "Start at Tsukiji while the stalls are steaming, ride the Yurikamome across the bay, "
    "and be on the Shibuya crossing when the lights come on.",
}


def tokens(text: str) -> list[str]:
    """Text as a model streams it: a word at a time."""
    return [word + " " for word in text.split(" ")]


def run(city: str, run_id: str, question: str) -> Iterator[Event]:
    """One run of an agent that thinks, searches, answers and keeps a plan in its state."""
    asked = UserMessage(id=f"{run_id}-user", role="user", content=question)
    call, answer, thought = f"{run_id}-call", f"{run_id}-answer", f"{run_id}-thought"
    yield RunStartedEvent(
        thread_id=THREAD,
        run_id=run_id,
        input=RunAgentInput(
            thread_id=THREAD,
            run_id=run_id,
            messages=[asked],
            tools=[],
            context=[],
            state={},
            forwarded_props={},
        ),
    )
    yield StateSnapshotEvent(snapshot={"city": city, "stops": [], "done": False})
    yield StepStartedEvent(step_name="research")
    yield ReasoningStartEvent(message_id=thought)
    yield ReasoningMessageStartEvent(message_id=thought, role="reasoning")
    for token in tokens(f"They ask about {city}. I should look up what is open before I plan the day."):
        yield ReasoningMessageContentEvent(message_id=thought, delta=token)
    yield ReasoningMessageEndEvent(message_id=thought)
    yield ReasoningEndEvent(message_id=thought)
    yield ToolCallStartEvent(tool_call_id=call, tool_call_name="search")
    for piece in ('{"q', 'uery": "', f"{city} ", "one ", 'day"', ', "max": 5}'):
        yield ToolCallArgsEvent(tool_call_id=call, delta=piece)
    yield ToolCallEndEvent(tool_call_id=call)
    found = [{"title": f"{city}, sight {n}", "text": SIGHTS[city]} for n in range(5)]
    yield ToolCallResultEvent(
        message_id=f"{run_id}-result",
        tool_call_id=call,
        role="tool",
        content=json.dumps(found, ensure_ascii=False),
    )
    yield StepFinishedEvent(step_name="research")
    yield StepStartedEvent(step_name="answer")
    yield TextMessageStartEvent(message_id=answer, role="assistant")
    for number, token in enumerate(tokens(SIGHTS[city])):
        yield TextMessageContentEvent(message_id=answer, delta=token)
        if number % 8 == 7:
            yield StateDeltaEvent(delta=[{"op": "add", "path": "/stops/-", "value": token.strip(" ,.;")}])
    yield TextMessageEndEvent(message_id=answer)
    yield StateDeltaEvent(delta=[{"op": "replace", "path": "/done", "value": True}])
    yield StepFinishedEvent(step_name="answer")
    yield RunFinishedEvent(thread_id=THREAD, run_id=run_id)


def weigh(name: str, events: list[Event], whole: int) -> int:
    size = sum(len(encode(event)) + 1 for event in events)
    print(f"  {name:<44}{len(events):>7,}{size:>10,}{size / (whole or size):>8.1%}")
    return size


def main() -> None:
    runs = {
        "r1": list(run("Paris", "r1", "One day in Paris: what should I see?")),
        "r2": list(run("Tokyo", "r2", "And if I went to Tokyo instead?")),
        "r3": list(run("London", "r3", "Sorry, I meant London.")),
    }
    # r2 goes on from r1. r3 goes on from r1 too: it branches, and must not see r2.
    branch = ["r1", "r3"]

    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "trip.jsonl"
        kept.write_bytes(b"".join(encode(event) + b"\n" for events in runs.values() for event in events))
        print(
            f"kept: three runs in {kept.stat().st_size:,} bytes of JSON Lines; the program ends, and starts again\n"
        )
        lines = kept.read_bytes().splitlines()

    events = [decode(line) for line in lines]
    assert events == [event for each in runs.values() for event in each]
    assert verify(events, "strict") == []

    history = [event for name in branch for event in runs[name]]
    small, smallest = compact(history), checkpoint(history)
    print(f"  {'the branch r1, r3':<44}{'events':>7}{'bytes':>10}{'':>8}")
    whole = weigh("as it was streamed", history, 0)
    weigh("compact: applies to any client", small, whole)
    weigh("checkpoint: for a client that holds nothing", smallest, whole)

    restored, streamed = fold(smallest), fold(history)
    assert restored.messages == fold(small).messages == streamed.messages
    assert restored.state == streamed.state
    print("\nrestored from the checkpoint, equal to what was streamed:\n")
    for message in restored.messages:
        said = message.content if isinstance(message.content, str) else ""
        print(f"  {message.role:>9}  {(said or '(calls a tool)')[:86]}")
    print(f"      state  {json.dumps(restored.state, ensure_ascii=False)[:86]}")
    assert not any("Tokyo" in str(message) for message in restored.messages)
    print("\nnothing of the sibling r2 leaked in")


if __name__ == "__main__":
    main()
