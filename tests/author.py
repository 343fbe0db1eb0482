"""Who writes the random streams: small scripts, run side by side, under the rules of the client's verifier.

Remembers what is open and who owns what, so that every stream it writes is valid; knows nothing of its meaning.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import ag_ui.core as ag

from tests.shapes import (
    ARGS,
    PIECES,
    ROLES,
    TAGS,
    TEXT_ROLES,
    VALUES,
    call,
    message,
    messages,
    metadata,
    patch,
    text,
)

Steps = Iterator[ag.Event]

BUCKETS = {"reasoning": "reasoning", "activity": "activity"}  # the verifier's drawer for a role's owners


class Author:
    """Writes one stream; remembers what is open and who owns what, as the client's verifier would."""

    def __init__(self, rng: random.Random, *, hostile: bool, chunks: bool, sequential: bool = False) -> None:
        self.rng = rng
        self.sequential = sequential
        self.hostile = hostile
        self.chunks = chunks
        self.out: list[ag.Event] = []
        self.count = 0  # ids given so far
        self.seen: dict[str, str] = {}  # message id -> role it was last known by
        self.calls: list[str] = []  # tool call ids seen so far
        self._reset()

    def _reset(self) -> None:
        """What a new run forgets."""
        self.open: dict[str, set[Any]] = {
            kind: set() for kind in ("text", "call", "span", "reasoning", "step")
        }
        self.owners: dict[str, dict[str, str | None]] = {
            kind: {} for kind in ("message", "toolCall", "activity", "reasoning")
        }
        self.subagents: set[str] = set()  # ever started in this run
        self.chunked: set[str] = set()  # ids that only chunks may use in this run

    def write(self) -> list[ag.Event]:
        """The whole stream: one to four runs, the last perhaps cut short."""
        if self.hostile and self.rng.random() < 0.05:
            self.out.append(ag.RunErrorEvent(message="first"))
        for number in range(self.rng.choice((1, 1, 2, 2, 3, 4))):
            self._run(number)
        if not self.sequential and self.rng.random() < 0.1:
            del self.out[self.rng.randint(1, len(self.out)) :]
        return self.out

    def _run(self, number: int) -> None:
        self._reset()
        run_id = "r0" if self.hostile and self.rng.random() < 0.2 else f"r{number}"
        started = ag.RunStartedEvent(thread_id="t1", run_id=run_id, input=self._input(run_id))
        if self.rng.random() < 0.2:
            started.parent_run_id = f"r{self.rng.randint(0, 4)}"
        if self.rng.random() < 0.5:
            started.protocol_version = "1.0"
        self.out.append(self._decorated(started))
        self._interleave()
        if not self.sequential and self.rng.random() < 0.2:
            self.out.append(self._error())
            return
        self._drain()
        self.out.append(self._finished(run_id))
        if self.rng.random() < 0.1:
            self.out.append(self._error())

    def _interleave(self) -> None:
        """Runs several small scripts side by side; which one goes on is chance."""
        self.scripts: list[Steps] = []
        kinds = self._kinds()
        for _ in range(self.rng.choice((0, 2, 5, 8, 14, 24))):
            if not self.scripts or self.rng.random() < 0.35:
                self.scripts.append(self.rng.choice(kinds)())
            self._advance(self.rng.choice(self.scripts))
            if self.sequential:
                self._drain()

    def _drain(self) -> None:
        while self.scripts:
            self._advance(self.rng.choice(self.scripts))

    def _advance(self, script: Steps) -> None:
        event = next(script, None)
        if event is None:
            self.scripts.remove(script)
        else:
            self.out.append(self._decorated(event))

    def _kinds(self) -> list[Callable[[], Steps]]:
        """The scripts of this run; each run favours a few, so that pure and mixed runs both happen."""
        every: list[Callable[[], Steps]] = [
            self._text_stream,
            self._text_stream,
            self._tool_call,
            self._tool_call,
            self._reasoning_stream,
            self._activity,
            self._state,
            self._state,
            self._snapshot,
            self._step,
            self._subagent,
            self._aside,
            self._encrypted,
            self._result,
        ]
        if self.chunks:
            every += [self._text_chunks, self._call_chunks, self._reasoning_chunks] * 2
        return self.rng.sample(every, self.rng.randint(1, 6)) if self.rng.random() < 0.5 else every

    # ids, tags, and what any event may carry

    def _id(self, kind: str, prefix: str) -> str:
        """An id that is free for this kind: from the tiny pool, an old one again, or a new one."""
        if self.hostile:
            free = [each for each in ("a", "b", "c", "d") if each not in self.open[kind] | self.chunked]
            if free and self.rng.random() < 0.9:
                return self.rng.choice(free)
        elif self.count and self.rng.random() < 0.1:
            old = f"{prefix}{self.rng.randint(1, self.count)}"
            if old not in self.open[kind] | self.chunked:
                return old
        self.count += 1
        return f"{prefix}{self.count}"

    def _known(self, prefix: str) -> str:
        """Some id that may or may not exist."""
        if self.hostile:
            return self.rng.choice(("a", "b", "c", "d", "nobody"))
        return f"{prefix}{self.rng.randint(1, self.count + 1)}"

    def _tag(self, kind: str, key: str) -> str | None:
        """A tag this entity's owner agrees with; for a new entity any tag will do."""
        owners = self.owners[kind]
        if key in owners:
            return owners[key] if self.rng.random() < 0.5 else None
        tag = self.rng.choice(TAGS) if self.rng.random() < 0.3 else None
        owners[key] = tag
        return tag

    def _any_tag(self) -> str | None:
        return self.rng.choice(TAGS) if self.rng.random() < 0.2 else None

    def _decorated(self, event: ag.Event) -> ag.Event:
        if self.rng.random() < 0.12:
            event.metadata = metadata(self.rng)
        if self.rng.random() < 0.1:
            event.timestamp = 1_700_000_000_000 + len(self.out)
        if self.rng.random() < 0.03:
            event.raw_event = {"n": len(self.out)}
        return event

    # the scripts

    def _text_stream(self) -> Steps:
        key = self._id("text", "m")
        tag = self._tag("message", key)
        self.open["text"].add(key)
        role = self.rng.choice(TEXT_ROLES)
        self.seen.setdefault(key, role or "assistant")
        name = "Bob" if self.rng.random() < 0.2 else None
        yield ag.TextMessageStartEvent(message_id=key, role=role, name=name, subagent_run_id=tag)
        for _ in range(self.rng.choice((0, 1, 2, 3, 6))):
            tag = self._tag("message", key)
            yield ag.TextMessageContentEvent(
                message_id=key, delta=self.rng.choice(PIECES), subagent_run_id=tag
            )
        self.open["text"].discard(key)
        yield ag.TextMessageEndEvent(message_id=key, subagent_run_id=self._tag("message", key))

    def _tool_call(self) -> Steps:
        key = self._id("call", "c")
        parent, tag = self._parent_and_tag(key)
        self.open["call"].add(key)
        self.calls.append(key)
        yield ag.ToolCallStartEvent(
            tool_call_id=key,
            tool_call_name=self.rng.choice(("f", "g")),
            parent_message_id=parent,
            subagent_run_id=tag,
        )
        for _ in range(self.rng.choice((0, 1, 2, 4))):
            tag = self._tag("toolCall", key)
            yield ag.ToolCallArgsEvent(tool_call_id=key, delta=self.rng.choice(ARGS), subagent_run_id=tag)
        self.open["call"].discard(key)
        yield ag.ToolCallEndEvent(tool_call_id=key, subagent_run_id=self._tag("toolCall", key))
        if self.rng.random() < 0.6:
            yield self._answer(key)

    def _parent_and_tag(self, key: str) -> tuple[str | None, str | None]:
        """A parent message whose owner agrees with the call's, and the tag to send."""
        parent = self._known("m") if self.rng.random() < 0.5 else None
        messages, calls = self.owners["message"], self.owners["toolCall"]
        if parent is not None and parent in messages:
            if key in calls and calls[key] != messages[parent]:
                parent = None
            else:
                calls.setdefault(key, messages[parent])
        return parent, self._tag("toolCall", key)

    def _answer(self, call: str) -> ag.Event:
        key = self._id("text", "m" if self.hostile else "tr")
        tag = self._any_tag()
        self.owners["message"][key] = tag
        self.seen[key] = "tool"
        content: Any = text(self.rng)
        if self.rng.random() < 0.15:
            content = [{"type": "text", "text": content}]
        role = "tool" if self.rng.random() < 0.5 else None
        return ag.ToolCallResultEvent(
            message_id=key, tool_call_id=call, content=content, role=role, subagent_run_id=tag
        )

    def _result(self) -> Steps:
        """A result on its own: for an earlier call, or for none."""
        call = self.rng.choice(self.calls) if self.calls and self.rng.random() < 0.7 else self._known("c")
        yield self._answer(call)

    def _reasoning_stream(self) -> Steps:
        span = self._id("span", "g")
        with_span = self.rng.random() < 0.7
        if with_span:
            self.open["span"].add(span)
            yield ag.ReasoningStartEvent(message_id=span, subagent_run_id=self._tag("reasoning", span))
        key = (
            span
            if span not in self.open["reasoning"] and self.rng.random() < 0.4
            else self._id("reasoning", "g")
        )
        if self.rng.random() < 0.9:
            yield from self._reasoning_message(key)
        if with_span:
            self.open["span"].discard(span)
            yield ag.ReasoningEndEvent(message_id=span, subagent_run_id=self._tag("reasoning", span))

    def _reasoning_message(self, key: str) -> Steps:
        tag = self._tag("reasoning", key)
        self.open["reasoning"].add(key)
        self.seen.setdefault(key, "reasoning")
        yield ag.ReasoningMessageStartEvent(message_id=key, subagent_run_id=tag)
        for _ in range(self.rng.choice((0, 1, 2, 3))):
            tag = self._tag("reasoning", key)
            delta = self.rng.choice(PIECES)
            yield ag.ReasoningMessageContentEvent(message_id=key, delta=delta, subagent_run_id=tag)
        self.open["reasoning"].discard(key)
        yield ag.ReasoningMessageEndEvent(message_id=key, subagent_run_id=self._tag("reasoning", key))

    def _encrypted(self) -> Steps:
        subtype = self.rng.choice(("tool-call", "message"))
        key = self._known("c" if subtype == "tool-call" else self.rng.choice("mg"))
        owner = self.owners["toolCall"].get(key)
        if subtype == "message":
            owner = self.owners["message"].get(key, self.owners["reasoning"].get(key))
        yield ag.ReasoningEncryptedValueEvent(
            subtype=subtype, entity_id=key, encrypted_value=f"e{len(self.out)}", subagent_run_id=owner
        )

    def _activity(self) -> Steps:
        key = self._known("x") if self.rng.random() < 0.3 else self._id("text", "x")
        for _ in range(self.rng.randint(1, 4)):
            if self.rng.random() < 0.4:
                yield self._activity_snapshot(key)
            else:
                yield ag.ActivityDeltaEvent(
                    message_id=key,
                    activity_type=self.rng.choice(("PLAN", "SEARCH")),
                    patch=patch(self.rng),
                    subagent_run_id=self.owners["activity"].get(key),
                )

    def _activity_snapshot(self, key: str) -> ag.Event:
        tag = self._any_tag()
        replace = self.rng.choice((None, None, True, False))
        if replace is not False or key not in self.owners["activity"]:
            self.owners["activity"][key] = tag
        self.seen[key] = "activity"
        return ag.ActivitySnapshotEvent(
            message_id=key,
            activity_type=self.rng.choice(("PLAN", "SEARCH")),
            content={"a": self.rng.choice(VALUES), "items": []},
            replace=replace,
            subagent_run_id=tag,
        )

    def _state(self) -> Steps:
        for _ in range(self.rng.randint(1, 4)):
            tag = self._any_tag()
            if self.rng.random() < 0.3:
                value = {"a": 1} if self.rng.random() < 0.5 else self.rng.choice(VALUES)
                yield ag.StateSnapshotEvent(snapshot=value, subagent_run_id=tag)
            else:
                yield ag.StateDeltaEvent(delta=patch(self.rng), subagent_run_id=tag)

    def _snapshot(self) -> Steps:
        if self.rng.random() < 0.5:
            return
        event = ag.MessagesSnapshotEvent(messages=self._restated())
        if self.rng.random() < 0.15:
            scope = self.rng.choice((None, ["PLAN"], [], "odd", ["PLAN", 1]))
            event.metadata = {"@ag-ui/client": {"authoritativeActivityTypes": scope}}
        yield event

    def _restated(self) -> list[dict[str, Any]]:
        """Some of what was said so far, perhaps shuffled, edited, or with strangers among it."""
        known = [each for each in self.seen if self.hostile or self.rng.random() < 0.7]
        if self.hostile:
            known = [self.rng.choice(("a", "b", "c", "d", "h1")) for _ in range(self.rng.randint(0, 4))]
        if self.rng.random() < 0.3:
            self.rng.shuffle(known)
        if self.rng.random() < 0.2:
            known.append(f"n{len(self.out)}")
        out = [self._restatement(key) for key in known]
        for each in out:
            self._seed_owners(each)
        return out

    def _restatement(self, key: str) -> dict[str, Any]:
        role = self.rng.choice(ROLES) if self.hostile else self.seen.get(key, "assistant")
        self.seen[key] = role
        bucket = BUCKETS.get(role, "message")
        tag = self.owners[bucket].get(key, self._any_tag())
        it = message(self.rng, key, role, tag)
        if role == "assistant" and self.calls and self.rng.random() < 0.3:
            it["toolCalls"] = [call(self.rng, self.rng.choice(self.calls))]
        return it

    def _seed_owners(self, it: dict[str, Any], *, authoritative: bool = True) -> None:
        tag = it.get("subagentRunId")
        bucket = BUCKETS.get(it["role"], "message")
        for kind, key in [(bucket, it["id"])] + [
            ("toolCall", each["id"]) for each in it.get("toolCalls", ())
        ]:
            if authoritative or key not in self.owners[kind]:
                self.owners[kind][key] = tag

    def _step(self) -> Steps:
        tag, name = self._any_tag(), self.rng.choice(("think", "act", "tools"))
        if (tag, name) in self.open["step"]:
            return
        self.open["step"].add((tag, name))
        yield ag.StepStartedEvent(step_name=name, subagent_run_id=tag)
        self.open["step"].discard((tag, name))
        yield ag.StepFinishedEvent(step_name=name, subagent_run_id=tag)

    def _subagent(self) -> Steps:
        key = self.rng.choice(("s1", "s2", "s3", ""))
        if key in self.subagents:
            return
        above = self.rng.choice((None, *sorted(self.subagents)))
        self.subagents.add(key)
        yield ag.SubagentStartedEvent(subagent_run_id=key, name="helper", parent_subagent_run_id=above)
        if self.rng.random() < 0.2:
            yield ag.SubagentErrorEvent(
                subagent_run_id=key, message="failed", code=self.rng.choice((None, "E"))
            )
            return
        outcome = self.rng.choice((None, {"type": "success"}, {"type": "suspended", "interruptIds": ["i1"]}))
        yield ag.SubagentFinishedEvent(subagent_run_id=key, outcome=outcome, result=self.rng.choice(VALUES))

    def _aside(self) -> Steps:
        if self.rng.random() < 0.6:
            yield ag.CustomEvent(name="note", value=self.rng.choice(VALUES), subagent_run_id=self._any_tag())
        else:
            source = self.rng.choice((None, "x"))
            yield ag.RawEvent(event=self.rng.choice(VALUES), source=source, subagent_run_id=self._any_tag())

    def _fresh(self, prefix: str) -> str:
        self.count += 1
        self.chunked.add(f"{prefix}{self.count}")
        return f"{prefix}{self.count}"

    def _or_short(self, key: str, last: ag.Event | None) -> str | None:
        """The id, or none when this chunk follows its own kin directly and so may leave it out."""
        return None if last is not None and self.out[-1] is last and self.rng.random() < 0.5 else key

    def _text_chunks(self) -> Steps:
        key, tag = self._fresh("m"), self._any_tag()
        self.owners["message"][key] = tag
        self.seen[key] = "assistant"
        chunk: ag.Event | None = None
        for _ in range(self.rng.randint(1, 4)):
            delta = self.rng.choice((None, *PIECES))
            chunk = ag.TextMessageChunkEvent(
                message_id=self._or_short(key, chunk), delta=delta, subagent_run_id=tag
            )
            yield chunk

    def _call_chunks(self) -> Steps:
        key, tag = self._fresh("c"), self._any_tag()
        self.owners["toolCall"][key] = tag
        self.calls.append(key)
        chunk: ag.Event | None = None
        for _ in range(self.rng.randint(1, 4)):
            delta = self.rng.choice((None, *ARGS))
            short = self._or_short(key, chunk)
            name = "f" if short is not None else None
            chunk = ag.ToolCallChunkEvent(
                tool_call_id=short, tool_call_name=name, delta=delta, subagent_run_id=tag
            )
            yield chunk

    def _reasoning_chunks(self) -> Steps:
        key, tag = self._fresh("g"), self._any_tag()
        self.owners["reasoning"][key] = tag
        self.seen[key] = "reasoning"
        chunk: ag.Event | None = None
        for _ in range(self.rng.randint(1, 4)):
            delta = self.rng.choice((None, *PIECES))
            short = self._or_short(key, chunk)
            chunk = ag.ReasoningMessageChunkEvent(message_id=short, delta=delta, subagent_run_id=tag)
            yield chunk

    # the borders of a run

    def _input(self, run_id: str) -> dict[str, Any] | None:
        """The echo of the run's input: what the client sent, some of it already known, some edited."""
        if self.rng.random() < 0.5:
            return None
        ids = ("a", "b", "c", "h1") if self.hostile else (f"u{run_id}", *list(self.seen)[:3])
        sent = [each for each in messages(self.rng, ids=ids) if each["role"] != "activity"]
        for each in sent:
            self.seen.setdefault(each["id"], each["role"])
            self._seed_owners(each, authoritative=False)
        return {"threadId": "t1", "runId": run_id, "messages": sent, "tools": [], "context": []}

    def _error(self) -> ag.Event:
        usage = [{"inputTokens": 3}] if self.rng.random() < 0.2 else None
        return self._decorated(
            ag.RunErrorEvent(message="broke", code=self.rng.choice((None, "E1")), usage=usage)
        )

    def _finished(self, run_id: str) -> ag.Event:
        event = ag.RunFinishedEvent(thread_id="t1", run_id=run_id, outcome=self._outcome())
        if event.outcome is None or event.outcome.type == "success":
            event.result = self.rng.choice(VALUES)
        if self.rng.random() < 0.2:
            event.usage = ag.RunErrorEvent(message="", usage=[{"model": "m", "inputTokens": 1}]).usage
        return self._decorated(event)

    def _outcome(self) -> dict[str, Any] | None:
        interrupt: dict[str, Any] = {"id": f"i{self.count}", "reason": "approval", "message": "go on?"}
        if self.rng.random() < 0.5:
            interrupt |= {
                "responseSchema": {"type": "object"},
                "metadata": {"k": None},
                "subagentRunId": "s1",
            }
        named = self.rng.sample(self.calls, min(len(self.calls), 2))
        return self.rng.choice(
            (
                None,
                {"type": "success"},
                {"type": "success", "pendingToolCallIds": named},
                {"type": "interrupt", "interrupts": [interrupt]},
                {"type": "cancelled"},
            )
        )
