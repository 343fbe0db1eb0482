"""What is shown of an agent: all that it says of itself, without the defaults that hold secrets."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import httpx
from ag_ui.core import AgentCapabilities

from runcast.adapters import AdapterError, AgentSchemas
from runcast.app import Cast
from runcast.app.host.event_function import EventFunction
from runcast.app.nodes.agent_descriptions import asked, described
from runcast.slim import Redactor
from tests.app.agents import parrot
from tests.e2e.stage import everybody


class Known:
    """An agent that describes itself, once it was asked."""

    name = "known"

    def __init__(self, *, away: bool = False) -> None:
        self.away = away
        self.was_asked = False

    def capabilities(self) -> AgentCapabilities:
        about = "asked" if self.was_asked else "not asked"
        return AgentCapabilities.model_validate({"identity": {"name": "known", "description": about}})

    def schemas(self) -> AgentSchemas:
        fields = {
            "api_key": {"type": "string", "default": "hunter22"},
            "system_prompt": {"default": "you are"},
            "colour": {"default": "red"},
        }
        return {"input": {"properties": fields}}

    async def ask(self) -> None:
        if self.away:
            raise AdapterError("not now")
        self.was_asked = True


def test_what_an_agent_can_do_is_shown() -> None:
    agent: Any = Known()
    row = described(agent, Redactor())
    assert row["name"] == "known"
    assert row["capabilities"] == {"identity": {"name": "known", "description": "not asked"}}
    assert row["description"] == "not asked"
    assert row["schemas"] == {
        "input": {
            "properties": {"api_key": {"type": "string"}, "system_prompt": {}, "colour": {"default": "red"}}
        }
    }
    assert described(agent, None)["schemas"] == agent.schemas()


async def test_an_agent_elsewhere_is_asked_first_and_described_without_an_answer_too() -> None:
    agent: Any = Known()
    assert (await asked(agent, None))["description"] == "asked"
    away: Any = Known(away=True)
    assert (await asked(away, None))["description"] == "not asked"


class Slow(EventFunction):
    """An agent whose schemas take long, as a graph's do at their first use."""

    threads: ClassVar[set[int]] = set()

    def schemas(self) -> AgentSchemas:
        self.threads.add(threading.get_ident())
        return {}


async def test_schemas_are_not_made_on_the_event_loop() -> None:
    async with Cast.open("memory://", agents=[Slow(parrot, name="slow")]) as cast:
        transport = httpx.ASGITransport(cast.asgi(authorize=everybody))
        async with httpx.AsyncClient(transport=transport, base_url="http://host") as http:
            for path in ("/agents", "/agents/slow"):
                assert (await http.get(path)).status_code == 200
    assert Slow.threads
    assert threading.get_ident() not in Slow.threads


async def test_an_agent_that_says_nothing_of_itself_has_its_name() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        row = described(cast.agent("parrot"), None)
        assert (row["name"], "description" in row) == ("parrot", False)
