"""Posting a channel's messages in lots: bounded in number and bytes, halved when a lot is refused.

Knows sizes and errors; does not know any target's API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

from runcast.broadcast.errors import PublishError, WrongSettings

Post = Callable[[Sequence[bytes]], Awaitable[None]]


async def post_in_lots(messages: Sequence[bytes], post: Post, *, most: int, limit: int) -> None:
    """Post in order. The error of a refused message carries the positions of all that were delivered."""
    done = 0
    for lot in split(messages, most=most, limit=limit):
        try:
            await _post(lot, post)
        except PublishError as error:
            error.delivered = _shifted(error, done)
            raise
        done += len(lot)


def split(messages: Sequence[bytes], *, most: int, limit: int) -> Iterator[Sequence[bytes]]:
    """Lots of at most `most` messages and `limit` bytes; 0 is no limit. A message over the limit is a lot of its own."""
    start = size = 0
    for n, message in enumerate(messages):
        full = n - start == most or (limit and size + len(message) > limit)
        if full and n > start:
            yield messages[start:n]
            start, size = n, 0
        size += len(message) + 1  # the comma between two
    if start < len(messages):
        yield messages[start:]


async def _post(lot: Sequence[bytes], post: Post) -> None:
    """Post a lot; when the target refuses it as a whole, its halves, until the refused message stands alone."""
    try:
        await post(lot)
    except WrongSettings:
        raise
    except PublishError as error:
        if error.retry or error.delivered is not None or len(lot) == 1:
            raise
        await post_in_lots(lot, post, most=(len(lot) + 1) // 2, limit=0)


def _shifted(error: PublishError, done: int) -> frozenset[int]:
    return frozenset(range(done)) | {done + n for n in error.delivered or ()}
