"""What counts as an agent, and what becomes of an adapter from before `reconciles_history` was part of the protocol."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import RunAgentInput, RunErrorEvent

from runcast.adapters import Adapter
from runcast.app import as_adapter
from runcast.app.errors import BadRequest


class Earlier:
    name = "earlier"

    def run(self, input: Any, *, resume: Any = None) -> Any: ...

    async def stop(self, run_id: str, *, hard: bool = False) -> None: ...

    def capabilities(self) -> Any: ...


def test_an_adapter_that_does_not_say_whether_it_reconciles_history_is_taken_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="Earlier has no `reconciles_history`: add it"):
        adapter = as_adapter(Earlier())
    assert isinstance(adapter, Adapter)
    assert adapter.reconciles_history is False


def sync_generator(input: Any) -> Any:
    yield "hello"


async def coroutine(input: Any) -> Any:
    return "hello"


@pytest.mark.parametrize("function", [sync_generator, coroutine])
def test_a_function_that_cannot_yield_events_is_refused_at_start(function: Any) -> None:
    with pytest.raises(BadRequest, match=r"is no agent: give .* or an async generator function"):
        as_adapter(function)


def returns(input: Any) -> Any:
    return "hello"


async def yields(input: Any) -> Any:
    yield "hello"


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (
            returns,
            "an agent is an async generator function that yields AG-UI events; this one returned a str",
        ),
        (yields, "an agent yields AG-UI events, of ag_ui.core; this one yielded a str"),
    ],
)
async def test_what_is_no_event_ends_the_run_with_what_to_do(function: Any, sentence: str) -> None:
    given = RunAgentInput(thread_id="t1", run_id="r1", messages=[], tools=[], context=[])
    *_, last = [event async for event in as_adapter(function).run(given)]
    assert isinstance(last, RunErrorEvent)
    assert sentence in last.message
