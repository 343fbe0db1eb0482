"""A Pydantic AI agent with a page: its own AG-UI events, in this process. Put `"openai:gpt-5"` in TestModel's place.

Start it with `uvicorn app_pydantic_ai:app` and open http://localhost:8000 with the token that it logs.

Install: `pip install "runcast[cli]" "pydantic-ai-slim[ag-ui]"`.

Look at: the call of `weather`, with its arguments and its result.
"""

from collections.abc import AsyncIterator

from ag_ui.core import BaseEvent, RunAgentInput
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai.ui.ag_ui import AGUIAdapter

agent = Agent(TestModel(custom_output_text="It is sunny in Paris."))


@agent.tool_plain
def weather(city: str) -> str:
    return f"sunny in {city}"


def forecaster(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    return AGUIAdapter(agent=agent, run_input=input).run_stream()


# The three lines.
from runcast.app import Cast  # noqa: E402

cast = Cast.open("sqlite:///runcast.db", agents=[forecaster])
app = cast.asgi()


if __name__ == "__main__":
    print("Start it with: uvicorn app_pydantic_ai:app")
