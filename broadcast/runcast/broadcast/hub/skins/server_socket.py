"""A WebSocket below its library's `send`: one text is framed once and written to every socket without a task.

For `websockets`, and behind an ASGI `send` for servers that let it be found: uvicorn. ASGI has a message for one socket, and none for many, for bytes that the client has not taken, or for dropping a connection.
uvicorn's `send` is a method of the protocol that holds the transport; Starlette wraps it in closures. Knows uvicorn's
protocol and that of `websockets`; does not know the hub.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

OPEN = State.OPEN  # looked up once: a member of an enum costs more than all else that is asked of a socket


class ServerSocket:
    """An accepted WebSocket, written to beside its library's `send`."""

    __slots__ = ("_conn", "buffered", "transport")

    def __init__(self, transport: Any, conn: ServerProtocol) -> None:
        self.transport = transport
        self._conn = conn
        self.buffered: Callable[[], int] = transport.get_write_buffer_size  # called for every envelope

    def write(self, frames: bytes, bodies: Sequence[bytes]) -> None:
        """Write the frames of texts, or the texts by the extensions that the client asked for, at once. A closed socket is
        skipped."""
        conn = self._conn
        if conn.state is not OPEN or self.transport.is_closing():
            return
        if not conn.extensions:
            self.transport.write(frames)
            return
        for body in bodies:
            conn.send_text(body)  # deflate keeps a state for each connection
        self.transport.write(b"".join(conn.data_to_send()))


def framed(body: bytes) -> bytes:
    """The frame of a text, as a server sends it."""
    return Frame(Opcode.TEXT, body).serialize(mask=False)


def server_socket(send: Callable[..., Any]) -> ServerSocket | None:
    """The socket behind an ASGI `send`; None for servers, and for uvicorn's other protocols, where it is out of reach."""
    for protocol in _owners(send):
        transport, conn = getattr(protocol, "transport", None), getattr(protocol, "conn", None)
        if hasattr(transport, "get_write_buffer_size") and isinstance(conn, ServerProtocol):
            return ServerSocket(transport, conn)
    return None


def drop(send: Callable[..., Any]) -> bool:
    """Drop the connection behind an ASGI `send`; False when its transport is out of reach.

    A close waits for ever behind bytes that the reader does not take, and servers do not time that out.
    """
    for protocol in _owners(send):
        abort = getattr(getattr(protocol, "transport", None), "abort", None)
        if abort is not None:
            abort()
            return True
    return False


def _owners(send: Callable[..., Any], depth: int = 4) -> Sequence[Any]:
    """The objects whose method `send` is, below the closures that wrap it."""
    owner = getattr(send, "__self__", None)
    cells = getattr(send, "__closure__", None) or ()
    inner = [cell.cell_contents for cell in cells if depth and callable(cell.cell_contents)]
    found: list[Any] = [] if owner is None else [owner]
    return [*found, *(owner for each in inner for owner in _owners(each, depth - 1))]
