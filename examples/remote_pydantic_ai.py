"""A Pydantic AI agent behind its own AG-UI server, which runcast casts by URL.

    uvicorn remote_pydantic_ai:app --port 9000
    runcast attach http://localhost:9000/agent

Install: `pip install "runcast[remote,cli]" "pydantic-ai-slim[ag-ui]"`.

Look at: the page after a reload. Pydantic AI keeps nothing; the conversation is in runcast's log.
"""

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

agent = Agent(TestModel(custom_output_text="Hello from Pydantic AI."))


async def run(request: Request) -> Response:
    return await AGUIAdapter.dispatch_request(request, agent=agent)


app = Starlette(routes=[Route("/agent", run, methods=["POST"])])


if __name__ == "__main__":
    print("Start it with: uvicorn remote_pydantic_ai:app --port 9000")
