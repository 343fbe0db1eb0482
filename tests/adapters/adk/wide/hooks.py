"""ADK's published plugins, and callbacks that replace what is said, called and returned."""

from __future__ import annotations

from typing import Any

from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.adk.plugins.global_instruction_plugin import GlobalInstructionPlugin
from google.adk.plugins.multimodal_tool_results_plugin import MultimodalToolResultsPlugin
from google.adk.plugins.reflect_retry_tool_plugin import ReflectAndRetryToolPlugin
from google.adk.plugins.save_files_as_artifacts_plugin import SaveFilesAsArtifactsPlugin
from google.genai import types

from tests.adapters.adk.fakes import call, calls, steady, text, turn
from tests.adapters.adk.scenes import SECRET, Adds, Counts, Shouts, look, looking, words
from tests.adapters.adk.wide.agents import DONE, MORE, wide


def plugged(*plugins: Any) -> Any:
    return lambda: {"plugins": list(plugins)}


def shaky() -> Any:
    tried: list[int] = []

    def luck(q: str = "") -> dict[str, Any]:
        """Try one's luck."""
        tried.append(1)
        if len(tried) % 2:
            raise ValueError("bad luck")
        return {"ok": True}

    return luck


def two_tries() -> Any:
    return steady(
        "root",
        calls(call("luck", {"q": "x"})),
        calls(call("luck", {"q": "y"})),
        DONE,
        MORE,
        tools=[shaky()],
    )


wide(
    "retrying: a tool that fails first",
    two_tries,
    app=plugged(ReflectAndRetryToolPlugin(max_retries=2)),
)
wide(
    "retrying: a tool that always fails",
    lambda: steady(
        "root", *[calls(call("luck", {"q": str(n)})) for n in range(2)], DONE, MORE, tools=[shaky()]
    ),
    app=plugged(ReflectAndRetryToolPlugin(max_retries=3, throw_exception_if_retry_exceeded=False)),
)
wide(
    "a filtered context",
    lambda: looking(DONE, MORE),
    turns=("hi", "again", "more"),
    app=plugged(ContextFilterPlugin(num_invocations_to_keep=1)),
)
wide(
    "a global instruction",
    lambda: looking(DONE, MORE),
    app=plugged(GlobalInstructionPlugin(f"know {SECRET}")),
)
wide("saved files", lambda: looking(DONE, MORE), app=plugged(SaveFilesAsArtifactsPlugin()))


def picture(q: str = "") -> Any:
    """Draw."""
    return [types.Part(text="drawn")]


wide(
    "results with parts",
    lambda: steady("root", calls(call("picture", {"q": "x"})), DONE, MORE, tools=[picture]),
    app=plugged(MultimodalToolResultsPlugin()),
)
wide(
    "all plugins together",
    lambda: looking(DONE, MORE),
    app=plugged(
        GlobalInstructionPlugin("be kind"),
        ContextFilterPlugin(num_invocations_to_keep=2),
        ReflectAndRetryToolPlugin(max_retries=1),
        Counts("c"),
    ),
)


class Refuses(BasePlugin):
    """Answers for the model."""

    async def before_model_callback(self, **given: Any) -> LlmResponse:
        return LlmResponse(content=words("refused"))


class Stops(BasePlugin):
    """Answers for the run."""

    async def before_run_callback(self, **given: Any) -> types.Content:
        return words("closed today")


class Rewrites(BasePlugin):
    """Rewrites the user's message."""

    async def on_user_message_callback(self, *, user_message: Any, **given: Any) -> Any:
        return types.Content(role="user", parts=[types.Part(text=f"better: {user_message.parts[0].text}")])


class Mends(BasePlugin):
    """Answers for a model that failed."""

    async def on_model_error_callback(self, **given: Any) -> LlmResponse:
        return LlmResponse(content=words("the model is down"))


wide("a plugin instead of the model", lambda: looking(DONE), app=plugged(Refuses("r")))
wide("a plugin instead of the run", lambda: looking(DONE), app=plugged(Stops("s")))
wide(
    "a plugin that rewrites the question",
    lambda: looking(DONE, MORE),
    app=plugged(Rewrites("r")),
)
wide(
    "a plugin for a model that fails",
    lambda: steady("root", [*text("half ", "of")[:1], RuntimeError("model down")]),
    app=plugged(Mends("m")),
)
wide(
    "plugins that shout and add",
    lambda: looking(DONE, MORE),
    app=plugged(Shouts("s"), Adds("a")),
)


def skipped(callback_context: Any, llm_request: Any) -> LlmResponse:
    return LlmResponse(content=words("from a cache"))


def canned(tool: Any, args: Any, tool_context: Any) -> dict[str, Any]:
    return {"canned": True}


def changed(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> dict[str, Any]:
    return {"changed": tool_response}


def argued(tool: Any, args: Any, tool_context: Any) -> None:
    args["q"] = "other"


def added(callback_context: Any) -> types.Content:
    callback_context.state["bye"] = True
    return words("and goodbye")


def censored(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
    content = llm_response.content
    if llm_response.partial or content is None or not content.parts or not content.parts[0].text:
        return None
    parts = [types.Part(text="[censored]"), *content.parts[1:]]
    return llm_response.model_copy(update={"content": types.Content(role="model", parts=parts)})


wide("callback: the model is skipped", lambda: looking(DONE, before_model_callback=skipped))
wide("callback: the tool is skipped", lambda: looking(DONE, MORE, before_tool_callback=canned))
wide("callback: the result is changed", lambda: looking(DONE, MORE, after_tool_callback=changed))
wide("callback: the arguments are changed", lambda: looking(DONE, MORE, before_tool_callback=argued))
wide("callback: a word behind the agent", lambda: looking(DONE, MORE, after_agent_callback=added))
wide("callback: answers are censored", lambda: looking(DONE, MORE, after_model_callback=censored))
wide(
    "callback: words before a call are censored",
    lambda: steady(
        "root",
        turn(types.Part(text="secret "), call("look", {"q": "x"})),
        DONE,
        MORE,
        tools=[look],
        after_model_callback=censored,
    ),
)
