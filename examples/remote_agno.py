"""An Agno agent behind its own server, AgentOS, which runcast casts by URL.

    uvicorn remote_agno:app --port 9000
    runcast attach http://localhost:9000/agent/agui

Install: `pip install "runcast[remote,cli]" agno ag-ui-protocol fastapi python-multipart`.

Look at: the second turn. Without a `db` the agent sees only the newest message; the conversation is in runcast's log.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.os import AgentOS
from agno.os.interfaces.agui import AGUI


class Scripted(Model):
    def invoke(self, *_: Any, **__: Any) -> ModelResponse:
        return ModelResponse(role="assistant", content="Hello from Agno.")

    async def ainvoke(self, *_: Any, **__: Any) -> ModelResponse:
        return self.invoke()

    def invoke_stream(self, *_: Any, **__: Any) -> Iterator[ModelResponse]:
        yield self.invoke()

    async def ainvoke_stream(self, *_: Any, **__: Any) -> AsyncIterator[ModelResponse]:
        for word in ("Hello ", "from ", "Agno."):
            yield ModelResponse(role="assistant", content=word)

    def _parse_provider_response(self, response: ModelResponse, **_: Any) -> ModelResponse:
        return response

    def _parse_provider_response_delta(self, response: ModelResponse) -> ModelResponse:
        return response


agent = Agent(name="greeter", model=Scripted(id="scripted"), telemetry=False)
app = AgentOS(agents=[agent], interfaces=[AGUI(agent=agent, prefix="/agent")], telemetry=False).get_app()


if __name__ == "__main__":
    print("Start it with: uvicorn remote_agno:app --port 9000")
