# /// script
# dependencies = ["llama-index-protocols-ag-ui==0.6.0", "llama-index-core==0.14.25", "fastapi", "uvicorn"]
# ///
"""A LlamaIndex workflow behind its own AG-UI router, which runcast casts by URL.

    uv run remote_llama_index.py 9000
    runcast attach http://localhost:9000/agent/run

Look at: the state below the conversation. The workflow sends it at the start of each run.
"""

import sys

import uvicorn
from fastapi import FastAPI
from llama_index.core.llms import ChatMessage, MockFunctionCallingLLM
from llama_index.protocols.ag_ui.router import get_ag_ui_workflow_router

model = MockFunctionCallingLLM(
    response_generator=lambda messages, **_: ChatMessage(role="assistant", content="Hello from LlamaIndex.")
)
app = FastAPI()
app.include_router(get_ag_ui_workflow_router(llm=model, initial_state={"mood": "calm"}), prefix="/agent")


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]))
