"""langchain's published middleware, alone and in pairs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    FilesystemFileSearchMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolEmulator,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    ShellToolMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.tools import tool
from pydantic import Field

from tests.adapters.langgraph.scenes.book import add, echo
from tests.adapters.langgraph.wide.book import (
    Act,
    InMemorySaver,
    Steady,
    agent,
    both,
    call,
    model,
    say,
    scene,
)

ADDING = call("add", "c1", a=1, b=2)
DONE = say("do", "ne")
MORE = say("mo", "re")
CALM = {"initial_delay": 0.0, "jitter": False}


def with_tools(*middleware: Any, **given: Any) -> Any:
    return agent(ADDING, DONE, MORE, tools=[add, echo], middleware=list(middleware), **given)


def talking(*middleware: Any, **given: Any) -> Any:
    return agent(say("an", "swer"), say("sec", "ond"), say("third"), middleware=list(middleware), **given)


def failing_first(error: Exception | None = None) -> Any:
    """A tool that fails each odd time."""
    tried: list[int] = []

    @tool
    async def luck(q: str = "") -> str:
        """Try."""
        tried.append(1)
        if len(tried) % 2:
            raise error or ValueError("bad luck")
        return "good luck"

    return luck


LUCKY = (call("luck", "c1", q="x"), DONE, MORE)


@scene("tool retry")
def tool_retry() -> Any:
    return agent(*LUCKY, tools=[failing_first()], middleware=[ToolRetryMiddleware(max_retries=2, **CALM)])


@scene("tool error")
def tool_error() -> Any:
    @tool
    async def luck(q: str = "") -> str:
        """Try."""
        raise ValueError("bad luck")

    return agent(
        *LUCKY, tools=[luck], middleware=[ToolErrorMiddleware(lambda error, request: f"sorry: {error}")]
    )


@scene("tool call limit, continue")
def tool_limit() -> Any:
    limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior="continue")
    two = both(call("add", "c1", a=1, b=2), call("echo", "c2", text="x"))
    return agent(two, DONE, MORE, tools=[add, echo], middleware=[limit])


@scene("tool call limit, end")
def tool_limit_end() -> Any:
    limit = ToolCallLimitMiddleware(thread_limit=1, exit_behavior="end")
    return agent(ADDING, call("add", "c2", a=3, b=4), MORE, tools=[add], middleware=[limit])


@scene("model call limit, end", unlike="no checkpoint keeps the count of a run's calls")
def model_limit() -> Any:
    return with_tools(ModelCallLimitMiddleware(run_limit=1, exit_behavior="end"))


@scene("context editing")
def context_editing() -> Any:
    edit = ClearToolUsesEdit(trigger=1, keep=0)
    return with_tools(ContextEditingMiddleware(edits=[edit]))


@scene("tool emulator")
def emulator() -> Any:
    return with_tools(LLMToolEmulator(tools=["add"], model=model(say("emu", "lated"))))


@scene("todos")
def todos() -> Any:
    plan = call("write_todos", "c0", todos=[{"content": "add", "status": "in_progress"}])
    over = call("write_todos", "c9", todos=[{"content": "add", "status": "completed"}])
    return agent(plan, ADDING, over, DONE, MORE, tools=[add], middleware=[TodoListMiddleware()])


@scene("file search")
def file_search() -> Any:
    root = Path(tempfile.gettempdir()) / "runcast-wide"
    root.mkdir(exist_ok=True)
    (root / "a.txt").write_text("needle\n")
    found = FilesystemFileSearchMiddleware(root_path=str(root), use_ripgrep=False)
    look = both(call("glob_search", "c1", pattern="*.txt"), call("grep_search", "c2", pattern="needle"))
    return agent(look, DONE, MORE, middleware=[found])


@scene("shell")
def shell() -> Any:
    return agent(call("shell", "c1", command="echo hi"), DONE, MORE, middleware=[ShellToolMiddleware()])


@scene("tool selector")
def selector() -> Any:
    class Selecting(Steady):
        def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
            return self | (lambda message: {"tools": ["add"]})

    chooser = Selecting(turns=[say('{"tools": ', '["add"]}')])
    return with_tools(LLMToolSelectorMiddleware(model=chooser, max_tools=1))


class Breaking(Steady):
    """Says half of it each odd time, and breaks."""

    tried: list[int] = Field(default_factory=list)

    def _next(self, messages: Any) -> Any:
        self.tried.append(1)
        turn = super()._next(messages)
        return [*say("half ", "of "), RuntimeError("model down")] if len(self.tried) % 2 else turn


def breaking(*turns: Any, tools: Any = (), **given: Any) -> Any:
    made = Breaking(turns=list(turns))
    return create_agent(made, list(tools), name="boss", checkpointer=InMemorySaver(), **given)


@scene("model retry that answers")
def model_retry() -> Any:
    return breaking(ADDING, DONE, MORE, tools=[add], middleware=[ModelRetryMiddleware(max_retries=2, **CALM)])


@scene("model retry that continues without", unlike="the model fails every odd time")
def model_retry_continues() -> Any:
    retry = ModelRetryMiddleware(max_retries=0, on_failure="continue", **CALM)
    return breaking(DONE, MORE, middleware=[retry])


@scene("model fallback, three")
def fallback() -> Any:
    half = [*say("half ", "an"), RuntimeError("model down")]
    return agent(
        half, tools=[add],
        middleware=[ModelFallbackMiddleware(model(half), model(ADDING, DONE, MORE))],
    )  # fmt: skip


@scene("retry inside a fallback")
def retry_fallback() -> Any:
    half = [*say("half ", "an"), RuntimeError("model down")]
    fall = ModelFallbackMiddleware(model(say("who", "le"), MORE))
    return agent(half, middleware=[fall, ModelRetryMiddleware(max_retries=1, on_failure="error", **CALM)])


for strategy in ("redact", "mask", "hash"):

    @scene(f"pii in, {strategy}", turns=("I am a@b.com", "and c@d.com"))
    def pii_in(strategy: Any = strategy) -> Any:
        return talking(PIIMiddleware("email", strategy=strategy))

    @scene(f"pii out, {strategy}")
    def pii_out(strategy: Any = strategy) -> Any:
        return agent(
            call("add", "c1", "mail x@y.com ", a=1, b=2), say("write to ", "a@b.com"), MORE, tools=[add],
            middleware=[PIIMiddleware("email", strategy=strategy, apply_to_output=True)],
        )  # fmt: skip


@scene("pii of tool results")
def pii_results() -> Any:
    return agent(
        call("echo", "c1", text="x@y.com"), DONE, MORE, tools=[echo],
        middleware=[PIIMiddleware("email", apply_to_tool_results=True)],
    )  # fmt: skip


TWO = both(call("add", "c1", a=1, b=2), call("echo", "c2", text="x"))


def asked(*middleware: Any, on: Any = None) -> Any:
    question = HumanInTheLoopMiddleware(on or {"add": True, "echo": True})
    return agent(TWO, DONE, MORE, tools=[add, echo], middleware=[*middleware, question])


APPROVE, REJECT = {"type": "approve"}, {"type": "reject", "message": "no"}
EDITED = {"type": "edit", "edited_action": {"name": "add", "args": {"a": 5, "b": 6}}}
RESPOND = {"type": "respond", "message": "it is 7"}
QUESTION = ("hi", "yes", "again")


@scene("two approvals", turns=QUESTION, decision={"decisions": [APPROVE, APPROVE]})
def two_approvals() -> Any:
    return asked()


@scene("approval and rejection", turns=QUESTION, decision={"decisions": [APPROVE, REJECT]})
def approve_reject() -> Any:
    return asked()


@scene("edit and approval", turns=QUESTION, decision={"decisions": [EDITED, APPROVE]})
def edit_approve() -> Any:
    return asked()


@scene("rejections", turns=QUESTION, decision={"decisions": [REJECT, REJECT]})
def rejections() -> Any:
    return asked()


@scene("one of two asked", turns=QUESTION, decision={"decisions": [APPROVE]})
def one_asked() -> Any:
    return asked(on={"echo": True})


@scene("answered instead", turns=QUESTION, decision={"decisions": [RESPOND]})
def responded() -> Any:
    on = {"echo": {"allowed_decisions": ["respond", "approve"]}}
    return asked(on=on)


@scene("approval let go", turns=("hi", Act.INSTEAD, "again"))
def let_go() -> Any:
    return asked()


@scene("approval with redaction", turns=QUESTION, decision={"decisions": [APPROVE]})
def approved_redacted() -> Any:
    mailing = call("add", "c1", "mail x@y.com", a=1, b=2)
    pii = PIIMiddleware("email", apply_to_output=True)
    question = HumanInTheLoopMiddleware({"add": True})
    return agent(mailing, DONE, MORE, tools=[add], middleware=[pii, question])


@scene("redaction with approval behind", turns=QUESTION, decision={"decisions": [APPROVE]})
def redacted_approved() -> Any:
    mailing = call("add", "c1", "mail x@y.com", a=1, b=2)
    pii = PIIMiddleware("email", apply_to_output=True)
    question = HumanInTheLoopMiddleware({"add": True})
    return agent(mailing, DONE, MORE, tools=[add], middleware=[question, pii])


@scene("redaction with approval let go", turns=("hi", Act.INSTEAD, "again"))
def redacted_let_go() -> Any:
    mailing = call("add", "c1", "mail x@y.com", a=1, b=2)
    pii = PIIMiddleware("email", apply_to_output=True)
    question = HumanInTheLoopMiddleware({"add": True})
    return agent(mailing, DONE, MORE, tools=[add], middleware=[question, pii])


@scene("todos with approval", turns=QUESTION, decision={"decisions": [APPROVE, APPROVE]})
def todos_approved() -> Any:
    return asked(TodoListMiddleware())


def summing(**given: Any) -> Any:
    return SummarizationMiddleware(
        model(say("a summary ", "of it")), trigger=("messages", 4), keep=("messages", 2), **given
    )


@scene("summaries", turns=("1", "2", "3", "4", "5"))
def summaries() -> Any:
    return talking(summing())


@scene("summaries with tools", turns=("1", "2", "3"))
def summaries_tools() -> Any:
    return agent(ADDING, DONE, call("echo", "c5", text="y"), MORE, tools=[add, echo], middleware=[summing()])


@scene("summaries and redaction", turns=("1 a@b.com", "2", "3"))
def summaries_pii() -> Any:
    return talking(PIIMiddleware("email"), summing())


@scene("summaries and todos", turns=("1", "2", "3"))
def summaries_todos() -> Any:
    return talking(TodoListMiddleware(), summing())


@scene("selector and limit")
def selector_limit() -> Any:
    return with_tools(
        ToolCallLimitMiddleware(run_limit=2), ModelCallLimitMiddleware(run_limit=5), TodoListMiddleware()
    )


@scene("emulator with approval", turns=QUESTION, decision={"decisions": [APPROVE]})
def emulator_approved() -> Any:
    return with_tools(
        LLMToolEmulator(tools=["add"], model=model(say("emu", "lated"))),
        HumanInTheLoopMiddleware({"add": True}),
    )


@scene("retry and editing")
def retry_editing() -> Any:
    edit = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=0)])
    return agent(
        *LUCKY, tools=[failing_first()], middleware=[edit, ToolRetryMiddleware(max_retries=2, **CALM)]
    )
