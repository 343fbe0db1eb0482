"""What an adapter's capabilities say to a host."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import AgentCapabilities

from runcast.adapters import can_steer


class Speaking:
    """As much of an adapter as is asked here."""

    def __init__(self, custom: dict[str, Any] | None) -> None:
        self.custom = custom

    def capabilities(self) -> AgentCapabilities:
        return AgentCapabilities(custom=self.custom)


@pytest.mark.parametrize(
    ("custom", "steers"), [(None, False), ({}, False), ({"steer": "yes"}, False), ({"steer": True}, True)]
)
def test_an_agent_takes_messages_while_it_runs_where_its_capabilities_say_so(custom: Any, steers: bool):
    speaking: Any = Speaking(custom)
    assert can_steer(speaking) is steers
