"""What is done when something is asked over HTTP, one function a route; `table.py` says where each is found.

A route gets a request that may be answered: who asks is known, and so is whose tenant. Knows `Cast` and what it
tells; does not know sockets, the page or how an answer travels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ag_ui.core import RunAgentInput

from runcast.app.cast import Cast
from runcast.app.errors import BadRequest, Closing, Gone, NotAllowed, NotFound
from runcast.app.metrics import numbers
from runcast.app.run import Run
from runcast.app.shapes import (
    LONGEST_MESSAGE,
    AgentList,
    EnvelopePage,
    Health,
    RunList,
    RunRow,
    Started,
    Stopped,
    ThreadList,
    ThreadRow,
    Token,
    ToolResult,
)
from runcast.app.sse import live, of_run, position
from runcast.app.tokens import LIFETIME, watch_token
from runcast.app.web import Answer, Asked, EventStream, identifier
from runcast.broadcast import Position
from runcast.broadcast.plain import dumps
from runcast.slim import RunInfo, UnknownThread, decode_input, encode

MOST = 1_000  # envelopes, events or threads in one answer


@dataclass(frozen=True, slots=True)
class Here:
    """A request, who makes it, and the host as they see it."""

    asked: Asked
    cast: Cast
    user: Any
    keepalive: float
    watched: str | None = None  # the only thread there is for whoever came with a watcher's token

    async def may(self, thread_id: str) -> str:
        """The thread's id, if this user may see and do everything in it."""
        identifier("a thread id", thread_id)
        if self.watched is not None:
            if thread_id != self.watched:
                raise NotAllowed("this token is for another thread")
            return thread_id
        if not await self.cast.door.allows(self.user, thread_id):
            raise NotAllowed("this thread is not yours")
        return thread_id

    async def may_look(self) -> None:
        """Refuse whoever may not see what belongs to no thread."""
        if not await self.cast.door.allows(self.user, ""):
            raise NotAllowed("that is not yours to see")


Reply = Answer | EventStream

# ------------------------------------------------------------------- reading


async def agents(here: Here) -> Reply:
    """The agents there are, and what each can do."""
    await here.may_look()
    known = here.cast.agents.values()
    told: AgentList = {
        "agents": [{"name": each.name, "capabilities": _plain(each.capabilities())} for each in known]
    }
    return Answer(told)


async def capabilities(here: Here, name: str) -> Reply:
    """What one agent can do, as the protocol words it."""
    await here.may_look()
    return Answer(_plain(here.cast.agent(name).capabilities()))


async def threads(here: Here) -> Reply:
    """The threads that may be seen, by id, those behind `after`."""
    asked = here.asked
    found = await here.cast.log.threads(
        limit=asked.number("limit", 100, most=MOST) or 1, after=asked.query.get("after", "")
    )
    seen = [each for each in found if await here.cast.door.allows(here.user, each.thread_id)]
    rows: list[ThreadRow] = [
        {
            "thread_id": each.thread_id,
            "last_seq": each.last_seq,
            "created_at": each.created_at,
            "updated_at": each.updated_at,
            "active": each.owner is not None,
        }
        for each in seen
    ]
    told: ThreadList = {"threads": rows, "next": found[-1].thread_id if found else None}
    return Answer(told)


async def envelopes(here: Here, thread_id: str) -> Reply:
    """Envelopes behind a position: what a reader fetches that misses something."""
    await here.may(thread_id)
    found = await here.cast.history.read(
        thread_id, _position(here.asked), most=here.asked.number("limit", 500, most=MOST) or 1
    )
    rows: Any = [each.to_dict() for each in found.envelopes]
    told: EnvelopePage = {
        "recovered": found.recovered,
        "epoch": found.epoch,
        "head": found.head,
        "envelopes": rows,
        "more": found.more,
    }
    return Answer(told)


async def events(here: Here, thread_id: str) -> Reply:
    """The thread's AG-UI events behind a position: live for who asks for a stream, else as JSON."""
    await here.may(thread_id)
    wanted = _position(here.asked)
    thread = await here.cast.log.thread(thread_id)
    epoch, head = ("", 0) if thread is None else (thread.epoch, thread.last_seq)
    known = wanted.epoch in ("", epoch) and wanted.offset <= head
    if "text/event-stream" in here.asked.headers.get("accept", ""):
        if not known:
            raise Gone("that position is not in this thread any more: take the snapshot and go on behind it")
        return EventStream(live(here.cast.log, thread_id, wanted.offset, epoch or None), here.keepalive)
    head_told: dict[str, Any] = {"recovered": known, "epoch": epoch, "head": head}
    if not known:
        return Answer({**head_told, "events": [], "more": False})
    most = here.asked.number("limit", 500, most=MOST) or 1
    try:
        entries = await here.cast.log.entries(thread_id, wanted.offset, most)
    except UnknownThread:  # inside a run whose events are pruned
        return Answer({**head_told, "recovered": False, "events": [], "more": False})
    rows = b",".join(b'{"seq":%d,"event":%s}' % (each.seq, encode(each.event)) for each in entries)
    more = bool(entries) and entries[-1].seq < head
    return Answer(_with({**head_told, "more": more}, b"events", b"[%s]" % rows))


async def snapshot(here: Here, thread_id: str) -> Reply:
    """The slim snapshot; `resume.seq` in it is where to go on."""
    await here.may(thread_id)
    return Answer(await here.cast.snapshot(thread_id))


async def runs(here: Here, thread_id: str) -> Reply:
    """The thread's runs, a tree by `parent`, and what the thread weighs."""
    await here.may(thread_id)
    found = await here.cast.log.runs(thread_id)
    size: Any = await here.cast.threads.size(thread_id)
    told: RunList = {"runs": [run_row(each) for each in found], "size": size}
    return Answer(told)


async def tool_result(here: Here, thread_id: str, call_id: str) -> Reply:
    """All that a tool answered."""
    await here.may(thread_id)
    told: ToolResult = {"content": await here.cast.threads.tool_result(thread_id, call_id)}
    return Answer(told)


# --------------------------------------------------------------------- doing


async def say(here: Here, thread_id: str | None = None) -> Reply:
    """Start a run with one more message; without a thread, in a new one."""
    given = await here.asked.json()
    thread_id = await here.may(here.cast.fresh_id() if thread_id is None else thread_id)
    agent, from_run = _optional(given, "agent"), _optional(given, "from_run")
    run = await here.cast.say(thread_id, _message(given), agent=agent, from_run=from_run)
    return _started(run)


async def branch(here: Here, thread_id: str) -> Reply:
    """As `say`, behind an earlier run that has to be named."""
    given = await here.asked.json()
    await here.may(thread_id)
    agent, from_run = _optional(given, "agent"), identifier("from_run", given.get("from_run"))
    run = await here.cast.say(thread_id, _message(given), agent=agent, from_run=from_run)
    return _started(run)


async def resume(here: Here, thread_id: str) -> Reply:
    """Answer the open questions, or go on after a crash, an error or a stop."""
    given = await here.asked.json()
    await here.may(thread_id)
    answers = given.get("answers")
    if answers is not None and not isinstance(answers, list | dict):
        raise BadRequest("answers must be a list of resume entries, or an object of answers by interrupt id")
    return _started(await here.cast.resume(thread_id, answers))  # pyright: ignore[reportUnknownArgumentType]  # checked there


async def stop(here: Here, run_id: str) -> Reply:
    """End a run, whichever node has it: at the next border, or at once when `hard`."""
    hard = (await here.asked.json()).get("hard", False)
    if not isinstance(hard, bool):
        raise BadRequest("hard must be true or false")
    for thread_id in await here.cast.threads_of(run_id):
        if await here.cast.door.allows(here.user, thread_id):
            status = await here.cast.stop(run_id, hard, thread_id=thread_id)
            told: Stopped = {"thread_id": thread_id, "run_id": run_id, "status": status}
            return Answer(told, 200 if status == "stopped" else 202)
    raise NotFound(f"no run {run_id!r} is active here")


async def run_agent(here: Here, name: str | None = None) -> Reply:
    """The AG-UI endpoint: RunAgentInput in, the run's events out. The run goes on when its asker leaves."""
    given = decode_input(await here.asked.body())
    _check_ids(given)
    await here.may(given.thread_id)
    if name is None:
        if len(here.cast.agents) != 1:
            raise NotFound(
                f"say which agent is meant: post to agents/{{name}}; there are: {_names(here.cast)}"
            )
        name = next(iter(here.cast.agents))
    run = await here.cast.take(here.cast.agent(name), given)
    return EventStream(of_run(run, here.cast.log), here.keepalive)


async def token(here: Here) -> Reply:
    """A token for a socket that cannot say who opens it: a minute's leave to watch one thread."""
    thread_id = await here.may(identifier("thread_id", (await here.asked.json()).get("thread_id")))
    told: Token = {
        "thread_id": thread_id,
        "token": watch_token(here.cast, thread_id),
        "expires_in": LIFETIME,
    }
    return Answer(told, headers={"cache-control": "no-store"})


# ---------------------------------------------------------------------- host


async def health(here: Here) -> Reply:
    """Whether this host takes runs."""
    if here.cast.closing:
        raise Closing("this host is shutting down")
    told: Health = {"status": "ok", "runs": len(here.cast.active)}
    return Answer(told)


async def metrics(here: Here) -> Reply:
    """The host's numbers for Prometheus."""
    await here.may_look()
    return Answer(numbers(here.cast.stats()).encode(), kind="text/plain; version=0.0.4; charset=utf-8")


def run_row(run: RunInfo) -> RunRow:
    """A run as JSON."""
    return {
        "run_id": run.run_id,
        "parent": run.parent,
        "edge": run.edge,
        "attempt": run.attempt,
        "status": run.status,
        "first_seq": run.first_seq,
        "last_seq": run.last_seq,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "terminal": run.terminal,
        "usage": [_plain(each) for each in run.usage or ()],
        "pruned": run.pruned,
    }


def _position(asked: Asked) -> Position:
    """Where a reader stands: `Last-Event-ID` of a stream that broke off, or `after` and `epoch`."""
    last = asked.headers.get("last-event-id")
    if last:
        return position(last)
    return Position(asked.query.get("epoch", ""), asked.number("after", 0))


def _check_ids(given: RunAgentInput) -> None:
    identifier("threadId", given.thread_id)
    identifier("runId", given.run_id)
    if given.parent_run_id is not None:
        identifier("parentRunId", given.parent_run_id)


def _message(given: Mapping[str, Any]) -> str:
    message = given.get("message")
    if not isinstance(message, str) or not 0 < len(message) <= LONGEST_MESSAGE:
        raise BadRequest(f"message must be 1 to {LONGEST_MESSAGE} characters")
    return message


def _optional(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    return None if value is None else identifier(name, value)


def _started(run: Run) -> Answer:
    told: Started = {"thread_id": run.thread_id, "run_id": run.run_id}
    return Answer(told, 202)


def _names(cast: Cast) -> str:
    return ", ".join(cast.agents) or "none"


def _plain(model: Any) -> Any:
    return {} if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _with(told: Mapping[str, Any], name: bytes, value: bytes) -> bytes:
    """An object with one more member that is JSON already: events are written by `encode` and by nothing else."""
    return b'%s,"%s":%s}' % (dumps(dict(told))[:-1], name, value)
