"""A thread moves with all that is kept of it, and goes on elsewhere as if it had never moved; foreign rows run nothing."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import ormsgpack
import pytest
from ag_ui.core import RunAgentInput
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import App, ResumabilityConfig
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.events.event import Event as AdkEvent
from google.adk.events.event_actions import EventActions
from google.adk.runners import Runner
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from runcast.adapters import InvalidInput, Kept, Portable
from runcast.adapters.adk import AdkAdapter
from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.adapters.langgraph.running.kept_checkpoints import KeptCheckpoints
from runcast.app import BadRequest, Cast
from runcast.app.keeping import thread_archives
from runcast.slim import WireError
from tests.app.agents import Gated, parrot
from tests.app.nodes.conftest import postgres_server, url
from tests.app.nodes.stage import ask, until

__all__ = ["postgres_server", "url"]


async def lines_of(*given: bytes) -> AsyncIterator[bytes]:
    for each in given:
        yield each


async def exported(cast: Cast, thread_id: str | None = None) -> list[bytes]:
    return [each async for each in cast.archives.export(thread_id)]


async def imported(cast: Cast, archive: list[bytes], **options: Any) -> Any:
    return await cast.archives.import_all(lines_of(*archive), **options)


def rows_in(archive: list[bytes], kind: str) -> list[dict[str, Any]]:
    read = [orjson.loads(each) for each in archive]
    return [each for each in read if each.get("beside") == kind]


# ----------------------------------------------------------------- LangGraph


def graph_with(saver: Any, **options: Any) -> LangGraphAdapter:
    """Writes a draft, asks whether to publish it, and says how often it was asked."""

    def draft(state: Any) -> Any:
        return {"messages": [AIMessage("a draft")]}

    def ask(state: Any) -> Any:
        answer = interrupt("Publish?")
        people = [each.content for each in state["messages"] if each.type == "human"]
        return {"messages": [AIMessage(f"{answer} to {' and '.join(people)}")]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("draft", draft)
    builder.add_node("ask", ask)
    builder.add_edge(START, "draft").add_edge("draft", "ask")
    graph = builder.compile(checkpointer=saver)
    return LangGraphAdapter(graph, name="graph", options=LangGraphOptions(**options))


async def conversation(cast: Cast) -> list[tuple[str, str]]:
    state = await cast.state("t1")
    assert state is not None
    return [(each.role, str(each.content)) for each in state.history]


@pytest.mark.parametrize("tenants", [("", ""), ("acme", "beta")])
async def test_a_thread_goes_on_elsewhere_as_it_would_have_here(
    url: str, tmp_path: Path, tenants: tuple[str, str]
) -> None:
    async with (
        AsyncSqliteSaver.from_conn_string(str(tmp_path / "here.db")) as here,
        Cast.open("memory://", agents=[graph_with(here)]) as host,
    ):
        cast = host.for_tenant(tenants[0])
        await (await cast.say("t1", "one")).result()
        await (await cast.resume("t1", {(await questions(cast))[0]: "yes"})).result()
        await (await cast.say("t1", "two")).result()
        await cast.log.archive.rename("t1", "Drafts")
        snapshot, archive = await cast.snapshot("t1"), await exported(cast)
        assert archive == await exported(cast), "an export changes nothing"

        there = await saver_at(url, tmp_path)
        async with (
            there as saver,
            Cast.open(url, agents=[graph_with(saver)], recover="continue") as other,
        ):
            view = other.for_tenant(tenants[1])
            assert (await imported(view, archive)).threads == ["t1"]
            assert (await imported(view, archive)).left == {}, "the same again changes nothing"
            assert content(await exported(view)) == content(archive)
            assert [each.title for each in await view.log.threads()] == ["Drafts"]
            assert await view.snapshot("t1") == snapshot
            assert view.active == [], "nothing starts by itself"
            ends: list[Any] = []
            for each in (cast, view):
                await (await each.resume("t1", {(await questions(each))[0]: "no"})).result()
                await (await each.say("t1", "three")).result()
                ends.append(await conversation(each))
            assert ends[0] == ends[1]
            assert ends[0][-1] == ("assistant", "a draft")
            state: Any = await saver.aget_tuple(
                {"configurable": {"thread_id": ids_of(await threads_of(saver))}}
            )
            assert len(state.checkpoint["channel_values"]["messages"]) == 8


def content(archive: list[bytes]) -> list[Any]:
    """What an archive holds: stores may give mappings and the writes of a checkpoint in another order."""
    serde = JsonPlusSerializer()

    def read(packed: Any) -> Any:
        return serde.loads_typed((packed[0], b64decode(packed[1])))

    found: list[Any] = [each for each in archive if not each.startswith(b'{"beside":')]
    values: dict[str, Any] = {}
    for row in (each["row"] for each in rows_in(archive, "agent")):
        if "value" in row:
            values[row["value"]] = read(row["is"])
            continue
        kept = {name: values[key] for name, key in row["values"].items()}
        writes = sorted((task, channel, repr(read(each))) for task, channel, each in row["writes"])
        found.append(
            (row["ns"], row.get("parent"), read(row["checkpoint"]), read(row["metadata"]), kept, writes)
        )
    return found


async def questions(cast: Cast) -> list[str]:
    state = await cast.state("t1")
    assert state is not None
    return [each.id for each in state.interrupts]


async def threads_of(saver: Any) -> set[str]:
    return {each.config["configurable"]["thread_id"] async for each in saver.alist(None)}


def ids_of(threads: set[str]) -> str:
    (only,) = threads
    return only


async def saver_at(url: str, folder: Path) -> Any:
    """A checkpointer of another kind than the one that the thread was exported from."""
    if url.startswith("sqlite"):
        return AsyncSqliteSaver.from_conn_string(str(folder / "there.db"))
    return postgres_saver(url)


@asynccontextmanager
async def postgres_saver(url: str) -> AsyncGenerator[AsyncPostgresSaver]:
    async with AsyncPostgresSaver.from_conn_string(url) as saver:
        await saver.setup()
        yield saver


async def test_agents_that_share_a_checkpointer_bring_its_rows_once(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "sync.db")) as saver:
        adapter = graph_with(saver)
        list(adapter.run_sync(ask("hi")))
        twin = graph_with(saver)
        twin.name = "twin"
        async with Cast.open("memory://", agents=[adapter, twin], watch=False) as cast:
            await (await cast.start(parrot, ask("hi"))).result()
            archive = await exported(cast)
            assert {each["name"] for each in rows_in(archive, "agent")} == {"graph"}
        with SqliteSaver.from_conn_string(str(tmp_path / "other.db")) as other:
            again = graph_with(other)
            async with Cast.open("memory://", agents=[again], watch=False) as cast:
                await imported(cast, archive)
            assert [each async for each in again.kept.rows("t1")] == [
                each async for each in adapter.kept.rows("t1")
            ]


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.sampled_from("abc"), plain), min_size=1, max_size=4), plain)
async def test_what_a_saver_keeps_is_what_another_gets(values: list[tuple[str, Any]], written: Any) -> None:
    here, there = InMemorySaver(), InMemorySaver()
    config: Any = {"configurable": {"thread_id": "p:t", "checkpoint_ns": ""}}
    channels: dict[str, Any] = {}
    for number, (name, value) in enumerate(values, 1):
        channels[name] = value
        point: Any = {
            "v": 4, "id": f"{number:04}", "ts": "", "channel_values": dict(channels),
            "channel_versions": {each: f"{number}.{each}" for each in channels}, "versions_seen": {}, "updated_channels": None,
        }  # fmt: skip
        noted: Any = {"step": number, "runcast_run_id": f"p:r{number}"}
        config = here.put(config, point, noted, point["channel_versions"])
        here.put_writes(config, [("a", written), ("b", None)], "task")
    rows = [each async for each in KeptCheckpoints(here).rows("t", prefix="p:")]
    assert len({each["value"] for each in rows if "value" in each}) == len(
        [each for each in rows if "value" in each]
    )
    await KeptCheckpoints(there).store("t", orjson.loads(orjson.dumps(rows)), prefix="q:")
    assert [each async for each in KeptCheckpoints(there).rows("t", prefix="q:")] == rows
    stored: list[Any] = [each.metadata for each in there.list(None)]
    wanted = {f"q:r{n}" for n in range(1, len(values) + 1)}
    assert {each["runcast_run_id"] for each in stored} == wanted


# ------------------------------------------------------------------ foreign


@dataclass
class Draft:
    words: str


def packed(value: Any, kind: str = "msgpack") -> list[str]:
    return [kind, b64encode(value if isinstance(value, bytes) else ormsgpack.packb(value)).decode()]


def calling(module: str, name: str, argument: Any, code: int = 0) -> bytes:
    """A value whose reading would call something."""
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb([module, name, argument, "mkdir"])))


def forged(**changed: Any) -> list[dict[str, Any]]:
    point = {"v": 4, "id": "1", "ts": "", "channel_versions": {"x": "1"}, "versions_seen": {}}
    row = {"ns": "", "checkpoint": packed(point), "metadata": packed({}), "values": {"x": "v"}, "writes": []}
    return [{"value": "v", "is": changed.pop("value", packed(1))}, {**row, **changed}]


@pytest.mark.parametrize("code", range(6))
async def test_reading_a_foreign_checkpoint_calls_nothing(tmp_path: Path, code: int) -> None:
    made = tmp_path / "made"
    argument: Any = {0: str(made), 1: [str(made)], 2: {"name": str(made)}, 3: str(made)}.get(
        code, {"name": str(made)}
    )
    name = "Path" if code == 3 else "mkdir"
    module = "pathlib" if code == 3 else "os"
    kept = KeptCheckpoints(saver := InMemorySaver())
    with pytest.raises(InvalidInput, match="does not expect"):
        await kept.store("t1", forged(value=packed(calling(module, name, argument, code))))
    with pytest.raises(InvalidInput, match="does not expect"):
        await kept.store("t1", forged(writes=[["task", "x", packed(calling(module, name, argument, code))]]))
    assert not made.exists()
    assert list(saver.list(None)) == [], "nothing is stored"


@pytest.mark.parametrize(
    "rows",
    [
        forged(value=packed(b"\x80\x04.", "pickle")),
        forged(value=packed(b'{"lc":2,"type":"constructor","id":["os","mkdir"],"args":["x"]}', "json")),
        forged(value=packed(b"\xc1")),
        forged(values={"x": "unknown"}),
        forged(checkpoint=packed([1])),
        forged(metadata=packed("x")),
        forged(checkpoint=packed({"id": 5, "channel_versions": {}})),
        forged(writes=[["task", 5, packed(1)]]),
        forged(parent=5),
        forged(ns=None),
        [{}],
    ],
)
async def test_rows_that_are_no_checkpoints_store_nothing(rows: list[dict[str, Any]]) -> None:
    saver = InMemorySaver()
    with pytest.raises(InvalidInput, match="no checkpoint"):
        await KeptCheckpoints(saver).store("t1", rows)
    assert list(saver.list(None)) == []


async def test_a_type_that_the_owner_names_is_built() -> None:
    draft = JsonPlusSerializer().dumps_typed(Draft("x"))[1]
    with pytest.raises(InvalidInput, match=r"test_thread_archives.Draft, .*import_types"):
        await KeptCheckpoints(InMemorySaver()).store("t1", forged(value=packed(draft)))
    saver = InMemorySaver()
    await graph_with(saver, import_types=(Draft,)).kept.store("t1", forged(value=packed(draft)))
    (point,) = saver.list(None)
    assert point.checkpoint["channel_values"]["x"] == Draft("x")


async def test_what_cannot_be_imported_leaves_nothing_and_what_is_there_stays() -> None:
    here, there = InMemorySaver(), InMemorySaver()
    async with Cast.open("memory://", agents=[graph_with(here)], watch=False) as cast:
        await (await cast.say("t1", "one")).result()
        archive = await exported(cast)
    bad = [each.replace(b'"writes":[[', b'"writes":[[5,') for each in archive]
    async with Cast.open("memory://", agents=[graph_with(there)], watch=False) as cast:
        for lines, why in (
            (bad, "no checkpoint"),
            ([*archive, b'{"beside":"agent"}\n'], "cannot be read"),
            ([*archive, b'{"beside":"snapshot","run_id":"r1","data":{"schema":5}}\n'], "schema"),
        ):
            with pytest.raises(BadRequest, match=why):
                await imported(cast, lines)
            assert await cast.log.thread("t1") is None
            assert list(there.list(None)) == []
        with pytest.raises(BadRequest, match="no thread"):
            await imported(cast, [])
        await graph_with(there).kept.store("t1", forged())
        with pytest.raises(BadRequest, match="has a thread 't1' already"):
            await imported(cast, archive)
        assert await cast.log.thread("t1") is None
        assert len(list(there.list(None))) == 1, "what was there stays"
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        left = (await imported(cast, archive)).left
        assert left == {"what the framework of agent 'graph' keeps": len(rows_in(archive, "agent"))}
        assert [each.thread_id for each in await cast.log.threads()] == ["t1"]
    async with Cast.open("memory://", watch=False) as cast:
        assert await cast.log.archive.import_all(lines_of(*archive)) == ["t1"], "a log takes what is its own"


async def test_an_archive_that_was_cut_leaves_nothing() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        await (await cast.say("t1", "one")).result()
        await (await cast.say("t1", "two")).result()
        whole = await exported(cast)
    second = max(at for at, line in enumerate(whole) if line.startswith(b'{"run":'))
    other = whole[0].replace(b'"t1"', b'"t2"')
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        for lines in (whole[:1], whole[: second - 1], whole[:second], whole[: second + 3], [whole[0], other]):
            with pytest.raises(WireError, match="was cut"):
                await imported(cast, lines)
            assert await cast.log.threads() == []
        assert (await imported(cast, whole)).threads == ["t1"]


async def test_what_is_held_in_memory_of_an_archive_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        await (await cast.say("t1", "one")).result()
        archive = await exported(cast)
    letter = b'{"beside":"letter"}\n'
    monkeypatch.setattr(thread_archives, "MOST_BESIDE", len(letter) * 9 + sum(map(len, archive)))
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        with pytest.raises(BadRequest, match="bytes beside its log"):
            await imported(cast, [*archive, *[letter] * 99])
        assert await cast.log.thread("t1") is None
        assert (await imported(cast, [*archive, *[letter] * 9])).left == {"webhooks' letters": 9}


async def test_messages_that_wait_begin_only_where_that_is_asked_for() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", watch=False) as cast:
        cast.register(gated, name="gated")
        cast.register(parrot)
        first = await cast.say("t1", "one", agent="gated")
        later = [await cast.say("t1", text, agent="parrot", on_busy="queue") for text in ("two", "three")]
        archive = await exported(cast)
        gated.open()
        for each in (first, *later):
            await each.result()
    assert len(rows_in(archive, "waiting")) == 2
    forged = [each.replace(b'"edge\\":\\"continue', b'"edge\\":\\"resume') for each in archive]
    assert forged != archive
    async with Cast.open("memory://", watch=False) as cast:  # which has no agent for them
        await imported(cast, forged, waiting=True)
        asked = [each.request for each in await cast.queue.waiting("t1")]
        assert [(each.edge, each.parent) for each in asked] == [("continue", None)] * 2
    for wanted in (False, True):
        async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
            done = await imported(cast, forged, waiting=wanted)
            assert done.left == ({} if wanted else {"messages that wait": 2})
            if wanted:
                await until(lambda: _are(cast, ["truncated", "completed", "completed"]))
            assert await cast.queue.waiting("t1") == []
            runs = [each.run_id for each in await cast.log.runs("t1")]
            assert runs == [first.run_id, *(each.run_id for each in later if wanted)]


async def _are(cast: Cast, statuses: list[str]) -> bool:
    return [each.status for each in await cast.log.runs("t1")] == statuses


# ----------------------------------------------------------------------- ADK


class Counter(BaseAgent):
    """Counts its turns in the session's state, and keeps a file."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[AdkEvent]:
        turn = int(ctx.session.state.get("turn", 0)) + 1
        if ctx.artifact_service is not None:
            place: Any = {"app_name": ctx.app_name, "user_id": ctx.user_id, "session_id": ctx.session.id}
            part = types.Part(inline_data=types.Blob(data=b"\x00turn %d" % turn, mime_type="text/plain"))
            version = await ctx.artifact_service.save_artifact(**place, filename="notes.txt", artifact=part)
            await ctx.artifact_service.save_artifact(**place, filename="user:all.txt", artifact=part)
        else:
            version = -1
        yield AdkEvent(
            invocation_id=ctx.invocation_id,
            author=self.name,
            content=types.Content(role="model", parts=[types.Part(text=f"turn {turn}, version {version}")]),
            actions=EventActions(state_delta={"turn": turn, "user:name": "Ada", "app:all": 1}),
        )


def by_thread(given: RunAgentInput) -> str:
    return f"u-{given.thread_id}"


def adk_with(service: Any, *, artifacts: bool = True, **options: Any) -> AdkAdapter:
    app = App(
        name="counting",
        root_agent=Counter(name="counter"),
        resumability_config=ResumabilityConfig(is_resumable=True),
    )
    keeps = InMemoryArtifactService() if artifacts else None
    return AdkAdapter(Runner(app=app, session_service=service, artifact_service=keeps), **options)


@pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL:UserWarning")
@pytest.mark.parametrize("user", ["user", "by-thread"])
async def test_an_adk_session_goes_on_elsewhere(tmp_path: Path, user: str) -> None:
    options: dict[str, Any] = {} if user == "user" else {"user_id": by_thread}
    service = DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path}/adk.db")
    async with Cast.open("memory://", agents=[adk_with(service, **options)], watch=False) as cast:
        for text in ("one", "two"):
            await (await cast.say("t1", text)).result()
        archive = await exported(cast)
    assert len(rows_in(archive, "agent")) > 5
    there = InMemorySessionService()
    adapter = adk_with(there, **options)
    assert isinstance(adapter, Portable)
    kept: Kept = adapter.kept
    async with Cast.open("memory://", agents=[adapter], watch=False) as cast:
        assert (await imported(cast, archive)).left == {}
        assert await exported(cast) == archive
        await (await cast.say("t1", "three")).result()
        assert (await conversation(cast))[-1] == ("assistant", "turn 3, version 2")
        with pytest.raises(InvalidInput, match="already"):
            await kept.store("t1", [each["row"] for each in rows_in(archive, "agent")])
    place: Any = {"app_name": "counting", "user_id": "user" if user == "user" else "u-t1"}
    fresh = await there.create_session(**place)
    assert "turn" not in fresh.state
    assert (fresh.state, await service.get_user_state(**place)) == (
        {"user:name": "Ada", "app:all": 1},
        {"name": "Ada"},
    ), "what the third turn wrote, and not the import"
    await service.close()


@pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL:UserWarning")
@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"user": "u"}],
        [{"user": "u", "state": []}],
        [{"user": "u", "state": {}}, {"user": "v", "state": {}}],
        [{"user": "u", "state": {}}, {"event": {"actions": 5}}],
        [{"user": "u", "state": {}}, {"artifact": "user:x", "part": {"text": "x"}}],
        [{"user": "u", "state": {}}, {"artifact": "x", "part": {"text": "x"}}],
    ],
)
async def test_rows_that_are_no_session_store_nothing(rows: list[dict[str, Any]]) -> None:
    service = InMemorySessionService()
    with pytest.raises(InvalidInput, match=r"no part of a session|no artifact service"):
        await adk_with(service, artifacts=False).kept.store("t1", rows)
    assert (await service.list_sessions(app_name="counting")).sessions == []
