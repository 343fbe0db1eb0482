"""An ADK agent behind its community server, `ag_ui_adk`, which runcast casts by URL.

    uvicorn --factory remote_adk:app --port 9000
    runcast attach http://localhost:9000/agent

Install: `pip install "runcast[remote,cli]" ag_ui_adk`.

Look at: two tabs with the same thread, which show the same words at the same time. The server alone answers one of them.
"""

from collections.abc import AsyncGenerator

from ag_ui_adk import ADKAgent, create_adk_app
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class Scripted(BaseLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Hello from ADK.")]))


agent = LlmAgent(name="greeter", model=Scripted(model="scripted"))


def app() -> FastAPI:
    return create_adk_app(ADKAgent(adk_agent=agent, app_name="greeter", user_id="user"), path="/agent")


if __name__ == "__main__":
    print("Start it with: uvicorn --factory remote_adk:app --port 9000")
