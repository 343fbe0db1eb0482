"""What a webhook says about a run: its end with the error or the open questions, read from the log.

The log is redacted, so the message is. Knows the log and the shape of a message; does not send.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
from ag_ui.core import RunErrorEvent, RunFinishedEvent

from runcast.slim import RunInfo, UnknownThread

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast
    from runcast.app.webhooks.webhook import Happening

LAST = 50  # entries of a run in which its end is looked for


def message(happening: Happening, data: dict[str, Any], *, at_ms: int) -> bytes:
    """The body of a webhook."""
    when = datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="milliseconds")
    return orjson.dumps({"type": f"run.{happening}", "timestamp": when, "data": data})


async def told_of(cast: Cast, thread_id: str, run: RunInfo) -> dict[str, Any]:
    """The data about a run that is over."""
    data: dict[str, Any] = {
        "tenant": cast.tenant or None,
        "thread_id": thread_id,
        "run_id": run.run_id,
        "attempt": run.attempt,
        "status": run.status,
        "seq": run.last_seq,
    }
    try:
        data["agent"] = await cast.threads.agent_of(thread_id, run)
        after = max(run.first_seq - 1, run.last_seq - LAST)
        entries = await cast.log.entries(thread_id, after, LAST)
    except UnknownThread:  # its events are pruned
        return data
    for event in (each.event for each in entries if each.run_id == run.run_id):
        if isinstance(event, RunErrorEvent):
            data["error"] = {"message": event.message, "code": event.code}
        elif isinstance(event, RunFinishedEvent) and event.outcome is not None:
            outcome = event.outcome.model_dump(mode="json", by_alias=True, exclude_none=True)
            data["interrupts"] = outcome.get("interrupts", [])
    return {name: value for name, value in data.items() if value is not None}
