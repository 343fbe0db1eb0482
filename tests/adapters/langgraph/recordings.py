"""Recordings: the native parts of a scene's runs as JSON lines, and the events they must become.

`python -m tests.adapters.langgraph.recordings` plays every scene and writes both anew; look at the difference
before keeping it. Knows how to write down what a LangGraph part holds; checkpoints are kept without their values,
which nobody reads.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import langchain_core.messages as langchain_messages
from ag_ui.core import RunAgentInput
from langchain_core.messages import BaseMessage
from langgraph.types import Interrupt

from runcast.adapters.langgraph import LangGraphOptions, LangGraphTranslator, to_agui
from runcast.adapters.langgraph.content.plain_values import plain
from runcast.adapters.langgraph.stream.graph_state import as_state
from runcast.adapters.langgraph.stream.parts import Aside
from runcast.adapters.run_frame import RunIds
from tests.adapters.recording_contract import Recording

HERE = Path(__file__).parent / "recordings"
OPTIONS: Mapping[str, LangGraphOptions] = {
    "38_subagents_inline": LangGraphOptions(subagents="inline"),
    "38_subagents_hidden": LangGraphOptions(subagents="hidden"),
    "66_a_summariser_that_does_not_stream": LangGraphOptions(internal_calls="activity"),
    "68_a_question_before_the_redaction": LangGraphOptions(hold_text_of={"boss/model"}),
    "68_a_question_let_go_before_the_redaction": LangGraphOptions(hold_text_of={"boss/model"}),
    "68_a_refused_call_waits_with_its_message": LangGraphOptions(hold_text_of={"boss/model"}),
    "68_an_agent_in_a_tool_redacts": LangGraphOptions(hold_text_of={"inner/model"}),
    "68_an_agent_inside_redacts": LangGraphOptions(hold_text_of={"inner/model"}),
    "68_no_raw_address_streams": LangGraphOptions(hold_text_of={"model"}),
    "68_whole_answers_are_redacted_too": LangGraphOptions(hold_text_of={"model"}),
}


def freeze(value: Any) -> Any:
    """A part's data as JSON that `thaw` can read."""
    if isinstance(value, BaseMessage):
        held = value.model_dump(exclude_defaults=True)
        return {"$": type(value).__name__, "fields": {key: freeze(each) for key, each in held.items()}}
    if isinstance(value, Interrupt):
        fields = {"value": value.value, "id": value.id, "response_schema": value.response_schema}
        return {"$": "Interrupt", "fields": {key: freeze(each) for key, each in fields.items()}}
    if isinstance(value, Aside):
        return {"$": "Aside", "type": value.type, "data": freeze(value.data)}
    if isinstance(value, BaseException):
        return {"$": "error", "name": type(value).__name__, "text": str(value)}
    if isinstance(value, tuple):
        return {"$": "tuple", "items": [freeze(each) for each in value]}
    state = as_state(value)
    if state is not None:
        return {str(key): freeze(each) for key, each in state.items()}
    if isinstance(value, list):
        return [freeze(each) for each in value]
    return plain(value)


def thaw(value: Any) -> Any:
    """What `freeze` wrote down."""
    if isinstance(value, list):
        return [thaw(each) for each in value]
    if not isinstance(value, dict):
        return value
    match value.get("$"):
        case None:
            return {key: thaw(each) for key, each in value.items()}
        case "tuple":
            return tuple(thaw(each) for each in value["items"])
        case "Aside":
            return Aside(value["type"], thaw(value["data"]))
        case "Interrupt":
            return Interrupt(**thaw(value["fields"]))
        case "error":
            return type(value["name"], (Exception,), {})(value["text"])
        case kind:
            return getattr(langchain_messages, kind)(**thaw(value["fields"]))


def trimmed(part: Any) -> Mapping[str, Any]:
    """A part by its names, without what nobody reads."""
    if isinstance(part, tuple):
        ns, mode, data = part
        part = {"type": mode, "ns": ns, "data": data}
    if part["type"] != "checkpoints":
        return part
    data = part["data"]
    return {**part, "data": {key: data[key] for key in ("config", "metadata", "next")}}


class Recorded(Recording):
    """A scene's runs: for each the input echo, what the translator was told, the parts, and the events."""

    def __init__(self, name: str, runs: Sequence[dict[str, Any]]) -> None:
        self.name = name
        self.runs = runs

    def parts(self, run: int) -> list[Any]:
        return [thaw(part) for part in self.runs[run]["parts"]]

    def translator(self, run: int) -> LangGraphTranslator:
        """A fresh translator for this run, with a clock that counts."""
        told = self.runs[run]["told"]
        ticks = iter(range(1, 1_000_000))
        return LangGraphTranslator(
            RunIds("t", f"r{run + 1}"),
            input=RunAgentInput.model_validate(told["input"]) if told["input"] else None,
            options=OPTIONS.get(self.name),
            state_keys=told.get("state_keys"),
            known=told["known"],
            aliases=told["aliases"],
            held=told.get("held", ()),
            to_messages=to_agui,
            clock=lambda: next(ticks),
            shown=[] if "shown" in told else None,
        )

    def error(self, run: int) -> BaseException | None:
        held = self.runs[run]["error"]
        return None if held is None else thaw(held)  # type: ignore[no-any-return]  # an exception


def load(path: Path) -> Recorded:
    return Recorded(path.stem, [json.loads(line) for line in path.read_text().splitlines()])


def recordings() -> list[Path]:
    return sorted(HERE.glob("*.jsonl"))


async def record(name: str, oracle: Any) -> None:
    """Play a scene and keep its parts."""
    from tests.adapters.langgraph.scenes import SCENES
    from tests.adapters.langgraph.stage import Stage

    stage = Stage(oracle)
    await SCENES[name](stage)
    lines = [json.dumps(run) for run in stage.tape() if run["parts"] or run["error"]]
    path = HERE / f"{name}.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    load(path).keep(path)


async def main(names: Sequence[str]) -> None:
    from tests.adapters.langgraph.scenes import SCENES
    from tests.e2e.oracle import Oracle

    HERE.mkdir(exist_ok=True)
    with Oracle() as oracle:
        for name in names or sorted(SCENES):
            await record(name, oracle)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
