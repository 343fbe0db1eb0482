"""Models built from values that were read: halves of surrogate pairs are accepted, and nothing else that is wrong."""

from __future__ import annotations

import pytest
from ag_ui.core import TextMessageEndEvent
from pydantic import ValidationError

from runcast.slim.values.model_construction import built


def test_only_halves_of_surrogate_pairs_are_accepted_unchecked():
    assert built(TextMessageEndEvent, message_id="m").message_id == "m"
    assert built(TextMessageEndEvent, message_id="\ud83d").message_id == "\ud83d"
    with pytest.raises(ValidationError):
        built(TextMessageEndEvent, message_id=5)
