"""The answers to a graph's questions, checked before the graph sees them.

LangGraph stores a resume value before its node reads it, so a value of a wrong shape would fail on every later run. An
answer is therefore checked against its interrupt's `response_schema`; a refused one leaves the question open.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ag_ui.core import Interrupt, ResumeEntry

from runcast.adapters.errors import InvalidInput
from runcast.adapters.json_schema import mismatch
from runcast.adapters.langgraph.interrupts import (
    BREAKPOINT,
    asked_value,
    is_meant,
    rejection,
    stated_schema,
)
from runcast.adapters.langgraph.options import CANCELLED, LangGraphOptions

CANCELLED_MARK = "__agui_cancelled__"  # of AG-UI's server for LangGraph: graphs written for it look for this


def answers(
    entries: Sequence[ResumeEntry],
    pending: Sequence[Interrupt],
    options: LangGraphOptions,
    *,
    now: datetime | None = None,
) -> dict[str, Any] | None:
    """The argument of `Command(resume=...)`: one value per interrupt. None: only continue (a breakpoint).

    Raises `InvalidInput` for an answer without a question, a second answer, a late one, or one of a wrong shape. A subset
    of the pending questions is fine: the graph asks the others again. Not without a breakpoint's: LangGraph would go past it.
    """
    waiting = {each.id: each for each in pending}
    if not waiting:
        raise InvalidInput("nothing waits for an answer in this thread: send a message instead of `resume`")
    given: dict[str, Any] = {}
    for entry in entries:
        key = next((each for each in waiting if is_meant(entry.interrupt_id, each)), None)
        if key is None:
            known = ", ".join(waiting)
            raise InvalidInput(f"no interrupt {entry.interrupt_id!r} waits in this thread; waiting: {known}")
        if key in given:
            raise InvalidInput(f"interrupt {entry.interrupt_id!r} is answered twice: send one entry for each")
        if now is not None and _expired(waiting[key], now):
            raise InvalidInput(f"interrupt {entry.interrupt_id!r} has expired: start a new run instead")
        given[key] = _answer(entry, waiting[key], options)
    passed = [each for each in waiting if each.startswith(BREAKPOINT) and each not in given]
    if passed:
        raise InvalidInput(f"the run would go past {passed[0]!r}: send an entry for it too")
    values = {key: value for key, value in given.items() if not key.startswith(BREAKPOINT)}
    return values or None


def _answer(entry: ResumeEntry, interrupt: Interrupt, options: LangGraphOptions) -> Any:
    schema = interrupt.response_schema
    resolved = entry.status == "resolved"
    answer = _parsed(entry.payload, schema) if resolved else _cancelled(interrupt, options)
    if not resolved and stated_schema(asked_value(interrupt)):
        schema = None  # of the graph's own code: it is for answers
    wrong = None if schema is None else mismatch(answer, schema)
    if wrong is not None:
        raise InvalidInput(
            f"the answer to interrupt {interrupt.id!r} does not fit its `responseSchema`: {wrong}"
        )
    return answer


def _cancelled(interrupt: Interrupt, options: LangGraphOptions) -> Any:
    """A rejection in the question's own form if it has one, else the option's payload."""
    if options.on_cancelled_answer == "refuse":
        raise InvalidInput(f"interrupt {interrupt.id!r} may not be cancelled: answer it")
    rejected = rejection(asked_value(interrupt))
    if rejected is None and options.cancelled_payload == CANCELLED:
        return {**CANCELLED, CANCELLED_MARK: True, "interrupt_id": interrupt.id}
    return options.cancelled_payload if rejected is None else rejected


def _parsed(payload: Any, schema: Mapping[str, Any] | None) -> Any:
    """The payload; a JSON object or list that a client sent as text is read, unless text is what was asked for."""
    if not isinstance(payload, str) or payload.lstrip()[:1] not in ("{", "["):
        return payload
    if schema is not None and mismatch(payload, schema) is None:
        return payload
    try:
        return json.loads(payload)
    except ValueError:
        return payload


def _expired(interrupt: Interrupt, now: datetime) -> bool:
    if interrupt.expires_at is None:
        return False
    try:
        ends = datetime.fromisoformat(interrupt.expires_at)
    except ValueError:
        return False  # no date: by the protocol it never expires
    return ends <= (now if ends.tzinfo is not None else now.replace(tzinfo=None))
