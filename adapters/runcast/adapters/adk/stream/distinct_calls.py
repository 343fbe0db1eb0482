"""Tool calls under ids that no two of them share.

Clients know a call by its id alone, and some models count theirs anew in each turn (`call_1`); ADK keeps what it is given. A
call whose id an earlier event has is shown as `<event id>:<call id>`, and so are its result, its question and the answer to it.
Inside an agent that runs as a tool, an id of the model's is always shown as `<subagent run id>:<call id>`: the session of the
thread does not hold those calls, so none outside may depend on them.

Reads events in the order of the session. ADK and its session keep the model's ids. Does not know what is open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runcast.adapters.adk.stream.complete_event import CONFIRMATION, CREDENTIAL, is_from_user, parts_of
from runcast.slim.values.type_guards import as_mapping

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types

OWN = "adk-"  # ids that ADK makes are unique


@dataclass(slots=True)
class _Calls:
    """The calls of one event that have one id."""

    event: str
    author: str
    branch: str | None
    shown: str
    count: int = 1

    def id_of(self, number: int) -> str:
        """The id of one of them; a model may give one id twice in one turn."""
        number = min(number, self.count - 1)
        return self.shown if number == 0 else f"{self.event}:{self.shown}:{number + 1}"


class DistinctCalls:
    """The calls of one session. `within` is the subagent run of an agent that runs as a tool."""

    def __init__(self, within: str | None = None) -> None:
        self._within = within
        self._made: dict[str, list[_Calls]] = {}  # by the model's id, in order
        self._models: dict[str, str] = {}  # the shown ids that differ -> the model's

    def all(self, events: Iterable[Event]) -> list[Event]:
        """These events, under the ids that are shown."""
        return [self.read(event) for event in events]

    def read(self, event: Event) -> Event:
        """One event under the ids that are shown: itself where these are the model's. Reading it again changes nothing."""
        parts = parts_of(event)
        given = [_id(part) for part in parts]
        if event.partial or not any(given):
            return event
        numbers: dict[str, int] = {}
        ids: list[str | None] = []
        for part, call_id in zip(parts, given, strict=True):
            if call_id:
                number = numbers[call_id] = numbers.get(call_id, -1) + 1
                name = self._call if _is_call(part) else self._of
                ids.append(name(event, call_id, number))
            else:
                ids.append(None)
        fields = self._fields(event)
        if ids != given or any(_asks(part) for part in parts):
            changed = [self._part(event, part, shown) for part, shown in zip(parts, ids, strict=True)]
            assert event.content is not None
            fields["content"] = event.content.model_copy(update={"parts": changed})
            fields["long_running_tool_ids"] = _waiting(event, ids)
        return event.model_copy(update=fields) if fields else event

    def while_streaming(self, event: Event, call_id: str) -> str:
        """The id of a call in a partial event."""
        made = self._made.get(call_id)
        if made and made[0].event != event.id:
            return self._again(event.id, call_id)
        return self._first(call_id)

    def made_by(self, agent: str, call_id: str) -> str:
        """The id under which the latest call of an agent is shown."""
        made = self._made.get(call_id, ())
        by_agent = [calls for calls in made if calls.author == agent]
        return next((calls.shown for calls in reversed(by_agent or made)), call_id)

    def models(self, call_id: str) -> str:
        """The model's own id of a call that is shown under this one."""
        return self._models.get(call_id, call_id)

    def _call(self, event: Event, call_id: str, number: int) -> str:
        made = self._made.setdefault(call_id, [])
        calls = next((it for it in made if it.event == event.id), None)
        if calls is None:
            shown = self._again(event.id, call_id) if made else self._first(call_id)
            calls = _Calls(event.id, event.author, event.branch, shown)
            made.append(calls)
        calls.count = max(calls.count, number + 1)
        shown = calls.id_of(number)
        if shown != call_id:
            self._models[shown] = call_id
        return shown

    def _of(self, event: Event, call_id: str, number: int = 0) -> str:
        """The call that an event means by a model's id: the latest of its agent, in its branch."""
        made = self._made.get(call_id)
        if not made:
            return call_id
        where = None if is_from_user(event) else event.author
        near = [it for it in made if it.branch == event.branch and where in (None, it.author)]
        return (near or made)[-1].id_of(number)

    def _first(self, call_id: str) -> str:
        return call_id if self._within is None or call_id.startswith(OWN) else f"{self._within}:{call_id}"

    @staticmethod
    def _again(event_id: str, call_id: str) -> str:
        return f"{event_id}:{call_id}"

    def _part(self, event: Event, part: types.Part, shown: str | None) -> types.Part:
        call = part.function_call
        fields: dict[str, Any] = {} if shown is None or shown == _id(part) else {"id": shown}
        if call is not None and _asks(part):
            fields |= self._concerned(event, call)
        if not fields:
            return part
        name = next(name for name in _KINDS if getattr(part, name) is not None)
        return part.model_copy(update={name: getattr(part, name).model_copy(update=fields)})

    def _concerned(self, event: Event, question: types.FunctionCall) -> dict[str, Any]:
        """The arguments of ADK's question, with the shown id of the call that it is about."""
        args = dict(question.args or {})
        name = "functionCallId" if question.name == CREDENTIAL else "originalFunctionCall"
        about = args.get(name)
        if isinstance(about, str):
            args[name] = self._of(event, about)
        elif call_id := as_mapping(about).get("id"):
            args[name] = {**as_mapping(about), "id": self._of(event, call_id)}
        return {"args": args} if args != (question.args or {}) else {}

    def _fields(self, event: Event) -> dict[str, Any]:
        """The actions, where they name calls."""
        actions = event.actions
        if not (actions.requested_tool_confirmations or actions.requested_auth_configs):
            return {}
        changed = {
            name: {self._of(event, key): value for key, value in given.items()}
            for name, given in (
                ("requested_tool_confirmations", actions.requested_tool_confirmations),
                ("requested_auth_configs", actions.requested_auth_configs),
            )
        }
        return {"actions": actions.model_copy(update=changed)}


_KINDS = ("function_call", "function_response", "executable_code", "code_execution_result")


def _id(part: types.Part) -> str | None:
    """The id of a call, or of what answers one."""
    found = part.function_call or part.function_response or part.executable_code or part.code_execution_result
    return None if found is None else found.id


def _is_call(part: types.Part) -> bool:
    return part.function_call is not None or part.executable_code is not None


def _asks(part: types.Part) -> bool:
    """Whether this is ADK's own question about a call."""
    return part.function_call is not None and part.function_call.name in (CONFIRMATION, CREDENTIAL)


def _waiting(event: Event, ids: list[str | None]) -> set[str] | None:
    """The long-running calls of an event whose parts are shown under these ids."""
    waiting = event.long_running_tool_ids
    if not waiting:
        return waiting
    return {shown for part, shown in zip(parts_of(event), ids, strict=True) if shown and _id(part) in waiting}
