"""An ADK agent with a tool and a confirmation, live as AG-UI events: the run pauses, is answered and goes on.

The model is a script, so that this runs without a network: put `"gemini-flash-latest"` in its place.

Install: `pip install "runcast[adk]"`.

Look at: RUN_FINISHED with an interrupt, and the second run that takes up the call with its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from ag_ui.core import RunAgentInput, RunFinishedInterruptOutcome, UserMessage
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import FunctionTool
from google.genai import types

from runcast.adapters.adk import AdkAdapter


class Scripted(BaseLlm):
    """Asks for a refund, then tells what came of it."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        asked = llm_request.contents[-1].parts or []
        if any(part.function_response for part in asked):
            for word in ("Done: ", "the money ", "is on its way."):
                yield self.says(types.Part(text=word), partial=True)
            yield self.says(types.Part(text="Done: the money is on its way."))
        else:
            call = types.FunctionCall(id="call-1", name="refund", args={"order": "A7", "euros": 20})
            yield self.says(types.Part(function_call=call))

    def says(self, part: types.Part, partial: bool = False) -> LlmResponse:
        return LlmResponse(content=types.Content(role="model", parts=[part]), partial=partial)


def refund(order: str, euros: int) -> dict[str, str]:
    """Pay an order back."""
    return {"refunded": f"{euros} EUR for {order}"}


agent = LlmAgent(
    name="shop",
    model=Scripted(model="scripted"),
    tools=[FunctionTool(refund, require_confirmation=True)],
)
adapter = AdkAdapter(agent)


async def show(input: RunAgentInput) -> str | None:
    """Print a run's events; the id of the interrupt it waits for."""
    async for event in adapter.run(input):
        print(event.type.value, getattr(event, "delta", getattr(event, "message", "")))
        outcome = getattr(event, "outcome", None)
        if isinstance(outcome, RunFinishedInterruptOutcome):
            return outcome.interrupts[0].id
    return None


async def main() -> None:
    question = UserMessage(id="m1", content="I want my money back")
    waiting = await show(RunAgentInput(thread_id="t1", run_id="r1", messages=[question]))
    print("--- approve?", waiting)
    answer = [{"interruptId": waiting, "status": "resolved", "payload": True}]
    await show(
        RunAgentInput.model_validate({"threadId": "t1", "runId": "r2", "messages": [], "resume": answer})
    )


if __name__ == "__main__":
    asyncio.run(main())
