"""The redactor over any text: no planted secret survives, whole or in pieces, and no text keeps it busy.

The first byte says which secret and in which kind of event, the second where the pieces are cut; `@S@` in the text is
where the secret stands. Linear time is held by stretching the text, once four times as long as before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from ag_ui.core import (
    CustomEvent,
    Event,
    ReasoningMessageContentEvent,
    RunFinishedEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
)

from runcast.slim.redaction.patterns import CARD_NUMBER, DEFAULT_PATTERNS, EMAIL
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.values.linear_regex import Linear
from tests.slim.planted import BY_FORM, PASSWORD

TOKENS = (
    *(
        b"@S@",
        b"password",
        b'"password":"',
        b'\\"token\\":\\"',
        b"secret=",
        b"Bearer ",
        b"Basic ",
        b"eyJ",
        b"sk-",
    ),
    *(
        b"AKIA",
        b"-----BEGIN PRIVATE KEY-----",
        b"-----END PRIVATE KEY-----",
        b"://",
        b"@",
        b":",
        b"=",
        b"{",
        b"[",
    ),
    *(
        b"}",
        b"]",
        b"\\\\",
        b'\\"',
        b"\n",
        b"\\u0041",
        b"[redacted]",
        b"\xed\xa0\xbd",
        b"Cookie: ",
        b"4111 1111 ",
    ),
    *(
        b"api_key",
        b"'",
        b'"',
        b"cvv",
        b"null",
        b"authorization",
        b"xoxb-",
        b"SG.",
        b"ghp_",
        b" ",
        b"0123456789abcdef",
    ),
)
STRETCHED = 4_000  # characters, and four times as many
SLACK = 0.3  # seconds of work that four times as much may take beyond ten times as long
MOST_PIECES = 120  # of an input: each is a search

DEFAULT = Redactor()
WIDE = Redactor(patterns=(*DEFAULT_PATTERNS, EMAIL, CARD_NUMBER, r"(x+x+)+y"), window=1_024, hold=64)
SECRETS = (*BY_FORM.values(), f"Bearer {PASSWORD}0123456789", f'password: "{PASSWORD}"')
CUTS = (1, 2, 3, 5, 7, 16, 61, 300)


def check(data: bytes) -> None:
    """Raise for whatever is not as promised."""
    if len(data) < 3:
        return
    choice, cut = data[0], CUTS[data[1] % len(CUTS)]
    secret = SECRETS[choice % len(SECRETS)]
    redactor = WIDE if data[1] & 64 else DEFAULT
    raw = data[2:].decode("utf-8", "surrogatepass" if choice & 1 else "replace") if _sound(data) else ""
    text = raw.replace("@S@", f" {secret} ")
    hidden = _hidden(secret) if "@S@" in raw and _hidden(secret) not in raw else None
    whole = redactor.text(text)
    assert hidden is None or hidden not in whole, "a secret survived in a text"
    assert redactor.text(whole) == whole, "redacting twice is redacting once"
    assert hidden is None or hidden not in str(redactor.value({"a": [text], text[:20]: text})), "in a value"
    said = "".join(_said(redactor, text, choice >> 5, max(cut, -(-len(text) // MOST_PIECES))))
    assert hidden is None or hidden not in said, "a secret survived in pieces"
    _stands_in(said, whole)
    if data[1] == 255:
        _takes_a_moment(redactor, text)
    _own_pattern(raw)


def _sound(data: bytes) -> bool:
    try:
        data[2:].decode("utf-8", "surrogatepass" if data[0] & 1 else "replace")
    except UnicodeDecodeError:
        return False
    return True


def _hidden(secret: str) -> str:
    """The part that must go: prefixes and names may stay, they only say what it was."""
    return PASSWORD if PASSWORD in secret else secret[-12:]


def _said(redactor: Redactor, text: str, kind: int, cut: int) -> Iterator[str]:
    stream = redactor.stream()
    for at in range(0, len(text), cut):
        for event in stream.feed(_delta(kind, text[at : at + cut])):
            yield getattr(event, "delta", "")
        if kind & 4 and at % (3 * cut) == 0:  # something else goes by
            yield from _others(stream.feed(CustomEvent(name="n", value=1)))
    yield from _others(stream.feed(RunFinishedEvent(thread_id="t", run_id="r")))
    yield from _others(stream.close())


def _others(events: list[Any]) -> list[str]:
    return [event.delta for event in events if hasattr(event, "delta")]


def _delta(kind: int, text: str) -> Event:
    match kind & 3:
        case 0:
            return TextMessageContentEvent.model_construct(message_id="m", delta=text)
        case 1:
            return ReasoningMessageContentEvent.model_construct(message_id="m", delta=text)
        case _:
            return ToolCallArgsEvent.model_construct(tool_call_id="c", delta=text)


def _stands_in(said: str, whole: str) -> None:
    """What a stream leaves stands in the whole as well, in this order: it never says more."""
    at = 0
    for piece in said.split("[redacted]"):
        if piece:
            at = whole.find(piece, at)
            assert at >= 0, "a stream says more than the whole"


def _takes_a_moment(redactor: Redactor, text: str) -> None:
    if not text:
        return
    once, more = (_work(redactor, text, size) for size in (STRETCHED, 4 * STRETCHED))
    assert more < 10 * once + SLACK, "that text keeps the redactor busy"


def _work(redactor: Redactor, text: str, size: int) -> float:
    """Seconds of work for so much of the text, as a whole and in pieces."""
    long = (text * (size // len(text) + 1))[:size]
    began = time.process_time()
    redactor.text(long)
    stream = redactor.stream()
    for at in range(0, size, 128):
        stream.feed(TextMessageContentEvent.model_construct(message_id="m", delta=long[at : at + 128]))
    stream.close()
    return time.process_time() - began


def _own_pattern(raw: str) -> None:
    """A pattern of a user's own is refused with a sentence, or is searched whatever it is."""
    source, _, text = raw.partition("\n")
    if not 0 < len(source) <= 60 or not text:
        return
    try:
        pattern = Linear(source)
    except ValueError:
        return
    end = 0
    for start, stop in pattern.spans(text[:600].encode("utf-8", "replace").decode()):
        assert end <= start < stop, "spans stand in order and are not empty"
        end = stop
