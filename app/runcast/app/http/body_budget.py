"""The budget of a large body, counted before anything is built of it: a megabyte of tiny values costs more than of text.

Pure. Knows JSON; does not know what becomes of a run's input.
"""

from __future__ import annotations

from typing import Any

import orjson
from ag_ui.core import RunAgentInput

from runcast.app.errors import TooLarge
from runcast.slim import decode_input
from runcast.slim.values.type_guards import as_list, as_object

MOST_MESSAGES = 10_000
MOST_VALUES = 200_000


def over_budget(body: bytes) -> bool:
    """Whether a body holds more messages or JSON values than this host reads. One that is no JSON does not."""
    try:
        found: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    if len(as_list(as_object(found).get("messages"))) > MOST_MESSAGES:
        return True
    count, waiting = 0, [found]
    while waiting and count <= MOST_VALUES:
        value = waiting.pop()
        inner = [*as_list(value), *as_object(value).values()]
        count += len(inner)
        waiting += inner
    return count > MOST_VALUES


def heavy_input(body: bytes, dropped: list[str]) -> RunAgentInput:
    """The run's input in a large body; raises `TooLarge` beyond the budget."""
    if over_budget(body):
        raise TooLarge(f"a body has at most {MOST_MESSAGES} messages and {MOST_VALUES} JSON values here")
    return decode_input(body, dropped=dropped)
