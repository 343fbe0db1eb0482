"""Events to a sink: in order, from a thread of its own, at nobody else's cost."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from ag_ui.core import Event, StepStartedEvent, TextMessageContentEvent

from runcast.adapters.driving.sink_thread import IDLE, Delivery


def step(name: str) -> Event:
    return StepStartedEvent(step_name=name)


def test_events_come_in_order_from_another_thread():
    got: list[tuple[str, int]] = []
    delivery = Delivery(lambda event: got.append((event.step_name, threading.get_ident())))
    for at in range(50):
        assert delivery.send(step(str(at)))
    assert delivery.flush(5)
    assert [name for name, _ in got] == [str(at) for at in range(50)]
    assert threading.get_ident() not in {thread for _, thread in got}
    assert delivery.stats()["delivered"] == 50


def test_the_thread_ends_when_nothing_comes_and_begins_again():
    got: list[Event] = []
    delivery = Delivery(got.append)
    for name in ("a", "b"):
        delivery.send(step(name))
        assert delivery.flush(5)
        time.sleep(IDLE * 2)
        assert not [each for each in threading.enumerate() if each.name == "runcast-delivery"]
    assert len(got) == 2


def test_a_sink_that_fails_gets_the_next_all_the_same():
    got: list[str] = []

    def sink(event: Any) -> None:
        if event.step_name == "bad":
            raise ValueError("bad")
        got.append(event.step_name)

    delivery = Delivery(sink)
    for name in ("a", "bad", "b"):
        delivery.send(step(name))
    assert delivery.flush(5)
    assert got == ["a", "b"]
    assert delivery.stats()["failed"] == 1


def test_a_full_box_merges_what_it_can_and_drops_the_rest():
    gate = threading.Event()
    got: list[Any] = []

    def sink(event: Any) -> None:
        gate.wait(5)
        got.append(event)

    delivery = Delivery(sink, limit=2)
    sent = [delivery.send(TextMessageContentEvent(message_id="m", delta=str(at))) for at in range(20)]
    assert all(sent)
    assert not delivery.send(step("late"))
    assert not delivery.flush(0.05)
    gate.set()
    assert delivery.flush(5)
    assert "".join(event.delta for event in got) == "".join(map(str, range(20)))
    assert delivery.stats()["dropped"] == 1


async def test_a_coroutine_sink_runs_where_the_sender_runs():
    loops: list[Any] = []

    async def sink(event: Any) -> None:
        loops.append(asyncio.get_running_loop())

    delivery = Delivery(sink)
    delivery.send(step("a"))
    assert await delivery.aflush(5)
    assert loops == [asyncio.get_running_loop()]


def test_a_coroutine_sink_without_a_loop_gets_one():
    got: list[Event] = []

    async def sink(event: Any) -> None:
        got.append(event)

    delivery = Delivery(sink)
    delivery.send(step("a"))
    delivery.send(step("b"))
    assert delivery.flush(5)
    assert len(got) == 2
