"""Lines of defence that belong to no single room: what is never loaded, where ids go, what is never said."""

from __future__ import annotations

import ast
import hmac
import json
import logging
import re
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from ag_ui.core import CustomEvent

from runcast.broadcast import (
    ConfigError,
    EnvelopeMapper,
    Hub,
    HubLimits,
    PublishError,
    open_publisher,
    sign_channel,
)
from runcast.broadcast.hub import protocol as p
from runcast.broadcast.hub.signatures import same
from runcast.broadcast.hub.skins.pusher_api import Api, Request
from runcast.slim import StoreError, WireError, decode, encode, open_store
from runcast.slim.wire.codec import encode_sse
from tests.app.serving import post_run, serving
from tests.broadcast.entries import Thread
from tests.house.tree import modules
from tests.slim.logs import contents, make_log, turn

PASSWORD = "hunter2-Xyzzy"
LOADERS = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml"}
CLIENTS = {"httpx", "requests", "aiohttp", "urllib3", "urllib.request", "http.client"}
HOSTILE_IDS = (
    "'; DROP TABLE runcast_threads; --",
    '" OR 1=1 --',
    "%",
    "_",
    "../../etc/passwd",
    "a\\b",
    "{0}",
    "%s",
    "__proto__",
)


def imported(tree: ast.Module) -> set[str]:
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def called(tree: ast.Module) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def test_nothing_that_was_stored_or_sent_is_ever_run():
    """No pickles, no eval, no shell: what comes from a store, a file or a socket is JSON and stays data."""
    for module in modules():
        assert not imported(module.tree) & LOADERS, module.name
        assert not called(module.tree) & {"eval", "exec"}, module.name
        assert "shell=True" not in module.text, module.name
        assert "os.system" not in module.text, module.name


def test_no_url_that_a_user_sent_is_ever_fetched():
    """Only publishers, webhooks and remote agents speak HTTP outwards, to the address that their owner configured."""
    asking = {module.inside for module in modules() if imported(module.tree) & CLIENTS}
    asking |= {module.inside for module in modules() if "open_connection(" in module.text}
    asking = {inside for inside in asking if not inside.startswith("adapters/remote/")}
    configured = {"broadcast/publishers/http_client.py", "app/webhooks/posting.py"}
    assert asking <= {*configured, "app/cli/doctor.py", "app/demo/watch.py"}


@pytest.mark.parametrize("url", ["memory://", "sqlite"])
async def test_an_id_is_never_a_part_of_a_statement(url: str, tmp_path: Path):
    async with make_log(url if "://" in url else f"sqlite:///{tmp_path}/x.db") as log:
        for thread_id in HOSTILE_IDS:
            await log.append_many(thread_id, turn(f"run {thread_id}", thread_id))
        for thread_id in HOSTILE_IDS:
            assert [run.run_id for run in await log.runs(thread_id)] == [f"run {thread_id}"]
            assert f"{thread_id} " in contents(await log.restore(thread_id))
        assert {each.thread_id for each in await log.threads()} == set(HOSTILE_IDS)


def test_what_an_event_says_cannot_begin_another_one_in_a_stream():
    evil = "x\n\ndata: {}\r\revent: evil\u2028id: 7\x85\x0b\x0c"
    told = encode_sse(CustomEvent(name=evil, value={evil: evil}), "e:1")
    assert told.count(b"\n") == 3, "an id, data, and the end"
    assert b"\r" not in told
    assert decode(told.split(b"\n")[1].removeprefix(b"data: ")).name == evil
    for id in ("a\nb", "a\rb", "a\0b"):
        with pytest.raises(WireError, match="end its line"):
            encode_sse(CustomEvent(name="n", value=1), id)


async def test_an_id_cannot_become_a_header_or_a_file():
    async with serving() as host:
        await post_run(host.http)
        for path in (
            "/threads/a%0d%0aX-Evil:%201/events",
            "/threads/a%0d%0a%0d%0a%3Chtml%3E/runs",
            "/..%2f..%2f..%2fpyproject.toml",
            "/%2e%2e/%2e%2e/etc/passwd",
            "/page.css%00.html",
        ):
            answer = await host.http.get(path)
            assert answer.status_code in (400, 404), path
            assert answer.headers["content-type"] == "application/problem+json"
            assert "x-evil" not in answer.headers
            assert json.loads(answer.content)["status"] == answer.status_code


async def test_a_position_beyond_all_numbers_is_refused_and_a_large_one_is_the_end():
    async with serving() as host:
        await post_run(host.http)
        for after in ("9" * 20, "-1", "1e3", "0x1", "\u0661", "1.0"):
            answer = await host.http.get("/threads/t1/events", params={"after": after})
            assert answer.status_code == 400, after
        answer = await host.http.get("/threads/t1/events", params={"after": str(2**53 - 1)})
        assert (answer.status_code, answer.json()["recovered"]) == (200, False)
        assert (await host.http.get("/threads/t1/events", params={"limit": str(2**53)})).status_code == 200


@pytest.mark.parametrize("depth", [1_000, 100_000])
async def test_a_tower_of_brackets_falls_on_nobody(depth: int):
    tower = b"[" * depth + b"]" * depth
    with pytest.raises(WireError):
        decode(b'{"type":"CUSTOM","name":"n","value":%s}' % tower)
    socket = p.PusherSocket("1.2", key="k", secret="s", limits=HubLimits())
    assert any(isinstance(each, p.Nonsense) for each in socket.feed(tower.decode(), 0.0))
    async with serving() as host:
        body = b'{"threadId":"t","runId":"r","messages":[],"tools":[],"context":[],"state":%s}' % tower
        answer = await host.http.post(
            "/agents/parrot", content=body, headers={"content-type": "application/json"}
        )
        assert answer.status_code == 400


def test_proofs_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch):
    """By `same` or `hmac.compare_digest`: `==` would tell how many characters were right."""
    compared: list[bytes] = []
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: compared.append(one) or one == other)
    assert same("abc", "abc")
    assert compared == [b"abc"]
    proof = re.compile(r"\b(proof|signature|secret|token|auth)$")
    by_equality = [
        f"{module.name}:{node.lineno}"
        for module in modules()
        if module.house in ("app", "broadcast")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Compare) and any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops)
        for side in (node.left, *node.comparators)
        if isinstance(side, ast.Name | ast.Attribute) and proof.search(ast.unparse(side))
    ]
    assert by_equality == []


def test_a_proof_is_for_one_socket_one_channel_and_one_app():
    def entered(socket_id: str, channel: str, proof: str, data: str | None = None) -> bool:
        socket = p.PusherSocket(socket_id, key="k", secret="s", limits=HubLimits())
        said: dict[str, Any] = {"channel": channel, "auth": proof, **({"channel_data": data} if data else {})}
        actions = socket.feed(json.dumps({"event": "pusher:subscribe", "data": said}), 0.0)
        return any(isinstance(each, p.Subscribe) for each in actions)

    proof = sign_channel("1.2", "private-agent.a", key="k", secret="s")
    assert entered("1.2", "private-agent.a", proof)
    assert not entered("1.3", "private-agent.a", proof), "another socket"
    assert not entered("1.2", "private-agent.b", proof), "another thread"
    assert not entered("1.2", "presence-agent.a", proof), "another kind"
    assert not entered("1.2", "private-agent.a", proof, '{"recover":{"epoch":"e","offset":0}}'), (
        "another place"
    )
    assert not entered("1.2", "private-agent.a", sign_channel("1.2", "private-agent.a", key="k", secret="x"))
    for forged in ("k:", "k", "", proof[:-1], proof.upper(), proof.replace("k:", "K:"), f"{proof} "):
        assert not entered("1.2", "private-agent.a", forged), forged


async def test_the_apps_key_alone_gets_nothing_private():
    """The key is public: every page that watches has it. It opens a socket and nothing behind it."""
    hub = Hub("app", "k", "s", authorize=lambda user, thread: True)
    socket = p.PusherSocket("1.2", key="k", secret="s", limits=HubLimits())
    for channel in ("agent.a", "private-agent.a", "presence-agent.a", "cache-agent.a", "#server-to-user-a"):
        frame = json.dumps({"event": "pusher:subscribe", "data": {"channel": channel, "auth": "k"}})
        assert not any(isinstance(each, p.Subscribe) for each in socket.feed(frame, 0.0)), channel
    for path in ("/apps/app/channels", "/apps/app/events", "/apps/app/channels/private-agent.a/users"):
        status, _ = await Api(hub).answer(Request("GET", path, "auth_key=k", {}, b""))
        assert status == 401, path


async def test_a_thread_id_cannot_write_a_line_of_the_log(caplog: pytest.LogCaptureFixture):
    def broken(user: object, thread_id: str) -> bool:
        raise RuntimeError("down")

    evil = "t\n2026-01-16 INFO all is well\x1b[2K"
    hub = Hub("app", "k", "s", authorize=broken)
    with caplog.at_level(logging.ERROR):
        form = {"socket_id": "1.2", "channel_name": "private-agent.=b.dAoyMDI2", "session_id": evil}
        body = json.dumps(form).encode()
        headers = {"content-type": "application/json"}
        status, _ = await Api(hub).answer(Request("POST", "/broadcasting/auth", "", headers, body))
    assert status == 503
    assert [record.getMessage() for record in caplog.records] == ["authorize failed for thread 't\\n2026'"]


def test_every_log_call_quotes_the_ids_it_names():
    """An id with a line break would begin another record; `%r` keeps it in its own."""
    unquoted = [
        f"{module.name}:{node.lineno}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if ast.unparse(node.func.value) in ("logger", "log", "LOG") and node.args
        for spec, given in zip(*specs_and_values(node), strict=False)
        if spec == "%s" and re.search(r"(_id|channel|key|tenant)\b", given)
    ]
    assert unquoted == []


def specs_and_values(call: ast.Call) -> tuple[list[str], list[str]]:
    """The conversions of a log call's format, and the arguments they are for."""
    at = next((n for n, arg in enumerate(call.args) if isinstance(arg, ast.Constant)), 0)
    text = str(getattr(call.args[at], "value", ""))
    return re.findall(r"%[a-z]", text), [ast.unparse(each) for each in call.args[at + 1 :]]


async def test_no_error_tells_a_password_of_an_address():
    with pytest.raises(StoreError) as caught:
        open_store(f"nonsense://u:{PASSWORD}@h/x")
    assert PASSWORD not in f"{caught.value} {caught.value!r}"
    for open_url, errors in ((open_store, StoreError), (open_publisher, ConfigError)):
        for url in (f"postgres:u:{PASSWORD}", f"u:{PASSWORD}@h://x", PASSWORD, f"://u:{PASSWORD}@h"):
            with pytest.raises(errors) as refused:
                open_url(url)
            assert PASSWORD not in f"{refused.value} {refused.value!r}", url
    for url in (
        f"postgresql://u:{PASSWORD}@[bad",
        f"postgresql://u:{PASSWORD}%zz@h/x",
        f"postgresql://h/x {PASSWORD}",
    ):
        with pytest.raises(StoreError, match="percent-encode") as unread:
            await open_store(url).open()
        assert PASSWORD not in "".join(format_exception(unread.value)), url
    publisher = open_publisher(f"reverb://key:{PASSWORD}@127.0.0.1:1/app")
    hub = Hub("app", "k", PASSWORD)
    assert PASSWORD not in f"{publisher!r} {hub!r} {hub.access!r} {open_store('memory://')!r}"
    with pytest.raises(PublishError) as failed:
        await publisher.publish("c", [_envelope()])
    assert PASSWORD not in f"{failed.value} {failed.value!r}"
    await publisher.aclose()


def _envelope() -> Any:
    return EnvelopeMapper().feed(
        Thread().entry(CustomEvent(name="n", value=encode(CustomEvent(name="x", value=1)).decode()))
    )[0]
