"""The page behind an answer's link: it shows the open questions, and one POST answers them.

Opening it changes nothing, so that a mail scanner may. Without scripts. Knows links and the cast; whoever holds the link is
let in, as far as that one run.
"""

from __future__ import annotations

import time
from html import escape
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import orjson

from runcast.app.errors import BadRequest, Gone, NotFound
from runcast.app.host.cast import Cast
from runcast.app.http.http_messages import Answer, ApiRequest
from runcast.app.runs.resume_entries import entries_in
from runcast.app.webhooks.answer_links import Asked
from runcast.app.webhooks.letters import told_of
from runcast.slim import RunInfo

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
HTML = "text/html; charset=utf-8"
FORM = "application/x-www-form-urlencoded"
STYLE = "body{font:16px/1.5 system-ui;max-width:38rem;margin:3rem auto;padding:0 1rem}textarea{width:100%}"
LONGEST = 100_000  # bytes of an answer


async def ask(request: ApiRequest, token: str) -> Answer:
    """The open questions of one run, with a form; by a signed link."""
    open_ = await _open(request, _read(request, token))
    fields = "".join(_field(number, each) for number, each in enumerate(open_.questions))
    return _page(f'<form method="post">{fields}<button>Send the answer</button></form>')


async def answer(request: ApiRequest, token: str) -> Answer:
    """Answer the open questions of one run, once; by a signed link."""
    wanted = _read(request, token)
    given = await _form(request)  # first: meanwhile the thread may move on
    open_ = await _open(request, wanted)
    answers: dict[str, Any] = {}
    for number, each in enumerate(open_.questions):
        if f"a{number}" not in given:
            raise BadRequest("answer every question")
        answers[each["id"]] = _value(given[f"a{number}"], each)
    # of this run, whatever is the newest by then: a later question may have the same id
    await open_.cast.launcher.resume(open_.run, wanted.thread_id, entries_in(answers))
    return _page("<p>Your answer was sent. You may close this page.</p>")


class _Open(NamedTuple):
    """A run that waits for answers."""

    cast: Cast
    run: RunInfo
    questions: list[dict[str, Any]]


def _read(request: ApiRequest, token: str) -> Asked:
    links = request.cast.options.answer_links
    if links is None:
        raise NotFound("this host has no links that answer")
    return links.read(token, now=int(time.time()))


async def _open(request: ApiRequest, wanted: Asked) -> _Open:
    """The run of a link, if it still waits for answers."""
    cast = request.cast.for_tenant(wanted.tenant)
    runs = await cast.log.runs(wanted.thread_id)
    if not runs or runs[-1].run_id != wanted.run_id or runs[-1].status != "interrupted":
        raise Gone("this question was answered already, or its thread has moved on")
    questions = (await told_of(cast, wanted.thread_id, runs[-1])).get("interrupts")
    if not questions:
        raise Gone("the words of this question are pruned: answer in the thread itself")
    return _Open(cast, runs[-1], questions)


async def _form(request: ApiRequest) -> dict[str, str]:
    if request.kind != FORM:
        raise BadRequest("send the form of this page")
    body = await request.read(LONGEST)
    try:
        return dict(
            parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
        )
    except ValueError:
        raise BadRequest("the form cannot be read") from None


def _field(number: int, asked: dict[str, Any]) -> str:
    """A question, and choices where its schema has them."""
    text = escape(str(asked.get("message") or asked.get("reason") or "The agent asks."))
    choices = _choices(asked)
    name = f'name="a{number}"'
    if choices is None:
        return f"<p>{text}</p><textarea {name} rows=6 required></textarea>"
    options = "".join(
        f'<p><label><input type="radio" {name} value="{at}" required> {escape(_shown(each))}</label></p>'
        for at, each in enumerate(choices)
    )
    return f"<p>{text}</p>{options}"


def _choices(asked: dict[str, Any]) -> list[Any] | None:
    schema = asked.get("responseSchema")
    if not isinstance(schema, dict):
        return None
    found: Any = [True, False] if schema.get("type") == "boolean" else schema.get("enum")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  # JSON
    return found if isinstance(found, list) else None  # pyright: ignore[reportUnknownVariableType]  # JSON


def _shown(value: Any) -> str:
    return {True: "Yes", False: "No"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _value(text: str, asked: dict[str, Any]) -> Any:
    """A choice, JSON where the schema is not of a text, or the text itself."""
    choices = _choices(asked)
    if choices is not None:
        if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) < len(choices)):
            raise BadRequest("choose one of the answers")
        return choices[int(text)]
    schema = asked.get("responseSchema")
    if isinstance(schema, dict) and schema.get("type") not in (None, "string"):  # pyright: ignore[reportUnknownMemberType]  # JSON
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise BadRequest(f"this question wants JSON: {error}") from None
    return text


def _page(content: str) -> Answer:
    html = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>An agent asks</title><style>{STYLE}</style>{content}</html>'
    return Answer(html.encode(), kind=HTML, headers=HEADERS)
