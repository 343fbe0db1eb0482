"""Interrupts: the questions for which a graph waits, and their answers.

Knows LangGraph's `Interrupt` (by its attributes), the human-in-the-loop shapes in its value, and their form in AG-UI.
A static breakpoint has no id of its own: it is `breakpoint:<checkpoint id>`, with the latest checkpoint of a graph inside behind
it (`:<checkpoint id>`) if one was written since. Any answer to it continues the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ag_ui.core import Interrupt

from runcast.adapters.langgraph.content.plain_values import listed, plain
from runcast.slim.folding.run_metadata import metadata_of, run_metadata
from runcast.slim.values.type_guards import as_mapping

BREAKPOINT = "breakpoint:"


class Pending:
    """The questions of one run, in order of asking."""

    def __init__(self) -> None:
        self._asked: dict[str, Any] = {}
        self._calls: dict[str, str] = {}  # interrupt -> the tool call it was raised in
        self._owners: dict[str, str] = {}  # interrupt -> the subagent it was raised in
        self.at_breakpoint = False
        self.running: set[str] = set()  # the root's tasks, of a graph with breakpoints
        self.inside: str | None = None  # the latest checkpoint of a graph inside, since the root's
        self.over = False  # the root has no step left

    def __bool__(self) -> bool:
        return bool(self._asked) or self.at_breakpoint

    def asked(self, interrupts: Sequence[Any]) -> None:
        """A root `__interrupt__` update; an empty one is a static breakpoint, which LangGraph also names behind the last step:
        nothing can go on there."""
        if not interrupts:
            self.at_breakpoint = not self.over
        for each in interrupts:
            self._asked[_field(each, "id")] = each

    def raised_in(self, ids: Iterable[str], *, call_id: str | None, owner: str | None) -> None:
        """A task ended with these interrupts; the innermost task ends first."""
        for each in ids:
            if call_id is not None:
                self._calls.setdefault(each, call_id)
            if owner is not None:
                self._owners.setdefault(each, owner)

    def interrupts(
        self, checkpoint_id: str | None, calls: Sequence[Mapping[str, Any]] = ()
    ) -> list[Interrupt]:
        """All open questions in the protocol's form. `calls`: the unanswered tool calls, to find the one in question.

        LangGraph names no breakpoint beside a question: its task has not ended.
        """
        found = [
            to_interrupt(
                each,
                call_id=self._calls.get(key) or call_meant(_field(each, "value"), calls),
                owner=self._owners.get(key),
            )
            for key, each in self._asked.items()
        ]
        if self.at_breakpoint or self.running:
            found.append(breakpoint_at(checkpoint_id or "unsaved", self.inside))
        return found


def breakpoint_at(checkpoint_id: str | None, inside: str | None = None) -> Interrupt:
    """The question of a static breakpoint."""
    return Interrupt(
        id=f"{BREAKPOINT}{checkpoint_id}" + (f":{inside}" if inside else ""), reason="breakpoint"
    )


def is_meant(given: str, known: str) -> bool:
    """Whether an answer to `given` is one to the question `known`: of a breakpoint, a state knows the root's checkpoint alone."""
    return given == known or (known.startswith(BREAKPOINT) and given.startswith(f"{known}:"))


def to_interrupt(raised: Any, *, call_id: str | None = None, owner: str | None = None) -> Interrupt:
    """A LangGraph interrupt as the protocol's."""
    value = plain(_field(raised, "value"))
    schema = as_mapping(_field(raised, "response_schema")) or stated_schema(value)
    held = as_mapping(value)
    given: dict[str, Any] = {
        "message": _message(value),
        "tool_call_id": call_id or _string(_stated(held, "tool_call_id", "toolCallId")),
        "response_schema": plain(schema) if schema else schema_of(value),
        "expires_at": _string(_stated(held, "expires_at", "expiresAt")),
        "metadata": run_metadata(value=value) if value is not None and not isinstance(value, str) else None,
        "subagent_run_id": owner,
    }
    return Interrupt(
        id=_field(raised, "id"),
        reason="tool_approval" if _inbox(value) else _reason(held),
        **{key: each for key, each in given.items() if each is not None},
    )


def _field(raised: Any, name: str) -> Any:
    return as_mapping(raised).get(name) if isinstance(raised, Mapping) else getattr(raised, name, None)


def _stated(held: Mapping[str, Any], *names: str) -> Any:
    """A field of a question that is written in the protocol's own words, as AG-UI's server for LangGraph reads them."""
    return next((held[name] for name in names if held.get(name) is not None), None)


def stated_schema(value: Any) -> Mapping[str, Any]:
    """The schema that the question itself carries: LangGraph does not know it."""
    return as_mapping(_stated(as_mapping(value), "response_schema", "responseSchema"))


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _reason(value: Mapping[str, Any]) -> str:
    if "action_requests" in value:
        return "tool_approval"  # the batched form of what `per_call` names so itself
    return _string(value.get("reason")) or _string(value.get("type")) or "interrupt"


def _message(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    held = as_mapping(value)
    for name in ("message", "question", "prompt", "description"):
        if _string(held.get(name)):
            return str(held[name])
    texts = [as_mapping(each).get("description") for each in listed(held.get("action_requests")) or ()]
    return "\n\n".join(text for text in texts if isinstance(text, str)) or None


def call_meant(value: Any, calls: Sequence[Mapping[str, Any]]) -> str | None:
    """The call that an approval of one action is about."""
    requests = listed(as_mapping(value).get("action_requests"))
    actions = [as_mapping(each) for each in requests or ()]
    actions = actions or [as_mapping(each["action_request"]) for each in _inbox(value)]
    if len(actions) != 1:
        return None
    asked = (actions[0].get("name", actions[0].get("action")), actions[0].get("args"))
    meant = [str(call["id"]) for call in calls if (call["name"], call["args"]) == asked]
    return meant[0] if len(meant) == 1 else None


# ----------------------------------------------------------- known questions


def asked_value(interrupt: Interrupt) -> Any:
    """The value that the graph asked with, as far as it travels with the interrupt."""
    return metadata_of(interrupt).get("value", interrupt.message)


def schema_of(value: Any) -> dict[str, Any] | None:
    """The schema of an answer to a question of a known form: a review of actions, or Agent Inbox's."""
    requests = listed(as_mapping(value).get("action_requests"))
    if requests is not None:
        reviews = [as_mapping(each) for each in listed(as_mapping(value).get("review_configs")) or ()]
        allowed = {str(each.get("action_name")): each.get("allowed_decisions") for each in reviews}
        decided = [_one_of(_DECISIONS, allowed.get(str(as_mapping(each).get("name")))) for each in requests]
        return _object({"decisions": _array(decided)})
    inbox = _inbox(value)
    if not inbox:
        return None
    return _array([_one_of(_INBOX, _inbox_allows(each)) for each in inbox])


def rejection(value: Any) -> Any:
    """The answer that rejects a question of a known form; None for any other question."""
    requests = listed(as_mapping(value).get("action_requests"))
    if requests is not None:
        return {"decisions": [{"type": "reject"} for _ in requests]}
    if as_mapping(value).get("type") == "tool_approval":
        return {"type": "reject"}
    return [{"type": "ignore", "args": None} for _ in _inbox(value)] or None


def _inbox(value: Any) -> list[Mapping[str, Any]]:
    """Agent Inbox's requests, `{"action_request": {"action", "args"}, "config", ...}`: one, or a list of them."""
    several = listed(value)
    requests = [as_mapping(each) for each in ([value] if several is None else several)]
    return requests if all("action_request" in each and "config" in each for each in requests) else []


def _inbox_allows(request: Mapping[str, Any]) -> list[str]:
    config = as_mapping(request["config"])
    ways = {"accept": "accept", "edit": "edit", "respond": "response", "ignore": "ignore"}
    return [kind for way, kind in ways.items() if config.get(f"allow_{way}")]


def _object(properties: dict[str, Any], optional: Sequence[str] = ()) -> dict[str, Any]:
    required = [key for key in properties if key not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _array(items: Sequence[dict[str, Any]]) -> dict[str, Any]:
    bounds = {"type": "array", "minItems": len(items), "maxItems": len(items)}
    alike = all(each == items[0] for each in items)
    return {**bounds, **({"items": items[0]} if items and alike else {"prefixItems": list(items)})}


def _one_of(kinds: Mapping[str, dict[str, Any]], allowed: Any) -> dict[str, Any]:
    chosen = [kinds[each] for each in listed(allowed) or kinds if each in kinds]
    return chosen[0] if len(chosen) == 1 else {"oneOf": chosen}


_TEXT = {"type": "string"}
_DECISIONS = {
    "approve": _object({"type": {"const": "approve"}}),
    "edit": _object(
        {"type": {"const": "edit"}, "edited_action": _object({"name": _TEXT, "args": {"type": "object"}})}
    ),
    "reject": _object({"type": {"const": "reject"}, "message": _TEXT}, ["message"]),
    "respond": _object({"type": {"const": "respond"}, "message": _TEXT}),
}
_INBOX = {
    "accept": _object({"type": {"const": "accept"}, "args": {}}, ["args"]),
    "edit": _object(
        {"type": {"const": "edit"}, "args": _object({"action": _TEXT, "args": {"type": "object"}})}
    ),
    "response": _object({"type": {"const": "response"}, "args": _TEXT}),
    "ignore": _object({"type": {"const": "ignore"}, "args": {}}, ["args"]),
}
