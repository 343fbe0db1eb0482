"""The two sides of a translation: the translator, and the code that drives it.

A *translator* is a plain synchronous object, one per run: native parts go in, AG-UI events come out. It never waits,
reads no clock and makes up no ids. A *driver* (`translate`, `translate_sync`) reads the parts and guarantees what a
translator cannot guarantee alone: whatever happens to the source, the emitted stream is complete.

    the source ends        -> finish()
    source or feed raises  -> fail(error); the error goes no further, RUN_ERROR carries it
    the task is cancelled  -> cancel(); the cancellation is raised after the closing events are out
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Protocol, TypeVar

from ag_ui.core import Event

Part = TypeVar("Part")
Part_contra = TypeVar("Part_contra", contravariant=True)


class Translator(Protocol[Part_contra]):
    """One run's translation, pure: call `start` once, `feed` per part, then exactly one of the other three."""

    def start(self) -> list[Event]:
        """Open the run: RUN_STARTED, and what is known before the first part."""
        ...

    def feed(self, part: Part_contra) -> list[Event]:
        """Translate one native part."""
        ...

    def finish(self) -> list[Event]:
        """The source ended by itself: close what is open, emit the outcome."""
        ...

    def fail(self, error: BaseException) -> list[Event]:
        """The source failed: close what is open, emit the error."""
        ...

    def cancel(self) -> list[Event]:
        """The run was stopped: close what is open, emit the outcome `cancelled`."""
        ...


async def translate(parts: AsyncIterable[Part], translator: Translator[Part]) -> AsyncIterator[Event]:
    """Drive a translator over an asynchronous source. Close the result (`aclosing`) to close the source."""
    for event in translator.start():
        yield event
    source = aiter(parts)
    try:
        while True:
            # Nothing is yielded inside this block: an exception of the reader must not look like one of the source.
            try:
                part = await anext(source)
                events, more = translator.feed(part), True
            except StopAsyncIteration:
                events, more = ending(translator), False
            except Exception as error:  # noqa: BLE001  any failure of a source becomes RUN_ERROR
                events, more = translator.fail(error), False
            except BaseException:
                for event in translator.cancel():
                    yield event
                raise
            for event in events:
                yield event
            if not more:
                return
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


def translate_sync(parts: Iterable[Part], translator: Translator[Part]) -> Iterator[Event]:
    """Drive a translator over a synchronous source, with the guarantees of `translate`."""
    yield from translator.start()
    source = iter(parts)
    try:
        while True:
            try:
                part = next(source)
                events, more = translator.feed(part), True
            except StopIteration:
                events, more = ending(translator), False
            except Exception as error:  # noqa: BLE001  any failure of a source becomes RUN_ERROR
                events, more = translator.fail(error), False
            except BaseException:
                yield from translator.cancel()
                raise
            yield from events
            if not more:
                return
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            close()


def ending(translator: Translator[Part]) -> list[Event]:
    """`finish()`, or RUN_ERROR if that fails: a stream never ends without its terminal event."""
    try:
        return translator.finish()
    except Exception as error:  # noqa: BLE001  a translator's own fault must not leave the stream open
        return translator.fail(error)
