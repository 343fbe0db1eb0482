"""Sizes, faults and floods: cases 28, 30, 31 and 33, with targets that answer over real sockets."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    Event,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.broadcast import (
    HUB,
    PUSHER,
    REVERB,
    SOKETI,
    BroadcastConfig,
    Broadcaster,
    Budget,
    Envelope,
    EnvelopeMapper,
    MemoryPublisher,
    PublishError,
    PusherPublisher,
    Reader,
    Take,
    open_publisher,
)
from runcast.broadcast.envelopes.budget import tightest
from runcast.slim.values.truncation import clean
from tests.broadcast.entries import Thread
from tests.broadcast.publishers.http_stand_in import listening
from tests.broadcast.test_broadcaster import CHANNEL, Moody, broadcaster, chained
from tests.servers import free_port

SAMPLES = {
    "ascii": "a",
    "quotes": '"',
    "newlines": "\n",
    "latin": "ż",
    "han": "漢",
    "emoji": "😀",
    "half": "\ud83d",
}
PROFILES = {"hub": HUB, "pusher": PUSHER, "reverb": REVERB, "soketi": SOKETI}


def loud(text: str) -> list[Event]:
    """A run that says one text in all the ways there are."""
    return [
        RunStartedEvent(thread_id="t1", run_id="r1"),
        ToolCallStartEvent(tool_call_id="c", tool_call_name="f"),
        ToolCallArgsEvent(tool_call_id="c", delta=json.dumps({"q": text})),
        ToolCallEndEvent(tool_call_id="c"),
        ToolCallResultEvent(message_id="t", tool_call_id="c", content=text),
        CustomEvent(name="n", value={"deep": [text]}),
        TextMessageStartEvent(message_id="m"),
        TextMessageContentEvent(message_id="m", delta=text),
        TextMessageEndEvent(message_id="m"),
        RunFinishedEvent(thread_id="t1", run_id="r1"),
    ]


def said(envelopes: list[Envelope]) -> str:
    return "".join(str(each.payload["chunk"]) for each in envelopes if each.type == "agent.stream.chunk")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_case_28_whatever_the_size_no_message_exceeds_its_target_and_no_word_is_lost(
    sample: str, profile: str
) -> None:
    budget = tightest([PROFILES[profile]], 8_000)
    for size in (1, 100, 2_359, 4_000, 7_999, 10_240, 65_536, 1_000_000):
        text = SAMPLES[sample] * max(1, size // len(SAMPLES[sample].encode("utf-8", "surrogatepass")))
        mapper = EnvelopeMapper(BroadcastConfig(include_args=True), budget=budget)
        envelopes = [each for entry in Thread().entries(loud(text)) for each in mapper.feed(entry)]
        for each in envelopes:
            body = each.encode()
            assert budget.size(body) <= PROFILES[profile].limit
            assert len(body) <= 8_000
        assert said(envelopes) == clean(text)
        (custom,) = [each for each in envelopes if each.type == "agent.custom"]
        if "truncated" in custom.payload:
            assert custom.payload["original_bytes"] > 3_000
        else:
            assert custom.payload["value"] in ({"deep": [clean(text)]}, {"deep": [text]})


def test_the_tightest_of_several_targets_counts() -> None:
    assert tightest([HUB, REVERB], 8_000) == Budget(8_900, quoted=True, overhead=900)
    assert tightest([HUB, PUSHER], 60_000) == Budget(10_240)


async def test_case_28_a_server_that_refuses_10_000_bytes_never_has_to() -> None:
    refused: list[int] = []
    took: list[Envelope] = []

    def weigh(path: str, headers: Any, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        request = len(body) + len(path) + 16 + sum(len(k) + len(v) + 4 for k, v in headers.items())
        if request > 10_000:
            refused.append(request)
            return 413, b"", {}
        took.append(Envelope.from_dict(json.loads(json.loads(body)["data"])))
        return 200, b"{}", {}

    text = '"quoted"\n漢😀ż' * 4_000
    with listening(weigh) as server:
        async with broadcaster(open_publisher(f"reverb://k:s@127.0.0.1:{server.server_port}/1")) as it:
            for entry in Thread().entries(loud(text)):
                await it.publish(entry)
            assert await it.flush(20)
    assert refused == []
    assert said(took) == text


# -------------------------------------------------------------------- faults


class Fault:
    """A server that behaves badly until it is told to stop."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.over = threading.Event()
        self.took: dict[tuple[int, int], Envelope] = {}

    def __call__(self, path: str, headers: Any, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        if not self.over.is_set():
            match self.kind:
                case "hung":
                    self.over.wait(5)
                case "500":
                    return 500, b"oops", {}
                case "429":
                    return 429, b"{}", {"Retry-After": "1"}
                case "200 with an error":
                    return 200, b'{"error":"try later","code":503}', {}
                case _:  # the connection breaks in the middle of the answer
                    raise ConnectionResetError
        envelope = Envelope.from_dict(json.loads(json.loads(body)["data"]))
        self.took.setdefault((envelope.seq, (envelope.part or (0, 0))[0]), envelope)
        return 200, b"{}", {}

    @property
    def told(self) -> list[Envelope]:
        return [self.took[place] for place in sorted(self.took)]


async def agent(it: Broadcaster, thread: Thread, words: int) -> float:
    """A run at its own pace; answers how long it took."""
    began = time.perf_counter()
    await it.publish(thread.entry(RunStartedEvent(thread_id="t1", run_id="r1")))
    await it.publish(thread.entry(TextMessageStartEvent(message_id="m")))
    for n in range(words):
        await it.publish(thread.entry(TextMessageContentEvent(message_id="m", delta=f"{n} ")))
        if n % 10 == 9:
            await it.publish(thread.entry(CustomEvent(name="n", value=n)))
        await asyncio.sleep(0.001)
    await it.publish(thread.entry(TextMessageEndEvent(message_id="m")))
    await it.publish(thread.entry(RunFinishedEvent(thread_id="t1", run_id="r1")))
    return time.perf_counter() - began


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "kind", ["refused", "hung", "500", "429", "200 with an error", "reset in mid-answer"]
)
async def test_case_30_a_target_in_trouble_costs_the_agent_nothing_and_gets_the_end_when_it_is_back(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    usual = 0.0
    for _ in range(2):  # the machine may be busy in one of them
        async with broadcaster(MemoryPublisher()) as healthy:
            usual = max(usual, await agent(healthy, Thread(), 300))
    fault = Fault(kind)
    port = free_port()
    with listening(fault) as server:
        there = server.server_port
        target = PusherPublisher(
            f"http://127.0.0.1:{port if kind == 'refused' else there}", "1", "k", "s", timeout=0.3
        )
        async with broadcaster(target, queue=40, config=BroadcastConfig(rollup_ms=0)) as it:
            took = await agent(it, Thread(), 300)
            assert took <= usual * 2 + 1  # 300 envelopes that waited for it would take 90 s
            stats = it.stats()
            assert stats["queued"] <= 40 + 2
            assert stats["merged"] + stats["shed"] > 200
            assert stats["delivered"] == 0
            fault.over.set()
            if kind == "refused":
                target._http._port = there
            assert await it.flush(10)
            assert it.stats()["failures"] > 0
    told = fault.told
    assert chained(told)
    assert (told[0].payload["status"], told[-1].payload["status"]) == ("in_progress", "completed")
    assert any(each.type == "agent.gap" for each in told)
    reader = Reader(last=0)
    verdicts = [reader.take(each, fetched=each.type == "agent.gap") for each in told]
    assert set(verdicts) == {Take.APPLY}


async def test_case_31_an_answer_that_is_lost_after_the_work_was_done_doubles_nothing() -> None:
    """The target took it, the answer never came: the same is sent again, and a reader drops what it has."""
    seen: list[int] = []

    def swallow(path: str, headers: Any, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        seen.append(json.loads(json.loads(body)["data"])["seq"])
        if len(seen) in (2, 3):
            time.sleep(0.5)  # longer than the publisher waits
        return 200, b"{}", {}

    with listening(swallow) as server:
        target = PusherPublisher(f"http://127.0.0.1:{server.server_port}", "1", "k", "s", timeout=0.2)
        async with broadcaster(target, batch=1, config=BroadcastConfig(rollup_ms=0)) as it:
            thread = Thread()
            for n in range(6):
                await it.publish(thread.entry(CustomEvent(name="n", value=n)))
            assert await it.flush(10)
    assert sorted(set(seen)) == [1, 2, 3, 4, 5, 6]
    assert len(seen) > 6
    reader = Reader(last=0)
    other = [Envelope("agent.custom", "t1", "r1", "x", seq, seq - 1, "e", {}) for seq in seen]
    assert [reader.take(each) for each in other].count(Take.APPLY) == 6


# --------------------------------------------------------------------- flood


async def test_case_33_a_burst_is_bounded_in_order_and_every_envelope_is_accounted_for() -> None:
    async def slow() -> None:
        await asyncio.sleep(0.02)

    target = Moody(lambda calls, envelopes: slow())
    target.inner = MemoryPublisher(keep=100_000)
    async with broadcaster(target, queue=500, config=BroadcastConfig(rollup_ms=0)) as it:
        thread = Thread()
        began = time.perf_counter()
        await it.publish(thread.entry(RunStartedEvent(thread_id="t1", run_id="r1")))
        for n in range(19_998):
            it.put(thread.entry(CustomEvent(name="n", value=n)))
            if n % 200 == 0:
                await asyncio.sleep(0)
                assert it.stats()["queued"] <= 502
        await it.publish(thread.entry(RunFinishedEvent(thread_id="t1", run_id="r1")))
        assert time.perf_counter() - began < 10
        assert await it.flush(10)
        stats = it.stats()
    told = target.inner.envelopes(CHANNEL)
    assert chained(told)
    gaps = [each for each in told if each.type == "agent.gap"]
    missed = sum(each.payload["to_seq"] - each.payload["from_seq"] + 1 for each in gaps)
    assert stats["entries"] == stats["envelopes"] == 20_000
    assert stats["delivered"] == len(told)
    assert stats["shed"] == missed
    assert len(told) - len(gaps) + missed == 20_000
    assert stats["queued"] == stats["failures"] == 0


async def test_one_target_that_is_down_holds_up_no_other() -> None:
    def down(calls: int, envelopes: object) -> None:
        raise PublishError("down")

    well = MemoryPublisher()
    async with broadcaster([Moody(down), well]) as it:
        await agent(it, Thread(), 10)
        await asyncio.sleep(0.05)
        told = well.envelopes(CHANNEL)
        assert told[-1].payload["status"] == "completed"
        assert it.stats()["queued"] > 0
