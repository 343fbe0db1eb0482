"""An ADK agent with a page. The model is a script: put `"gemini-flash-latest"` in its place.

Start it with `uvicorn app_adk:app` and open http://localhost:8000 with the token that it logs.

Install: `pip install "runcast[adk,cli]"`.

Look at: two tabs with the same thread, which show the same words at the same time.
"""

from collections.abc import AsyncGenerator

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

# The three lines.
from runcast.app import Cast  # noqa: E402

cast = Cast.open("sqlite:///runcast.db", agents=[agent])
app = cast.asgi()


if __name__ == "__main__":
    print("Start it with: uvicorn app_adk:app")
