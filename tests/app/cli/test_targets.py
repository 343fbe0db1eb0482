"""What `runcast attach` and `serve` take: the program somebody has, as it is; anything else is refused at start."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import (
    RunAgentInput,
    RunErrorEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    UserMessage,
)

from runcast.adapters import Adapter
from runcast.adapters.frameworks import Hosting
from runcast.app import BadRequest
from runcast.app.cli.serving import Served, adapters_of
from runcast.app.cli.targets import enter, find
from tests.servers import own_schema, postgres_server

__all__ = ["postgres_server"]

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]")  # ADK's own

CONTEXT = """
import os
from dataclasses import dataclass, field, fields


@dataclass(kw_only=True)
class Context:
    user_id: str = "default"
    model: str = field(default="default")

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) == each.default:
                setattr(self, each.name, os.environ.get(each.name.upper(), each.default))
"""

GRAPH = """
from contextlib import asynccontextmanager

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from memory.context import Context


async def call(state: MessagesState, runtime: Runtime[Context], config: RunnableConfig) -> dict:
    space = ("memories", runtime.context.user_id)
    await runtime.store.aput(space, str(len(state["messages"])), {"text": state["messages"][-1].content})
    kept = len(await runtime.store.asearch(space))
    answer = interrupt("sure?") if state["messages"][-1].content == "ask" else kept
    name = config["configurable"].get("model_name")
    return {"messages": [AIMessage(f"{runtime.context.model} {runtime.context.user_id} {name} {answer}")]}


builder = StateGraph(MessagesState, context_schema=Context)
builder.add_node("call", call)
builder.add_edge(START, "call")
graph = builder.compile()


def make_graph(config: RunnableConfig):
    return builder


async def make_later():
    return graph


@asynccontextmanager
async def opened(config: RunnableConfig):
    yield graph
"""

ODD = """
from ag_ui.core import TextMessageChunkEvent
from langchain_core.messages import AIMessage

number = 7


async def answer(input):
    yield TextMessageChunkEvent(message_id="m", role="assistant", delta="hi")


async def on_server(config, runtime):
    return graph


async def coroutine(input):
    return None


def nothing():
    return None
"""

ADK = """
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="hello")]))


root_agent = LlmAgent(name="NAME", model=Scripted(model="scripted"))
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own, from which modules are imported anew."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(os, "environ", os.environ.copy())
    package = tmp_path / "src" / "memory"
    package.mkdir(parents=True)
    for name, text in (("__init__", ""), ("context", CONTEXT), ("graph", GRAPH)):
        (package / f"{name}.py").write_text(text)
    (tmp_path / "odd.py").write_text(ODD)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def manifest(place: Path, **more: Any) -> None:
    graphs = {
        "memory": "./src/memory/graph.py:graph",
        "made": {"path": "./src/memory/graph.py:make_graph"},
        "opened": "memory.graph:opened",
    }
    settings = {"dependencies": ["."], "graphs": graphs, "env": ".env", **more}
    (place / "langgraph.json").write_text(json.dumps(settings))
    (place / ".env").write_text("MODEL=from-env\n")


async def entered(stack: AsyncExitStack, text: str, **hosting: Any) -> list[Adapter]:
    url = hosting.pop("url", "memory://")
    return [await enter(target, Hosting(url, **hosting), stack) for target in find(text)]


async def said(adapter: Adapter, text: str = "hi", thread: str = "t1", **props: Any) -> str:
    """What the agent answers; an error's message where it fails."""
    given = RunAgentInput(
        thread_id=thread,
        run_id=f"r-{text}-{thread}",
        messages=[UserMessage(id=f"u-{text}", content=text)],
        tools=[],
        context=[],
        forwarded_props=props,
    )
    events = [event async for event in adapter.run(given)]
    chunks = (TextMessageChunkEvent, TextMessageContentEvent)
    texts = [each.delta or "" for each in events if isinstance(each, chunks)]
    return "".join([*texts, *(each.message for each in events if isinstance(each, RunErrorEvent))])


async def test_a_langgraph_json_brings_all_its_graphs_as_langgraphs_server_runs_them(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest(place, auth={"path": "./auth.py:auth"}, http={"app": "./web.py:app"})
    async with AsyncExitStack() as stack:
        url = f"sqlite:///{place}/runs.db"
        agents = await entered(stack, str(place), url=url, context={"user_id": "ann"})
        assert [each.name for each in agents] == ["memory", "made", "opened"]
        notes = capsys.readouterr().err
        assert "`auth` is not applied; give --authorize and --identify instead" in notes
        assert "`http` is not applied" in notes
        assert await said(agents[0], configurable={"model_name": "gpt"}) == "from-env ann gpt 1"
        assert await said(agents[0], "again") == "from-env ann None 2", "the store and the thread are kept"
        assert await said(agents[1], thread="t2", context={"model": "big"}) == "big ann None 2"
        assert "context has no field 'modle'" in await said(agents[2], thread="t3", context={"modle": 1})
        assert "context field 'model'" in await said(agents[2], thread="t4", context={"model": 1})


async def test_a_question_is_answered_by_the_hosts_own_checkpointer(place: Path) -> None:
    manifest(place)
    async with AsyncExitStack() as stack:
        (agent, *_) = await entered(stack, "langgraph.json")
        given = RunAgentInput(
            thread_id="t1", run_id="r1", messages=[UserMessage(id="u1", content="ask")], tools=[], context=[]
        )
        events = [event async for event in agent.run(given)]
        outcome: Any = getattr(events[-1], "outcome", None)
        answer = [{"interruptId": outcome.interrupts[0].id, "status": "resolved", "payload": "yes"}]
        again = RunAgentInput.model_validate(
            {"threadId": "t1", "runId": "r2", "messages": [], "tools": [], "context": [], "resume": answer}
        )
        texts = [
            event.delta async for event in agent.run(again) if isinstance(event, TextMessageContentEvent)
        ]
        assert "".join(texts) == "from-env default None yes"


SHAPES = """
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


class Words(GenericFakeChatModel):
    messages: object = None

    def _generate(self, messages, stop=None, run_manager=None, **given):
        self.messages = iter([AIMessage(f"echo {messages[-1].content}")])
        return super()._generate(messages, stop, run_manager, **given)


def answer(messages):
    said = messages[-1].content
    return AIMessage(f"echo {interrupt('sure?') if said == 'ask' else said}")


def talk(state):
    return {"messages": [answer(state["messages"])]}


inner = StateGraph(MessagesState).add_node("talk", talk).add_edge(START, "talk").compile()
subgraphs = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner")


prebuilt = create_agent(Words(messages=iter(())))


@task
def reply(messages):
    return answer(messages)


@entrypoint()
def functional(state):
    return {"messages": [*state["messages"], reply(state["messages"]).result()]}
"""


@pytest.mark.parametrize("shape", ["subgraphs", "functional", "prebuilt"])
async def test_every_shape_of_a_graph_holds_a_conversation(place: Path, shape: str) -> None:
    (place / "shapes.py").write_text(SHAPES)
    async with AsyncExitStack() as stack:
        (agent,) = await entered(stack, f"shapes.py:{shape}")
        assert await said(agent, "one") == "echo one"
        assert await said(agent, "two") == "echo two"
        if shape == "prebuilt":  # asks nothing by itself
            assert await said(agent, "three") == "echo three"
            return
        given = RunAgentInput(
            thread_id="t1", run_id="r3", messages=[UserMessage(id="u3", content="ask")], tools=[], context=[]
        )
        outcome: Any = getattr([event async for event in agent.run(given)][-1], "outcome", None)
        resume = [{"interruptId": outcome.interrupts[0].id, "status": "resolved", "payload": "yes"}]
        again = RunAgentInput.model_validate(
            {
                "threadId": "t1",
                "runId": "r4",
                "messages": [{"id": "u3", "role": "user", "content": "ask"}],
                "tools": [],
                "context": [],
                "resume": resume,
            }
        )
        kinds = (TextMessageChunkEvent, TextMessageContentEvent)
        assert "".join([e.delta or "" async for e in agent.run(again) if isinstance(e, kinds)]) == "echo yes"


async def test_checkpoints_and_store_are_kept_in_the_logs_postgresql(
    place: Path, postgres_server: str
) -> None:
    manifest(place)
    url = own_schema(postgres_server)
    for turn in (1, 2):  # the second one as another process
        async with AsyncExitStack() as stack:
            (agent, *_) = await entered(stack, "langgraph.json", url=url)
            assert await said(agent, f"turn {turn}") == f"from-env default None {turn}"


async def test_workers_that_start_together_on_an_empty_database_all_start(
    place: Path, postgres_server: str
) -> None:
    manifest(place)
    url = own_schema(postgres_server)

    async def start() -> None:
        async with AsyncExitStack() as stack:
            await entered(stack, "src/memory/graph.py:graph", url=url)

    await asyncio.gather(*(start() for _ in range(4)))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("src/memory/graph.py:graph", "graph"),
        ("src/memory/graph.py:builder", "builder"),
        ("src/memory/graph.py:make_graph", "graph"),
        ("src/memory/graph.py:make_later", "make_later"),
        ("src/memory/graph.py:opened", "opened"),
        ("odd.py:answer", "answer"),
        ("odd:answer", "answer"),
    ],
)
async def test_a_variable_is_served_whatever_makes_the_agent(place: Path, text: str, name: str) -> None:
    async with AsyncExitStack() as stack:
        (agent,) = await entered(stack, text)
        assert agent.name == name
        assert await said(agent) in ("default default None 1", "hi")
        (named,) = await entered(stack, text, name="mine")
        assert named.name == "mine"


async def test_adk_agents_of_one_name_go_by_their_folders_and_answer_under_any_name(place: Path) -> None:
    for name in ("one", "two"):
        (place / "agents" / name).mkdir(parents=True)
        (place / "agents" / name / "agent.py").write_text(ADK.replace("NAME", "root_agent"))
    async with AsyncExitStack() as stack:
        agents = await adapters_of(Served(["agents"], Hosting("memory://")), stack)
        assert [each.name for each in agents] == ["one", "two"]
        given = RunAgentInput(
            thread_id="t1", run_id="r1", messages=[UserMessage(id="u1", content="hi")], tools=[], context=[]
        )
        events = [event async for event in agents[1].run(given)]
        assert not [each for each in events if getattr(each, "subagent_run_id", None)]
        assert "hello" in [getattr(each, "delta", "") for each in events]


async def test_agents_of_one_name_and_one_variable_go_by_their_modules(place: Path) -> None:
    for name in ("one", "two"):
        (place / name).mkdir()
        (place / name / "agent.py").write_text(ADK.replace("NAME", "helper"))
    async with AsyncExitStack() as stack:
        targets = ["one/agent.py:root_agent", f"{place}/two/agent.py:root_agent"]
        agents = await adapters_of(Served(targets, Hosting("memory://")), stack)
        assert [each.name for each in agents] == ["one", "two"]


@pytest.mark.filterwarnings("ignore:.*LlmAgentConfig is deprecated:DeprecationWarning")
async def test_folders_of_adk_agents_are_served_as_adk_web_does(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("one", "two"):
        folder = place / "agents" / name
        folder.mkdir(parents=True)
        (folder / "agent.py").write_text(ADK.replace("NAME", f"agent_{name}"))
    (place / "agents" / "notes").mkdir()
    (place / "agents" / "three").mkdir()
    yaml = "agent_class: LlmAgent\nname: from_yaml\nmodel: gemini-flash-latest\ninstruction: Answer.\n"
    (place / "agents" / "three" / "root_agent.yaml").write_text(yaml)
    async with AsyncExitStack() as stack:
        agents = await entered(stack, "agents")
        assert [each.name for each in agents] == ["agent_one", "from_yaml", "agent_two"]
        assert "mismatch" not in caplog.text  # ADK's own servers name the app by its folder
        assert await said(agents[0]) == "hello"
        (one,) = await entered(stack, "agents/one")
        assert one.name == "agent_one"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("odd.py:AIMessage", "odd.py:AIMessage: the class AIMessage is no agent: give "),
        ("odd.py:number", "odd.py:number: an object of the class int is no agent"),
        ("odd.py:coroutine", "the function coroutine is no agent"),
        ("odd.py:on_server", "on_server needs config, runtime, and runcast gives a factory nothing or"),
        ("odd.py:nothing", "odd.py:nothing: None is no agent"),
        ("odd.py:ghost", "odd.py has no 'ghost'"),
        ("odd.py:coroutin", "odd.py has no 'coroutin'; did you mean 'coroutine'?"),
        ("ghost.py:graph", "there is no file ghost.py"),
        ("ghost:graph", "No module named 'ghost'; install it"),
        ("brokn:graph", "No module named 'brokn'; did you mean 'broken'?"),
        (
            "broken.py:graph",
            "broken.py cannot be imported: ValueError: api_key is missing (.*broken.py, line 2); set",
        ),
        ("odd.py", "name a variable, e.g. odd.py:graph"),
        (
            "src",
            "src is no langgraph.json, and no folder with one or with ADK agents; name a variable, e.g. src.agent.py:",
        ),
        ("nocolon", "is not module:name"),
        ("empty.json", "names no graphs"),
        ("torn.json", "is not JSON"),
        ("wrong.json", "graph 'a' is not path.py:name"),
    ],
)
async def test_anything_else_is_refused_at_start_by_what_it_is(place: Path, text: str, sentence: str) -> None:
    (place / "broken.py").write_text("import json\nraise ValueError('api_key is missing')")
    (place / "empty.json").write_text("{}")
    (place / "torn.json").write_text("{")
    (place / "wrong.json").write_text('{"graphs": {"a": 7}}')
    async with AsyncExitStack() as stack:
        with pytest.raises(Exception, match=sentence.replace("(", "\\(").replace(")", "\\)")) as error:
            await entered(stack, text)
    assert type(error.value).__name__ in (BadRequest.__name__, "InvalidInput")


async def test_a_url_is_an_agent_of_another_server() -> None:
    async with AsyncExitStack() as stack:
        (agent,) = await entered(stack, "http://localhost:1/agent", name="theirs")
        assert agent.name == "theirs"
