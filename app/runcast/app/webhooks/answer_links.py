"""Links that answer a run's questions: signed, expiring, and good for one run of one thread. Pure.

Whoever holds a link may answer, once; it opens nothing else. Knows tokens; does not know the page.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from runcast.app.errors import Gone, NotAllowed

DAY = 86_400


class Asked(NamedTuple):
    """The run that a link answers, until `expires`, in seconds since the Unix epoch."""

    tenant: str
    thread_id: str
    run_id: str
    expires: int


@dataclass(frozen=True, slots=True)
class AnswerLinks:
    """Makes and reads links; the same on all nodes."""

    url: str  # of the host, as its users reach it
    secret: str = field(repr=False)
    lasting: int = 3 * DAY  # seconds

    def __post_init__(self) -> None:
        if len(self.secret) < 32:
            raise ValueError(
                "a link's secret has at least 32 characters: take random ones, the same on all nodes"
            )
        if not self.url.startswith(("https://", "http://")):
            raise ValueError("the URL of links is this host's, as its users reach it: https://host/path")

    def link(self, tenant: str, thread_id: str, run_id: str, *, now: int) -> str:
        """The link to the page that answers this run."""
        body = orjson.dumps([tenant, thread_id, run_id, now + self.lasting])
        token = urlsafe_b64encode(self._proof(body) + body).rstrip(b"=").decode()
        return f"{self.url.rstrip('/')}/answers/{token}"

    def read(self, token: str, *, now: int) -> Asked:
        """What a link is for; raises when it is not one of ours, or has expired."""
        try:
            raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except ValueError:
            raw = b""
        if not hmac.compare_digest(raw[:32], self._proof(raw[32:])):
            raise NotAllowed("this link is not valid: open it as it was sent")
        asked = Asked(*orjson.loads(raw[32:]))
        if asked.expires <= now:
            raise Gone("this link has expired: answer in the thread itself")
        return asked

    def _proof(self, body: bytes) -> bytes:
        key = hmac.digest(self.secret.encode(), b"runcast answers", "sha256")
        return hmac.digest(key, body, "sha256")
