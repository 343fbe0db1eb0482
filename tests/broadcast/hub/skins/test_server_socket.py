"""How the ASGI skin writes: one frame for all sockets where uvicorn's is at hand, queues under any other server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.frames import Frame, Opcode

from runcast.broadcast.hub.skins.asgi import HubApp
from runcast.broadcast.hub.skins.server_socket import drop, framed, server_socket
from tests.e2e.stage import a_hub, envelope, stage


class OtherServer:
    """The application's side of a server whose sockets are out of reach."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.incoming.put_nowait({"type": "websocket.connect"})

    def send(self) -> Any:
        sent = self.sent

        async def send(message: Any) -> None:
            await asyncio.sleep(0)
            sent.put_nowait(message)

        return send

    async def envelope(self) -> dict[str, Any]:
        message = await asyncio.wait_for(self.sent.get(), 30)
        found: dict[str, Any] = json.loads(message["text"])
        return found


async def test_a_server_whose_sockets_are_out_of_reach_is_sent_every_text_in_order() -> None:
    hub, server = a_hub(public=True, prefix="agent."), OtherServer()
    scope = {"type": "websocket", "path": "/ws", "query_string": b"channel=agent.s1", "headers": []}
    serving = asyncio.create_task(HubApp(hub)(scope, server.incoming.get, server.send()))
    assert await asyncio.wait_for(server.sent.get(), 30) == {"type": "websocket.accept"}
    assert (await server.envelope())["type"] == "hub.subscribed"
    await hub.publish("agent.s1", [envelope(seq) for seq in (1, 2, 3)])
    assert [(await server.envelope())["seq"] for _ in range(3)] == [1, 2, 3]
    await hub.aclose()
    assert (await asyncio.wait_for(server.sent.get(), 30))["type"] == "websocket.close"
    server.incoming.put_nowait({"type": "websocket.disconnect"})
    await asyncio.wait_for(serving, 30)


async def test_such_a_server_has_no_socket_to_write_to_nor_to_drop() -> None:
    assert server_socket(OtherServer().send()) is None
    assert not drop(OtherServer().send())


def test_a_frame_is_what_a_server_sends_for_a_text() -> None:
    body = "zwölf".encode() * 100
    assert framed(body) == Frame(Opcode.TEXT, body).serialize(mask=False)


@pytest.mark.parametrize("skin", ["asgi", "starlette", "fastapi"])
@pytest.mark.parametrize("compression", [None, "deflate"])
async def test_uvicorns_sockets_are_written_to_with_and_without_deflate(skin: str, compression: Any) -> None:
    async with stage(skin, a_hub(public=True, prefix="agent.")) as it:
        plain = await it.connect("/ws?channel=agent.s1", compression=compression)
        other = await it.connect("/ws?channel=agent.s1", compression=None)
        async with plain, other:
            for socket in (plain, other):
                assert json.loads(await asyncio.wait_for(socket.recv(), 30))["type"] == "hub.subscribed"
            await it.hub.publish("agent.s1", [envelope(1, text="ä" * 500)])
            for socket in (plain, other):
                assert json.loads(await asyncio.wait_for(socket.recv(), 30))["payload"]["text"] == "ä" * 500
            extensions = [type(each).__name__ for each in plain.protocol.extensions]
            assert extensions == (["PerMessageDeflate"] if compression else [])
