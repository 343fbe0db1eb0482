"""Where everything is found over HTTP: one row a route, with who may, what it takes and what it answers.

The router, the OpenAPI description, the tests that send nonsense and the one that reads docs/protocol.md all go by
these rows. Knows routes; does not know how a request is let in or how an answer travels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from ag_ui.core import AgentCapabilities

from runcast.app import routes as r
from runcast.app.openapi import JSON, STREAM, Route, describe
from runcast.app.shapes import (
    AgentList,
    Branch,
    ChannelAuth,
    ChannelProof,
    EnvelopePage,
    EventPage,
    Health,
    Resume,
    RunInput,
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
from runcast.app.web import Answer

FORM = "application/x-www-form-urlencoded"
TEXT = "text/plain"
PLACE = ("after", "epoch")
ANYTHING = dict[str, Any]
STARTS = (404, 409, 429)  # what may keep a run from being started


async def description(here: r.Here) -> r.Reply:
    """This host's routes, as OpenAPI 3.1."""
    return Answer(describe(ROUTES, version=version("runcast"), root=here.asked.root))


ROUTES: tuple[Route, ...] = (
    Route("run", "POST", "/", "thread", r.run_agent, {STREAM: str}, takes={JSON: RunInput}, errors=STARTS),
    Route("agents", "GET", "/agents", "host", r.agents, {JSON: AgentList}),
    Route("run_agent", "POST", "/agents/{agent}", "thread", r.run_agent, {STREAM: str}, takes={JSON: RunInput}, errors=STARTS),
    Route("capabilities", "GET", "/agents/{agent}/capabilities", "host", r.capabilities, {JSON: AgentCapabilities}, errors=(404,)),
    Route("threads", "GET", "/threads", "known", r.threads, {JSON: ThreadList}, reads=("behind", "limit")),
    Route("envelopes", "GET", "/threads/{thread_id}/envelopes", "thread", r.envelopes, {JSON: EnvelopePage}, reads=(*PLACE, "limit", "Last-Event-ID"), by_token=True),
    Route("events", "GET", "/threads/{thread_id}/events", "thread", r.events, {JSON: EventPage, STREAM: str}, reads=(*PLACE, "limit", "Last-Event-ID"), errors=(410,)),
    Route("snapshot", "GET", "/threads/{thread_id}/snapshot", "thread", r.snapshot, {JSON: ANYTHING}, errors=(404,)),
    Route("runs", "GET", "/threads/{thread_id}/runs", "thread", r.runs, {JSON: RunList}),
    Route("tool_result", "GET", "/threads/{thread_id}/tools/{call_id}/result", "thread", r.tool_result, {JSON: ToolResult}, errors=(404,)),
    Route("say", "POST", "/threads/{thread_id}/runs", "thread", r.say, {JSON: Started}, 202, {JSON: Say}, errors=STARTS),
    Route("resume", "POST", "/threads/{thread_id}/resume", "thread", r.resume, {JSON: Started}, 202, {JSON: Resume}, True, errors=STARTS),
    Route("branch", "POST", "/threads/{thread_id}/branch", "thread", r.branch, {JSON: Started}, 202, {JSON: Branch}, errors=STARTS),
    Route("begin", "POST", "/runs", "thread", r.say, {JSON: Started}, 202, {JSON: Say}, errors=STARTS),
    Route("stop", "POST", "/runs/{run_id}/stop", "thread", r.stop, {JSON: Stopped}, 202, {JSON: Stop}, True, errors=(404, 409)),
    Route("token", "POST", "/broadcasting/token", "thread", r.token, {JSON: Token}, takes={JSON: TokenFor}, errors=(404,)),
    Route("health", "GET", "/health", "anybody", r.health, {JSON: Health}),
    Route("metrics", "GET", "/metrics", "host", r.metrics, {TEXT: str}),
    Route("openapi", "GET", "/openapi.json", "anybody", description, {JSON: ANYTHING}),
    # What the hub answers.
    Route("auth", "POST", "/broadcasting/auth", "thread", gives={JSON: ChannelProof}, takes={FORM: ChannelAuth, JSON: ChannelAuth}, errors=(404, 413), says="Sign a socket of the Pusher protocol into a channel, with its position."),
    Route("trigger", "POST", "/apps/{app_id}/events", "signed", gives={JSON: ANYTHING}, takes={JSON: ANYTHING}, errors=(401, 404, 413, 422), says="Publish an event."),
    Route("trigger_batch", "POST", "/apps/{app_id}/batch_events", "signed", gives={JSON: ANYTHING}, takes={JSON: ANYTHING}, errors=(401, 404, 413, 422), says="Publish up to ten events."),
    Route("channels", "GET", "/apps/{app_id}/channels", "signed", gives={JSON: ANYTHING}, reads=("filter_by_prefix", "info"), errors=(401, 404, 413), says="The channels that somebody is in."),
    Route("channel", "GET", "/apps/{app_id}/channels/{channel}", "signed", gives={JSON: ANYTHING}, reads=("info",), errors=(401, 404, 413), says="Whether somebody is in a channel."),
    Route("channel_users", "GET", "/apps/{app_id}/channels/{channel}/users", "signed", gives={JSON: ANYTHING}, errors=(401, 404, 413), says="Who is on a presence channel."),
    Route("up", "GET", "/up", "anybody", gives={JSON: Health}, errors=(404, 413), says="Whether the hub is there."),
)  # fmt: skip
SOCKETS = ("/ws", "/app/{key}")


def find(path: Sequence[str]) -> tuple[Mapping[str, Route], list[str]]:
    """What is at a path, by method, and the segments its handler is told. One slash too many at the end is no matter."""
    segments = path[:-1] if path and path[-1] == "" else path
    for pattern, found in _TABLE.items():
        if len(pattern) == len(segments) and all(
            want in (None, has) for want, has in zip(pattern, segments, strict=True)
        ):
            return found, [has for want, has in zip(pattern, segments, strict=True) if want is None]
    return {}, []


def _by_pattern() -> dict[tuple[str | None, ...], dict[str, Route]]:
    found: dict[tuple[str | None, ...], dict[str, Route]] = {}
    for route in ROUTES:
        found.setdefault(route.pattern, {})[route.method] = route
    return found


_TABLE = _by_pattern()
