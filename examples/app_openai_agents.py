"""An agent of the OpenAI Agents SDK with a page, in this process. Put `model="gpt-5"` in ScriptedModel's place.

Start it with `uvicorn app_openai_agents:app` and open http://localhost:8000 with the token that it logs.

Install: `pip install "runcast[cli]" openai-agents`.

Look at: `forecaster`. The SDK has no AG-UI of its own; three of its events become text, calls and results.
"""

from collections.abc import AsyncIterator

from ag_ui.core import (
    BaseEvent,
    RunAgentInput,
    TextMessageChunkEvent,
    ToolCallChunkEvent,
    ToolCallResultEvent,
)
from agents import (
    Agent,
    RawResponsesStreamEvent,
    RunConfig,
    RunItemStreamEvent,
    Runner,
    ToolCallItem,
    ToolCallOutputItem,
    function_tool,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseTextDeltaEvent


@function_tool
def weather(city: str) -> str:
    return f"sunny in {city}"


async def forecaster(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    call = function_call("weather", {"city": "Paris"}, call_id=f"call-{input.run_id}")
    model = ScriptedModel([[call], [assistant_message("It is sunny in Paris.")]])
    agent = Agent(name="forecaster", tools=[weather], model=model)
    talk = [
        {"role": each.role, "content": each.content}
        for each in input.messages
        if each.role in ("user", "assistant") and each.content
    ]
    run = Runner.run_streamed(agent, talk, run_config=RunConfig(tracing_disabled=True))
    async for event in run.stream_events():
        match event:
            case RawResponsesStreamEvent(data=ResponseTextDeltaEvent() as text):
                message = f"{input.run_id}-{text.item_id}"
                yield TextMessageChunkEvent(message_id=message, role="assistant", delta=text.delta)
            case RunItemStreamEvent(item=ToolCallItem(raw_item=tool)):
                yield ToolCallChunkEvent(
                    tool_call_id=tool.call_id, tool_call_name=tool.name, delta=tool.arguments
                )
            case RunItemStreamEvent(item=ToolCallOutputItem(raw_item=tool, output=output)):
                call_id = tool["call_id"]
                yield ToolCallResultEvent(
                    message_id=f"result-{call_id}", tool_call_id=call_id, content=str(output)
                )


# The three lines.
from runcast.app import Cast  # noqa: E402

cast = Cast.open("sqlite:///runcast.db", agents=[forecaster])
app = cast.asgi()


if __name__ == "__main__":
    print("Start it with: uvicorn app_openai_agents:app")
