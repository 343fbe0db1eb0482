"""A LangGraph graph behind the protocol's official server, `ag-ui-langgraph`, which runcast casts by URL.

    uvicorn remote_langgraph:app --port 9000
    runcast attach http://localhost:9000/agent

Install: `pip install "runcast[remote,cli]" ag-ui-langgraph fastapi`.

Look at: say "ask". The question comes from the other server, and your answer goes back to it.
"""

from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from fastapi import FastAPI
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


def talk(state: MessagesState) -> dict[str, list[AIMessage]]:
    said = state["messages"][-1].content
    answer = interrupt("Are you sure?") if said == "ask" else said
    return {"messages": [AIMessage(f"You said: {answer}")]}


graph = (
    StateGraph(MessagesState)
    .add_node("talk", talk)
    .add_edge(START, "talk")
    .compile(checkpointer=InMemorySaver())
)
# Without the outcome the server sends a question as a CUSTOM event, which only CopilotKit knows how to answer.
agent = LangGraphAgent(name="talker", graph=graph, emit_interrupt_outcome=True, emit_raw_events=False)
app = FastAPI()
add_langgraph_fastapi_endpoint(app, agent, "/agent")


if __name__ == "__main__":
    print("Start it with: uvicorn remote_langgraph:app --port 9000")
