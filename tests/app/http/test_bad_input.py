"""Whatever is sent to whichever route: a typed answer with a sentence, never a 500, and the host goes on."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from ag_ui.core import RunAgentInput
from pydantic import ValidationError

from runcast.app import (
    App,
    AppError,
    BadRequest,
    Busy,
    Cast,
    Closing,
    Full,
    Gone,
    NotAllowed,
    NotFound,
    TooLarge,
    WrongMedia,
    WrongMethod,
)
from runcast.app.http.http_messages import check_ids
from runcast.app.http.route_table import ROUTES
from runcast.app.http.thread_routes import message_of
from runcast.slim import RunLog, open_store
from runcast.slim.wire.codec import AnyEvent
from tests.app.agents import asker, parrot, tooled
from tests.app.serving import post_run, run_input, segments_of, serving

SECRET = "the-other-tenants-secret"
IDS = [
    "t1", "ghost", "", "..", "../..", "..%2f..%2fetc%2fpasswd", "%00", "%ff", "%c3", "a%0ab", "%e2%80%ae", "=b.!!", "=h.",
    "x" * 512, "x" * 513, "x" * 5_000, "%F0%9F%90%9F", "#server-to-user-1", "null", "'; DROP TABLE threads;--", "%ed%a0%80",
]  # fmt: skip
QUERIES = [
    "", "after=-1", "after=1e9", "after=99999999999999999999", "after=٣", "after=3&after=4", "limit=0", "limit=-1",
    "limit=100000", "limit=x", "epoch=%00", "epoch=" + "e" * 5_000, "after=%ff", "&".join(f"a{n}=1" for n in range(80)), "=&=&",
]  # fmt: skip
DEEP = '{"a":' * 5_000 + "1" + "}" * 5_000
BODIES: list[bytes] = [
    b"", b"{}", b"[]", b"null", b"1", b'"text"', b"{oops", b"\xff\xfe", b"\x00", DEEP.encode(), b'{"a":' + b"1" * 400 + b"}",
    *(
        json.dumps(each).encode()
        for each in (
            {"message": 7}, {"message": ""}, {"message": "x" * 300_000}, {"message": "x", "agent": "ghost"},
            {"message": "x", "agent": ["parrot"]}, {"message": "x", "agent": "parrot", "from_run": "ghost"},
            {"message": "x", "agent": "parrot", "from_run": {}}, {"message": "\ud800", "agent": "parrot"},
            {"message": "x\u0000y", "agent": "parrot"}, {"from_run": None}, {"from_run": "r1", "message": None},
            {"answers": 7}, {"answers": [7]}, {"answers": [{}]}, {"answers": [None]}, {"answers": {"q1": 1}}, {"answers": "q1"},
            {"answers": [{"interruptId": "q9", "status": "resolved"}] * 2}, {"hard": "yes"}, {"hard": []},
            run_input(thread=""), run_input(thread="x" * 600), run_input(run="a\nb"), run_input(thread="t\u0000"),
            run_input(thread="\ud800"), run_input(parentRunId=""), run_input(parentRunId="ghost"), run_input(messages=None),
            run_input(messages=[7]), run_input(messages=[{}]), run_input(messages=[{"role": "ghost", "id": "1", "content": ""}]),
            run_input(tools="x"), run_input(resume=[{"interruptId": "q9", "status": "resolved"}]), run_input(resume={}),
            run_input(resume=[{}]), run_input(state=None), run_input(threadId=5), {"threadId": "t1"},
        )
    ),
]  # fmt: skip
KINDS = ["application/json", "application/json; charset=utf-16", "text/plain", "multipart/form-data", "é", ""]
METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"]
OWN = {400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 429}


class Asking:
    """An app asked directly, so that bytes go in which no client library would send."""

    def __init__(self, app: App, headers: dict[str, str] | None = None) -> None:
        self.app = app
        self.headers = {"host": "localhost", **(headers or {})}

    async def ask(
        self, method: str, path: str, query: str = "", body: bytes = b"", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        given = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        scope = {
            "type": "http",
            "method": method,
            "path": httpx.URL(f"http://x{path}").path,
            "raw_path": path.encode(),
            "query_string": query.encode("utf-8"),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
            "client": ("127.0.0.1", 5),
        }
        half = len(body) // 2
        incoming: list[dict[str, Any]] = [
            {"type": "http.request", "body": body[half:]},
            {"type": "http.request", "body": body[:half], "more_body": True},
        ]
        said: list[Any] = []

        async def receive() -> Any:
            return incoming.pop() if incoming else await _never()

        async def send(message: Any) -> None:
            said.append(message)

        await self.app(scope, receive, send)
        start, *parts = said
        told = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        return start["status"], told, b"".join(part.get("body", b"") for part in parts)


def bearer_of(cast: Cast) -> dict[str, str]:
    """The header that opens a local host."""
    return {"authorization": f"Bearer {cast.access.token}"}


async def _never() -> Any:
    await asyncio.sleep(3600)


@pytest.fixture
async def hosts() -> AsyncIterator[list[Asking]]:
    """A host as its only user sees it, and one as the wrong tenant does."""
    agents = [parrot, asker, tooled]
    async with (
        Cast.open("memory://", agents=agents) as plain,
        Cast.open("memory://", agents=agents) as shared,
    ):
        for cast in (plain, shared.for_tenant("ann")):
            await (await cast.say("t1", SECRET, agent="parrot")).result()
        app = shared.asgi(
            authorize=lambda user, _: True,
            identify=lambda headers: headers.get("x-user"),
            tenant=lambda user: user,
        )
        yield [Asking(plain.asgi(), bearer_of(plain)), Asking(app, {"x-user": "bob"})]


def paths(pick: random.Random) -> list[str]:
    """Every route, with ids of every kind in its place."""
    made = []
    for segments in (segments_of(route) for route in ROUTES):
        for each in IDS if any("{" in segment for segment in segments) else [""]:
            other = pick.choice(IDS)
            names = iter([each, other])
            made.append("/" + "/".join(next(names) if "{" in segment else segment for segment in segments))
    return made


def check(status: int, headers: dict[str, str], body: bytes, asked: Any, *, foreign: bool) -> None:
    assert status < 500, (asked, body[:300])
    if status >= 400:
        assert status in OWN, asked
        if headers["content-type"] == "application/problem+json":
            told = json.loads(body) if body else {"status": status, "title": "-", "detail": "-"}
            assert told["status"] == status
            assert told["title"]
            assert told["detail"]
    if foreign:
        assert SECRET.encode() not in body, asked


async def test_no_path_or_query_hurts(hosts: list[Asking]) -> None:
    pick = random.Random(1)
    for n, host in enumerate(hosts):
        for path in paths(pick):
            for query in ("", *pick.sample(QUERIES, 2)):
                asked = ("GET", path, query)
                check(*await host.ask(*asked), asked, foreign=n == 1)


async def test_no_body_hurts(hosts: list[Asking]) -> None:
    for n, host in enumerate(hosts):
        for route in ROUTES:
            if route.method != "POST":
                continue
            first = "parrot" if route.name == "run_agent" else "t1"
            method, path = (
                "POST",
                "/" + "/".join(first if "{" in each else each for each in segments_of(route)),
            )
            for body in BODIES:
                answer = await host.ask(method, path, body=body, content_type="application/json")
                check(*answer, (method, path, body[:80]), foreign=n == 1)


async def test_no_method_or_kind_hurts(hosts: list[Asking]) -> None:
    pick = random.Random(2)
    for host in hosts:
        for path in pick.sample(paths(pick), 40):
            for method in METHODS:
                kind = pick.choice(KINDS)
                status, headers, body = await host.ask(method, path, body=b"{}", content_type=kind)
                check(status, headers, b"" if method == "HEAD" else body, (method, path, kind), foreign=False)


async def test_no_header_hurts(hosts: list[Asking]) -> None:
    for value in ("x", ":", "e:", "e:-1", "e:99999999999999999999", "é:1", "a" * 9_000):
        for host in hosts:
            asked = host.ask(
                "GET", "/threads/t1/events", accept="text/event-stream, */*", last_event_id=value
            )
            status, headers, body = await asked
            check(status, headers, body, value, foreign=True)
            assert status in (400, 410)


async def test_a_body_has_a_limit() -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:
        status, _, body = await Asking(cast.asgi(max_body=100), bearer_of(cast)).ask(
            "POST", "/", body=b"x" * 101, content_type="application/json"
        )
    assert (status, json.loads(body)["detail"]) == (413, "a body has at most 100 bytes here")


@pytest.mark.parametrize(
    "more",
    [
        {"messages": [{"id": str(n), "role": "user", "content": ""} for n in range(10_001)]},
        {"state": [[] for _ in range(200_001)]},
        {"forwardedProps": {"a": [{"b": n} for n in range(100_001)]}},
    ],
)
async def test_a_body_has_a_budget_of_values(more: dict[str, Any]) -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:
        asking = Asking(cast.asgi(), bearer_of(cast))
        plain = json.dumps(run_input(**more)).encode()
        half = json.dumps(run_input(**more, context=[{"description": "\ud800", "value": ""}])).encode()
        # What a run's input may hold, and other JSON may not.
        for body in (plain, half, b"\xef\xbb\xbf" + plain):
            status, _, answer = await asking.ask("POST", "/", body=body, content_type="application/json")
            assert status == 413
            assert json.loads(answer)["detail"].startswith("a body has at most 10000 messages and 200000")
        most = json.dumps(run_input(messages=run_input()["messages"], state=[0] * 100_000)).encode()
        assert (await asking.ask("POST", "/", body=most, content_type="application/json"))[0] == 200


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/threads/t1/runs", {"message": [{}] * 10_001}),
        ("/threads/t1/runs", {"message": "x", "forwarded_props": {"a": [0] * 200_001}}),
        ("/threads/t1/resume", {"answers": [{}] * 10_001}),
        ("/threads/t1/resume", {"answers": {str(n): 1 for n in range(10_001)}}),
        ("/threads/t1/annotations", {"metaType": "x", "payload": {"a": [0] * 200_001}}),
        ("/chat", {"id": "t1", "messages": [{}] * 10_001}),
    ],
)
async def test_every_body_has_the_budget(path: str, given: dict[str, Any]) -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:
        asking = Asking(cast.asgi(), bearer_of(cast))
        answer = await asking.ask(
            "POST", path, body=json.dumps(given).encode(), content_type="application/json"
        )
        assert (answer[0], json.loads(answer[2])["title"]) == (413, "Too large")


@pytest.mark.parametrize("depth", [254, 300, 1_000])
async def test_what_is_nested_too_deep_is_refused_and_hurts_nobody(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    log = RunLog(open_store("memory://"), verify="reject")
    async with Cast(log, agents=[parrot]) as cast:
        asking = Asking(cast.asgi(), bearer_of(cast))
        for path, given in (
            ("/threads/t1/runs", '{"message": "x", "forwarded_props": {"a": %s}}'),
            ("/threads/t1/annotations", '{"metaType": "x", "payload": {"a": %s}}'),
        ):
            body = (given % deep).encode()
            status, _, _ = await asking.ask("POST", path, body=body, content_type="application/json")
            assert status == 400
        async with asyncio.timeout(60):
            while cast.active:  # noqa: ASYNC110  the refused run lets go
                await asyncio.sleep(0)
        assert (await (await cast.say("t1", "a word")).result()).status == "completed"


def test_of_many_wrong_parts_one_is_told() -> None:
    with pytest.raises(BadRequest, match="message has a part") as caught:
        message_of([{}] * 1_000, "m1")
    assert isinstance(found := caught.value.__context__, ValidationError)
    assert found.error_count() == 1


async def test_of_many_unknown_answers_a_few_are_named() -> None:
    async with serving(Cast.open("memory://", agents=[asker])) as host:
        await (await host.cast.say("t1", "x")).result()
        answers = {"answers": {f"ghost{n}": 1 for n in range(1_000)}}
        refused = await host.http.post("/threads/t1/resume", json=answers)
        assert refused.status_code == 400
        assert "ghost0" in refused.json()["detail"]
        assert len(refused.json()["detail"]) < 500


class Searching:
    """A redactor that searches a large event until it is released, as a slow one would."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def stream(self) -> Searching:
        return self

    def feed(self, event: AnyEvent, data: bytes | None = None) -> list[AnyEvent]:
        if data is not None and len(data) > 500_000:
            self.begun.set()
            assert self.go_on.wait(30)
        return [event]

    def close(self) -> list[AnyEvent]:
        return []


async def test_a_large_body_holds_up_nobody_else() -> None:
    redactor = Searching()
    cast = Cast(RunLog(open_store("memory://"), redactor=redactor, lease_ms=300), agents=[parrot])
    async with serving(cast) as host:
        large = asyncio.create_task(
            post_run(host.http, text=("x" * 60_000 + " ") * 10, thread="large", run="r")
        )
        assert await asyncio.to_thread(redactor.begun.wait, 30)
        await post_run(host.http, thread="small", run="r")  # another run, from its start to its end
        await asyncio.sleep(0.5)  # beyond the lease
        redactor.go_on.set()
        assert (await large)[-1].event["type"] == "RUN_FINISHED"


async def test_a_request_that_breaks_off_is_no_fault_of_ours() -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:
        said: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            said.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/runs",
            "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {cast.access.token}".encode())],
            "client": ("::1", 1),
        }
        await cast.asgi()(scope, receive, send)
    assert said[0]["status"] == 400


async def test_what_nobody_expected_says_nothing_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:

        async def broken(*_: Any, **__: Any) -> Any:
            raise RuntimeError("password=hunter2")

        monkeypatch.setattr(cast.log, "runs", broken)
        status, _, body = await Asking(cast.asgi(), bearer_of(cast)).ask("GET", "/threads/t1/runs")
    assert status == 500
    assert b"hunter2" not in body


def test_every_error_on_purpose_has_a_status_of_its_own() -> None:
    kinds: list[type[AppError]] = [
        AppError, BadRequest, Busy, Closing, Full, Gone, NotAllowed, NotFound, TooLarge, WrongMedia, WrongMethod
    ]  # fmt: skip
    assert len({kind.status for kind in kinds}) == len(kinds)
    assert len({kind.title for kind in kinds}) == len(kinds)


def test_an_error_of_ones_own_names_its_status_either_way_or_has_its_parents() -> None:
    class InHead(BadRequest, status=418, title="A teapot"):
        pass

    class AsAttribute(InHead):
        status = 451

    found = [(kind.status, kind.title) for kind in (InHead, AsAttribute)]
    assert found == [(418, "A teapot"), (451, "A teapot")]


@pytest.mark.parametrize("name", ["threadId", "runId", "parentRunId"])
def test_each_id_of_a_run_can_be_stored_and_logged(name: str) -> None:
    check_ids(RunAgentInput.model_validate(run_input() | {name: "plain"}))
    for bad in ("a\nb", "", "x" * 600, "\0"):
        with pytest.raises(BadRequest, match=name):
            check_ids(RunAgentInput.model_validate(run_input() | {name: bad}))
