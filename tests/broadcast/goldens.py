"""Golden transcripts: recorded runs of both frameworks, and the envelopes that a watcher gets of them.

`python -m tests.broadcast.goldens` writes them anew; look at the difference before keeping it. Knows where the
adapters' tests keep their recordings; does not know what is right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from ag_ui.core import Event, RunFinishedEvent, StepFinishedEvent

from runcast.broadcast import BroadcastConfig, Envelope, EnvelopeMapper
from runcast.slim import UnknownEvent, decode
from runcast.slim.entry import Entry
from tests.broadcast.entries import Thread

HERE = Path(__file__).parent / "goldens"
RECORDINGS = Path(__file__).parents[1] / "adapters"

_IDS = re.compile(r'"(message_id|tool_call_id|subagent_run_id|id)": "([^"]+)"')

# What case 37 wants to see, told by each framework that can tell it.
TRANSCRIPTS = {
    "langgraph-normal": "langgraph/recordings/13_text_tool_text",
    "langgraph-parallel_calls_of_one_tool": "langgraph/recordings/10_two_calls_in_one_chunk",
    "langgraph-tool_error": "langgraph/recordings/17_handled_tool_error",
    "langgraph-error": "langgraph/recordings/34_model_error_mid_text",
    "langgraph-retry": "langgraph/recordings/35_retry_after_partial_tokens",
    "langgraph-interrupt_and_resume": "langgraph/recordings/43_in_a_tool",
    "langgraph-cancelled_answer": "langgraph/recordings/44_cancelled",
    "langgraph-sub_agent": "langgraph/recordings/38_subagent_in_a_tool",
    "langgraph-custom": "langgraph/recordings/55_stream_writers_and_custom_events",
    "langgraph-activity": "langgraph/recordings/55_activity",
    "langgraph-reasoning": "langgraph/recordings/25_reasoning_then_call_then_reasoning",
    "adk-normal": "adk/recordings/16_a_call_stands_under_the_text_it_came_with-sse",
    "adk-parallel_calls_of_one_tool": "adk/recordings/17_parallel_calls_and_results_in_any_order",
    "adk-tool_error": "adk/recordings/21_an_unknown_tool_is_an_error_result",
    "adk-error": "adk/recordings/50_an_exception_in_mid_text_keeps_the_usage_so_far",
    "adk-interrupt_and_resume": "adk/recordings/26_a_long_running_call_is_an_interrupt",
    "adk-cancelled": "adk/recordings/52_a_stop_while_a_tool_runs_answers_its_call",
    "adk-sub_agent": "adk/recordings/40_every_round_of_a_loop_is_a_subagent_of_its_own-sse-plain",
    "adk-custom": "adk/recordings/43_artifacts_are_told_by_name_and_version",
    "adk-reasoning": "adk/recordings/10_thoughts_come_once_and_before_the_text",
}


def recorded() -> list[Path]:
    """Every recording's events, of every framework."""
    return sorted(RECORDINGS.glob("*/recordings/*.events"))


def events(path: Path) -> list[Event]:
    """What was recorded, read as from a wire; what a framework never sends is added to one of them below."""
    lines = path.read_text("utf-8").splitlines()
    return [decode(line.encode()) for line in lines]  # type: ignore[misc]  # recordings know only 1.0


def entries(path: Path) -> list[Entry]:
    """A recording as a log has it, with an event of nobody's protocol before its end."""
    thread = Thread()
    found: list[Entry] = []
    for event in events(path):
        if isinstance(event, RunFinishedEvent):
            stranger = thread.entry(StepFinishedEvent(step_name="none"))
            object.__setattr__(stranger, "event", UnknownEvent.model_validate({"type": "SHINY_NEW", "n": 1}))
            found.append(stranger)
        found.append(thread.entry(event))
    return found


def envelopes(path: Path, config: BroadcastConfig | None = None) -> list[Envelope]:
    mapper = EnvelopeMapper(config or BroadcastConfig.debug())
    return [envelope for entry in entries(path) for envelope in mapper.feed(entry)]


def transcript(name: str) -> str:
    """The envelopes of a recording, a line each."""
    return written(envelopes(RECORDINGS / f"{TRANSCRIPTS[name]}.events"))


def written(told: Sequence[Envelope]) -> str:
    """Envelopes as lines to compare; ids that a framework made up are counted in the order of their appearance."""
    text = "".join(f"{json.dumps(json.loads(each.encode()), ensure_ascii=False)}\n" for each in told)
    made_up: dict[str, str] = {}
    for key, value in _IDS.findall(text):
        made_up.setdefault(value, f"{key.removesuffix('_id')}-{len(made_up) + 1}")
    for value in sorted(made_up, key=len, reverse=True):
        text = text.replace(f'"{value}"', f'"{made_up[value]}"')
    return text


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for name in TRANSCRIPTS:
        (HERE / f"{name}.jsonl").write_text(transcript(name), "utf-8")
