"""Short streams, each asking the verifier one question: where runs begin and end, and what is open in them.

A probe that expects a rule is broken by its last event and by none before. The client of record is asked the same.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.slim.wires import (
    Wire,
    args,
    asks,
    call,
    call_chunk,
    call_end,
    custom,
    event,
    failed,
    finished,
    result,
    says,
    signed,
    span,
    span_end,
    started,
    step,
    step_end,
    subagent,
    subagent_end,
    text,
    text_chunk,
    text_end,
    thinks,
    thought,
    thought_chunk,
    thought_end,
)


class Probe(NamedTuple):
    """One question: a stream, and the rule its last event breaks, if any."""

    name: str
    rule: str | None
    events: list[Wire]


def inside(name: str, rule: str | None, *events: Wire) -> Probe:
    """The question is asked inside a run; when nothing is wrong, the run is finished too."""
    end = [finished()] if rule is None else []
    return Probe(name, rule, [started(), *events, *end])


def whole(name: str, rule: str | None, *events: Wire) -> Probe:
    return Probe(name, rule, list(events))


S1, S2 = {"subagentRunId": "s1"}, {"subagentRunId": "s2"}
TWO_LANES = text_chunk("m1", **S1), text_chunk("m2", **S2)

BORDERS = [
    whole("an empty run", None, started(), finished()),
    whole("an error with no run", None, failed()),
    whole("a run may begin after an error with no run", None, failed(), started(), finished()),
    whole("text before any run", "first-event", text()),
    whole("a finish before any run", "first-event", finished()),
    whole("a step before any run", "first-event", step()),
    whole("a run inside a run", "run-active", started(), started("r2")),
    whole("the same run again inside itself", "run-active", started(), text(), started()),
    whole("a second run", None, started(), finished(), started("r2"), finished("r2")),
    whole("text after the finish", "after-finish", started(), finished(), text()),
    whole(
        "a custom event after the finish",
        "after-finish",
        started(),
        finished(),
        event("CUSTOM", name="n", value=1),
    ),
    whole(
        "a chunk after the finish",
        "after-finish",
        started(),
        finished(),
        event("TEXT_MESSAGE_CHUNK", messageId="m"),
    ),
    whole("a second finish", "after-finish", started(), finished(), finished()),
    whole("a late error", None, started(), finished(), failed()),
    whole("text after an error", "after-error", started(), failed(), text()),
    whole("a finish after an error", "after-error", started(), failed(), finished()),
    whole("a second error", "after-error", started(), failed(), failed()),
    whole("an error after a late error", "after-error", started(), finished(), failed(), failed()),
    whole("text after a late error", "after-error", started(), finished(), failed(), text()),
    whole("a run after an error", None, started(), failed(), started("r2"), finished("r2")),
    whole("a run after a late error", None, started(), finished(), failed(), started("r2"), finished("r2")),
]

FINISHING = [
    inside("finish with a step open", "open-at-finish", step(), finished()),
    inside("finish with a subagent's step open", "open-at-finish", step(**S1), finished()),
    inside("finish with a text open", "open-at-finish", text(), finished()),
    inside("finish with a thought open", "open-at-finish", thought(), finished()),
    inside("finish with a span open", "open-at-finish", span(), finished()),
    inside("finish with a call open", "open-at-finish", call(), finished()),
    inside("finish with a subagent active", "open-at-finish", subagent(), finished()),
    inside("finish with a call unanswered", None, call(), args(), call_end()),
    whole(
        "error with everything open",
        None,
        started(),
        step(),
        text(),
        thought(),
        span(),
        call(),
        subagent(),
        failed(),
    ),
    whole(
        "a new run starts with nothing open",
        None,
        *(started(), text(), call(), step(), subagent(), failed()),
        *(
            started("r2"),
            text(),
            text_end(),
            call(),
            call_end(),
            step(),
            step_end(),
            subagent(),
            subagent_end(),
        ),
        finished("r2"),
    ),
    whole(
        "what an error dropped cannot go on",
        "text-not-open",
        started(),
        text(),
        failed(),
        started("r2"),
        says(),
    ),
]

STREAMS = [
    inside("a text", None, text(), says(), says(), text_end()),
    inside("a text opened twice", "text-already-open", text(), text()),
    inside("content of no text", "text-not-open", says()),
    inside("end of no text", "text-not-open", text_end()),
    inside("content after the end", "text-not-open", text(), text_end(), says()),
    inside("a second end", "text-not-open", text(), text_end(), text_end()),
    inside("content of another text", "text-not-open", text("m1"), says("m2")),
    inside("a text reopened after its end", None, text(), text_end(), text(), says(), text_end()),
    inside(
        "two texts interleaved",
        None,
        text("a"),
        text("b"),
        says("a"),
        says("b"),
        text_end("a"),
        text_end("b"),
    ),
    inside("an empty id is an id", None, text(""), says(""), text_end("")),
    inside("a call", None, call(), args(), call_end(), result()),
    inside("a call opened twice", "call-already-open", call(), call()),
    inside("args of no call", "call-not-open", args()),
    inside("end of no call", "call-not-open", call_end()),
    inside("args after the end", "call-not-open", call(), call_end(), args()),
    inside("a call reopened after its end", None, call(), call_end(), call(), args(), call_end()),
    inside("a call inside an open text", None, text(), call(parentMessageId="m1"), call_end(), text_end()),
    inside("a call and a text of one id", None, text("x"), call("x"), call_end("x"), text_end("x")),
    inside("a result of no call", None, result()),
    inside("a result before the end of its call", None, call(), result(), args(), call_end()),
    inside("two results of one call", None, call(), call_end(), result("a"), result("b")),
    inside(
        "a result does not open its message", "text-not-open", call(), call_end(), result("m2"), says("m2")
    ),
]

REASONING = [
    inside(
        "a span and its message under one id", None, span(), thought(), thinks(), thought_end(), span_end()
    ),
    inside("a message with no span", None, thought(), thinks(), thought_end()),
    inside("a span closed before its message", None, span(), thought(), span_end(), thinks(), thought_end()),
    inside(
        "two messages in a span",
        None,
        span(),
        thought("a"),
        thought_end("a"),
        thought("b"),
        thought_end("b"),
        span_end(),
    ),
    inside("a span opened twice", "span-already-open", span(), span()),
    inside("end of no span", "span-not-open", span_end()),
    inside("a span is no message", "reasoning-not-open", span(), thinks()),
    inside("a message is no span", "span-not-open", thought(), span_end()),
    inside("a thought opened twice", "reasoning-already-open", thought(), thought()),
    inside("content of no thought", "reasoning-not-open", thinks()),
    inside("end of no thought", "reasoning-not-open", thought_end()),
    inside("a thought reopened", None, thought(), thought_end(), thought(), thinks(), thought_end()),
    inside("text is no thought", "reasoning-not-open", text("g1"), thinks("g1")),
    inside("a signature of nothing", None, signed("nobody")),
    inside("a signature after the end", None, thought(), thought_end(), signed("g1")),
]

STEPS = [
    inside("a step", None, step(), step_end()),
    inside("a step again", None, step(), step_end(), step(), step_end()),
    inside("a step started twice", "step-already-open", step(), step()),
    inside("a subagent's step started twice", "step-already-open", step(**S1), step(**S1)),
    inside("end of no step", "step-not-open", step_end()),
    inside("end of another step", "step-not-open", step("a"), step_end("b")),
    inside("parent and subagent each have it", None, step(), step(**S1), step_end(**S1), step_end()),
    inside("the parent's step ended by a subagent", "step-of-another", step(), step_end(**S1)),
    inside("a subagent's step ended by the parent", "step-of-another", step(**S1), step_end()),
    inside(
        "a subagent with an empty id is not the parent", "step-of-another", step(), step_end(subagentRunId="")
    ),
    inside("steps overlap", None, step("a"), step("b"), step_end("a"), step_end("b")),
]

CHUNKS = [
    inside(
        "chunks",
        None,
        text_chunk("m1"),
        text_chunk(),
        call_chunk("c1", toolCallName="f"),
        thought_chunk("g1"),
    ),
    inside("a first chunk without its id", "bad-chunk", text_chunk()),
    inside("a first thought chunk without its id", "bad-chunk", thought_chunk()),
    inside("a first call chunk without its id", "bad-chunk", call_chunk(toolCallName="f")),
    inside("a first call chunk without its name", "bad-chunk", call_chunk("c1")),
    inside("a chunk of another role", "bad-chunk", text_chunk("m1"), text_chunk(role="user")),
    inside("a chunk of another name", "bad-chunk", text_chunk("m1", name="A"), text_chunk("m1", name="B")),
    inside(
        "a call chunk of another name",
        "bad-chunk",
        call_chunk("c1", toolCallName="f"),
        call_chunk(toolCallName="g"),
    ),
    inside("a chunk after CUSTOM", "bad-chunk", text_chunk("m1"), custom(), text_chunk()),
    inside("RAW between chunks", None, text_chunk("m1"), event("RAW", event=1), text_chunk()),
    inside("a chunk that may be of two subagents", "bad-chunk", *TWO_LANES, text_chunk()),
    inside("a chunk under another's tag", "bad-chunk", text_chunk("m1", **S1), text_chunk("m1", **S2)),
    inside("a chunk of an open message", "text-already-open", text("m1"), text_chunk("m1")),
    inside("content of a chunked message", "text-not-open", text_chunk("m1"), says("m1")),
]

UNCHECKED = [  # what the client lets pass; some of it `strict` does not
    inside("an unknown type", None, event("NEWS", weight=1)),
    whole("an unknown type before any run", None, event("NEWS"), started(), finished()),
    whole("an unknown type behind an error", None, started(), failed(), event("NEWS")),
    whole("no end", None, started(), text()),
    whole("nothing at all", None),
    whole("another run's finish", None, started("r1"), finished("r2")),
    whole("another thread's finish", None, started("r1", "t1"), finished("r1", "t2")),
    whole("a run again", None, started(), finished(), started(), finished()),
    whole(
        "another thread's run",
        None,
        started("r1", "t1"),
        finished("r1", "t1"),
        started("r2", "t2"),
        finished("r2", "t2"),
    ),
    whole("a run that is its own parent", None, started(parentRunId="r1"), finished()),
    whole("two interrupts of one id", None, started(), finished(**asks({"id": "i1"}, {"id": "i1"}))),
]

ORDER = [*BORDERS, *FINISHING, *STREAMS, *REASONING, *STEPS, *CHUNKS, *UNCHECKED]
