"""An agent under a path of a FastAPI application that is there; its users see their own threads alone.

Ask it as an AG-UI client at `/agent/`, or open `/agent/` for the page.

Start it with `uvicorn app_fastapi:app`.

Install: `pip install "runcast[cli]" fastapi`.

Look at: a second user, who gets 403 for the first one's threads.
"""

from collections.abc import AsyncIterator, Mapping

from ag_ui.core import (
    Event,
    RunAgentInput,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from fastapi import FastAPI

from runcast.app.fastapi import add_agent

api = FastAPI()


@api.get("/")
def home() -> dict[str, str]:
    return {"agent": "/agent/"}


async def clerk(input: RunAgentInput) -> AsyncIterator[Event]:
    message = f"m-{input.run_id}"
    yield TextMessageStartEvent(message_id=message)
    for word in ("Good ", "day."):
        yield TextMessageContentEvent(message_id=message, delta=word)
    yield TextMessageEndEvent(message_id=message)


def who(headers: Mapping[str, str]) -> str | None:
    return {"Bearer ann's": "ann", "Bearer bob's": "bob"}.get(headers.get("authorization", ""))


def may(user: str | None, thread_id: str) -> bool:
    return user is not None and (thread_id == "" or thread_id.startswith(f"{user}:"))


cast = add_agent(api, clerk, "/agent", authorize=may, identify=who)
app = api


if __name__ == "__main__":
    print("Start it with: uvicorn app_fastapi:app")
