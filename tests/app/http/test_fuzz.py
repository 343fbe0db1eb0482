"""Every route under generated requests, good and bad: never a 500, never another tenant's byte, answers as described."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runcast.app import Cast
from runcast.app.http.openapi import describe
from runcast.app.http.route_table import ROUTES
from tests.app.agents import asker, parrot, tooled
from tests.app.serving import serving

SECRET = "the-other-tenants-secret"
EXAMPLES = 6  # good requests a route, and as many bad ones
IDS = ["t1", "t2", "ghost"]
ASKED = [
    pytest.param(route, mode, id=f"{route.name}-{mode}")
    for route in ROUTES
    for mode in ("positive", "negative")
    if mode == "positive" or route.accepts or route.reads or "{" in route.path  # else nothing can be wrong
]


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """A host with two tenants, served from a thread of its own: whoever asks is bob, and ann has a secret."""
    ready: threading.Event = threading.Event()
    told: dict[str, Any] = {}

    async def serve() -> None:
        cast = Cast.open("memory://", agents=[parrot, asker, tooled])
        over = told["over"] = asyncio.Event()
        told["loop"] = asyncio.get_running_loop()
        options = {
            "authorize": lambda user, _: True,
            "identify": lambda headers: "bob",
            "tenant": lambda user: user,
        }
        async with serving(cast, **options) as it:
            await (await cast.for_tenant("ann").say("t1", SECRET, agent="parrot")).result()
            await (await cast.for_tenant("bob").say("t2", "bob's own", agent="parrot")).result()
            told["url"] = it.url
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(30)
    yield told["url"]
    told["loop"].call_soon_threadsafe(told["over"].set)
    thread.join(30)


@pytest.fixture(scope="module")
def schema() -> Any:
    """The description of all routes. Schemathesis is imported where it is used: that takes a worker two seconds."""
    import schemathesis

    return schemathesis.openapi.from_dict(describe(ROUTES, version="1"))


@pytest.mark.parametrize(("route", "mode"), ASKED)
def test_a_route_answers_as_described(host: str, schema: Any, route: Any, mode: str) -> None:
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    described = [checks.status_code_conformance, checks.content_type_conformance]
    described += [checks.response_schema_conformance, not_a_server_error]
    operation = schema[route.path][route.method]
    strategy = operation.as_strategy(generation_mode=GenerationMode(mode))

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy, st.sampled_from([*IDS, None]))
    def ask(case: Any, known: str | None) -> None:
        if known is not None and "thread_id" in (case.path_parameters or {}):
            case.path_parameters["thread_id"] = known
        response = case.call(base_url=host)
        assert SECRET.encode() not in response.content
        case.validate_response(response, checks=described)

    ask()


def test_it_still_serves(host: str) -> None:
    assert httpx.get(f"{host}/health").json()["status"] == "ok"
