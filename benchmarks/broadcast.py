"""What a watcher costs: frames and bytes at a model's pace with and without the roll-up, and the mapper's share of a run.

The pace is 80 tokens a second for a minute of answers with tool calls between them. Bytes are those of the hub's own
frames on a WebSocket, without TCP; deflate is what permessage-deflate does with context takeover, as `websockets`
has it. The mapper is held against encoding the events that it maps: by the official `EventEncoder`, and by runcast's.

The mapper is no small part of that: a token becomes an object with a place of its own before the roll-up may join it
to others, and that costs about as much as writing down its event. What matters is the last row: of a second of a
core, the watchers of a run at full pace take a few hundred microseconds.
"""

from __future__ import annotations

import timeit
import zlib
from typing import Any

import orjson
from ag_ui.core import Event, RunFinishedEvent, RunStartedEvent
from ag_ui.encoder import EventEncoder

from benchmarks.wire import text_message, tool_call
from runcast.broadcast import BroadcastConfig, Coalescer, Envelope, EnvelopeMapper
from runcast.broadcast.hub.protocol import frame
from runcast.slim import decode, encode
from runcast.slim.entry import Entry

PACE = 80  # tokens a second
CHANNEL = "private-agent.0b9d4a5e-6a75-4a1f-9c55-6d8b0c6c1d9e"
Row = dict[str, Any]


def entries(seconds: int) -> list[Entry]:
    """Some answers of five seconds each, a tool call after every one, as a log has them."""
    events: list[Event] = [RunStartedEvent(thread_id="t", run_id="r")]
    for at in range(seconds // 5):
        events += [_event(each) for each in text_message(f"msg_{at:024}", 5 * PACE)]
        events += [_event(each) for each in tool_call(at)]
    events.append(RunFinishedEvent(thread_id="t", run_id="r"))
    thread, run = CHANNEL.removeprefix("private-agent."), "run-7c1f7a30-2d7c-4a55"
    now, kept = 1_768_557_905_000.0, []
    for seq, event in enumerate(events, 1):
        now += 1000 / PACE if event.type == "TEXT_MESSAGE_CONTENT" else 0
        kept.append(Entry(thread, seq, "k3f9x2ab", run, int(now), event))
    return kept


def _event(wire: dict[str, Any]) -> Any:
    return decode(orjson.dumps(wire))


def sent(log: list[Entry], window: int) -> list[bytes]:
    """The frames that a Pusher client receives, at the pace of the entries."""
    mapper, roll = EnvelopeMapper(), Coalescer(window)
    out: list[Envelope] = []
    for entry in log:
        due = roll.due()
        if due is not None and due <= entry.at:
            out += roll.tick(due)
        for envelope in mapper.feed(entry):
            out += roll.feed(envelope, entry.at)
    out += roll.flush()
    return [frame(each.type, channel=CHANNEL, data=each.to_dict()).encode() for each in out]


def deflated(frames: list[bytes]) -> int:
    """Bytes after permessage-deflate: one window for the connection, each message's tail cut off."""
    pack = zlib.compressobj(wbits=-12, memLevel=5)
    return sum(len(pack.compress(each) + pack.flush(zlib.Z_SYNC_FLUSH)) - 4 for each in frames)


def wire_rows(seconds: int) -> list[Row]:
    log = entries(seconds)
    raw, rolled = sent(log, 0), sent(log, BroadcastConfig().rollup_ms)
    before, after = sum(map(len, raw)) / seconds / 1000, sum(map(len, rolled)) / seconds / 1000
    packed = deflated(rolled) / seconds / 1000
    fewer = len(raw) / len(rolled)
    return [
        _row(
            "frames a second at 80 tokens/s, rolled up",
            len(rolled) / seconds,
            len(raw) / seconds,
            "frames",
            fewer,
            ">= 3",
            fewer >= 3,
        )
        | {"key": "frames_s"},
        _row("bytes a second, rolled up", after, before, "kB", before / after, "", None) | {"key": "wire_kb_s"},
        _row("bytes a second, rolled up and deflated", packed, before, "kB", before / packed, "", None)
        | {"key": "deflated_kb_s"},
        {"name": "events a second of such a run", "ours": len(log) / seconds, "unit": "events", "bar": "shown", "ok": None, "key": "events_s"},
    ]  # fmt: skip


def mapper_rows(seconds: int, repeat: int) -> list[Row]:
    log = entries(seconds)
    events = [entry.event for entry in log]
    texts = sum(event.type == "TEXT_MESSAGE_CONTENT" for event in events)
    official = EventEncoder()

    def mapped(config: BroadcastConfig) -> None:
        mapper = EnvelopeMapper(config)
        for entry in log:
            mapper.feed(entry)

    def best(work: Any) -> float:
        return min(timeit.repeat(work, number=1, repeat=repeat)) / len(events) * 1e6

    theirs = best(lambda: [official.encode(event) for event in events])
    ours = best(lambda: [encode(event) for event in events])
    standard = best(lambda: mapped(BroadcastConfig.standard()))
    minimal = best(lambda: mapped(BroadcastConfig.minimal()))
    said = f"({texts / len(events):.0%} of the events are text)"
    return [
        _row(f"mapper, standard, to the official encoding {said}", standard, theirs, "us an event", standard / theirs, "<= 1", standard / theirs <= 1),
        _row("mapper, minimal, to the official encoding", minimal, theirs, "us an event", minimal / theirs, "<= 0.25", minimal / theirs <= 0.25),
        _row("mapper, standard, to runcast's own encoding", standard, ours, "us an event", standard / ours, "", None),
        _row("mapper, of a second of a core at 80 tokens/s", standard * PACE, 1e6, "us", standard * PACE / 1e6, "<= 0.001", standard * PACE <= 1000),
    ]  # fmt: skip


def _row(name: str, ours: float, peer: float, unit: str, ratio: float, bar: str, ok: bool | None) -> Row:
    return {"name": name, "ours": ours, "peer": peer, "unit": unit, "ratio": ratio, "bar": bar, "ok": ok}


def run(quick: bool) -> list[Row]:
    """Frames and bytes a watcher gets, and what the mapper adds."""
    seconds = 10 if quick else 60
    return wire_rows(seconds) + mapper_rows(seconds, 3 if quick else 15)


if __name__ == "__main__":
    for row in run(quick=False):
        print(row)
