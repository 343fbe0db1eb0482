"""Messages in lots: as many and as large as the target takes, in order, and what was delivered when one is refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from runcast.broadcast import PublishError
from runcast.broadcast.publishers.lots import post_in_lots, split


@pytest.mark.parametrize(
    ("sizes", "most", "limit", "lots"),
    [
        ([], 3, 0, []),
        ([1] * 7, 3, 0, [3, 3, 1]),
        ([4] * 4, 10, 18, [3, 1]),  # with the commas between them
        ([4] * 4, 10, 19, [4]),
        ([30, 4, 30], 10, 10, [1, 1, 1]),
        ([4, 30, 4], 10, 10, [1, 1, 1]),
    ],
)
def test_a_lot_is_full(sizes: list[int], most: int, limit: int, lots: list[int]) -> None:
    messages = [b"x" * size for size in sizes]
    found = [*split(messages, most=most, limit=limit)]
    assert [len(each) for each in found] == lots
    assert [message for lot in found for message in lot] == messages


@pytest.mark.parametrize("bad", range(6))
@pytest.mark.parametrize("most", [1, 2, 4, 10])
async def test_a_refusal_names_what_was_delivered(bad: int, most: int) -> None:
    messages, taken = [b"%d" % n for n in range(6)], list[bytes]()

    async def post(lot: Sequence[bytes]) -> None:
        if messages[bad] in lot:
            raise PublishError("too odd", retry=False)
        taken.extend(lot)

    with pytest.raises(PublishError) as refused:
        await post_in_lots(messages, post, most=most, limit=0)
    assert taken == messages[:bad]
    assert refused.value.delivered == frozenset(range(bad))


async def test_a_target_that_is_away_is_not_asked_for_halves() -> None:
    asked = list[int]()

    async def post(lot: Sequence[bytes]) -> None:
        asked.append(len(lot))
        raise PublishError("away")

    with pytest.raises(PublishError, match="away"):
        await post_in_lots([b"x"] * 4, post, most=4, limit=0)
    assert asked == [4]
