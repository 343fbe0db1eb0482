"""Webhooks arrive at least once under one id, signed so that the standard's own package verifies them, from one node."""

from __future__ import annotations

import asyncio
import hmac
import re
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, cast

import orjson
import pytest
import standardwebhooks
from hypothesis import given
from hypothesis import strategies as st

from runcast.app import AnswerLinks, Cast, Webhook
from runcast.app.cli.doctor import examine
from runcast.app.host.prometheus import numbers
from runcast.app.webhooks import outbox, posting
from runcast.app.webhooks.webhook import GAPS, signed
from runcast.slim import MemoryStore, RunLog
from tests.app.agents import Gated, asker, parrot
from tests.app.delays import Yielding
from tests.app.mortal import Mortal
from tests.app.nodes.conftest import postgres_server, url
from tests.app.nodes.stage import ask
from tests.app.nodes.test_queue import buried
from tests.app.test_telemetry import broken

__all__ = ["postgres_server", "url"]

PATIENCE = 60.0
OLD, NEW = (f"whsec_{b64encode(bytes([n]) * 32).decode()}" for n in (1, 2))


async def at_once() -> None:
    """Nothing has to happen first."""


@dataclass
class Receiver:
    """A server that keeps what it receives, and answers with a status of one's choice."""

    port: int = 0
    answers: list[str] = field(default_factory=list)  # status and headers of the next answers; then 204
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    meanwhile: Callable[[], Awaitable[object]] = at_once  # before an answer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?x=1"

    def hook(self, *events: Any, **more: Any) -> Webhook:
        given: dict[str, Any] = {"events": events} if events else {}
        return Webhook(self.url, (NEW, OLD), private=True, **given, **more)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            headers = dict(re.findall(r"^([\w-]+): (.*)\r$", head, re.MULTILINE))
            body = await reader.readexactly(int(headers["content-length"]))
            self.got.append((headers, body))
            await self.meanwhile()
            status = self.answers.pop(0) if self.answers else "204 No Content"
            writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode())
            await writer.drain()
        writer.close()

    async def count(self, number: int) -> list[dict[str, Any]]:
        """Wait for so many, and read them as a receiver does."""
        async with asyncio.timeout(PATIENCE):
            while len(self.got) < number:  # noqa: ASYNC110  another process may send it
                await asyncio.sleep(0.01)
        for headers, body in self.got:
            for secret in (NEW, OLD):
                standardwebhooks.Webhook(secret).verify(body.decode(), headers)
        return [orjson.loads(body) for _, body in self.got]


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    it = Receiver()
    server = await asyncio.start_server(it.take, "127.0.0.1", 0)
    it.port = server.sockets[0].getsockname()[1]
    try:
        yield it
    finally:
        server.close()


async def empty(cast: Cast) -> None:
    """Wait until no letter waits."""
    async with asyncio.timeout(PATIENCE):
        while await cast.log.notes.read(outbox.ARMED, outbox.OVER, outbox.DUE):  # noqa: ASYNC110  any node does it
            await asyncio.sleep(0.01)


async def test_every_end_of_a_run_is_told_and_verified_by_the_standards_package(url: str) -> None:
    async with receiving() as there:
        links = AnswerLinks("https://host/base/", "s" * 32)
        async with Cast.open(
            url, agents=[parrot, asker, broken], webhooks=[there.hook()], answer_links=links
        ) as cast:
            for n, name in enumerate(("parrot", "asker", "broken")):
                await (await cast.say(f"t{n}", "a word", agent=name)).result()
            told = {each["data"]["thread_id"]: each for each in await there.count(3)}
            await cast.outbox.tell("queued", "t9", "r9", {"run_id": "r9", "agent": "parrot"})
            queued = (await there.count(4))[-1]
            await empty(cast)
            assert cast.stats()["webhooks"]["delivered"] == 4
    assert [told[f"t{n}"]["type"] for n in range(3)] == ["run.completed", "run.interrupted", "run.failed"]
    assert (queued["type"], queued["data"]["run_id"]) == ("run.queued", "r9")
    assert told["t0"]["data"]["agent"] == "parrot"
    assert told["t1"]["data"]["interrupts"][0] == {"id": "q1", "reason": "confirm", "message": "go on?"}
    assert told["t1"]["data"]["answer_url"].startswith("https://host/base/answers/")
    assert "no more" in told["t2"]["data"]["error"]["message"]
    ids = [headers["webhook-id"] for headers, _ in there.got]
    assert len(set(ids)) == 4


async def test_a_letter_that_is_delivered_while_the_notes_are_read_is_sent_once() -> None:
    async with receiving() as there, Cast.open("memory://", agents=[parrot], webhooks=[there.hook()]) as cast:
        notes, answered = cast.log.notes, asyncio.Event()
        read, looks = notes.read, 0

        async def late(*boxes: str, **more: Any) -> Any:
            """The second look reads the letter, and goes on when that is delivered."""
            nonlocal looks
            found = await read(*boxes, **more)
            if boxes == (outbox.DUE,) and found and there.got and not looks:
                looks += 1
                answered.set()
                while await read(outbox.DUE):  # noqa: ASYNC110  the sender takes it off
                    await asyncio.sleep(0.01)
            return found

        notes.read = late  # type: ignore[method-assign]
        there.meanwhile = answered.wait
        await (await cast.say("t1", "a word")).result()
        await there.count(1)
        cast.outbox.ring("t1", "again")
        async with asyncio.timeout(PATIENCE):
            await answered.wait()
        await empty(cast)
        await (await cast.say("t2", "the next")).result()
        await there.count(2)
        await empty(cast)
        assert looks == 1
        assert cast.stats()["webhooks"]["delivered"] == 2


async def test_a_message_that_waits_is_told() -> None:
    gated = Gated()
    async with receiving() as there:  # noqa: SIM117  closed after the cast
        async with Cast.open("memory://", agents=[gated], webhooks=[there.hook("queued")]) as cast:
            await cast.start(gated, ask())
            waiting = await cast.say("t1", "and then", on_busy="queue")
            (told,) = await there.count(1)
            gated.open()
            async with asyncio.timeout(PATIENCE):
                await waiting.result()
            await empty(cast)
    assert (told["type"], told["data"]["run_id"]) == ("run.queued", waiting.run_id)
    assert told["data"]["on_busy"] == "queue"
    assert len(there.got) == 1


async def test_by_thread_tenant_and_kind(url: str) -> None:
    async with receiving() as there:

        def hooks(tenant: str, thread_id: str) -> list[Webhook]:
            one = there.hook("completed", tenant="acme", thread_id="t1")
            return [one, there.hook("interrupted")]

        async with Cast.open(url, agents=[parrot, asker], webhooks=hooks) as cast:
            acme = cast.for_tenant("acme")
            await (await cast.say("t1", "a", agent="parrot")).result()
            await (await acme.say("t2", "b", agent="parrot")).result()
            await (await acme.say("t1", "c", agent="parrot")).result()
            await (await cast.say("t3", "d", agent="asker")).result()
            await there.count(2)
            await empty(cast)
    told = sorted(
        (each["data"].get("tenant", ""), each["data"]["thread_id"]) for each in await there.count(2)
    )
    assert told == [("", "t3"), ("acme", "t1")]


async def test_an_attempt_that_fails_is_repeated_under_its_id_and_no_redirect_is_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "GAPS", (0,) * 5)
    async with receiving() as there, receiving() as elsewhere:
        there.answers += ["500 No", f"307 There\r\nlocation: {elsewhere.url}", "garbage", "2" * 100_000]
        async with Cast.open("memory://", agents=[parrot], webhooks=[there.hook()]) as cast:
            await (await cast.say("t1", "a")).result()
            await there.count(5)
            await empty(cast)
            counts = cast.stats()["webhooks"]
            assert (counts["delivered"], counts["failures"], counts["given_up"]) == (1, 4, 0)
        assert len({headers["webhook-id"] for headers, _ in there.got}) == 1
        assert len({body for _, body in there.got}) == 1
        assert elsewhere.got == []


async def test_what_never_arrives_is_a_dead_letter_that_doctor_and_metrics_show(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "GAPS", (0, 0))
    async with receiving() as there:
        there.answers += ["500 No"] * 3 + ["410 Gone"]
        async with Cast.open(url, agents=[parrot], webhooks=[there.hook()]) as cast:
            for n in range(2):
                await (await cast.say(f"t{n}", "a")).result()
                await there.count(3 + n)
                await empty(cast)
            async with asyncio.timeout(PATIENCE):
                while cast.stats()["webhooks"]["dead"] < 2:  # noqa: ASYNC110  as the node looks
                    await asyncio.sleep(0.01)
            assert "runcast_webhooks_dead 2" in numbers(cast.stats())
            (found,) = [each for each in await examine(url) if each.what == "webhooks"]
            assert (found.mark, "2 were given up" in found.text) == ("bad", True)
            await cast.forget("t0")
            assert len(await cast.log.notes.read(outbox.DEAD)) == 1


async def test_several_nodes_send_each_once(url: str) -> None:
    async with receiving() as there:
        hooks = [there.hook()]
        async with (
            Cast.open(url, agents=[parrot], webhooks=hooks) as one,
            Cast.open(url, agents=[parrot], webhooks=hooks) as other,
        ):
            for n in range(10):
                await (await (one if n % 2 else other).say(f"t{n}", "a")).result()
            await there.count(10)
            await empty(one)
        assert Counter(headers["webhook-id"] for headers, _ in there.got).most_common(1)[0][1] == 1
        assert len(there.got) == 10


async def test_a_receiver_that_never_answers_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "AT_ONCE", 2)
    monkeypatch.setattr(outbox, "AT_ONCE_EACH", 1)
    monkeypatch.setattr(posting, "TIMEOUT", 3_600.0)
    left = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        left.set()

    stuck = await asyncio.start_server(silent, "127.0.0.1", 0)
    slow = Webhook(
        f"http://127.0.0.1:{stuck.sockets[0].getsockname()[1]}/", (NEW,), private=True, thread_id="slow"
    )
    async with receiving() as there:
        hooks = [slow, there.hook("completed", thread_id="quick")]
        async with Cast.open("memory://", agents=[parrot], webhooks=hooks) as cast:
            for _ in range(4):
                await (await cast.say("slow", "hello")).result()
            await (await cast.say("quick", "hello")).result()
            assert [each["data"]["thread_id"] for each in await there.count(1)] == ["quick"]
    async with asyncio.timeout(PATIENCE):
        await left.wait()
    stuck.close()


async def test_a_run_that_was_resumed_is_told_by_its_last_attempt_alone() -> None:
    gated = Gated(1)
    async with (
        receiving() as there,
        Cast.open("memory://", agents=[gated], webhooks=[there.hook()], recover="off") as cast,
    ):
        await cast.node.close()  # what is over is looked at when both attempts are
        first = await cast.say("t1", "a word")
        await cast.run(first.run_id).abandon()
        await cast.log.recovery.abandon("t1")
        gated.open()
        last = await cast.resume("t1")
        await last.result()
        async with asyncio.timeout(PATIENCE):
            while await cast.log.notes.read(outbox.ARMED, outbox.DUE):
                await cast.outbox.look()
                await asyncio.sleep(0.01)
        told = [(each["type"], each["data"]["run_id"]) for each in await there.count(1)]
        assert told == [("run.completed", last.run_id)]


async def test_a_run_whose_process_dies_is_told_by_another_node(url: str) -> None:
    gated = Gated()
    async with receiving() as there:
        hooks = [there.hook()]
        async with Cast.open(url, agents=[gated], webhooks=hooks, lease_ms=500) as one:
            run = await one.start(gated, ask())
            await run.abandon()  # as a crash would
        async with Cast.open(url, webhooks=hooks, recover="report", recover_every=0.2, lease_ms=500):
            (told,) = await there.count(1)
    assert (told["type"], told["data"]["status"]) == ("run.failed", "truncated")


async def test_whichever_await_the_sender_dies_at_the_letter_arrives_under_one_id() -> None:
    deaths = 0
    for nth in range(1, 1_000):
        async with receiving() as there:
            store, hooks = Yielding(), [there.hook("completed")]
            writer = Cast(RunLog(store), agents=[parrot], webhooks=hooks)
            async with RunLog(store):
                await writer.log.__aenter__()
                await (await writer.say("t1", "a")).result()
                looking = asyncio.create_task(writer.outbox.look())
                for _ in range(nth):
                    await asyncio.sleep(0)
                alive = not looking.done()
                looking.cancel()
                for _, task in list(writer.outbox._sending.values()):
                    task.cancel()
                await asyncio.gather(looking, return_exceptions=True)
                for note in await store.notes("lease webhooks"):
                    await store.unpost(note)  # it expires with its node
                other = Cast(RunLog(store), agents=[parrot], webhooks=hooks)
                async with other:
                    await there.count(1)
                    await empty(other)
                await writer.aclose()
            assert len({headers["webhook-id"] for headers, _ in there.got}) == 1, nth
            assert len(there.got) <= 2, nth
        if not alive:
            break
        deaths += 1
    assert deaths >= 20


async def test_whichever_await_the_host_dies_at_a_message_that_waits_is_told_under_one_id() -> None:
    deaths = 0
    for steps in range(1, 1_000):
        async with receiving() as there:
            store, gated, hooks = MemoryStore(), Gated(), [there.hook("queued")]
            mortal = Mortal(store, 10_000)
            victim = Cast(RunLog(cast("Any", mortal)), agents=[gated], webhooks=hooks)
            await victim.log.__aenter__()  # it sends nothing itself
            await victim.start(gated, ask())
            mortal.dies_in(steps)
            saying = asyncio.ensure_future(victim.say("t1", "and then", on_busy="queue"))
            died = await mortal.dies_in_scene(saying)
            async with Cast(RunLog(store), webhooks=hooks, work=False) as other:
                (waiting,) = await other.queue.waiting("t1") or [None]
                assert waiting is not None or died
                if waiting is not None:
                    (told,) = await there.count(1)
                    assert (told["type"], told["data"]["run_id"]) == ("run.queued", waiting.run_id), steps
                    await empty(other)
                    assert len({headers["webhook-id"] for headers, _ in there.got}) == 1, steps
                else:
                    await other.outbox.look()
                    assert there.got == [], steps
            await buried(mortal, saying, victim)
        if not died:
            break
        deaths += 1
    assert deaths >= 10


def test_gaps_grow_and_last_a_day() -> None:
    assert list(GAPS) == sorted(GAPS)
    assert 80_000 < sum(GAPS) < 90_000


@given(st.binary(max_size=200), st.integers(0, 2**33))
def test_any_body_is_signed_as_the_package_signs_it(body: bytes, at: int) -> None:
    ours = signed([NEW], "msg_1", at, body)["webhook-signature"].removeprefix("v1,")
    text = b"msg_1.%d." % at + body
    assert ours == b64encode(hmac.new(bytes([2]) * 32, text, sha256).digest()).decode()


@pytest.mark.parametrize(
    ("url", "secrets"),
    [("http://host/", (NEW,)), ("https:///x", (NEW,)), ("ftp://host", (NEW,)), ("https://a:b@host", (NEW,)),
     ("https://host", ()), ("https://host", ("short",)), ("https://host", ("whsec_!",))],
)  # fmt: skip
def test_a_webhook_that_cannot_be_right_is_refused(url: str, secrets: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"webhook"):
        Webhook(url, secrets)
    assert NEW not in repr(Webhook("https://host", (NEW,)))


async def test_a_letter_that_is_under_way_goes_with_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "GAPS", (0.0, 0.0))
    async with receiving() as there:
        there.answers = ["500 No"] * 5
        async with Cast.open("memory://", agents=[parrot], webhooks=[there.hook()]) as cast:
            there.meanwhile = partial(cast.forget, "t1")
            await (await cast.say("t1", "a")).result()
            await there.count(1)

            def is_sending() -> bool:
                return any(task.get_name() == "runcast webhook" for task in asyncio.all_tasks())

            async with asyncio.timeout(PATIENCE):
                while is_sending() or await cast.log.notes.read(outbox.DUE):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert cast.outbox.stats()["failures"] > 0
            assert await cast.log.notes.read(outbox.DEAD) == []
