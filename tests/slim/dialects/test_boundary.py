"""The official client translates older dialects too, at its compatibility boundary; ours agrees with it.

Ids that neither stream carried differ in spelling (the client draws them at random), so they are compared by which
events share one. Two differences are meant: a thinking span's title is kept in the metadata, where the client drops
it, and a binary part that has only a handle becomes a file source, which the client leaves as it is and then refuses.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from runcast.slim.dialects.upgrade import Upgrader
from runcast.slim.values.exact_json import parse
from runcast.slim.wire.codec import decode, encode
from tests.e2e.oracle import Oracle
from tests.slim import samples

Json = dict[str, Any]


def binary(rng: random.Random) -> Json:
    part: Json = {
        "type": "binary",
        "mimeType": rng.choice(("image/png", "audio/ogg", "video/mp4", "text/plain", "")),
    }
    part[rng.choice(("data", "url"))] = rng.choice(("u", "v"))
    if rng.random() < 0.3:
        part["url"] = ""
        part["data"] = "u"
    if rng.random() < 0.4:
        part["filename"] = rng.choice(("f", "g", ""))
    return part


def modern(rng: random.Random) -> Json:
    part: Json = {"type": rng.choice(("image", "audio", "document"))}
    part["source"] = {
        "type": rng.choice(("data", "url")),
        "value": rng.choice(("u", "v")),
        "mimeType": "image/png",
    }
    if rng.random() < 0.5:
        part["metadata"] = rng.choice(({"filename": "f"}, {"filename": "f", "a": None}, "f", None))
    return part


def parts(rng: random.Random) -> list[Json]:
    return [
        rng.choice((binary(rng), binary(rng), modern(rng), {"type": "text", "text": "t"}))
        for _ in range(rng.randrange(5))
    ]


def message(rng: random.Random, id: str) -> Json:
    match rng.randrange(3):
        case 0:
            return {"id": id, "role": "user", "content": parts(rng)}
        case 1:
            return {"id": id, "role": "tool", "toolCallId": "c", "content": parts(rng)}
        case _:
            return {"id": id, "role": "assistant", "content": "x"}


def run_input(rng: random.Random) -> Json:
    given: Json = {
        "threadId": "t",
        "runId": "r",
        "messages": [message(rng, str(at)) for at in range(rng.randrange(3))],
    }
    if rng.random() < 0.5:
        given["forwardedProps"] = rng.choice((None, {"a": None}))
    if rng.random() < 0.5:
        given["tools"] = [{"name": "n", "description": "d", "parameters": rng.choice((None, {"type": None}))}]
    if rng.random() < 0.5:
        given["resume"] = [{"interruptId": "i", "status": "resolved", "payload": rng.choice((None, [None]))}]
    return given


def older(rng: random.Random) -> Json:
    """An event as some release before 1.0 wrote it."""
    match rng.randrange(12):
        case 0:
            return {"type": "THINKING_START", **({"title": "t"} if rng.random() < 0.5 else {})}
        case 1:
            return {"type": "THINKING_END"}
        case 2:
            return {"type": "THINKING_TEXT_MESSAGE_START", "messageId": "theirs"}
        case 3 | 4:
            return {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": rng.choice(samples.TEXTS)}
        case 5:
            return {"type": "THINKING_TEXT_MESSAGE_END", "timestamp": 1}
        case 6:
            return {
                "type": "TOOL_CALL_START",
                "toolCallId": "c",
                "toolCallName": "n",
                "parentMessageId": None,
            }
        case 7:
            return {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "parentMessageId": None, "rawEvent": None}
        case 8:
            return {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": None, "result": None}
        case 9:
            return {"type": "SUBAGENT_FINISHED", "subagentRunId": "s", "result": None}
        case 10:
            return {
                "type": "MESSAGES_SNAPSHOT",
                "messages": [message(rng, str(at)) for at in range(rng.randrange(3))],
            }
        case _:
            return {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": run_input(rng)}


def comparable(events: list[Json]) -> list[Json]:
    """The events with every id that was made up replaced by the order in which it first came."""
    names: dict[str, str] = {}
    compared = []
    for event in events:
        event = dict(event)
        if event["type"].startswith("REASONING_"):
            event["messageId"] = names.setdefault(event["messageId"], f"made up {len(names)}")
            event.pop("metadata", None)  # where the title went
        compared.append(event)
    return compared


@pytest.mark.oracle
def test_upgraded_streams_are_what_the_client_s_boundary_makes_of_them(oracle: Oracle):
    rng = random.Random(45)
    streams = [[older(rng) for _ in range(rng.randrange(1, 12))] for _ in range(600)]
    answers = oracle.batch([{"op": "boundary", "events": stream} for stream in streams])
    for stream, answer in zip(streams, answers, strict=True):
        upgrader = Upgrader()
        ours = [upgrader.upgrade(event) for event in stream]
        assert comparable(ours) == comparable(answer["events"]), stream


@pytest.mark.oracle
def test_modern_streams_pass_both_boundaries_unchanged(oracle: Oracle):
    rng = random.Random(46)
    streams = [[samples.event(rng) for _ in range(8)] for _ in range(100)]
    answers = oracle.batch([{"op": "boundary", "events": stream} for stream in streams])
    for stream, answer in zip(streams, answers, strict=True):
        upgrader = Upgrader()
        assert [upgrader.upgrade(event) for event in stream] == stream
        assert len(answer["events"]) == len(stream)


@pytest.mark.oracle
def test_what_both_read_of_an_older_event_is_the_same(oracle: Oracle):
    rng = random.Random(47)
    events = [older(rng) for _ in range(800)]
    answers = oracle.batch([{"op": "boundary", "events": [event]} for event in events])
    translated = [answer["events"][0] for answer in answers]
    verdicts = oracle.ask("schema", events=translated)["verdicts"]
    for event, theirs, verdict in zip(events, translated, verdicts, strict=True):
        if verdict["ok"]:
            assert comparable([parse(encode(decode(event)))]) == comparable([theirs])
    assert sum(verdict["ok"] for verdict in verdicts) > 500
