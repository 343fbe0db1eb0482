"""A stage for real ADK runs: plays inputs through an adapter, records both sides, and holds them to the judges.

`check` is what every case of this folder must pass: the strict verifier, the TypeScript client (its door and its
reducer), and the client's messages and state equal to those rebuilt from the session, ids included. What ADK gave is
recorded on request; `test_recordings` cuts every recording at every position.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from enum import StrEnum
from typing import Any

from ag_ui.core import Event as AgEvent
from ag_ui.core import Message, ResumeEntry, RunAgentInput, SubagentStartedEvent, UserMessage
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.artifacts import InMemoryArtifactService
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session

from runcast.adapters.adk import AdkAdapter, AdkOptions, messages_from_events
from runcast.adapters.adk.plain_values import visible
from tests.adapters.adk.recordings import count_ids_and_times, record
from tests.adapters.harness import AdapterStage, strict, wire
from tests.e2e.oracle import Oracle

WHERE = {"app_name": "app", "user_id": "user", "session_id": "t1"}


class Recording(Runner):
    """A runner that keeps what it gave: one list a run."""

    taken: list[list[Event]]

    async def run_async(self, **given: Any) -> AsyncGenerator[Event, None]:
        mine: list[Event] = []
        self.taken.append(mine)
        async with aclosing(super().run_async(**given)) as events:
            async for event in events:
                mine.append(event.model_copy(deep=True))
                yield event


class Act(StrEnum):
    """A turn that is more than words."""

    EDIT = "edit the last message"
    AGAIN = "answer the last message again"
    CANCEL = "cancel the question"
    INSTEAD = "say something else"
    CANCEL_AND_SAY = "cancel the question and say something"


class Stage(AdapterStage):
    """One thread of one agent, run by run."""

    def __init__(
        self,
        root: Any,
        *,
        options: AdkOptions = AdkOptions(),  # noqa: B008
        service: BaseSessionService | None = None,
        resumable: bool = True,
        **app: Any,
    ) -> None:
        super().__init__()
        count_ids_and_times()
        self.root = root
        self.options = options
        self.service = service or InMemorySessionService()
        config = ResumabilityConfig(is_resumable=True) if resumable else None
        self.app = App(name="app", root_agent=root, resumability_config=config, **app)
        self.artifacts = InMemoryArtifactService()
        self.native: list[list[Event]] = []
        self.open()

    def open(self) -> None:
        """A fresh adapter over the same sessions: what a restart leaves."""
        self.runner = Recording(app=self.app, session_service=self.service, artifact_service=self.artifacts)
        self.runner.taken = self.native
        self.adapter = AdkAdapter(self.runner, options=self.options, run_config=RunConfig(max_llm_calls=12))

    async def say(self, *texts: str, **given: Any) -> list[AgEvent]:
        """A run for new user messages."""
        new = [UserMessage(id=f"u{len(self.runs) + 1}-{n}", content=it) for n, it in enumerate(texts, 1)]
        return await self.send([*await self.messages(), *new], **given)

    async def answer(self, answers: Mapping[str, Any] | None = None, **given: Any) -> list[AgEvent]:
        """A run that answers interrupts: `cancel=[ids]` cancels some."""
        entries = [
            ResumeEntry(interrupt_id=k, status="resolved", payload=v) for k, v in (answers or {}).items()
        ]
        entries += cancelling(given.pop("cancel", ()))
        return await self.send(await self.messages(), resume=entries, **given)

    async def turn(self, words: str) -> list[AgEvent]:
        """Approve what waits, or say something; an `Act` does what it says."""
        waiting = {it.id: True for it in self.interrupts}
        held = await self.messages()
        match words:
            case Act.EDIT | Act.AGAIN:
                last = max(at for at, it in enumerate(held) if it.role == "user")
                edited = UserMessage(id=f"u{len(self.runs) + 1}-edited", content="edited")
                sent = [*held[:last], edited if words is Act.EDIT else held[last]]
                return await self.send(sent, resume=cancelling(waiting) or None)
            case Act.CANCEL:
                return await self.answer(cancel=waiting)
            case Act.CANCEL_AND_SAY:
                return await self.say(words, resume=cancelling(waiting))
            case Act.INSTEAD:
                events = await self.say(words)
                counted = cancelling(waiting) or None  # the official client lets no question go by itself
                self.inputs[-1] = self.inputs[-1].model_copy(update={"resume": counted})
                return events
            case _:
                return await (self.answer(waiting) if waiting else self.say(words))

    async def send(self, messages: Sequence[Message], **given: Any) -> list[AgEvent]:
        """A run with these messages, and what else its input has."""
        point = given.pop("point", None)
        it = RunAgentInput(thread_id=self.thread, run_id=self.next_run(), messages=list(messages), **given)
        return await self.perform(it, point=point)

    async def session(self) -> Session | None:
        return await self.service.get_session(**WHERE)  # type: ignore[arg-type]

    async def messages(self) -> list[Message]:
        """What the session rebuilds to."""
        session = await self.session()
        events = [] if session is None else session.events
        return messages_from_events(events, root=self.root.name, options=self.options)

    async def check(
        self, oracle: Oracle, *, ordered: bool = True, state: Any = None, stored: bool = True
    ) -> dict[str, Any]:
        """Hold everything that was played to the judges; the client's view.

        `ordered=False`: agents spoke in parallel, and the session orders them by their end. `stored=False`: ADK
        itself did not store all that was streamed (partials that nothing completes).
        """
        self.judge(oracle)
        client = self.client(oracle, **({} if state is None else {"state": state}))
        rebuilt = [wire(message) for message in await self.messages()]
        inner = self.inner_runs()
        shown = [it for it in client["messages"] if it.get("subagentRunId") not in inner]
        if ordered and stored:
            assert shown == rebuilt
        elif stored:
            assert sorted(shown, key=by_id) == sorted(rebuilt, key=by_id)
        session = await self.session()
        if session is not None:
            assert client["state"] == visible(session.state, self.options)
        self.keep()
        return client

    def inner_runs(self) -> set[str]:
        """The runs of agents that are tools, and those inside them: their messages are in no session of this thread."""
        found: set[str] = set()
        for run in self.runs:
            for it in run:
                if isinstance(it, SubagentStartedEvent) and (
                    it.parent_tool_call_id or it.parent_subagent_run_id in found
                ):
                    found.add(it.subagent_run_id)
        return found

    async def same(self, oracle: Oracle, *, ordered: bool = True) -> Any:
        """What a broken and an undisturbed conversation have in common, once the client shows the session.

        Runs of subagents have new ids when they go on, an event that was lost with its process took its notes along,
        and a thought that is taken back stays as an empty one: no event of the protocol removes it.
        """
        self.judge(oracle)
        client, held = self.client(oracle), await self.messages()
        inner = self.inner_runs()
        own = [it for it in client["messages"] if it.get("subagentRunId") not in inner]
        session = await self.session()
        assert session is not None
        assert client["state"] == visible(session.state, self.options)
        shown, kept = said(own), said([wire(it) for it in held])
        assert (shown if ordered else sorted(shown, key=str)) == (kept if ordered else sorted(kept, key=str))
        return sorted(it[1:] for it in shown) if not ordered else [it[1:] for it in shown], client["state"]

    def keep(self) -> None:
        """Record what was played, when that was asked for."""
        record(self.root.name, self.options, self.native)


def cancelling(questions: Iterable[str]) -> list[ResumeEntry]:
    """The entries that cancel these questions."""
    return [ResumeEntry(interrupt_id=it, status="cancelled") for it in questions]


def said(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Id, role, content and calls of messages, as text."""
    return [
        (
            it["id"],
            it["role"],
            str(it.get("content")),
            str([c["function"] for c in it.get("toolCalls") or ()]),
        )
        for it in messages
        if it["role"] != "reasoning" or it["content"]
    ]


def by_id(message: Mapping[str, Any]) -> str:
    return str(message["id"])


def kinds(events: Sequence[AgEvent]) -> list[str]:
    return [event.type.value for event in events]


def brief(events: Sequence[AgEvent], *more: str) -> list[str]:
    """Event types without steps, custom events and the run's ends."""
    dropped = {"STEP_STARTED", "STEP_FINISHED", "RUN_STARTED", "RUN_FINISHED", "CUSTOM", *more}
    return [kind for kind in kinds(events) if kind not in dropped]


def texts(client: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The client's messages as (role, content)."""
    return [(it["role"], it.get("content", "")) for it in client["messages"]]


__all__ = ["WHERE", "Act", "BaseAgent", "Stage", "strict", "wire"]
