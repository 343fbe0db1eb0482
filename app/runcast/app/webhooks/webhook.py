"""A webhook, its signature by Standard Webhooks, and the pauses between its attempts. Pure.

https://www.standardwebhooks.com: `webhook-id` is the same for every attempt, `webhook-timestamp` is that of the attempt,
`webhook-signature` has one HMAC-SHA256 for each secret, so that a secret can be replaced while both are valid.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal, get_args
from urllib.parse import urlsplit

Happening = Literal["completed", "failed", "interrupted", "queued"]
ALL: tuple[Happening, ...] = get_args(Happening)
PREFIX = "whsec_"
# seconds between attempts: a day in all
GAPS = (5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 28_800)


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that hears of runs: of one thread, of one tenant, or of all."""

    url: str
    secrets: tuple[str, ...] = field(repr=False)  # `whsec_…`, the newest first; every one signs
    events: tuple[Happening, ...] = ALL
    tenant: str | None = None  # None: every tenant
    thread_id: str | None = None  # None: every thread
    private: bool = False  # allow http, and addresses that are not public

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in (("https", "http") if self.private else ("https",)) or not parts.hostname:
            raise ValueError(
                f"{parts.scheme}://{parts.hostname} is no address for a webhook: give https://host/path"
            )
        if parts.username is not None or parts.password is not None:
            raise ValueError("a webhook's URL has no user and password: the receiver checks the signature")
        if not self.secrets:
            raise ValueError(
                "a webhook needs a secret, whsec_ and base64: the receiver checks the signature with it"
            )
        for secret in self.secrets:
            key_of(secret)

    @property
    def key(self) -> str:
        """Names the webhook in the store, which holds neither its URL nor its secrets."""
        own = "\0own" if self.tenant == "" else ""  # the tenant without a name, not every tenant
        text = "\0".join((self.url, self.tenant or "", self.thread_id or "")) + own
        return blake2b(text.encode(), digest_size=12).hexdigest()

    def wants(self, happening: Happening, tenant: str, thread_id: str) -> bool:
        """Whether it hears of this."""
        return (
            happening in self.events and self.tenant in (None, tenant) and self.thread_id in (None, thread_id)
        )


Webhooks = Sequence[Webhook] | Callable[[str, str], Sequence[Webhook]]
"""The webhooks of a host, or a function of tenant and thread id that returns them."""


def hooks_for(webhooks: Webhooks, tenant: str, thread_id: str) -> Sequence[Webhook]:
    """The webhooks that may hear of a thread."""
    return webhooks(tenant, thread_id) if callable(webhooks) else webhooks


def key_of(secret: str) -> bytes:
    """The bytes of a secret."""
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except (NotBase64, ValueError):
        key = b""
    if not 24 <= len(key) <= 64:
        raise ValueError("a webhook's secret is whsec_ and base64 of 24 to 64 random bytes")
    return key


def signed(secrets: Sequence[str], id: str, at: int, body: bytes) -> dict[str, str]:
    """The headers of an attempt at `at`, in seconds since the Unix epoch."""
    text = b"%s.%d.%s" % (id.encode(), at, body)
    proofs = (b64encode(hmac.digest(key_of(each), text, "sha256")).decode() for each in secrets)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(f"v1,{proof}" for proof in proofs),
    }
