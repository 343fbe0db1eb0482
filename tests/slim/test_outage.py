"""What is away is logged once until it is back."""

from __future__ import annotations

import logging

import pytest

from runcast.slim.outage import Outage


def test_every_reason_is_logged_once_until_the_thing_is_back(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    outage = Outage(logging.getLogger("runcast.test"), quiet=60, clock=lambda: now)
    outage.over("back")  # it was never away
    for why in ("gone", "gone", "refused", "gone", "refused"):
        now += 59
        outage.lost(why)
    assert caplog.messages == ["gone", "refused"]
    outage.over("back")
    outage.over("back")
    outage.lost("gone")
    assert caplog.messages == ["gone", "refused", "back", "gone"]
    now += 61  # nobody reported that it was back, but it must have been
    outage.lost("gone")
    assert caplog.messages[4:] == ["gone"]
