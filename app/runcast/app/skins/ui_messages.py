"""The AI SDK's UI messages: what a client sends is read, and what a thread holds is written. Pure.

`reduce_chunks` does what the SDK does with a stream of chunks, so that a reload shows the same message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from ag_ui.core import (
    Interrupt,
    Message,
    ResumeEntry,
    RunStartedEvent,
    Tool,
    ToolMessage,
    UserMessage,
)

from runcast.app.errors import BadRequest
from runcast.app.skins.approvals import answer_to
from runcast.app.skins.ui_chunks import Chunk, UiChunks
from runcast.slim.values.type_guards import as_list, as_mapping

UiMessage = dict[str, Any]
ANSWERED = ("output-available", "output-error", "output-denied")


@dataclass(frozen=True, slots=True)
class Request:
    """What `useChat` posts: the chat's id and the messages it shows."""

    chat: str
    messages: Sequence[Mapping[str, Any]]
    answers: Mapping[str, Any]  # by interrupt, for questions that no approval answers
    tools: Sequence[Tool] = ()  # that the client runs itself

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Request:
        """Read a body. Raises `BadRequest`."""
        chat, given = body.get("id"), as_list(body.get("messages"))
        if not isinstance(chat, str) or not given:
            raise BadRequest("send `id` and `messages`, as useChat does")
        messages = [as_mapping(each) for each in given]
        if messages[-1].get("role") not in ("user", "assistant"):
            raise BadRequest("the last message must be the user's, or an assistant's that was answered")
        return cls(chat, messages, as_mapping(body.get("answers")), _tools(as_mapping(body.get("tools"))))

    @property
    def last(self) -> Mapping[str, Any]:
        """The newest message."""
        return self.messages[-1]

    @property
    def answers_questions(self) -> bool:
        """Whether the assistant's last message was answered, rather than followed by a new one."""
        return self.last.get("role") == "assistant"

    @property
    def shown(self) -> list[str]:
        """The ids of the assistant's messages that the client shows before a new one, oldest first."""
        return [str(each.get("id")) for each in self.messages if each.get("role") == "assistant"]

    def said(self) -> UserMessage:
        """The user's message."""
        parts = [as_mapping(each) for each in as_list(self.last.get("parts")) or ()]
        texts = [str(each.get("text", "")) for each in parts if each.get("type") == "text"]
        files = [_file(each) for each in parts if each.get("type") == "file"]
        if not files and not any(texts):
            raise BadRequest("the message has neither text nor a file")
        content: Any = "\n\n".join(texts)
        if files:
            content = [*({"type": "text", "text": text} for text in texts if text), *files]
        return UserMessage.model_validate(
            {"id": str(self.last.get("id") or ""), "role": "user", "content": content}
        )

    def resumed(self, asked: Sequence[Interrupt]) -> list[ResumeEntry]:
        """The answers to the open questions: by approval, or by name in `answers`."""
        approvals = {str(each.get("id")): each for each in map(_approval, self._calls())}
        entries: list[ResumeEntry] = []
        for each in asked:
            approval = approvals.get(each.id, {})
            payload = self.answers.get(each.id)
            if payload is None and isinstance(approval.get("approved"), bool):
                payload = answer_to(each, approval["approved"], approval.get("reason"))
            if payload is not None:
                entries.append(ResumeEntry(interrupt_id=each.id, status="resolved", payload=payload))
        return entries

    def results(self, pending: Iterable[str]) -> list[Message]:
        """The results of pending calls that the client ran."""
        found = {str(each.get("toolCallId")): each for each in self._calls()}
        calls = [(key, found[key]) for key in pending if found.get(key, {}).get("state") in ANSWERED]
        return [
            ToolMessage(
                id=f"{key}-result", tool_call_id=key, content=_text(call), error=call.get("errorText")
            )
            for key, call in calls
        ]

    def _calls(self) -> list[Mapping[str, Any]]:
        parts = [as_mapping(each) for each in as_list(self.last.get("parts")) or ()]
        return [each for each in parts if isinstance(each.get("toolCallId"), str)]


def _tools(given: Mapping[str, Any]) -> list[Tool]:
    """The tools of the client by name, as assistant-ui writes them: a description, and the schema of the parameters."""
    found = [(name, as_mapping(each)) for name, each in given.items()]
    return [
        Tool(
            name=name,
            description=str(each.get("description") or ""),
            parameters=dict(as_mapping(each.get("parameters"))),
        )
        for name, each in found
    ]


def _approval(call: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_mapping(call.get("approval"))


def _text(call: Mapping[str, Any]) -> str:
    output = call.get("output", call.get("errorText", ""))
    return output if isinstance(output, str) else orjson.dumps(output).decode()


def _file(part: Mapping[str, Any]) -> dict[str, Any]:
    """A file as AG-UI's content part, by its media type."""
    kind, url = str(part.get("mediaType") or ""), str(part.get("url") or "")
    family = kind.partition("/")[0]
    source: dict[str, Any] = {"type": "url", "value": url, "mimeType": kind}
    if url.startswith("data:"):
        head, _, data = url.partition(",")
        if not head.endswith(";base64"):
            raise BadRequest("send a file's data as base64")
        source = {"type": "data", "value": data, "mimeType": kind}
    return {"type": family if family in ("image", "audio", "video") else "document", "source": source}


def _file_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """AG-UI's content part as the SDK's."""
    if part.get("type") == "text":
        return {"type": "text", "text": part.get("text", "")}
    source = as_mapping(part.get("source"))
    kind = str(source.get("mimeType") or "application/octet-stream")
    value = str(source.get("value") or "")
    url = f"data:{kind};base64,{value}" if source.get("type") == "data" else value
    return {"type": "file", "mediaType": kind, "url": url}


def user_message(message: UserMessage) -> UiMessage:
    """A user's message as the SDK holds it."""
    if isinstance(message.content, str):
        parts: list[dict[str, Any]] = [{"type": "text", "text": message.content}]
    else:
        wire = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in message.content]
        parts = [_file_part(each) for each in wire]
    return {"id": message.id, "role": "user", "parts": parts}


# ------------------------------------------------------------------- reading


ENDINGS = ("finish", "finish-step", "error", "abort")  # of an earlier run, they would end a replay


class Replay:
    """A thread's events as UI messages: those before the newest of the assistant's, and that one's chunks."""

    def __init__(self) -> None:
        self.before: list[UiMessage] = []
        self.chunks: list[Chunk] = []  # of the newest message
        self.continues = False  # whether the newest run goes on with the message of the run before
        self.last_runs: dict[str, str] = {}  # the newest run of each assistant's message
        self._mapper = UiChunks("")

    def feed(self, event: Any) -> list[Chunk]:
        """The chunks for the next event."""
        if isinstance(event, RunStartedEvent):
            self._begin(event)
        found = self._mapper.feed(event)
        self.chunks += found
        return found

    def cut(self, reason: str) -> list[Chunk]:
        """The chunks for a run that was cut short."""
        return self._mapper.cut(reason)

    @property
    def ended(self) -> bool:
        """Whether the newest run has ended."""
        return self._mapper.ended

    @property
    def message_id(self) -> str:
        """The newest message's id: that of the first run it comes from."""
        return self._mapper.message_id

    @property
    def messages(self) -> list[UiMessage]:
        """All messages."""
        return [*self.before, *self._newest()]

    def _begin(self, event: RunStartedEvent) -> None:
        known = {each.id for each in self._mapper.conversation.messages}
        given = () if event.input is None else event.input.messages
        news = [each for each in given if isinstance(each, UserMessage) and each.id not in known]
        self.continues = not news and bool(self.last_runs)
        if self.continues:
            self.chunks = [each for each in self.chunks if each["type"] not in ENDINGS]
        else:
            self.before += [*self._newest(), *map(user_message, news)]
            self.chunks = []
            self._mapper = UiChunks(event.run_id, self._mapper.conversation)
        self.last_runs[self.message_id] = event.run_id

    def _newest(self) -> list[UiMessage]:
        parts = reduce_chunks(self.chunks)
        return [{"id": self.message_id, "role": "assistant", "parts": parts}] if len(parts) > 1 else []


def reduce_chunks(chunks: Iterable[Chunk]) -> list[dict[str, Any]]:
    """The parts of the message that a stream of chunks makes."""
    parts: list[dict[str, Any]] = []
    streams: dict[str, dict[str, Any]] = {}
    for chunk in chunks:
        kind = str(chunk["type"])
        match kind.partition("-"):
            case ("start", _, "step"):
                parts.append({"type": "step-start"})
            case ("reset", _, _):
                del parts[_step(parts) :]
                streams = {key: part for key, part in streams.items() if any(part is each for each in parts)}
            case (("text" | "reasoning") as family, _, "start"):
                opened: dict[str, Any] = {"type": family, "text": "", "state": "streaming"}
                streams[family + chunk["id"]] = opened
                parts.append(opened)
            case (("text" | "reasoning") as family, _, "delta"):
                streams[family + chunk["id"]]["text"] += chunk["delta"]
            case (("text" | "reasoning") as family, _, "end"):
                streams[family + chunk["id"]]["state"] = "done"
            case ("tool", _, "approval-response"):
                asked: dict[str, Any] = {"id": chunk["approvalId"]}
                for part in (each for each in parts if each.get("approval") == asked):
                    answer: dict[str, Any] = {**asked, "approved": chunk["approved"]}
                    part.update({"state": "approval-responded", "approval": answer})
            case ("tool", _, _):
                _reduce_tool(parts, streams, chunk)
            case ("data", _, _) if not chunk.get("transient"):
                same = [each for each in parts if (each["type"], each.get("id")) == (kind, chunk["id"])]
                if same:
                    same[0]["data"] = chunk["data"]
                else:
                    parts.append({"type": kind, "id": chunk["id"], "data": chunk["data"]})
            case _:
                pass
    return parts


def _step(parts: Sequence[Mapping[str, Any]]) -> int:
    """Where the current step's parts begin."""
    return max((n for n, each in enumerate(parts, 1) if each["type"] == "step-start"), default=0)


def _reduce_tool(parts: list[dict[str, Any]], streams: dict[str, dict[str, Any]], chunk: Chunk) -> None:
    key = "tool" + chunk["toolCallId"]
    part = streams.get(key)
    match chunk["type"]:
        case "tool-input-start":
            part = {"type": "dynamic-tool", "toolCallId": chunk["toolCallId"], "toolName": chunk["toolName"]}
            part |= {"state": "input-streaming"}
            part |= {"providerExecuted": True} if chunk.get("providerExecuted") else {}
            streams[key] = part
            parts.append(part)
        case "tool-input-available" if part is not None:
            part |= {"state": "input-available", "input": chunk["input"]}
        case "tool-input-error" | "tool-output-error" if part is not None:
            part |= {"state": "output-error", "errorText": chunk["errorText"]}
            part |= {"input": chunk["input"]} if "input" in chunk else {}
        case "tool-output-available" if part is not None:
            part.pop("errorText", None)
            part |= {"state": "output-available", "output": chunk["output"]}
        case "tool-approval-request" if part is not None:
            part |= {"state": "approval-requested", "approval": {"id": chunk["approvalId"]}}
        case _:
            pass
