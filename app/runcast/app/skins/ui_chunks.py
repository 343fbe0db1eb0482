"""AG-UI events as the AI SDK's UI message chunks: one assistant message for a run and all runs that resume it.

The chunks mirror what an AG-UI client shows. What a run takes back goes by `reset-step`, after which everything that
still stands is sent again. Pure; does not know HTTP, threads or how an event was stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import orjson
from ag_ui.core import (
    ActivityDeltaEvent,
    ActivityMessage,
    ActivitySnapshotEvent,
    AssistantMessage,
    CustomEvent,
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ResumeEntry,
    RunErrorEvent,
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
    ToolMessage,
)
from pydantic import BaseModel

from runcast.app.skins.approvals import answer_to
from runcast.slim import Conversation
from runcast.slim.folding.run_records import end_status
from runcast.slim.protocol.chunk_expander import ChunkExpander
from runcast.slim.wire.codec import AnyEvent

Chunk = dict[str, Any]
Kind = Literal["text", "reasoning", "tool", "result", "activity"]
Key = tuple[Kind, str]


@dataclass(slots=True)
class Part:
    """A part that was sent: a text, a call's arguments, or a result or an activity as JSON."""

    key: Key
    name: str = ""  # of a tool
    text: str = ""
    message: str = ""  # the message it stands in
    open: bool = False


class UiChunks:
    """Feed it the events of a run, from RUN_STARTED; it returns the chunks for each."""

    def __init__(self, message_id: str, conversation: Conversation | None = None) -> None:
        """`conversation` is the thread before the message's first run."""
        self.message_id = message_id
        self.conversation = Conversation() if conversation is None else conversation
        self.ended = False
        self._before = {part.key for part in parts_of(self.conversation.messages)}
        self._expander = ChunkExpander()
        self._sent: dict[Key, Part] = {}  # in the current step
        self._calls: set[str] = set()  # of the message
        self._client_tools: set[str] = set()
        self._asked: dict[str, Interrupt] = {}
        self._has_state = False
        self._started = False

    def feed(self, event: AnyEvent) -> list[Chunk]:
        """The chunks for the next event."""
        return [chunk for each in self._expander.feed(event) for chunk in self._one(each)]

    def _one(self, event: AnyEvent) -> Iterator[Chunk]:
        handler = self._handlers.get(type(event))
        if isinstance(event, RunStartedEvent) and event.input is not None:
            self._before |= {part.key for part in parts_of(event.input.messages)} - self._sent.keys()
            self._client_tools |= {each.name for each in event.input.tools or ()}
        self.conversation.feed(event)
        if handler is not None:
            yield from handler(self, event)

    def cut(self, reason: str) -> list[Chunk]:
        """The chunks for a run that was cut short: no terminal event will come."""
        return [*self._close(), *self._end({"type": "error", "errorText": reason}, "error")]

    # --------------------------------------------------------------- the run

    def _run_started(self, event: RunStartedEvent) -> Iterator[Chunk]:
        """Begin the message, or its next step: a run after an end adds, a run after a cut may take back."""
        if not self._started:
            yield {"type": "start", "messageId": self.message_id}
        elif self.ended:
            self._before |= self._sent.keys()
            self._sent = {}
        if self.ended or not self._started:
            yield {"type": "start-step"}
        self._started, self.ended = True, False
        for each in (event.input.resume if event.input is not None else None) or ():
            yield from self._answered(each)

    def _run_finished(self, event: RunFinishedEvent) -> Iterator[Chunk]:
        yield from self._close()
        for each in getattr(event.outcome, "interrupts", None) or ():
            yield from self._question(each)
        status = end_status(event)
        usage = [_plain(each) for each in event.usage or ()]
        metadata = {"runId": event.run_id, "status": status, **({"usage": usage} if usage else {})}
        if status == "cancelled":
            yield {"type": "abort", "reason": "the run was stopped"}
        yield from self._end(None, "tool-calls" if status == "interrupted" else "stop", metadata)

    def _run_error(self, event: RunErrorEvent) -> Iterator[Chunk]:
        yield from self._close()
        if event.code == "cancelled":
            yield from self._end({"type": "abort", "reason": event.message}, "stop")
        else:
            yield from self._end({"type": "error", "errorText": event.message}, "error")

    def _end(
        self, first: Chunk | None, reason: str, metadata: Mapping[str, Any] | None = None
    ) -> Iterator[Chunk]:
        self.ended = True
        if first is not None:
            yield first
        yield {"type": "finish-step"}
        yield {
            "type": "finish",
            "finishReason": reason,
            **({"messageMetadata": metadata} if metadata else {}),
        }

    def _question(self, asked: Interrupt) -> Iterator[Chunk]:
        """A question: its data, and an approval where it is about a shown call and yes or no answers it."""
        self._asked[asked.id] = asked
        if asked.tool_call_id in self._calls and answer_to(asked, True) is not None:
            yield {
                "type": "tool-approval-request",
                "approvalId": asked.id,
                "toolCallId": asked.tool_call_id,
            }
        yield {"type": "data-interrupt", "id": asked.id, "data": _plain(asked)}

    def _answered(self, answer: ResumeEntry) -> Iterator[Chunk]:
        asked = self._asked.pop(answer.interrupt_id, None)
        if asked is None:
            return
        yes = answer_to(asked, True)
        if asked.tool_call_id in self._calls and yes is not None:
            approved = answer.status == "resolved" and answer.payload == yes
            yield {"type": "tool-approval-response", "approvalId": asked.id, "approved": approved}
        data = {**_plain(asked), "answer": _plain(answer)}
        yield {"type": "data-interrupt", "id": asked.id, "data": data}

    # ------------------------------------------------------- texts and calls

    def _opened(self, event: TextMessageStartEvent | ReasoningMessageStartEvent) -> Iterator[Chunk]:
        if event.role in (None, "assistant", "reasoning"):
            yield from self._open((_kind(event), event.message_id))

    def _grew(self, event: TextMessageContentEvent | ReasoningMessageContentEvent) -> Iterator[Chunk]:
        yield from self._more((_kind(event), event.message_id), event.delta)

    def _closed(self, event: TextMessageEndEvent | ReasoningMessageEndEvent) -> Iterator[Chunk]:
        yield from self._finish((_kind(event), event.message_id))

    def _call_opened(self, event: ToolCallStartEvent) -> Iterator[Chunk]:
        yield from self._open(("tool", event.tool_call_id), event.tool_call_name)

    def _call_grew(self, event: ToolCallArgsEvent) -> Iterator[Chunk]:
        yield from self._more(("tool", event.tool_call_id), event.delta)

    def _call_closed(self, event: ToolCallEndEvent) -> Iterator[Chunk]:
        yield from self._finish(("tool", event.tool_call_id))

    def _call_returned(self, event: ToolCallResultEvent) -> Iterator[Chunk]:
        yield from self._returned(event.tool_call_id, _result(event.content, None))

    def _open(self, key: Key, name: str = "") -> Iterator[Chunk]:
        if key in self._before or key in self._sent:
            return
        self._sent[key] = Part(key, name, open=True)
        if key[0] == "tool":
            self._calls.add(key[1])
            yield {"type": "tool-input-start", "toolCallId": key[1], **self._tool(name)}
        else:
            yield {"type": f"{key[0]}-start", "id": key[1]}

    def _more(self, key: Key, delta: str) -> Iterator[Chunk]:
        part = self._sent.get(key)
        if part is None or not part.open or not delta:
            return
        part.text += delta
        if key[0] == "tool":
            yield {"type": "tool-input-delta", "toolCallId": key[1], "inputTextDelta": delta}
        else:
            yield {"type": f"{key[0]}-delta", "id": key[1], "delta": delta}

    def _finish(self, key: Key) -> Iterator[Chunk]:
        part = self._sent.get(key)
        if part is None or not part.open:
            return
        part.open = False
        if key[0] != "tool":
            yield {"type": f"{key[0]}-end", "id": key[1]}
            return
        call: Chunk = {"toolCallId": key[1], **self._tool(part.name)}
        try:
            given = orjson.loads(part.text or "{}")
        except orjson.JSONDecodeError as error:
            reason = f"the arguments are not JSON: {error}"
            yield {"type": "tool-input-error", **call, "input": part.text, "errorText": reason}
        else:
            yield {"type": "tool-input-available", **call, "input": given}

    def _returned(self, call: str, result: str) -> Iterator[Chunk]:
        known = self._sent.get(("result", call))
        if (known is not None and known.text == result) or call not in self._calls:
            return  # the client cannot show the result of a call that stands in an earlier message
        yield from self._finish(("tool", call))
        self._sent["result", call] = Part(("result", call), text=result)
        output, error = orjson.loads(result)
        if error is None:
            yield {"type": "tool-output-available", "toolCallId": call, "output": output}
        else:
            yield {"type": "tool-output-error", "toolCallId": call, "errorText": error}

    def _tool(self, name: str) -> Chunk:
        """What every chunk of a call's input says of its tool."""
        own = {} if name in self._client_tools else {"providerExecuted": True}
        return {"toolName": name, "dynamic": True, **own}

    def _close(self) -> Iterator[Chunk]:
        """End what is open: an ended run adds nothing to it."""
        for key, part in self._sent.items():
            if part.open:
                yield from self._finish(key)

    # ------------------------------------------------------------ other parts

    def _stated(self, event: StateSnapshotEvent | StateDeltaEvent) -> Iterator[Chunk]:
        self._has_state = True
        yield from self._state()

    def _state(self) -> Iterator[Chunk]:
        yield {"type": "data-state", "id": "state", "data": self.conversation.state}

    def _activity(self, event: ActivitySnapshotEvent | ActivityDeltaEvent) -> Iterator[Chunk]:
        found = next(each for each in reversed(self.conversation.history) if each.id == event.message_id)
        for part in parts_of([found]):
            yield from self._acted(part)

    def _acted(self, part: Part) -> Iterator[Chunk]:
        known = self._sent.get(part.key)
        if part.key not in self._before and (known is None or known.text != part.text):
            self._sent[part.key] = part
            yield {"type": "data-activity", "id": part.key[1], "data": orjson.loads(part.text)}

    def _custom(self, event: CustomEvent) -> Iterator[Chunk]:
        yield {"type": "data-custom", "data": {"name": event.name, "value": event.value}, "transient": True}

    def _step(self, event: StepStartedEvent | StepFinishedEvent) -> Iterator[Chunk]:
        status = "started" if isinstance(event, StepStartedEvent) else "finished"
        yield {"type": "data-step", "data": {"name": event.step_name, "status": status}, "transient": True}

    # -------------------------------------------------------------- snapshots

    def _replaced(self, event: MessagesSnapshotEvent) -> Iterator[Chunk]:
        """Send what the conversation has and the client lacks; take back first if the client holds something else."""
        wanted = [part for part in parts_of(self.conversation.messages) if part.key not in self._before]
        if not self._extends(wanted):
            self._sent = {}
            yield {"type": "reset-step"}
            if self._has_state:
                yield from self._state()
        for part in wanted:
            yield from self._whole(part)

    def _extends(self, wanted: list[Part]) -> bool:
        """Whether the client's parts come first among these, and say nothing else."""
        texts = {part.key: part.text for part in wanted}
        for key, part in self._sent.items():
            text = texts.get(key, "")
            if text != part.text and not (part.open and text.startswith(part.text)):
                return False
        held = [part.key in self._sent for part in wanted if part.key[0] != "result"]
        return held == sorted(held, reverse=True)

    def _whole(self, part: Part) -> Iterator[Chunk]:
        """What the client lacks of a part."""
        match part.key[0]:
            case "result":
                yield from self._returned(part.key[1], part.text)
            case "activity":
                yield from self._acted(part)
            case _:
                streaming = part.key in self._sent or part.message in self.conversation.half_said
                yield from self._open(part.key, part.name)
                yield from self._more(part.key, part.text[len(self._sent[part.key].text) :])
                if not streaming:
                    yield from self._finish(part.key)

    _handlers: ClassVar[Mapping[type, Callable[[Any, Any], Iterator[Chunk]]]] = {
        RunStartedEvent: _run_started,
        RunFinishedEvent: _run_finished,
        RunErrorEvent: _run_error,
        TextMessageStartEvent: _opened,
        TextMessageContentEvent: _grew,
        TextMessageEndEvent: _closed,
        ReasoningMessageStartEvent: _opened,
        ReasoningMessageContentEvent: _grew,
        ReasoningMessageEndEvent: _closed,
        ToolCallStartEvent: _call_opened,
        ToolCallArgsEvent: _call_grew,
        ToolCallEndEvent: _call_closed,
        ToolCallResultEvent: _call_returned,
        StateSnapshotEvent: _stated,
        StateDeltaEvent: _stated,
        ActivitySnapshotEvent: _activity,
        ActivityDeltaEvent: _activity,
        CustomEvent: _custom,
        StepStartedEvent: _step,
        StepFinishedEvent: _step,
        MessagesSnapshotEvent: _replaced,
    }


def parts_of(messages: Iterable[Message]) -> Iterator[Part]:
    """The parts of messages that the client shows as the assistant's."""
    for message in messages:
        match message:
            case ReasoningMessage():
                yield Part(("reasoning", message.id), "", message.content, message.id)
            case AssistantMessage():
                if message.content:
                    yield Part(("text", message.id), "", message.content, message.id)
                for call in message.tool_calls or ():
                    yield Part(("tool", call.id), call.function.name, call.function.arguments, message.id)
            case ToolMessage():
                yield Part(("result", message.tool_call_id), text=_result(message.content, message.error))
            case ActivityMessage():
                data = {"activityType": message.activity_type, "content": message.content}
                yield Part(("activity", message.id), text=orjson.dumps(data).decode())
            case _:
                pass


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _kind(event: Any) -> Kind:
    return "reasoning" if event.type.startswith("REASONING") else "text"


def _result(content: Any, error: str | None) -> str:
    """A tool's result as JSON: text that is a JSON object or list as that, content parts as plain values."""
    output = content
    if not isinstance(content, str):
        output = [_plain(each) for each in content]
    elif content.lstrip()[:1] in ("{", "["):
        with suppress(orjson.JSONDecodeError):
            output = orjson.loads(content)
    return orjson.dumps([output, error]).decode()
