"""Any story of publishing, dropping, stalling, coming back, forging, losing and restarting: nobody loses or doubles."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runcast.broadcast import Envelope, Hub, HubLimits, Position
from runcast.broadcast.hub import frame_writer
from tests.broadcast.hub.fakes import CHANNEL, Reader
from tests.e2e.stage import Log, a_hub, envelope


class Story(RuleBasedStateMachine):
    """A log, a hub that hears of it over a bad line, and readers of both modes."""

    def __init__(self) -> None:
        super().__init__()
        logging.getLogger("runcast.hub").setLevel(logging.CRITICAL)  # histories that break are logged in full
        self.runner = asyncio.Runner()
        self.ahead = 0.0  # seconds that the loop's clock is ahead of the real one
        loop, real = self.runner.get_loop(), self.runner.get_loop().time
        loop.time = lambda: real() + self.ahead  # type: ignore[method-assign]
        self.patched = pytest.MonkeyPatch()
        self.log = Log("e1")
        self.sent = 0  # seq of the last envelope that left the broadcaster
        self.epochs = 1
        self.readers: list[Reader] = []
        self.past: list[Position] = []

    @initialize(ring=st.sampled_from([1, 3, 100]), replay=st.sampled_from([5, 300]), rounds=st.booleans())
    def begin(self, ring: int, replay: int, rounds: bool) -> None:
        """With `rounds`, envelopes wait for others as if there were many readers, until a moment has passed."""
        if rounds:
            for name, value in {"FEW": 0, "A_READER": 3_600, "LONGEST": 3_600}.items():
                self.patched.setattr(frame_writer, name, value)
        self.hub: Hub = a_hub(history=self.log_history, limits=HubLimits(ring=ring, replay=replay))

    async def log_history(self, *asked: Any, **more: Any) -> Any:
        return await self.log.history(*asked, **more)

    def run(self, work: Any) -> None:
        self.runner.run(work)

    def settle(self, rounds: int = 8) -> None:
        async def wait() -> None:
            for _ in range(rounds):
                await asyncio.sleep(0)

        self.run(wait())

    def leaves(self) -> Envelope:
        """The broadcaster sends what has gathered in the log since it last did."""
        it = envelope(self.log.head, self.sent, epoch=self.log.epoch)
        self.sent = self.log.head
        return it

    @rule(entries=st.integers(1, 3))
    def append(self, entries: int) -> None:
        self.log.head += entries

    @rule(doubled=st.booleans(), lost=st.booleans())
    def publish(self, doubled: bool, lost: bool) -> None:
        if self.log.head == self.sent:
            self.log.head += 1
        it = self.leaves()
        if not lost:
            self.run(self.hub.publish(CHANNEL, [it, it] if doubled else [it]))

    @rule(
        plain=st.booleans(),
        place=st.sampled_from(["none", "past", "future", "stranger", "any"]),
        pick=st.randoms(),
    )
    def come(self, plain: bool, place: str, pick: Any) -> None:
        reader = Reader(f"reader {len(self.readers)}")
        position = None
        if place == "past" and self.past:
            position = pick.choice(self.past)
            reader.epoch, reader.last = position.epoch, position.offset
        elif place == "future":
            position = Position(self.log.epoch, self.log.head + 5)
        elif place == "stranger":
            position = Position("nobody's", min(2, self.log.head))
        elif place == "any":
            position = Position("", pick.randint(0, self.log.head))
            reader.last = position.offset
        self.run(reader.come(self.hub, position, plain=plain))
        self.readers.append(reader)

    @precondition(lambda self: self.readers)
    @rule(pick=st.randoms())
    def drop(self, pick: Any) -> None:
        reader = self.readers.pop(pick.randrange(len(self.readers)))
        if reader.last is not None and reader.epoch:
            self.past.append(reader.position)
        if reader.ended is None:
            self.run(self.gone(reader))

    async def gone(self, reader: Reader) -> None:
        reader.drop(self.hub)

    @precondition(lambda self: self.readers)
    @rule(pick=st.randoms())
    def stall(self, pick: Any) -> None:
        pick.choice(self.readers).stuck = True

    @precondition(lambda self: self.readers)
    @rule(pick=st.randoms())
    def leave_and_enter_again(self, pick: Any) -> None:
        reader = pick.choice(self.readers)
        if (
            reader.connection is not None
            and not reader.connection.plain
            and reader.ended is None
            and reader.last is not None
        ):
            self.run(self.again(reader))

    async def again(self, reader: Reader) -> None:
        reader.unsubscribe(self.hub)
        reader.subscribe(self.hub, reader.position)

    @rule(plain=st.booleans())
    def forge(self, plain: bool) -> None:
        async def attempt() -> None:
            stranger = Reader("stranger")
            stranger.connection = self.hub.open_pusher(stranger, address="b")
            stranger.subscribe(self.hub, secret="wrong")
            assert stranger.frames[-1]["event"] == "pusher:subscription_error"
            assert stranger.frames[-1]["channel"] == CHANNEL
            assert stranger.greetings == []
            stranger.drop(self.hub)

        self.run(attempt())

    @rule()
    def restart_the_log(self) -> None:
        self.epochs += 1
        self.log.epoch, self.log.head, self.sent = f"e{self.epochs}", 0, 0

    @rule(broken=st.booleans())
    def break_or_mend_history(self, broken: bool) -> None:
        self.log.broken = broken

    @rule()
    def wait(self) -> None:
        self.settle()

    @rule()
    def a_moment_passes(self) -> None:
        self.ahead += 3_600
        self.settle()

    @invariant()
    def bounded(self) -> None:
        self.settle(2)
        assert [fault for reader in self.readers for fault in reader.faults] == []
        if hasattr(self, "hub"):
            alive = sum(reader.ended is None and reader.connection is not None for reader in self.readers)
            assert self.hub.stats()["connections"] == alive

    def teardown(self) -> None:
        try:
            if hasattr(self, "hub"):
                self.end_well()
        finally:
            if hasattr(self, "hub"):
                self.run(self.hub.aclose())
            self.runner.close()
            self.patched.undo()

    def end_well(self) -> None:
        """Everybody who is still there and reads has everything."""
        self.log.broken = False
        self.publish(False, False)
        self.a_moment_passes()
        self.run(asyncio.sleep(0.25 if any(self.behind(reader) for reader in self.readers) else 0))
        for reader in self.readers:
            if reader.ended is None and reader.connection is not None and not reader.stuck:
                assert (reader.epoch, reader.last) == (self.log.epoch, self.log.head), reader.name
        assert [fault for reader in self.readers for fault in reader.faults] == []
        self.run(self.hub.aclose())
        now = self.hub.stats()
        assert (now["connections"], now["channels"], now["addresses"]) == (0, 0, 0)

    def behind(self, reader: Reader) -> bool:
        return reader.connection is not None and reader.connection.behind(CHANNEL) is not None


class TestStory(Story.TestCase):
    settings = settings(
        max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
