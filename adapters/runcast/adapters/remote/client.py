"""A Python AG-UI client: one POST, one stream of events.

`AgentClient.run` sends a `RunAgentInput` and yields the events of the answer, as the remote agent sent them, decoded from
any dialect that `runcast.slim` reads. It reads the response only as fast as its reader takes events. Secrets belong in
headers: they are sent to the agent's own address only, and appear in no error and no log. httpx logs URLs, so a user and
password in one become a header too.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx
from ag_ui.core import AgentCapabilities, Event, RunAgentInput
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from runcast.adapters.client_schemas import AgentSchemas
from runcast.adapters.errors import AdapterError, scrub
from runcast.adapters.remote.event_decoder import EventDecoder
from runcast.adapters.remote.options import RemoteOptions
from runcast.adapters.remote.server_sent import TooLarge
from runcast.slim.errors import WireError

STREAM = "text/event-stream"
LONGEST_ANSWER = 2_000  # bytes of a refusal that are read for its error text


T = TypeVar("T")


class _Description(TypedDict):
    schemas: AgentSchemas


class RemoteError(AdapterError, code="remote_error"):
    """The remote agent could not be reached, refused the run, or answered with something else than AG-UI events."""


class AgentClient:
    """The client of one agent. Use it as `async with AgentClient(url) as client`, or `aclose` it."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        options: RemoteOptions | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("give the agent's URL with http:// or https:// and a host")
        self.url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        self.options = options or RemoteOptions()
        self._headers = {**_basic(parts.username, parts.password), **_lower(headers)}
        self._own_http = http is None
        self._http = http or httpx.AsyncClient(timeout=_timeout(self.options))

    @property
    def address(self) -> str:
        """The URL without user, password and query, for errors and logs."""
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; a client that was passed in stays open."""
        if self._own_http:
            await self._http.aclose()

    async def run(self, input: RunAgentInput) -> AsyncGenerator[Event]:
        """Run the agent once. Close the generator to leave the run. Raises `RemoteError`."""
        decoder = EventDecoder(input.thread_id, max_bytes=self.options.max_event_bytes)
        body = input.model_dump_json(by_alias=True, exclude_none=True)
        headers = {"accept": STREAM, **self._headers, "content-type": "application/json"}
        async with (
            self._faults(),
            self._http.stream("POST", self.url, content=body, headers=headers) as answer,
        ):
            await self._expect_stream(answer)
            async for chunk in answer.aiter_bytes():
                for event in decoder.feed(chunk):
                    yield event

    async def capabilities(self) -> AgentCapabilities | None:
        """The agent's own description, from `GET {url}/capabilities`; None where the server has no such route."""
        return await self._read("/capabilities", AgentCapabilities)

    async def schemas(self) -> AgentSchemas:
        """The agent's schemas, from `GET {url}` of another runcast; none where the server has no such route."""
        found = await self._read("", _Description)
        return AgentSchemas() if found is None else found["schemas"]

    async def _read(self, below: str, kind: type[T]) -> T | None:
        parts = urlsplit(self.url)
        url = urlunsplit(parts._replace(path=parts.path.rstrip("/") + below))
        async with self._faults():
            answer = await self._http.get(url, headers={"accept": "application/json", **self._headers})
        if answer.status_code != 200:
            return None
        try:
            return TypeAdapter(kind).validate_json(answer.content)
        except ValidationError:
            return None

    async def _expect_stream(self, answer: httpx.Response) -> None:
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if answer.is_redirect:
            raise RemoteError(f"{self.address} redirects: give the URL that it redirects to")
        if answer.status_code != 200:
            text = await _beginning(answer)
            raise RemoteError(f"{self.address} answered {answer.status_code}{': ' if text else ''}{text}")
        if kind != STREAM:
            raise RemoteError(
                f"{self.address} answered with {kind or 'no content type'} instead of {STREAM}: "
                "is this the URL of an AG-UI agent?"
            )

    @asynccontextmanager
    async def _faults(self) -> AsyncGenerator[None]:
        """Every fault of the way as one `RemoteError`, without headers and without the URL's secrets."""
        try:
            yield
        except httpx.ConnectTimeout:
            raise RemoteError(f"{self.address} did not accept a connection in time") from None
        except httpx.ReadTimeout:
            raise RemoteError(
                f"{self.address} was silent for too long; RemoteOptions sets how long"
            ) from None
        except httpx.ConnectError:
            raise RemoteError(f"{self.address} cannot be reached: is the agent running?") from None
        except httpx.HTTPError as error:
            raise RemoteError(f"the connection to {self.address} broke ({type(error).__name__})") from None
        except (WireError, TooLarge) as error:
            raise RemoteError(f"{self.address} sent something else than AG-UI events: {error}") from None


def _lower(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {name.lower(): value for name, value in (headers or {}).items()}


def _basic(user: str | None, password: str | None) -> dict[str, str]:
    """The header for the user and password of a URL."""
    if user is None:
        return {}
    both = f"{unquote(user)}:{unquote(password or '')}"
    return {"authorization": "Basic " + b64encode(both.encode()).decode()}


def _timeout(options: RemoteOptions) -> httpx.Timeout:
    return httpx.Timeout(
        connect=options.connect_seconds,
        read=options.silence_seconds,
        write=options.silence_seconds,
        pool=options.connect_seconds,
    )


async def _beginning(answer: httpx.Response) -> str:
    """The beginning of a refusal as one line, unless it is a page."""
    if "html" in answer.headers.get("content-type", ""):
        return ""
    text = b""
    async for chunk in answer.aiter_bytes():
        text += chunk
        if len(text) >= LONGEST_ANSWER:
            break
    return scrub(text[:LONGEST_ANSWER].decode("utf-8", "replace"), limit=300)
