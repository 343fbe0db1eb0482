"""Interrupts: what a graph waits for, and the answers it is given.

Knows LangGraph's `Interrupt` (by its attributes) and the human-in-the-loop shapes that travel in its value; knows
what AG-UI calls them. Static breakpoints have no id of their own: they are `breakpoint:<checkpoint id>`, and the
answer to one is only to go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ag_ui.core import Interrupt, ResumeEntry

from runcast.adapters.errors import InvalidInput
from runcast.adapters.frame import note
from runcast.adapters.langgraph.encode import listed, mapped, plain
from runcast.adapters.langgraph.options import LangGraphOptions

BREAKPOINT = "breakpoint:"


class Pending:
    """The questions of one run, in order of asking."""

    def __init__(self) -> None:
        self._asked: dict[str, Any] = {}
        self._calls: dict[str, str] = {}  # interrupt -> the tool call it was raised in
        self._owners: dict[str, str] = {}  # interrupt -> the subagent it was raised in
        self.at_breakpoint = False

    def __bool__(self) -> bool:
        return bool(self._asked) or self.at_breakpoint

    def asked(self, interrupts: Sequence[Any]) -> None:
        """A root `__interrupt__` update; an empty one is a static breakpoint."""
        if not interrupts:
            self.at_breakpoint = True
        for each in interrupts:
            self._asked[_field(each, "id")] = each

    def raised_in(self, ids: Iterable[str], *, call_id: str | None, owner: str | None) -> None:
        """A task ended with these interrupts: the innermost task is the first to say so."""
        for each in ids:
            if call_id is not None:
                self._calls.setdefault(each, call_id)
            if owner is not None:
                self._owners.setdefault(each, owner)

    def interrupts(
        self, checkpoint_id: str | None, calls: Sequence[Mapping[str, Any]] = ()
    ) -> list[Interrupt]:
        """Everything that waits, as the protocol says it. `calls`: the unanswered tool calls, to name the one asked."""
        found = [
            to_interrupt(
                each,
                call_id=self._calls.get(key) or _call_meant(_field(each, "value"), calls),
                owner=self._owners.get(key),
            )
            for key, each in self._asked.items()
        ]
        if self.at_breakpoint and not found:
            found.append(Interrupt(id=BREAKPOINT + (checkpoint_id or "unsaved"), reason="breakpoint"))
        return found


def to_interrupt(raised: Any, *, call_id: str | None = None, owner: str | None = None) -> Interrupt:
    """A LangGraph interrupt as the protocol's."""
    value = plain(_field(raised, "value"))
    schema = mapped(_field(raised, "response_schema"))
    held = mapped(value)
    given: dict[str, Any] = {
        "message": _message(value),
        "tool_call_id": call_id or _string(held.get("tool_call_id")),
        "response_schema": plain(schema) if schema else None,
        "expires_at": _string(held.get("expires_at")),
        "metadata": note(value=value) if value is not None and not isinstance(value, str) else None,
        "subagent_run_id": owner,
    }
    return Interrupt(
        id=_field(raised, "id"),
        reason=_reason(held),
        **{key: each for key, each in given.items() if each is not None},
    )


def _field(raised: Any, name: str) -> Any:
    return mapped(raised).get(name) if isinstance(raised, Mapping) else getattr(raised, name, None)


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _reason(value: Mapping[str, Any]) -> str:
    if "action_requests" in value:
        return "tool_approval"  # the batched form of what `per_call` names so itself
    return _string(value.get("reason")) or _string(value.get("type")) or "interrupt"


def _message(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    held = mapped(value)
    for name in ("message", "question", "prompt", "description"):
        if _string(held.get(name)):
            return str(held[name])
    texts = [mapped(each).get("description") for each in listed(held.get("action_requests")) or ()]
    return "\n\n".join(text for text in texts if isinstance(text, str)) or None


def _call_meant(value: Any, calls: Sequence[Mapping[str, Any]]) -> str | None:
    """The one call that a batched approval of one action is about."""
    requests = listed(mapped(value).get("action_requests"))
    if requests is None or len(requests) != 1:
        return None
    asked = (mapped(requests[0]).get("name"), mapped(requests[0]).get("args"))
    meant = [call["id"] for call in calls if (call["name"], call["args"]) == asked]
    return meant[0] if len(meant) == 1 else None


def answers(
    entries: Sequence[ResumeEntry],
    pending: Sequence[Interrupt],
    options: LangGraphOptions,
    *,
    now: datetime | None = None,
) -> dict[str, Any] | None:
    """What to hand `Command(resume=...)`: one value an interrupt. None: only go on (a breakpoint).

    Raises `InvalidInput` for an answer that nobody waits for, came twice, or came too late. A subset of what is
    pending is fine: the graph asks for the rest again.
    """
    waiting = {each.id: each for each in pending}
    if not waiting:
        raise InvalidInput("nothing waits for an answer in this thread: send a message instead of `resume`")
    given: dict[str, Any] = {}
    for entry in entries:
        if entry.interrupt_id not in waiting:
            known = ", ".join(waiting)
            raise InvalidInput(f"no interrupt {entry.interrupt_id!r} waits in this thread; waiting: {known}")
        if entry.interrupt_id in given:
            raise InvalidInput(f"interrupt {entry.interrupt_id!r} is answered twice: send one entry for each")
        if now is not None and _expired(waiting[entry.interrupt_id], now):
            raise InvalidInput(f"interrupt {entry.interrupt_id!r} has expired: start a new run instead")
        given[entry.interrupt_id] = _payload(entry, options)
    values = {key: value for key, value in given.items() if not key.startswith(BREAKPOINT)}
    return values or None


def _payload(entry: ResumeEntry, options: LangGraphOptions) -> Any:
    if entry.status == "resolved":
        return entry.payload
    if options.on_cancelled_answer == "refuse":
        raise InvalidInput(f"interrupt {entry.interrupt_id!r} may not be cancelled: answer it")
    return options.cancelled_payload


def _expired(interrupt: Interrupt, now: datetime) -> bool:
    if interrupt.expires_at is None:
        return False
    try:
        ends = datetime.fromisoformat(interrupt.expires_at)
    except ValueError:
        return False  # no date: the protocol says that it then never expires
    return ends <= (now if ends.tzinfo is not None else now.replace(tzinfo=None))
