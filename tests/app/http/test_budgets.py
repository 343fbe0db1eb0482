"""What a body may hold, before models are built of it."""

from __future__ import annotations

import orjson
import pytest

from runcast.app import TooLarge
from runcast.app.http.http_messages import MOST_MESSAGES, MOST_VALUES, budgeted


@pytest.mark.parametrize("shape", ["flat", "nested", "by name"])
def test_a_body_has_so_many_values_and_not_one_more(shape: str) -> None:
    for count in (MOST_VALUES - 2, MOST_VALUES + 1):
        many: object = list(range(count))
        if shape == "nested":
            many = [list(range(count - 1))]
        elif shape == "by name":
            many = {str(each): each for each in range(count)}
        body = orjson.dumps({"state": many})
        if count < MOST_VALUES:
            assert budgeted(body) == orjson.loads(body)
        else:
            with pytest.raises(TooLarge, match=str(MOST_VALUES)):
                budgeted(body)


def test_the_last_value_that_fits_is_taken() -> None:
    assert budgeted(orjson.dumps([0] * MOST_VALUES))
    with pytest.raises(TooLarge):
        budgeted(orjson.dumps([0] * (MOST_VALUES + 1)))


@pytest.mark.parametrize("name", ["messages", "answers"])
def test_a_body_has_so_many_items_and_not_one_more(name: str) -> None:
    assert budgeted(orjson.dumps({name: [{}] * MOST_MESSAGES}))
    with pytest.raises(TooLarge, match=str(MOST_MESSAGES)):
        budgeted(orjson.dumps({name: [{}] * (MOST_MESSAGES + 1)}))
