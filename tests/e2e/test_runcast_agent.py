"""`RuncastAgent` on lines that break at every event of the corpus, beside each of its peers and the official `HttpAgent`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from ag_ui.core import Event, RunAgentInput, RunStartedEvent

from runcast.app import Cast
from runcast.slim import decode as decode_any
from runcast.slim import encode
from runcast.slim.wire.codec import AnyEvent
from tests.app.serving import serving
from tests.conftest import LONG
from tests.e2e import oracle
from tests.e2e.npm_client import PEERS, NodeClient, beside, compiled
from tests.house.tree import ROOT

pytestmark = pytest.mark.oracle
RECORDED = sorted((ROOT / "tests" / "adapters").glob("*/recordings/*.events"))


def decode(event: dict[str, Any]) -> Event:
    """An event of the protocol: recordings hold no other."""
    return cast("Event", decode_any(json.dumps(event)))


def recorded(path: Path, thread: str) -> list[Event]:
    """A recording's events, as events of a thread of that id."""
    found = [json.loads(line) for line in path.read_bytes().splitlines() if line]
    return [decode(each | ({"threadId": thread} if "threadId" in each else {})) for each in found]


def by_run(events: Iterable[AnyEvent]) -> list[list[dict[str, Any]]]:
    runs: list[list[dict[str, Any]]] = []
    for event in events:
        if isinstance(event, RunStartedEvent):
            runs.append([])
        runs[-1].append(json.loads(encode(event)))
    return runs


NAMES = {f"{path.parent.parent.name}-{path.stem}": path for path in RECORDED}
CORPUS = {name: recorded(path, name) for name, path in NAMES.items()}
SOME = list(CORPUS) if LONG else list(CORPUS)[::6]  # the long form tears all of it


async def replay(input: RunAgentInput) -> AsyncIterator[Event]:
    """The first run of the recording that the last message names, under the ids of this one."""
    ids = {"threadId": input.thread_id, "runId": input.run_id}
    for event in by_run(CORPUS[str(input.messages[-1].content)])[0]:
        yield decode({key: ids.get(key, value) for key, value in event.items() if key != "input"})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("agui"), "agui")


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def node(peer: str, built: Path, tmp_path: Path) -> AsyncIterator[NodeClient]:
    folder = beside(tmp_path / "node", peer, built, oracle.HERE / "runcast_agent.mjs")
    async with NodeClient(folder, "runcast_agent.mjs", str(folder / built.name)) as it:
        yield it


async def test_torn_at_every_event_it_follows_what_something_else_starts(node: NodeClient) -> None:
    opened = Cast.open("memory://")
    async with serving(opened) as host:
        for some in batched(SOME, 30):
            threads = [{"id": name, "count": len(CORPUS[name])} for name in some]
            await node.send("follow", url=f"{host.url}/agents/any", threads=threads, every=1)
            assert await node.answer() == "ready"
            for name in some:
                await opened.log.append_many(name, CORPUS[name])
            await opened.log.flush()
            torn = await node.answer()
            logged = [by_run(each.event for each in await opened.log.entries(name)) for name in some]
            runs = [{"id": name, "runs": each} for name, each in zip(some, logged, strict=True)]
            for name, mine, theirs in zip(some, torn, await node.ask("whole", threads=runs), strict=True):
                assert mine == theirs, name


async def test_a_run_torn_at_every_event_ends_as_an_untorn_one_and_http_agent_does_not(
    node: NodeClient, peer: str
) -> None:
    async with serving(Cast.open("memory://", agents=[replay])) as host:

        async def answers(kind: str, **more: Any) -> list[Any]:
            asks = [{"thread": f"{kind}-{name}", "run": f"{kind}-{name}", "say": name} for name in SOME]
            found: list[Any] = await node.ask("run", url=f"{host.url}/agents/replay", asks=asks, **more)
            return found

        whole, torn = await answers("whole", official=True), await answers("torn", every=1)
        official = await answers("official", official=True, every=1)
    for name, mine, theirs in zip(SOME, torn, whole, strict=True):
        if theirs[
            "raised"
        ]:  # what a client before 1.0 refuses (docs/spec-questions.md), a RuncastAgent reads
            assert (peer, mine["raised"]) == ("0.0.59", None), f"{name}: {theirs['raised']}"
        else:
            assert plain(mine) == plain(theirs), name
    assert torn[-1]["unhandled"] == 0
    lost = [each for each in official if each["raised"]]
    assert len(lost) == len(SOME), "an HttpAgent came back"


def batched(names: list[str], size: int) -> list[list[str]]:
    return [names[at : at + size] for at in range(0, len(names), size)]


SHOWN = (
    "type",
    "runId",
    "messageId",
    "toolCallId",
    "stepName",
    "subagentRunId",
    "delta",
    "content",
    "snapshot",
)


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    """What an application saw, without what differs from run to run."""
    text = json.dumps({key: answer[key] for key in ("events", "messages", "state", "raised")})
    seen: dict[str, Any] = json.loads(text.replace("torn-", "").replace("whole-", ""))
    # Client 0.0.59 drops fields it has no schema for, in the stream of an HttpAgent alone.
    seen["events"] = [{key: value for key, value in each.items() if key in SHOWN} for each in seen["events"]]
    return seen
