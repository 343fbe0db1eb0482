"""The drivers: whatever happens to a source, the stream that leaves is whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from ag_ui.core import Event

from runcast.adapters import translate, translate_sync
from runcast.slim.protocol.verifier import verify
from tests.adapters.driving.test_pump import Words


class Faulty(Words):
    """A translator whose own ending breaks."""

    def finish(self) -> list[Event]:
        raise RuntimeError("no ending")


async def parts(words: list[str], end: BaseException | None = None) -> AsyncIterator[str]:
    for word in words:
        await asyncio.sleep(0)
        yield word
    if end is not None:
        raise end


def plain_parts(words: list[str], end: BaseException | None = None) -> Iterator[str]:
    yield from words
    if end is not None:
        raise end


ENDS: list[tuple[Any, list[str], Exception | None, str]] = [
    (Words, ["a", "b"], None, "RUN_FINISHED"),
    (Words, ["a"], ValueError("torn"), "RUN_ERROR"),
    (Words, ["a", "bad", "b"], None, "RUN_ERROR"),
    (Faulty, ["a"], None, "RUN_ERROR"),
]


@pytest.mark.parametrize(("translator", "words", "end", "last"), ENDS)
async def test_every_end_is_told(translator: Any, words: list[str], end: Any, last: str):
    events = [event async for event in translate(parts(words, end), translator())]
    assert events[-1].type == last
    assert not verify(events)


@pytest.mark.parametrize(("translator", "words", "end", "last"), ENDS)
def test_every_end_is_told_synchronously(translator: Any, words: list[str], end: Any, last: str):
    events = list(translate_sync(plain_parts(words, end), translator()))
    assert events[-1].type == last
    assert not verify(events)


async def test_a_cancellation_goes_on_after_the_closing_events():
    events: list[Event] = []

    async def read() -> None:
        async for event in translate(parts(["a"], asyncio.CancelledError()), Words()):
            events.append(event)  # noqa: PERF401  what came before must stay

    with pytest.raises(asyncio.CancelledError):
        await read()
    assert events[-1].outcome.type == "cancelled"
    assert not verify(events)


def test_a_keyboard_interrupt_goes_on_after_the_closing_events():
    events: list[Event] = []

    def read() -> None:
        events.extend(iter(translate_sync(plain_parts(["a"], KeyboardInterrupt()), Words())))

    with pytest.raises(KeyboardInterrupt):
        read()
    assert [event.type.value for event in events][-1:] in ([], ["RUN_FINISHED"])


async def test_an_error_of_the_reader_is_not_one_of_the_source():
    stream = translate(parts(["a", "b"]), Words())
    await anext(stream)
    with pytest.raises(ZeroDivisionError):
        await stream.athrow(ZeroDivisionError())


async def test_sources_without_a_close_are_fine():
    class Bare:
        def __init__(self) -> None:
            self.left = ["a"]

        def __aiter__(self) -> Bare:
            return self

        async def __anext__(self) -> str:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    assert len([event async for event in translate(Bare(), Words())]) == 5
    assert len(list(translate_sync(["a"], Words()))) == 5
