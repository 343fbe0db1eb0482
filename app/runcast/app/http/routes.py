"""What each route does, one function a route; `route_table.py` has their paths and permissions.

A function gets a request that was let in, and asks itself for the thread. Knows `Cast`; does not know sockets or the
page.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ag_ui.core import RunAgentInput

from runcast.adapters import drawing_of
from runcast.app.errors import BadRequest, Closing, Gone, NotFound
from runcast.app.host.cast import Cast
from runcast.app.host.prometheus import numbers
from runcast.app.http.http_messages import (
    Answer,
    ApiRequest,
    EventStream,
    check_ids,
    heavy_input,
    identifier,
    only,
    optional,
)
from runcast.app.http.json_shapes import (
    AgentList,
    Branch,
    ChatMessages,
    EnvelopePage,
    Health,
    Resume,
    RunList,
    Say,
    Started,
    Stop,
    Stopped,
    ThreadList,
    Token,
    TokenFor,
    ToolResult,
)
from runcast.app.http.page import PageOptions
from runcast.app.http.sse import holds, joined, live, of_run, past_of, position
from runcast.app.http.thread_routes import message_of, run_row, thread_row
from runcast.app.nodes.agent_descriptions import all_described, asked
from runcast.app.nodes.handover import OnBusy
from runcast.app.nodes.requests import threads_of
from runcast.app.runs.run import Run
from runcast.app.skins import ai_sdk
from runcast.app.skins.earlier_clients import (
    ON_INTERRUPT,
    Form,
    form_of,
    with_on_interrupt,
    without_subagents,
)
from runcast.app.skins.earlier_clients import joined as joined_forms
from runcast.app.skins.ui_messages import Request as ChatRequest
from runcast.app.tenants.cursors import seal, shown, unseal
from runcast.app.tenants.tokens import LIFETIME, watch_token
from runcast.broadcast import Position
from runcast.broadcast.json_bytes import dumps
from runcast.slim import UnknownThread, decode_input, encode
from runcast.slim.tasks import HEAVY, beside

logger = logging.getLogger("runcast.app")
MOST = 1_000  # envelopes, events or threads in one answer
SCANNED = 2_000  # threads that one request asks `authorize` for, about

# ------------------------------------------------------------------- reading


async def agents(request: ApiRequest) -> Answer:
    """The host's agents: what they can do, take and show."""
    await request.allow_host()
    cast = request.cast
    found = await all_described(cast.agents.values(), cast.options.redactor)
    rows: Any = [{**each, "on_busy": _on_busy(cast, each["name"])} for each in found]
    return Answer(AgentList(agents=rows))


async def agent(request: ApiRequest, name: str) -> Answer:
    """One agent: its capabilities, and schemas from which a client can build a form; an agent by URL is asked."""
    await request.allow_host()
    cast = request.cast
    row = await asked(cast.agent(name), cast.options.redactor)
    return Answer({**row, "on_busy": _on_busy(cast, name)})


def _on_busy(cast: Cast, name: str) -> OnBusy:
    return cast.agents.on_busy(name) or cast.options.on_busy


async def capabilities(request: ApiRequest, name: str) -> Answer:
    """One agent's capabilities, as the protocol defines them."""
    await request.allow_host()
    return Answer((await asked(request.cast.agent(name), None))["capabilities"])


async def drawing(request: ApiRequest, name: str) -> Answer:
    """The agent's graph: nodes and edges, none where the agent cannot draw itself."""
    await request.allow_host()
    return Answer(asdict(drawing_of(request.cast.agent(name))))


async def threads(request: ApiRequest) -> Answer:
    """The threads that the user may see, by id, those behind `after`."""
    limit = request.number("limit", 100, most=MOST) or 1
    secret = None if request.cast.hub is None else request.cast.hub.secret
    after = unseal(secret, request.query.get("after", ""))
    if after:
        identifier("after", after)
    rows: list[Any] = []
    seen, more = 0, True
    while more and len(rows) < limit and seen < SCANNED:
        page = max(limit - len(rows), 100)
        found = await request.cast.log.threads(limit=page, after=after)
        seen, more = seen + len(found), len(found) == page
        for each in found:
            after = each.thread_id
            if await request.cast.access.allows(request.user, after):
                rows.append(thread_row(each))
                if len(rows) == limit:
                    break
    if len(rows) == limit:
        return Answer(ThreadList(threads=rows, next=shown(secret, after)))
    # The user may not see the thread at `after`, so the cursor must not name it.
    return Answer(ThreadList(threads=rows, next=seal(secret, after) if more else None))


async def envelopes(request: ApiRequest, thread_id: str) -> Answer:
    """Envelopes behind a position: what a reader fetches that misses some."""
    await request.allow_thread(thread_id)
    most = request.number("limit", 500, most=MOST) or 1
    found = await request.cast.history.read(thread_id, _position(request), most=most, joined=True)
    rows: Any = [each.to_dict() for each in found.envelopes]
    return Answer(
        EnvelopePage(
            recovered=found.recovered, epoch=found.epoch, head=found.head, envelopes=rows, more=found.more
        )
    )


async def events(request: ApiRequest, thread_id: str) -> Answer | EventStream:
    """The thread's AG-UI events behind a position: as a live stream or as JSON, by the Accept header."""
    await request.allow_thread(thread_id)
    log, wanted, form = request.cast.log, _position(request), _wanted_form(request)
    thread = await log.thread(thread_id)
    epoch, head = ("", 0) if thread is None else (thread.epoch, thread.last_seq)
    known = wanted.epoch in ("", epoch) and wanted.offset <= head
    if known and wanted.mark:
        known = await holds(log, thread_id, wanted)
    if "text/event-stream" in request.headers.get("accept", "") and request.method == "GET":
        if not known:
            raise Gone("this position is no longer valid: take the snapshot and continue behind it")
        return EventStream(
            live(log, thread_id, wanted.offset, wanted.history or epoch or None, form),
            request.options.keepalive,
        )
    page: dict[str, Any] = {"recovered": known, "epoch": epoch, "head": head, "more": False}
    if known and wanted.mark:
        page["mark"] = wanted.mark
    most = request.number("limit", 500, most=MOST) or 1
    try:
        entries = await log.entries(thread_id, wanted.offset, most) if known else []
    except UnknownThread:  # inside a run whose events are pruned
        entries, page["recovered"] = [], False
    if entries:
        page["more"] = entries[-1].seq < head
        page |= {"mark": entries[-1].mark} if entries[-1].mark else {}
    rows = b",".join(b'{"seq":%d,"event":%s}' % (each.seq, encode(each.event)) for each in entries)
    return Answer(_with(page, b"events", b"[%s]" % rows))


async def join(request: ApiRequest, thread_id: str) -> Answer | EventStream:
    """What an empty client needs to be where the thread is; by the Accept header followed by what comes, live."""
    await request.allow_thread(thread_id)
    log, last, form = request.cast.log, request.headers.get("last-event-id"), _wanted_form(request)
    if "text/event-stream" in request.headers.get("accept", "") and request.method == "GET":
        return EventStream(await joined(log, thread_id, last, form), request.options.keepalive)
    place, events = await past_of(log, thread_id)
    events = events if form is None else [each for event in events for each in form(event)]
    return Answer(_with(place, b"events", b"[%s]" % b",".join(encode(each) for each in events)))


async def snapshot(request: ApiRequest, thread_id: str) -> Answer:
    """The slim snapshot; `resume.seq` in it is the position to continue from."""
    await request.allow_thread(thread_id)
    return Answer(await request.cast.snapshot(thread_id))


async def runs(request: ApiRequest, thread_id: str) -> Answer:
    """The thread's runs, a tree by `parent`, and the thread's size."""
    await request.allow_thread(thread_id)
    found = await request.cast.log.runs(thread_id)
    size: Any = await request.cast.threads.size(thread_id)
    return Answer(RunList(runs=[run_row(each) for each in found], size=size))


async def tool_result(request: ApiRequest, thread_id: str, call_id: str) -> Answer:
    """A tool's whole result."""
    await request.allow_thread(thread_id)
    return Answer(ToolResult(content=await request.cast.threads.tool_result(thread_id, call_id)))


# --------------------------------------------------------------------- doing


async def say(request: ApiRequest, thread_id: str | None = None) -> Answer:
    """Start a run with one more message; without a thread, in a new one."""
    thread_id = await request.allow_thread(request.cast.options.new_id() if thread_id is None else thread_id)
    given = only(await request.json(), Say)
    return await _say(request.cast, thread_id, given, from_run=optional(given, "from_run"))


async def branch(request: ApiRequest, thread_id: str) -> Answer:
    """Start a run with one more message behind an earlier, named run."""
    await request.allow_thread(thread_id)
    given = only(await request.json(), Branch)
    return await _say(request.cast, thread_id, given, from_run=identifier("from_run", given.get("from_run")))


async def resume(request: ApiRequest, thread_id: str) -> Answer:
    """Answer the open questions, or continue after a crash, an error or a stop."""
    await request.allow_thread(thread_id)
    given = only(await request.json(), Resume)
    answers = given.get("answers")
    if answers is not None and not isinstance(answers, list | dict):
        raise BadRequest("answers must be a list of resume entries, or an object of answers by interrupt id")
    return _started(await request.cast.resume(thread_id, answers))  # pyright: ignore[reportUnknownArgumentType]  # checked there


async def stop(request: ApiRequest, run_id: str) -> Answer:
    """Stop a run on whichever node: at its framework's next step, or at once when `hard`."""
    hard = only(await request.json(), Stop).get("hard", False)
    if not isinstance(hard, bool):
        raise BadRequest("hard must be true or false")
    for thread_id in await threads_of(request.cast, identifier("a run id", run_id)):
        if await request.cast.access.allows(request.user, thread_id):
            status = await request.cast.stop(run_id, hard, thread_id=thread_id)
            content = Stopped(thread_id=thread_id, run_id=run_id, status=status)
            return Answer(content, 200 if status == "stopped" else 202)
    raise NotFound(f"no run {run_id!r} is active here")


async def run_agent(request: ApiRequest, name: str | None = None) -> EventStream:
    """The AG-UI endpoint: RunAgentInput in, the run's events out. The run continues when the client leaves."""
    dropped: list[str] = []
    body = await request.body()
    heavy = len(body) >= HEAVY
    given = await beside(lambda: heavy_input(body, dropped)) if heavy else decode_input(body, dropped=dropped)
    if dropped:
        logger.warning("AG-UI 1.0 has no such parts, dropped from a run's input: %r", dropped[:5])
    check_ids(given)
    await request.allow_thread(given.thread_id)
    cast = request.cast
    on_busy: Any = request.query.get("on_busy")
    form = _wanted_form(request, given)
    run = await cast.take(cast.agent(_agent(cast, name)), given, on_busy=on_busy)
    return EventStream(of_run(run, cast.log, form), request.options.keepalive)


async def token(request: ApiRequest) -> Answer:
    """A token for sockets that cannot send headers: it allows to watch one thread, for a minute."""
    given = only(await request.json(), TokenFor).get("thread_id")
    thread_id = await request.allow_thread(identifier("thread_id", given))
    made = watch_token(request.cast, thread_id)
    return Answer(Token(thread_id=thread_id, token=made, expires_in=LIFETIME))


# -------------------------------------------------------------------- AI SDK


async def chat(request: ApiRequest, name: str | None = None) -> EventStream:
    """What the AI SDK's `useChat` posts becomes a run; its UI message chunks are the answer."""
    given = ChatRequest.of(await request.json())
    await request.allow_thread(identifier("id", given.chat))
    agent = _agent(request.cast, name)
    return EventStream(
        await ai_sdk.answer(request.cast, given, agent), request.options.keepalive, ai_sdk.HEADERS
    )


async def chat_stream(request: ApiRequest, *names: str) -> Answer | EventStream:
    """The message that is being written, from its first chunk; 204 when there is none."""
    thread_id = await request.allow_thread(names[-1])
    found = await ai_sdk.active(request.cast, thread_id)
    return (
        Answer(b"", 204) if found is None else EventStream(found, request.options.keepalive, ai_sdk.HEADERS)
    )


async def chat_messages(request: ApiRequest, thread_id: str) -> Answer:
    """The thread as the AI SDK's UI messages, without the one that is being written."""
    await request.allow_thread(thread_id)
    return Answer(ChatMessages(messages=await ai_sdk.messages(request.cast, thread_id)))


async def chat_stop(request: ApiRequest, thread_id: str) -> Answer:
    """Stop the thread's active run: the SDK's own stop only closes its stream."""
    await request.allow_thread(thread_id)
    await request.json()
    run_id = await ai_sdk.stop(request.cast, thread_id)
    if run_id is None:
        raise NotFound(f"no run is active in thread {thread_id!r}")
    return Answer(Stopped(thread_id=thread_id, run_id=run_id, status="asked"), 202)


# ---------------------------------------------------------------------- host


async def health(request: ApiRequest) -> Answer:
    """Whether this host accepts runs."""
    if request.cast.closing:
        raise Closing("this host is shutting down")
    return Answer(Health(status="ok", runs=len(request.cast.active)))


async def metrics(request: ApiRequest) -> Answer:
    """The host's numbers for Prometheus."""
    await request.allow_host()
    return Answer(numbers(request.cast.stats()).encode(), kind="text/plain; version=0.0.4; charset=utf-8")


async def page_options(request: ApiRequest) -> Answer:
    """What the page is configured with."""
    options = request.options.page
    return Answer(asdict(options if isinstance(options, PageOptions) else PageOptions()))


# --------------------------------------------------------------------- parts


def _position(request: ApiRequest) -> Position:
    """The reader's position: `Last-Event-ID` of a stream that broke off, or `after` and `epoch`."""
    last = request.headers.get("last-event-id")
    if last:
        return position(last)
    return Position.of(request.query.get("epoch", ""), request.number("after", 0) or 0)


def _wanted_form(request: ApiRequest, given: RunAgentInput | None = None) -> Form | None:
    """The form that the query names, or that the client of an input reads; None for that of the log."""
    interrupts = request.query.get("interrupts", "outcome")
    subagents = request.query.get("subagents", "shown")
    if interrupts not in ("outcome", ON_INTERRUPT):
        raise BadRequest("interrupts must be outcome or on_interrupt")
    if subagents not in ("shown", "hidden"):
        raise BadRequest("subagents must be shown or hidden")
    asking: Form | None = with_on_interrupt if interrupts == ON_INTERRUPT else None
    asking = form_of(given) if asking is None and given is not None else asking
    return joined_forms(without_subagents if subagents == "hidden" else None, asking)


async def _say(cast: Cast, thread_id: str, given: Mapping[str, Any], *, from_run: str | None) -> Answer:
    message, agent = message_of(given.get("message"), cast.options.new_id()), optional(given, "agent")
    props = given.get("forwarded_props")
    on_busy: Any = optional(given, "on_busy")
    if not isinstance(props, dict | None):
        raise BadRequest("forwarded_props must be an object, as an AG-UI client sends it")
    run = await cast.say(
        thread_id,
        message,
        agent=agent,
        from_run=from_run,
        forwarded_props=props,  # pyright: ignore[reportUnknownArgumentType]  # checked above
        on_busy=on_busy,
    )
    return _started(run)


def _agent(cast: Cast, name: str | None) -> str:
    """The agent that a path names, or the only one."""
    if name is None and len(cast.agents) != 1:
        known = ", ".join(cast.agents) or "none"
        raise NotFound(f"name the agent at the end of the path; there are: {known}")
    return next(iter(cast.agents)) if name is None else cast.agent(name).name


def _started(run: Run) -> Answer:
    return Answer(Started(thread_id=run.thread_id, run_id=run.run_id, status=run.accepted), 202)


def _with(page: Mapping[str, Any], name: bytes, value: bytes) -> bytes:
    """An object with one more member that is JSON already: only `encode` writes events."""
    return b'%s,"%s":%s}' % (dumps(dict(page))[:-1], name, value)
