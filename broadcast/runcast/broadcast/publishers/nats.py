"""NATS JetStream: one subject for each channel in one stream, in order, with message ids.

JetStream numbers messages by itself; ours travel inside the data, and readers compare ours. It stores a message id once
within its window of two minutes, so an envelope that is sent again arrives once. A reader subscribes to the subject, or
consumes the stream from a sequence when it comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from runcast.broadcast.envelopes.budget import HUB, Budget
from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.errors import ConfigError, PublishError, TooLarge, WrongSettings
from runcast.broadcast.publishers.http_client import url_parts

try:
    from nats.aio.client import Client
    from nats.errors import Error, MaxPayloadError
    from nats.js.api import StreamConfig
    from nats.js.errors import BadRequestError, ServiceUnavailableError
except ImportError as error:  # pragma: no cover  a house test reads the message
    raise ImportError('the NATS publisher needs: pip install "runcast[nats]"') from error

SCHEMES = ("nats",)
_WINDOW = 120  # seconds in which a message id is stored once
_IN_USE = 10058  # the stream is there, with settings of its own


class NatsPublisher:
    """Publishes into JetStream; the stream is created when it is not there, and left as it is when it is."""

    name = "nats"

    def __init__(
        self,
        url: str,
        *,
        stream: str = "RUNCAST",
        prefix: str = "runcast",
        keep: int = 1_000,
        ttl: int = 3_600,
        budget: Budget = HUB,
        timeout: float = 5.0,
    ) -> None:
        parts, origin, user, password = url_parts(url)
        if parts.scheme not in ("nats", "nats+tls") or not parts.hostname:
            raise ConfigError("give nats://user:password@host:port, or nats+tls://… with TLS")
        self.budget = budget
        self._server = ("tls" if parts.scheme == "nats+tls" else "nats") + origin[origin.index("://") :]
        self._login = {"user": user, "password": password} if password else {"token": user} if user else {}
        self._stream = StreamConfig(
            name=stream,
            subjects=[f"{prefix}.>"],
            max_msgs_per_subject=keep,  # envelopes of a channel that the stream keeps
            max_age=ttl,  # seconds that it keeps them
            duplicate_window=min(_WINDOW, ttl),
        )
        self._prefix = prefix
        self._timeout = timeout
        self._client: Any = None  # its options are untyped
        self._connecting = asyncio.Lock()

    def subject(self, channel: str) -> str:
        """The subject of a channel."""
        return f"{self._prefix}.{channel}"

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """Publish each and wait until the stream has it."""
        subject = self.subject(channel)
        for done, envelope in enumerate(envelopes):
            part = "" if envelope.part is None else f".{envelope.part[0]}"
            headers = {"Nats-Msg-Id": f"{channel}:{envelope.history}:{envelope.seq}{part}:{envelope.type}"}
            try:
                jetstream = await self._jetstream()
                await jetstream.publish(subject, envelope.encode(), timeout=self._timeout, headers=headers)
            except (Error, OSError) as error:
                raise await self._failed(error, done) from error

    async def probe(self) -> str:
        """Connect with the URL's user, and look for the stream."""
        try:
            jetstream = await self._jetstream()
            state = (await jetstream.stream_info(self._stream.name or "")).state
        except (Error, OSError) as error:
            raise await self._failed(error, 0) from error
        return f"JetStream answers; its stream {self._stream.name} holds {state.messages} messages"

    async def aclose(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await self._close(client)

    async def _jetstream(self) -> Any:
        async with self._connecting:
            if self._client is None or not self._client.is_connected:
                await self.aclose()
                self._client = await self._connect()
            return self._client.jetstream()

    async def _connect(self) -> Any:
        client: Any = Client()
        options = {"error_cb": _silent, "connect_timeout": self._timeout, **self._login}
        once = {"allow_reconnect": False, "max_reconnect_attempts": 1, "reconnect_time_wait": 0}
        try:
            async with asyncio.timeout(2 * self._timeout):
                await client.connect(self._server, **once, **options)  # the worker retries
                await client.jetstream().add_stream(self._stream)
        except BadRequestError as error:
            if error.err_code != _IN_USE:
                await self._close(client)
                raise
        except BaseException:
            await self._close(client)
            raise
        return client

    async def _close(self, client: Any) -> None:
        """Close a connection; a line that is cut meanwhile must not hold it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                await client.close()

    async def _failed(self, error: Exception, done: int) -> PublishError:
        """The error of a message that did not arrive; the first `done` of the lot did."""
        problem, delivered = f"NATS did not take it: {type(error).__name__} {error}".strip(), range(done)
        refused: PublishError
        match error:
            case MaxPayloadError():
                refused = TooLarge(f"{problem}; raise max_payload of the server or lower max_envelope_bytes")
                refused.delivered = delivered
            case BadRequestError():
                refused = PublishError(problem, retry=False, delivered=delivered)
            case _ if "authorization" in str(error).lower():  # an error without a class of its own
                sentence = "check the user and the password in the publisher's URL"
                refused = WrongSettings(f"{problem}; {sentence}", delivered=delivered)
            case ServiceUnavailableError(err_code=None):
                refused = WrongSettings(
                    f"{problem}; start the server with JetStream: nats-server -js", delivered=delivered
                )
            case _:
                refused = PublishError(problem, delivered=delivered)
                await self.aclose()  # the next attempt connects anew
        return refused


async def _silent(error: Exception) -> None:
    """Errors of the connection reach the publish that fails."""


def connect(url: str) -> NatsPublisher:
    """`nats://host:port`, with `user:password@` or `token@` before the host; `nats+tls://…` with TLS."""
    return NatsPublisher(url)
