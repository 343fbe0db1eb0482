"""Stock laravel-echo 2.5 and pusher-js 8.6 against the hub, through every skin: the same contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from runcast.broadcast import channel_for
from runcast.broadcast.hub.signatures import sign_channel
from tests.e2e.pusher import Clients
from tests.e2e.stage import EPOCH, SKINS, Log, Stage, a_hub, envelope, limits, stage

CHANNEL = "private-agent.s1"
every_skin = pytest.mark.parametrize("skin", SKINS)


@pytest.fixture(params=SKINS)
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    async with stage(
        request.param, client_events=True, public=True, identify=lambda headers: headers.get("x-user")
    ) as it:
        yield it


async def watch(clients: Clients, served: Stage, client: str = "a", **options: object) -> None:
    """A client that watches the thread s1."""
    clients.ask("open", client, **served.for_echo, recover=True, **options)
    clients.ask("join", client, channel="agent.s1")
    await clients.until(client, "subscribed")


async def test_echo_listens_to_a_private_channel(clients: Clients, served: Stage):
    await watch(clients, served)
    await served.publish([envelope(1, text="ż漢🙂"), envelope(2)])
    reports = await clients.until("a", "event", 2)
    assert [report["name"] for report in reports] == [".agent.custom", ".agent.custom"]
    assert reports[0]["data"] == envelope(1, text="ż漢🙂").to_dict()


async def test_what_a_first_visit_is_told(clients: Clients, served: Stage):
    await watch(clients, served)
    await served.publish([envelope(1)])
    frames = [report["frame"] for report in await clients.until("a", "frame", 2)]
    assert [(frame["event"], frame.get("channel")) for frame in frames] == [
        ("pusher_internal:subscription_succeeded", CHANNEL),
        ("agent.custom", CHANNEL),
    ]
    assert frames[0]["data"] == {
        "recovery": {"was_recovering": False, "recovered": False, "epoch": "", "offset": 0}
    }


async def test_a_listener_of_one_type_gets_that_one(clients: Clients, served: Stage):
    clients.ask("open", "a", **served.for_echo)
    clients.ask("join", "a", channel="agent.s1", listen=".agent.custom")
    await clients.until("a", "subscribed")
    await served.publish([envelope(1)])
    (report,) = await clients.until("a", "event")
    assert report["data"]["seq"] == 1


async def test_all_events_may_travel_under_one_name(clients: Clients):
    async with stage(event_name="agent.event") as served:
        clients.ask("open", "a", **served.for_echo)
        clients.ask("join", "a", channel="agent.s1", listen=".agent.event")
        await clients.until("a", "subscribed")
        await served.publish([envelope(1)])
        (report,) = await clients.until("a", "event")
        assert report["data"] == envelope(1).to_dict()


async def test_a_public_channel_needs_no_proof(clients: Clients, served: Stage):
    clients.ask("open", "a", **served.for_echo)
    clients.ask("join", "a", channel="agent.s1", kind="channel")
    await clients.until("a", "subscribed")
    await served.hub.publish("agent.s1", [envelope(1)])
    await clients.until("a", "event", channel="agent.s1")


async def test_members_of_a_presence_channel_see_each_other_once(clients: Clients, served: Stage):
    for client, user in (("a", "ann"), ("b", "bob"), ("b2", "bob")):
        clients.ask("open", client, **served.for_echo, headers={"X-User": user})
        clients.ask("join", client, channel="agent.s1", kind="presence")
        await clients.until(client, "here")
    assert served.hub.members("presence-agent.s1") == {"ann": None, "bob": None}
    await clients.until("a", "joining")
    clients.ask("close", "b")
    await served.quiet(2)
    assert clients.seen("a", "leaving") == []
    clients.ask("close", "b2")
    await clients.until("a", "leaving")
    assert len(clients.seen("a", "joining")) == 1


async def test_whispers_reach_the_others_only(clients: Clients, served: Stage):
    for client in ("a", "b"):
        clients.ask("open", client, **served.for_echo, headers={"X-User": client})
        clients.ask("join", client, channel="agent.s1", kind="presence")
        await clients.until(client, "subscribed")
    clients.ask("whisper", "a", channel="agent.s1", data={"user_id": "somebody else", "n": 1})
    (report,) = await clients.until("b", "whisper")
    assert report["data"] == {"user_id": "somebody else", "n": 1}
    frame = (await clients.until("b", "frame", 2))[-1]["frame"]
    assert (frame["event"], frame["user_id"]) == ("client-typing", "a")  # the hub says who it was
    assert clients.seen("a", "whisper") == []


async def test_who_leaves_gets_no_more(clients: Clients, served: Stage):
    await watch(clients, served)
    await watch(clients, served, "b")
    clients.ask("leave", "a", channel="agent.s1")
    await served.until(lambda: served.hub.occupied() == {CHANNEL: 1})
    await served.publish([envelope(1)])
    await clients.until("b", "event")
    assert clients.seen("a", "event") == []


async def test_what_was_missed_after_an_abort_comes_in_order_and_once(clients: Clients, served: Stage):
    await watch(clients, served)
    await served.publish([envelope(n) for n in range(1, 42)])
    await clients.until("a", "event", 41)
    served.wire.refusing = True
    served.wire.cut()
    await served.quiet()
    await served.publish([envelope(n) for n in range(42, 48)])
    served.wire.refusing = False
    _, again = await clients.until("a", "subscribed", 2)
    await served.publish([envelope(48)])
    await clients.until("a", "event", 48)
    assert again["recovery"] == {"was_recovering": True, "recovered": True, "epoch": EPOCH, "offset": 47}
    assert [data["seq"] for data in clients.data("a", CHANNEL)] == list(range(1, 49))


async def test_a_gap_that_is_too_long_brings_nothing_and_a_pointer(clients: Clients):
    hub = a_hub(limits=limits(ring=5), snapshot_url="/threads/{session_id}")
    async with stage(hub=hub) as served:
        await watch(clients, served)
        await served.publish([envelope(1)])
        await clients.until("a", "event")
        served.wire.refusing = True
        served.wire.cut()
        await served.quiet()
        await served.publish([envelope(n) for n in range(2, 10)])
        served.wire.refusing = False
        _, again = await clients.until("a", "subscribed", 2)
        assert again["recovery"] == {
            "was_recovering": True, "recovered": False, "epoch": EPOCH, "offset": 9, "snapshot": "/threads/s1",
        }  # fmt: skip
        await served.publish([envelope(10)])
        await clients.until("a", "event", 2)
        assert [data["seq"] for data in clients.data("a", CHANNEL)] == [1, 10]


async def test_readers_of_a_thread_that_began_anew_are_told_on_the_spot(clients: Clients, served: Stage):
    await watch(clients, served)
    await served.publish([envelope(1), envelope(2)])
    await served.publish([envelope(1, epoch="other"), envelope(2, epoch="other")])
    await clients.until("a", "event", 4)
    again = clients.seen("a", "subscribed")[1]
    assert again["recovery"] == {"was_recovering": True, "recovered": False, "epoch": "other", "offset": 0}
    assert len(clients.seen("a", "state", state="connected")) == 1
    await served.publish([envelope(3)])  # a straggler of the log that is over
    assert served.hub.stats()["doubles"] == 1


@pytest.mark.parametrize("answer", ["forbidden", "broken", "nonsense", "elsewhere"])
async def test_an_auth_endpoint_that_does_not_say_yes(clients: Clients, answer: str):
    replies = {
        "forbidden": "403 Forbidden\r\nContent-Length: 0",
        "broken": "500 Internal Server Error\r\nContent-Length: 0",
        "nonsense": "200 OK\r\nContent-Length: 5\r\n\r\n{oops",
        "elsewhere": "302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0",
    }

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {replies[answer]}\r\n\r\n".encode())
        writer.close()

    async with stage() as served, await asyncio.start_server(reply, "127.0.0.1", 0) as endpoint:
        url = f"http://127.0.0.1:{endpoint.sockets[0].getsockname()[1]}/"
        clients.ask("open", "a", **served.for_echo, endpoint=url)
        clients.ask("join", "a", channel="agent.s1")
        (refused,) = await clients.until("a", "refused")
        assert refused["error"]["type"] == "AuthError"
        assert served.hub.occupied() == {}
        assert served.hub.stats()["auth_failures"] == 0  # the hub was not even asked


async def test_the_owner_decides_who_watches(clients: Clients):
    hub = a_hub(
        authorize=lambda user, session_id: (user, session_id) == ("ann", "s1"),
        identify=lambda h: h.get("x-user"),
    )
    async with stage("asgi", hub) as served:
        for client, user, channel in (("a", "ann", "s1"), ("b", "bob", "s1"), ("c", "ann", "s2")):
            clients.ask("open", client, **served.for_echo, headers={"X-User": user})
            clients.ask("join", client, channel=f"agent.{channel}")
        await clients.until("a", "subscribed")
        assert [(await clients.until(each, "refused"))[0]["error"]["status"] for each in "bc"] == [403, 403]


async def test_a_forged_proof_fires_the_error_callback_and_leaves_the_socket_alone(
    clients: Clients, served: Stage
):
    await watch(clients, served, "good")
    clients.ask("open", "a", **served.for_echo)
    (connected,) = await clients.until("a", "state", state="connected")
    forged = sign_channel(connected["socket"], CHANNEL, key="app-key", secret="wrong")
    endpoint = await asyncio.start_server(_says(f'{{"auth": "{forged}"}}'), "127.0.0.1", 0)
    async with endpoint:
        clients.ask(
            "open", "b", **served.for_echo,
            endpoint=f"http://127.0.0.1:{endpoint.sockets[0].getsockname()[1]}/",
        )  # fmt: skip
        clients.ask("join", "b", channel="agent.s1")
        (refused,) = await clients.until("b", "refused")
    assert refused["channel"] == CHANNEL
    assert refused["error"] == {
        "type": "AuthError",
        "error": "The connection is unauthorized.",
        "status": 401,
    }
    assert clients.seen("b", "state")[-1]["state"] == "connected"
    clients.ask("join", "b", channel="agent.pub", kind="channel")
    await clients.until("b", "subscribed", channel="agent.pub")


def _says(content: str):
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n\r\n{content}".encode())
        writer.close()

    return reply


async def test_history_answers_for_what_the_hub_forgot(clients: Clients):
    log = Log()
    hub = a_hub(history=log.history, limits=limits(ring=2))
    async with stage(hub=hub) as served:
        await watch(clients, served)
        await served.publish([log.next()])
        await clients.until("a", "event")
        served.wire.refusing = True
        served.wire.cut()
        await served.quiet()
        await served.publish([log.next() for _ in range(50)])
        served.wire.refusing = False
        await clients.until("a", "subscribed", 2)
        await served.publish([log.next()])
        await clients.until("a", "event", 52)
        assert [data["seq"] for data in clients.data("a", channel_for("s1"))] == list(range(1, 53))


@pytest.mark.parametrize("skin", ["websockets", "asgi"])
async def test_a_quiet_client_pings_and_stays_and_a_dead_line_is_noticed(clients: Clients, skin: str):
    """pusher-js asks after the server's activity timeout; when no pong comes it tries again on a new socket."""
    async with stage(skin, a_hub(limits=limits(activity=1, pong=1))) as served:
        await watch(clients, served, pongTimeout=700)
        before = served.wire.down
        await asyncio.sleep(2.5)
        assert served.wire.down > before  # pongs; nothing was published
        assert [each["state"] for each in clients.seen("a", "state")] == ["connected"]
        served.wire.freeze()
        await asyncio.sleep(2.5)
        assert clients.seen("a", "state")[-1]["state"] != "connected"
        served.wire.thaw()
        served.wire.cut()
        await clients.until("a", "subscribed", 2)


@pytest.mark.parametrize(
    ("code", "comes_back"),
    [(4001, False), (4009, False), (4100, True), (4200, True), (4201, True), (4301, False)],
)
async def test_what_a_close_code_makes_of_a_stock_client(clients: Clients, code: int, comes_back: bool):
    async with stage() as served:
        await watch(clients, served)
        await served.publish([envelope(1)])
        await clients.until("a", "event")
        (connection,) = served.hub._connections.values()
        served.hub.dismiss(connection, code, "a test")
        if comes_back:
            _, again = await clients.until("a", "subscribed", 2)
            assert again["recovery"]["recovered"] is True
        else:
            await clients.until("a", "state", state="disconnected")
            await asyncio.sleep(1.3)
            assert served.hub.stats()["opened"] == 1
