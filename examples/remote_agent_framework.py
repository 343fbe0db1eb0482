# /// script
# dependencies = ["agent-framework-ag-ui==1.7.0", "agent-framework-core==1.23.0", "uvicorn"]
# ///
"""An agent of Microsoft's Agent Framework behind its own AG-UI endpoint, which runcast casts by URL.

    uv run remote_agent_framework.py 9000
    runcast attach http://localhost:9000/agent

Look at: the words, which come one by one. The server speaks AG-UI 0.1, which is read too.
"""

import sys
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from agent_framework import Agent, BaseChatClient, ChatResponse, ChatResponseUpdate, Content, Message
from agent_framework_ag_ui import add_agent_framework_fastapi_endpoint
from fastapi import FastAPI


class Scripted(BaseChatClient):
    def _inner_get_response(self, *, stream: bool, **_: Any) -> Any:
        return self._build_response_stream(self.words()) if stream else self.answer()

    async def words(self) -> AsyncIterator[ChatResponseUpdate]:
        for word in ("Hello ", "from ", "Agent ", "Framework."):
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(word)])

    async def answer(self) -> ChatResponse:
        return ChatResponse(messages=[Message(role="assistant", contents=["Hello from Agent Framework."])])


app = FastAPI()
add_agent_framework_fastapi_endpoint(
    app, Agent(client=Scripted(), name="greeter"), path="/agent", single_user=True
)


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]))
