"""The routes of the HTTP API: one row each, with the permission it needs, its body, its answers and its errors.

The router, the OpenAPI document, the tests with hostile input and the one that reads docs/protocol.md all use these
rows. Knows routes; does not know how a request is let in or answered.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from ag_ui.core import AgentCapabilities

from runcast.app.http import routes as r
from runcast.app.http import thread_routes as care
from runcast.app.http.answer_page import answer, ask
from runcast.app.http.http_messages import Answer, ApiRequest
from runcast.app.http.json_shapes import (
    AgentList,
    AgentRow,
    Annotate,
    AnnotationList,
    Branch,
    ChannelAuth,
    ChannelProof,
    ChatMessages,
    ChatPost,
    Edit,
    EnvelopePage,
    EventPage,
    Forgot,
    Graph,
    Health,
    JoinPage,
    PageSettings,
    QueueList,
    Rename,
    Resume,
    RunInput,
    RunList,
    Say,
    Started,
    Stop,
    Stopped,
    ThreadList,
    Titled,
    Token,
    TokenFor,
    ToolResult,
    WholeMessage,
)
from runcast.app.http.openapi import JSON, STREAM, ApiRoute, describe
from runcast.app.nodes.annotations import Annotation

FORM = "application/x-www-form-urlencoded"
TEXT = "text/plain"
HTML = "text/html"
PLACE = ("after", "epoch")
ANYTHING = dict[str, Any]
IDLE = "No message is being written."
LINKED = (404, 410)  # errors of a link that answers
STARTS = (404, 409, 429)  # errors of starting a run


async def description(request: ApiRequest) -> Answer:
    """This host's routes, as OpenAPI 3.1."""
    return Answer(describe(ROUTES, version=version("runcast"), root=request.scope.get("root_path", "")))


ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute("run", "POST", "/", "thread", r.run_agent, {STREAM: None}, accepts={JSON: RunInput}, reads=("on_busy", "interrupts", "subagents"), errors=STARTS),
    ApiRoute("agents", "GET", "/agents", "host", r.agents, {JSON: AgentList}),
    ApiRoute("run_agent", "POST", "/agents/{agent}", "thread", r.run_agent, {STREAM: None}, accepts={JSON: RunInput}, reads=("on_busy", "interrupts", "subagents"), errors=STARTS),
    ApiRoute("agent", "GET", "/agents/{agent}", "host", r.agent, {JSON: AgentRow}, errors=(404,)),
    ApiRoute("capabilities", "GET", "/agents/{agent}/capabilities", "host", r.capabilities, {JSON: AgentCapabilities}, errors=(404,)),
    ApiRoute("drawing", "GET", "/agents/{agent}/graph", "host", r.drawing, {JSON: Graph}, errors=(404,)),
    ApiRoute("threads", "GET", "/threads", "known", r.threads, {JSON: ThreadList}, reads=("behind", "limit")),
    ApiRoute("envelopes", "GET", "/threads/{thread_id}/envelopes", "thread", r.envelopes, {JSON: EnvelopePage}, reads=(*PLACE, "limit", "Last-Event-ID"), by_token=True),
    ApiRoute("events", "GET", "/threads/{thread_id}/events", "thread", r.events, {JSON: EventPage, STREAM: None}, reads=(*PLACE, "limit", "Last-Event-ID", "interrupts", "subagents"), errors=(410,)),
    ApiRoute("join", "GET", "/threads/{thread_id}/join", "thread", r.join, {JSON: JoinPage, STREAM: None}, reads=("Last-Event-ID", "interrupts", "subagents"), errors=(410,)),
    ApiRoute("snapshot", "GET", "/threads/{thread_id}/snapshot", "thread", r.snapshot, {JSON: ANYTHING}, errors=(404,)),
    ApiRoute("runs", "GET", "/threads/{thread_id}/runs", "thread", r.runs, {JSON: RunList}),
    ApiRoute("message", "GET", "/threads/{thread_id}/messages/{message_id}", "thread", care.message, {JSON: WholeMessage}, reads=("run",), errors=(404,), by_token=True),
    ApiRoute("tool_result", "GET", "/threads/{thread_id}/tools/{call_id}/result", "thread", r.tool_result, {JSON: ToolResult}, errors=(404,)),
    ApiRoute("say", "POST", "/threads/{thread_id}/runs", "thread", r.say, {JSON: Started}, 202, {JSON: Say}, errors=STARTS),
    ApiRoute("queue", "GET", "/threads/{thread_id}/queue", "thread", care.queue, {JSON: QueueList}),
    ApiRoute("edit", "POST", "/threads/{thread_id}/queue/{run_id}", "thread", care.edit, {JSON: QueueList}, accepts={JSON: Edit}, errors=(404, 409)),
    ApiRoute("withdraw", "POST", "/threads/{thread_id}/queue/{run_id}/withdraw", "thread", care.withdraw, {JSON: QueueList}, errors=(404, 409)),
    ApiRoute("resume", "POST", "/threads/{thread_id}/resume", "thread", r.resume, {JSON: Started}, 202, {JSON: Resume}, True, errors=STARTS),
    ApiRoute("branch", "POST", "/threads/{thread_id}/branch", "thread", r.branch, {JSON: Started}, 202, {JSON: Branch}, errors=STARTS),
    ApiRoute("rename", "POST", "/threads/{thread_id}/title", "thread", care.rename, {JSON: Titled}, 200, {JSON: Rename}, errors=(404, 409)),
    ApiRoute("annotations", "GET", "/threads/{thread_id}/annotations", "thread", care.noted, {JSON: AnnotationList}),
    ApiRoute("annotate", "POST", "/threads/{thread_id}/annotations", "thread", care.annotate, {JSON: Annotation}, 200, {JSON: Annotate}, errors=(404, 409)),
    ApiRoute("forget", "DELETE", "/threads/{thread_id}", "thread", care.forget, {JSON: Forgot}),
    ApiRoute("ask", "GET", "/answers/{link}", "anybody", ask, {HTML: str}, errors=LINKED),
    ApiRoute("answer", "POST", "/answers/{link}", "anybody", answer, {HTML: str}, accepts={FORM: ANYTHING}, errors=(*LINKED, 409, 429)),
    ApiRoute("begin", "POST", "/runs", "thread", r.say, {JSON: Started}, 202, {JSON: Say}, errors=STARTS),
    ApiRoute("stop", "POST", "/runs/{run_id}/stop", "thread", r.stop, {JSON: Stopped}, 202, {JSON: Stop}, True, errors=(404, 409)),
    ApiRoute("chat", "POST", "/chat", "thread", r.chat, {STREAM: None}, accepts={JSON: ChatPost}, errors=STARTS),
    ApiRoute("chat_agent", "POST", "/chat/{agent}", "thread", r.chat, {STREAM: None}, accepts={JSON: ChatPost}, errors=STARTS),
    ApiRoute("chat_stream", "GET", "/chat/{thread_id}/stream", "thread", r.chat_stream, {STREAM: None}, nothing=IDLE),
    ApiRoute("chat_agent_stream", "GET", "/chat/{agent}/{thread_id}/stream", "thread", r.chat_stream, {STREAM: None}, nothing=IDLE),
    ApiRoute("chat_messages", "GET", "/chat/{thread_id}/messages", "thread", r.chat_messages, {JSON: ChatMessages}),
    ApiRoute("chat_stop", "POST", "/chat/{thread_id}/stop", "thread", r.chat_stop, {JSON: Stopped}, 202, errors=(404, 409)),
    ApiRoute("token", "POST", "/broadcasting/token", "thread", r.token, {JSON: Token}, accepts={JSON: TokenFor}, errors=(404,)),
    ApiRoute("health", "GET", "/health", "anybody", r.health, {JSON: Health}),
    ApiRoute("metrics", "GET", "/metrics", "host", r.metrics, {TEXT: str}),
    ApiRoute("page_options", "GET", "/page.json", "known", r.page_options, {JSON: PageSettings}),
    ApiRoute("openapi", "GET", "/openapi.json", "anybody", description, {JSON: ANYTHING}),
    # The hub answers these.
    ApiRoute("auth", "POST", "/broadcasting/auth", "thread", returns={JSON: ChannelProof}, accepts={FORM: ChannelAuth, JSON: ChannelAuth}, errors=(404, 413), summary="Sign a socket of the Pusher protocol into a channel, with its position."),
    ApiRoute("trigger", "POST", "/apps/{app_id}/events", "signed", returns={JSON: ANYTHING}, accepts={JSON: ANYTHING}, errors=(401, 404, 413, 422), summary="Publish an event."),
    ApiRoute("trigger_batch", "POST", "/apps/{app_id}/batch_events", "signed", returns={JSON: ANYTHING}, accepts={JSON: ANYTHING}, errors=(401, 404, 413, 422), summary="Publish up to ten events."),
    ApiRoute("channels", "GET", "/apps/{app_id}/channels", "signed", returns={JSON: ANYTHING}, reads=("filter_by_prefix", "info"), errors=(401, 404, 413), summary="The channels that are subscribed to."),
    ApiRoute("channel", "GET", "/apps/{app_id}/channels/{channel}", "signed", returns={JSON: ANYTHING}, reads=("info",), errors=(401, 404, 413), summary="Whether a channel is subscribed to."),
    ApiRoute("channel_users", "GET", "/apps/{app_id}/channels/{channel}/users", "signed", returns={JSON: ANYTHING}, errors=(401, 404, 413), summary="The users on a presence channel."),
    ApiRoute("terminate", "POST", "/apps/{app_id}/users/{user_id}/terminate_connections", "signed", returns={JSON: ANYTHING}, errors=(401, 404, 413), summary="Close the connections of a user."),
    ApiRoute("up", "GET", "/up", "anybody", returns={JSON: Health}, errors=(404, 413), summary="Whether the hub runs."),
)  # fmt: skip
SOCKETS = ("/ws", "/app/{key}")
