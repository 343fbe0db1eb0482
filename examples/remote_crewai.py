# /// script
# dependencies = ["ag-ui-crewai==1.0.0", "crewai==1.15.30"]
# ///
"""A CrewAI flow behind its community endpoint, `ag_ui_crewai`, which runcast casts by URL.

    uv run remote_crewai.py 9000          # installs about a gigabyte
    runcast attach http://localhost:9000/agent

Look at: the step `chat` in the page. Each method of the flow is a step.
"""

import os
import sys

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "true"}  # no network

import uvicorn
from ag_ui_crewai.endpoint import add_crewai_flow_fastapi_endpoint
from ag_ui_crewai.sdk import CopilotKitState, copilotkit_stream
from crewai.flow.flow import Flow, start
from fastapi import FastAPI
from litellm import completion


class Greeter(Flow[CopilotKitState]):
    @start()
    async def chat(self) -> None:
        answer = await copilotkit_stream(
            completion(
                model="openai/scripted",  # never asked: `mock_response` is the answer
                messages=self.state.messages,
                mock_response="Hello from CrewAI.",
                stream=True,
            )
        )
        self.state.messages.append(answer.choices[0].message)


app = FastAPI()
add_crewai_flow_fastapi_endpoint(app, Greeter(), "/agent")


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]))
