"""What clients are shown of an agent: enough to build a form that works, and nothing that is private."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

from ag_ui.core import AgentCapabilities, IdentityCapabilities
from google.adk.agents import LlmAgent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import BaseModel, TypeAdapter
from typing_extensions import TypedDict

from runcast.adapters import AgentSchemas, Askable, ClientSchema, Described, Unanswerable
from runcast.adapters.adk import AdkAdapter
from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.adapters.remote import RemoteAdapter
from runcast.app import Cast
from runcast.app.http.json_shapes import AgentRow
from runcast.app.tenants.tenant_adapter import ForTenant
from tests.adapters.adk.fakes import FakeGemini
from tests.adapters.langgraph.fakes import StreamingModel
from tests.app.agents import parrot
from tests.app.serving import run_input, sent, serving

SECRET = "sk-proj-" + "a" * 40


@dataclass
class Context:
    model: str = field(default="small", metadata={"description": "which model answers"})
    api_key: str = SECRET
    system_prompt: str = "You are terse."


class Shown(TypedDict):
    topic: str


class State(MessagesState):
    topic: str
    private_notes: list[str]


def graph(*, saver: Any = None, **schemas: Any) -> Any:
    def talk(state: State, runtime: Runtime[Context]) -> Any:
        topic, model = state.get("topic"), runtime.context.model if runtime.context else None
        return {"messages": [AIMessage(f"{model} on {topic}")], "private_notes": ["x"]}

    builder = StateGraph(State, context_schema=Context, **schemas).add_node("talk", talk)
    return builder.add_edge(START, "talk").compile(checkpointer=saver, name="talker")


def open_to_clients(made: Any, **more: Any) -> LangGraphAdapter:
    return LangGraphAdapter(made, name="talker", options=LangGraphOptions(client_config=True), **more)


def fields(row: Any, part: str) -> list[str]:
    return sorted(row["schemas"].get(part, {"schema": {"properties": {}}})["schema"]["properties"])


async def row_of(agent: Any, name: str) -> Any:
    async with serving(Cast.open("memory://", agents=[agent])) as host:
        one = await host.http.get(f"/agents/{name}")
        assert one.status_code == 200, one.text
        assert (await host.http.get("/agents")).json()["agents"] == [one.json()]
        assert (await host.http.get("/agents/nobody")).status_code == 404
        TypeAdapter(AgentRow).validate_python(one.json())
        return one.json()


async def test_a_graph_shows_what_it_takes_and_nothing_private() -> None:
    row = await row_of(open_to_clients(graph(output_schema=Shown)), "talker")
    assert (fields(row, "input"), fields(row, "state")) == (["topic"], ["topic"])
    assert fields(row, "context") == ["api_key", "model", "system_prompt"]
    assert {name: part["place"] for name, part in row["schemas"].items()} == {
        "input": "forwardedProps.input", "context": "forwardedProps.context", "state": None
    }  # fmt: skip
    assert row["schemas"]["context"]["schema"]["properties"]["model"]["default"] == "small"
    assert "private_notes" not in str(row)
    assert SECRET not in str(row)
    assert "terse" not in str(row)


async def test_state_keys_are_the_rule_for_schemas_as_for_states() -> None:
    row = await row_of(LangGraphAdapter(graph(), name="talker", state_keys=["topic"]), "talker")
    assert (fields(row, "input"), fields(row, "state")) == ([], ["topic"])
    assert row["schemas"]["context"]["place"] is None  # clients may not set it here
    options = LangGraphOptions(input_state_keys=["topic"])
    row = await row_of(LangGraphAdapter(graph(), name="talker", options=options), "talker")
    assert row["schemas"]["input"]["place"] == "state"
    assert fields(row, "input") == ["topic"]


async def test_a_private_attribute_of_a_middleware_is_in_no_schema() -> None:
    class Counting(AgentState[Any]):
        visible: int
        hidden_count: Annotated[int, PrivateStateAttr]

    class Counts(AgentMiddleware[Counting]):
        state_schema = Counting

    made = create_agent(StreamingModel(turns=[]), middleware=[Counts()], name="talker")
    row = await row_of(open_to_clients(made), "talker")
    assert fields(row, "input") == ["visible"]
    assert "hidden_count" not in str(row)


async def test_an_adk_agent_shows_its_schemas() -> None:
    class Order(BaseModel):
        dish: str

    class Bill(BaseModel):
        cents: int

    agent = LlmAgent(
        name="waiter", model=FakeGemini(), description="Takes orders.", input_schema=Order, output_schema=Bill, output_key="bill"
    )  # fmt: skip
    agent.sub_agents.append(LlmAgent(name="cook", model=FakeGemini(), output_key="_private"))
    row = await row_of(AdkAdapter(agent), "waiter")
    assert row["description"] == "Takes orders."
    assert (fields(row, "input"), row["schemas"]["input"]["place"]) == (["dish"], "message")
    assert (fields(row, "state"), row["schemas"]["state"]["place"]) == (["bill"], "state")
    assert "_private" not in str(row["schemas"])


async def test_what_a_form_sends_reaches_the_graph_and_a_wrong_field_is_named() -> None:
    async with serving(
        Cast.open("memory://", agents=[open_to_clients(graph(saver=InMemorySaver()))])
    ) as host:
        props = {"input": {"topic": "bees"}, "context": {"model": "big"}}
        begun = await host.http.post("/runs", json={"message": "hi", "forwarded_props": props})
        assert begun.status_code == 202, begun.text
        thread = begun.json()["thread_id"]
        while host.cast.active:  # noqa: ASYNC110  its end frees the thread a moment after its last event
            await asyncio.sleep(0.01)
        state = await host.cast.state(thread)
        assert state is not None
        assert state.history[-1].content == "big on bees"
        behind = {
            "message": "and?",
            "from_run": begun.json()["run_id"],
            "forwarded_props": {"input": {"topic": "ants"}},
        }
        assert (await host.http.post(f"/threads/{thread}/branch", json=behind)).status_code == 202
        for wrong in ({"inptu": 1}, {"messages": []}, {"private": 1}):
            given = run_input(run=f"r-{next(iter(wrong))}", thread="t2", forwardedProps={"input": wrong})
            async with host.http.stream("POST", "/agents/talker", json=given) as told:
                end = [each async for each in sent(told)][-1].event
            assert end["code"] == "invalid_input"
            assert "its fields are private_notes, topic" in end["message"]
        refused = await host.http.post("/runs", json={"message": "hi", "forwarded_props": [1]})
        assert refused.status_code == 400
        assert "must be an object" in refused.json()["detail"]


async def test_a_question_that_no_answer_can_reach_is_an_error_with_what_to_do() -> None:
    def ask(state: MessagesState) -> Any:
        return {"messages": [AIMessage(str(interrupt("sure?")))]}

    made = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile(name="asks")
    async with serving(Cast.open("memory://", agents=[made])) as host:
        async with host.http.stream("POST", "/agents/asks", json=run_input()) as told:
            events = [each.event async for each in sent(told)]
        assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "unanswerable")
        assert events[-1]["message"] == str(Unanswerable())
        snapshot = (await host.http.get("/threads/t1/snapshot")).json()
        assert (snapshot["status"], snapshot["interrupts"]) == ("failed", [])


async def test_another_runcast_is_asked_for_its_agents_schemas() -> None:
    made = open_to_clients(graph(), context=None)
    async with serving(Cast.open("memory://", agents=[made])) as far:
        remote = RemoteAdapter(f"{far.url}/agents/talker", name="far")
        async with serving(Cast.open("memory://", agents=[remote])) as near:
            assert (await near.http.get("/agents")).json()["agents"][0]["schemas"] == {}
            row = (await near.http.get("/agents/far")).json()
            assert fields(row, "context") == ["api_key", "model", "system_prompt"]
            assert TypeAdapter(ClientSchema).validate_python(row["schemas"]["context"])
            assert row["capabilities"]["identity"]["type"] == "langgraph"
            assert (await near.http.get("/agents")).json()["agents"][0]["schemas"] == row["schemas"]
            tenant = ForTenant(remote, "acme")
            await tenant.ask()
            assert tenant.schemas() == remote.schemas()
    async with serving(
        Cast.open("memory://", agents=[RemoteAdapter(f"{far.url}/agents/gone", name="gone")])
    ) as near:
        row = (await near.http.get("/agents/gone")).json()  # nothing answers there
        assert row == {
            "name": "gone",
            "capabilities": {"identity": {"name": "gone"}},
            "schemas": {},
            "on_busy": "refuse",
        }
    await remote.aclose()


async def test_an_agent_of_another_node_is_described_as_there(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    here = Cast.open(url, agents=[open_to_clients(graph())])
    async with here, serving(Cast.open(url, work=False)) as web:
        row = (await web.http.get("/agents/talker")).json()
    assert fields(row, "context") == ["api_key", "model", "system_prompt"]
    assert SECRET not in str(row)


def test_what_cannot_describe_itself_is_no_described_adapter() -> None:
    assert isinstance(ForTenant(RemoteAdapter("http://host/x"), "a"), Described)
    assert isinstance(RemoteAdapter("http://host/x"), Askable)
    assert not isinstance(open_to_clients(graph()), Askable)
    row = ForTenant(Cast.open("memory://", agents=[parrot]).agent("parrot"), "a")
    assert row.schemas() == AgentSchemas()
    assert row.capabilities() == AgentCapabilities(identity=IdentityCapabilities(name="parrot"))
