"""One row a route, and the OpenAPI description made of the rows: there is no second list of what can be asked.

Pure. Knows names, types and statuses; does not know what a route does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import getdoc
from typing import Any, Literal

from pydantic import TypeAdapter

from runcast.app.shapes import LONGEST_ID, HubRefusal, Identifier, Problem

Who = Literal["anybody", "known", "host", "thread", "signed"]
"""Who may: whoever comes in; whoever has a tenant; who may see the host; who may see the thread; who has its secret."""

JSON = "application/json"
STREAM = "text/event-stream"
PROBLEM = "application/problem+json"

WHO: dict[Who, str] = {
    "anybody": "Whoever reaches this host.",
    "known": "Whoever this host knows.",
    "host": "Whoever `authorize` lets see what belongs to no thread.",
    "thread": "Whoever `authorize` lets see the thread.",
    "signed": "Whoever signs with the hub's secret, as the HTTP API of the Pusher protocol has it.",
}
MEANS = {
    400: "It cannot be understood, or makes no sense now.",
    401: "The signature is not good.",
    403: "The asker may not.",
    404: "There is no such thing, as far as the asker may know.",
    409: "The thread is busy, or the run id was used.",
    410: "The position means nothing any more: take the snapshot and go on behind it.",
    413: "The body is larger than this host takes.",
    415: "The body is not JSON.",
    422: "A field is not as it must be.",
    429: "As many runs as allowed are active.",
    503: "This host shuts down, its store is away, or it cannot tell who asks.",
}
ALWAYS = (400, 403, 503)  # what any route may answer
WITH_BODY = (413, 415)


@dataclass(frozen=True, slots=True)
class Given:
    """A value in a path, a query or a header."""

    says: str
    schema: Mapping[str, Any]
    place: Literal["path", "query", "header"] = "query"


_ID: dict[str, Any] = {
    key: value for key, value in TypeAdapter(Identifier).json_schema().items() if key != "title"
}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}

GIVEN: dict[str, Given] = {
    "thread_id": Given("the thread", _ID, "path"),
    "run_id": Given("the run", _ID, "path"),
    "call_id": Given("the tool call", _ID, "path"),
    "agent": Given("the agent's name", _ID, "path"),
    "app_id": Given("the hub's app id", {"type": "string"}, "path"),
    "channel": Given("a channel's name", {"type": "string"}, "path"),
    "after": Given("the `seq` of the last entry that is known", _COUNT),
    "epoch": Given("the incarnation of the log that `after` belongs to; any, when it is left out", {"type": "string"}),
    "limit": Given("how many at most; more than 1000 are not given at once", _COUNT),
    "behind": Given("the `thread_id` to go on behind", {"type": "string", "maxLength": LONGEST_ID}),
    "token": Given("a token for this thread, from `POST /broadcasting/token`", {"type": "string"}),
    "Last-Event-ID": Given(
        "the id of the last event that came, `epoch:seq`; goes before `after` and `epoch`",
        {"type": "string", "pattern": "^[^:]*:[0-9]{1,16}$"},
        "header",
    ),
    "filter_by_prefix": Given("how the channels' names begin", {"type": "string"}),
    "info": Given("`user_count`, `subscription_count` or both", {"type": "string"}),
    "auth_key": Given("the hub's key", {"type": "string"}),
    "auth_timestamp": Given("seconds since the Unix epoch", {"type": "string"}),
    "auth_signature": Given("HMAC-SHA256 of the request", {"type": "string"}),
}  # fmt: skip
SIGNED = ("auth_key", "auth_timestamp", "auth_signature")


@dataclass(frozen=True)
class Route:
    """One thing that can be asked. Without a handler the hub answers."""

    name: str
    method: str
    path: str
    who: Who
    handler: Callable[..., Any] | None = None
    gives: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what is answered, by media type
    status: int = 200
    takes: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the body, by media type
    optional: bool = False  # whether the body may be left out
    reads: Sequence[str] = ()  # names of values in the query and the headers
    errors: Sequence[int] = ()  # besides those that any route has
    by_token: bool = False  # whether a watcher's token lets in too
    says: str = ""

    @cached_property
    def pattern(self) -> tuple[str | None, ...]:
        """The path by its segments; None stands for one that the handler is told."""
        segments = self.path.strip("/").split("/") if self.path != "/" else []
        return tuple(None if each.startswith("{") else each for each in segments)

    @cached_property
    def statuses(self) -> tuple[int, ...]:
        """The errors it may answer with."""
        return tuple(sorted({*ALWAYS, *(WITH_BODY if self.takes and self.handler else ()), *self.errors}))

    @cached_property
    def sentence(self) -> str:
        """What it does."""
        return self.says or (getdoc(self.handler) or "").partition("\n\n")[0].replace("\n", " ")


def describe(routes: Iterable[Route], *, version: str, root: str = "") -> dict[str, Any]:
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
            "Sockets are at `/ws` and `/app/{key}`; docs/protocol.md tells of both.",
        },
        "servers": [{"url": root or "/"}],
        "paths": paths,
        "components": {"schemas": shared},
    }


def _operation(route: Route, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    in_path = [each[1:-1] for each in route.path.split("/") if each.startswith("{")]
    reads = [
        *route.reads,
        *(SIGNED if route.who == "signed" else ()),
        *(("token",) if route.by_token else ()),
    ]
    told = {status: _refusal(route, status, schemas) for status in route.statuses}
    good = {"description": route.sentence, "content": _content(route, "gives", route.gives, schemas)}
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.sentence,
        "description": WHO[route.who] + (" A watcher's token will do." if route.by_token else ""),
        "parameters": [_parameter(name) for name in [*in_path, *reads]],
        "responses": {str(status): each for status, each in sorted({route.status: good, **told}.items())},
    }
    if route.takes:
        content = _content(route, "takes", route.takes, schemas)
        operation["requestBody"] = {"required": not route.optional, "content": content}
    return operation


def _refusal(route: Route, status: int, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    ours, hubs = {PROBLEM: {"schema": schemas["Problem"]}}, {JSON: {"schema": schemas["HubRefusal"]}}
    content = (
        ours if route.handler else {**ours, **hubs}
    )  # whoever does not come in is told before the hub is asked
    return {"description": MEANS[status], "content": content}


def _parameter(name: str) -> dict[str, Any]:
    given = GIVEN[name]
    shown = "after" if name == "behind" else name
    required = {"required": True} if given.place == "path" else {}
    return {
        "name": shown,
        "in": given.place,
        **required,
        "description": given.says,
        "schema": dict(given.schema),
    }


def _content(
    route: Route, side: str, by_kind: Mapping[str, Any], schemas: Mapping[Any, Any]
) -> dict[str, Any]:
    return {kind: {"schema": schemas[(route.name, side, kind)]} for kind in by_kind}


def _schemas(routes: Sequence[Route]) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Every schema by who needs it, and those that are shared by name."""
    wanted = dict(_wanted(routes))
    found, shared = TypeAdapter.json_schemas(
        [(key, "validation", TypeAdapter(kind)) for key, kind in wanted.items()],
        by_alias=True,
        ref_template="#/components/schemas/{model}",
    )
    return {key: found[key, "validation"] for key in wanted}, shared.get("$defs", {})


def _wanted(routes: Sequence[Route]) -> Iterator[tuple[Any, Any]]:
    yield from ((each.__name__, each) for each in (Problem, HubRefusal))
    for route in routes:
        for side, by_kind in (("gives", route.gives), ("takes", route.takes)):
            for kind, shape in by_kind.items():
                yield (route.name, side, kind), shape
