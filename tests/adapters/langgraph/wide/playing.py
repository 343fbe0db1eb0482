"""Plays a wide scene: after each turn the client shows what the graph holds; torn at an event, it ends the same."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from runcast.adapters.langgraph.intake.messages import to_agui
from runcast.adapters.langgraph.options import Stream
from tests.adapters.langgraph.stage import dumped, said
from tests.adapters.langgraph.wide.book import SCENES, SECRET, WideStage
from tests.e2e.oracle import Oracle


def opened(name: str, stream: Stream, oracle: Oracle) -> WideStage:
    """A fresh stage of this scene."""
    scene = SCENES[name]
    stage = WideStage(oracle, stream=stream)
    stage.in_order, stage.decision = scene.ordered, scene.decision
    stage.play(scene.make(), options=scene.options)
    return stage


async def right(stage: WideStage, oracle: Oracle) -> None:
    """Fail unless the last run is valid for both clients, reveals nothing, and the client shows what the graph holds."""
    stage.judge(oracle)
    run = stage.runs[-1]
    assert run[-1].type == "RUN_FINISHED", run[-1]
    assert SECRET not in str([event.model_dump() for event in run])
    held = await state(stage)
    if held is None:
        return  # a graph without a conversation
    if stage.interrupts:
        shows_all_but_the_step_that_asks(stage, held)
    else:
        await stage.holds()
        assert unanswered(stage.view["messages"], {each.id for each in held}) == []


async def state(stage: WideStage) -> list[Any] | None:
    """The messages of the graph's state."""
    found = (await stage.graph.aget_state({"configurable": {"thread_id": stage.thread}})).values
    return found.get("messages") if isinstance(found, dict) else None


def shows_all_but_the_step_that_asks(stage: WideStage, held: Sequence[Any]) -> None:
    """While a question waits, its step is not stored: the client shows what it said so far."""
    ids = {each.id for each in held}
    theirs = [each for each in said(stage.view["messages"], held=ids) if each[0] in ids]
    assert theirs == [each for each in said(dumped(to_agui(held))) if each in theirs]
    spoken = {each["id"] for each in stage.view["messages"]}
    asked = [each for each in held if each.type != "system"]
    assert [each.id for each in asked[:-1] if each.id not in spoken] == []


def unanswered(messages: Sequence[Any], held: Collection[str]) -> list[str]:
    """Calls of subagents that a finished run leaves without a result, and that the graph does not hold."""
    done = {each.get("toolCallId") for each in messages if each["role"] == "tool"}
    made = [
        call
        for each in messages
        if each.get("subagentRunId") and each["id"] not in held
        for call in each.get("toolCalls") or ()
    ]
    return [each["id"] for each in made if each["id"] not in done]


async def outcome(stage: WideStage, *, ordered: bool) -> Any:
    """Role, text and calls of the graph's messages: ids are new in a run that goes on."""
    found = said(dumped(to_agui(await state(stage) or [])))
    shown = [(role, text, [call[1:] for call in calls]) for _, role, text, calls, _ in found]
    return shown if ordered else sorted(shown, key=str)
