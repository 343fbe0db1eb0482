"""The answers of an input to the questions of its session, as parts for the runner.

A question is answered by a `resume` entry, or by a tool message with the call's result; the message holds more. Raises
`InvalidInput` for an answer that fits no question. Does not know which messages are new, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ag_ui.core import Interrupt, ResumeEntry, ToolMessage

from runcast.adapters.adk.intake.messages import tool_part
from runcast.adapters.adk.interrupts import expired, names, response
from runcast.adapters.adk.stream.complete_event import CREDENTIAL, HIDDEN, Answer, parts_of, result_text
from runcast.adapters.adk.stream.distinct_calls import DistinctCalls
from runcast.adapters.errors import InvalidInput

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types


def _no_parts() -> list[types.Part]:
    return []


@dataclass(slots=True)
class Answers:
    """What an input answers."""

    replies: list[types.Part] = field(default_factory=_no_parts)
    mark: dict[str, Any] = field(default_factory=dict[str, Any])
    """The client's ids of the tool messages, stored with the event."""
    unseen: list[Answer] = field(default_factory=list[Answer])
    """Results that the client does not hold as messages."""
    logins: set[str] = field(default_factory=set[str])
    """Questions with a secret answer."""

    def by_branch(self, live: Sequence[Event]) -> list[list[types.Part]]:
        """One group for each parallel branch: ADK gives a message to the branch of its first answer."""
        branches = {
            part.function_call.id: event.branch
            for event in (live if len(self.replies) > 1 else ())
            for part in parts_of(event)
            if part.function_call is not None
        }
        groups: dict[str | None, list[types.Part]] = {}
        for part in self.replies:
            call_id = None if part.function_response is None else part.function_response.id
            groups.setdefault(branches.get(call_id), []).append(part)
        return list(groups.values())

    def under(self, calls: DistinctCalls) -> None:
        """Give the answers the ids that the session has: the model's own."""
        for answer in filter(None, (part.function_response for part in self.replies)):
            answer.id = answer.id and calls.models(answer.id)


@dataclass(frozen=True, slots=True)
class Questions:
    """What a session asks."""

    waiting: Mapping[str, Interrupt]
    live: Sequence[Event]
    asked: Collection[str]
    """The calls that ever asked, also those that were answered or undone since."""
    now: datetime

    def answers(
        self, entries: Sequence[ResumeEntry], results: Sequence[ToolMessage], *, let_go: bool
    ) -> Answers:
        """The answers of these entries and tool messages. `let_go`: a new message abandons what they cancel."""
        calls = names(self.live)
        found, held = Answers(), {it.tool_call_id for it in results}
        for entry in self._open(entries):
            if calls[entry.interrupt_id] == CREDENTIAL:
                found.logins.add(entry.interrupt_id)
            if entry.interrupt_id not in held:
                self._reply(found, entry, calls[entry.interrupt_id], let_go=let_go)
        for message in results:
            self._result(found, message, calls)
        return found

    def _open(self, entries: Sequence[ResumeEntry]) -> Iterator[ResumeEntry]:
        """The entries for open questions; a client repeats others when its resumed run broke."""
        seen: set[str] = set()
        for entry in entries:
            key = entry.interrupt_id
            if key not in self.waiting:
                if key not in self.asked:
                    raise self._unknown(key)
                continue
            if key in seen:
                raise InvalidInput(f"interrupt {key!r} is answered twice: send one entry for each")
            seen.add(key)
            if entry.status == "resolved":  # one that expired can be cancelled, or the thread stays blocked
                self._in_time(key)
            yield entry

    def _unknown(self, key: str) -> InvalidInput:
        if not self.waiting:
            return InvalidInput(
                "nothing waits for an answer in this thread: send a message instead of `resume`"
            )
        return InvalidInput(f"no interrupt {key!r} waits in this thread; waiting: {', '.join(self.waiting)}")

    def _reply(self, found: Answers, entry: ResumeEntry, name: str, *, let_go: bool) -> None:
        """Add the answer of an entry; a cancelled one has none where no form of it exists."""
        key, cancelled = entry.interrupt_id, entry.status == "cancelled"
        schema = self.waiting[key].response_schema
        try:
            part = response(key, name, entry.payload, cancelled=cancelled, schema=schema)
        except ValueError as error:
            raise InvalidInput(
                f"the answer to interrupt {key!r} does not fit its `responseSchema`: {error}"
            ) from error
        if part is None:
            if let_go:
                return
            raise InvalidInput(
                f"interrupt {key!r} cannot be cancelled, its `responseSchema` has no form for it: answer it, or send a message"
            )
        found.replies.append(part)
        answer = part.function_response
        if answer is not None and answer.name not in HIDDEN:
            body = answer.response
            found.unseen.append(
                Answer(key, key, answer.name, result_text(body), bool(body and body.get("error")))
            )

    def _result(self, found: Answers, message: ToolMessage, calls: Mapping[str, str]) -> None:
        """Add the answer of a tool message."""
        key = message.tool_call_id
        if key not in calls:
            raise InvalidInput(f"tool result for unknown call {key!r}: send the call's own id")
        if calls[key] in HIDDEN or not any(key in (it.long_running_tool_ids or ()) for it in self.live):
            raise InvalidInput(f"call {key!r} has its result already: send each only once")
        if key in self.waiting:
            self._in_time(key)
        found.replies.append(tool_part(message, calls[key]))
        found.mark.setdefault("results", {})[key] = message.id

    def _in_time(self, key: str) -> None:
        if expired(self.waiting[key], self.now):
            raise InvalidInput(f"interrupt {key!r} has expired: start a new run instead")
