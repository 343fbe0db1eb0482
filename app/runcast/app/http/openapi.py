"""One row for each route, and the OpenAPI document made of the rows, so that no second list can disagree.

Pure. Knows names, types and statuses; does not know what a route does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import getdoc
from typing import Any, Literal, get_args

from pydantic import TypeAdapter

from runcast.app.http.json_shapes import HubRefusal, Identifier, Problem
from runcast.app.nodes.handover import OnBusy
from runcast.slim.values.identifiers import LONGEST_ID

Who = Literal["anybody", "known", "host", "thread", "signed"]
"""Required permission: none; a tenant; host-wide; this thread; the hub's secret."""

JSON = "application/json"
STREAM = "text/event-stream"
PROBLEM = "application/problem+json"

WHO: dict[Who, str] = {
    "anybody": "For everyone who reaches this host.",
    "known": "For every user of this host.",
    "host": "For users whom `authorize` allows what belongs to no thread.",
    "thread": "For users whom `authorize` allows the thread.",
    "signed": "For requests signed with the hub's secret, as the Pusher protocol's HTTP API defines it.",
}
MEANS = {
    400: "The request cannot be understood, or makes no sense now.",
    401: "The signature is invalid.",
    403: "Not allowed.",
    404: "Not found, as far as the user may know.",
    408: "The body did not come in time.",
    409: "The thread is busy, or the run id was used.",
    410: "The position is no longer valid: take the snapshot and continue behind it.",
    413: "The body is larger than this host accepts.",
    415: "The body is not JSON.",
    422: "A field is invalid.",
    429: "As many runs as allowed are active.",
    503: "This host shuts down, its store is away, or its access check failed.",
}
ALWAYS = (400, 403, 408, 503)  # errors of every route
WITH_BODY = (413, 415)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value in a path, a query or a header."""

    text: str
    schema: Mapping[str, Any]
    place: Literal["path", "query", "header"] = "query"


_ID: dict[str, Any] = {
    key: value for key, value in TypeAdapter(Identifier).json_schema().items() if key != "title"
}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}

PARAMETERS: dict[str, Parameter] = {
    "thread_id": Parameter("the thread", _ID, "path"),
    "run_id": Parameter("the run", _ID, "path"),
    "message_id": Parameter("the message", _ID, "path"),
    "call_id": Parameter("the tool call", _ID, "path"),
    "agent": Parameter("the agent's name", _ID, "path"),
    "app_id": Parameter("the hub's app id", {"type": "string"}, "path"),
    "link": Parameter("what a webhook's `answer_url` ends with", {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"}, "path"),
    "channel": Parameter("a channel's name", {"type": "string"}, "path"),
    "user_id": Parameter("the user's id, as signed in or on a presence channel", {"type": "string"}, "path"),
    "after": Parameter("the `seq` of the last entry that is known", _COUNT),
    "epoch": Parameter("the log's epoch that `after` belongs to; any, when left out", {"type": "string"}),
    "run": Parameter("the run at whose end the message is read; the newest, when left out", _ID),
    "limit": Parameter("how many at most, up to 1000", _COUNT),
    "behind": Parameter("the `next` of the page before, or a `thread_id`", {"type": "string", "maxLength": 4 * LONGEST_ID}),
    "on_busy": Parameter(
        "what becomes of the message while a run is active",
        {"enum": list(get_args(OnBusy))},
    ),
    "interrupts": Parameter(
        "how a run's end asks: by its outcome, or by CUSTOM events as clients of ag-ui-langgraph know it",
        {"enum": ["outcome", "on_interrupt"]},
    ),
    "subagents": Parameter(
        "whether the stream has what subagents do: clients before 0.0.59 cannot read it",
        {"enum": ["shown", "hidden"]},
    ),
    "token": Parameter("a token for this thread, from `POST /broadcasting/token`", {"type": "string"}),
    "Last-Event-ID": Parameter(
        "the id of the last event received, as it was; overrides `after` and `epoch`",
        {"type": "string", "pattern": r"^[^:]*:[0-9]{1,16}(\.[0-9]{1,16})?$"},
        "header",
    ),
    "filter_by_prefix": Parameter("the beginning of the channels' names", {"type": "string"}),
    "info": Parameter("`user_count`, `subscription_count` or both", {"type": "string"}),
    "auth_key": Parameter("the hub's key", {"type": "string"}),
    "auth_timestamp": Parameter("seconds since the Unix epoch", {"type": "string"}),
    "auth_signature": Parameter("HMAC-SHA256 of the request", {"type": "string"}),
}  # fmt: skip
SIGNED = ("auth_key", "auth_timestamp", "auth_signature")


@dataclass(frozen=True)
class ApiRoute:
    """One method of one path. Without a handler the hub answers."""

    name: str
    method: str
    path: str
    who: Who
    handler: Callable[..., Any] | None = None
    returns: Mapping[str, Any] = field(
        default_factory=dict[str, Any]
    )  # the answer, by media type; None: no schema fits
    status: int = 200
    accepts: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the body, by media type
    optional: bool = False  # whether the body may be left out
    reads: Sequence[str] = ()  # names of values in the query and the headers
    errors: Sequence[int] = ()  # besides those of every route
    by_token: bool = False  # whether a watcher's token is enough
    nothing: str = ""  # what an answer without content means, as 204
    summary: str = ""  # else the first paragraph of the handler's docstring

    @cached_property
    def statuses(self) -> tuple[int, ...]:
        """The errors it may answer with."""
        return tuple(sorted({*ALWAYS, *(WITH_BODY if self.accepts and self.handler else ()), *self.errors}))

    @cached_property
    def sentence(self) -> str:
        """What the route does."""
        return self.summary or (getdoc(self.handler) or "").partition("\n\n")[0].replace("\n", " ")


def describe(routes: Iterable[ApiRoute], *, version: str, root: str = "") -> dict[str, Any]:
    """The OpenAPI 3.1 document of these routes, served below `root`."""
    listed = list(routes)
    schemas, shared = _schemas(listed)
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "runcast",
            "version": version,
            "description": "Agent runs that outlive the tab, as AG-UI 1.0 events and as envelopes. "
            "Sockets are at `/ws` and `/app/{key}`; docs/protocol.md describes both.",
        },
        "servers": [{"url": root or "/"}],
        "paths": paths,
        "components": {"schemas": shared},
    }


def _operation(route: ApiRoute, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    in_path = [each[1:-1] for each in route.path.split("/") if each.startswith("{")]
    reads = [
        *route.reads,
        *(SIGNED if route.who == "signed" else ()),
        *(("token",) if route.by_token else ()),
    ]
    refused = {status: _refusal(route, status, schemas) for status in route.statuses}
    good = {"description": route.sentence, "content": _content(route, "returns", route.returns, schemas)}
    answers = {route.status: good, **({204: {"description": route.nothing}} if route.nothing else {})}
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.sentence,
        "description": WHO[route.who] + (" A watcher's token is enough." if route.by_token else ""),
        "parameters": [_parameter(name) for name in [*in_path, *reads]],
        "responses": {str(status): each for status, each in sorted({**answers, **refused}.items())},
    }
    if route.accepts:
        content = _content(route, "accepts", route.accepts, schemas)
        operation["requestBody"] = {"required": not route.optional, "content": content}
    return operation


def _refusal(route: ApiRoute, status: int, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    ours, hubs = {PROBLEM: {"schema": schemas["Problem"]}}, {JSON: {"schema": schemas["HubRefusal"]}}
    # The access check comes before the hub, and answers with a problem document there too.
    return {"description": MEANS[status], "content": ours if route.handler else {**ours, **hubs}}


def _parameter(name: str) -> dict[str, Any]:
    parameter = PARAMETERS[name]
    public = "after" if name == "behind" else name
    required = {"required": True} if parameter.place == "path" else {}
    return {
        "name": public,
        "in": parameter.place,
        **required,
        "description": parameter.text,
        "schema": dict(parameter.schema),
    }


def _content(
    route: ApiRoute, side: str, by_kind: Mapping[str, Any], schemas: Mapping[Any, Any]
) -> dict[str, Any]:
    return {
        kind: {} if shape is None else {"schema": schemas[(route.name, side, kind)]}
        for kind, shape in by_kind.items()
    }


def _schemas(routes: Sequence[ApiRoute]) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Every schema by its use, and the shared ones by name."""
    uses = dict(_uses(routes))
    found, shared = TypeAdapter.json_schemas(
        [(key, "validation", TypeAdapter(kind)) for key, kind in uses.items()],
        by_alias=True,
        ref_template="#/components/schemas/{model}",
    )
    return {key: found[key, "validation"] for key in uses}, shared.get("$defs", {})


def _uses(routes: Sequence[ApiRoute]) -> Iterator[tuple[Any, Any]]:
    yield from ((each.__name__, each) for each in (Problem, HubRefusal))
    for route in routes:
        for side, by_kind in (("returns", route.returns), ("accepts", route.accepts)):
            for kind, shape in by_kind.items():
                if shape is not None:
                    yield (route.name, side, kind), shape
