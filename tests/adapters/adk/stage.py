"""A stage for real ADK runs: plays inputs through an adapter, records both sides, and holds them to the judges.

`check` is what every case of this folder must pass: the strict verifier, the TypeScript client (its door and its
reducer), and the client's messages and state equal to those rebuilt from the session, ids included. What ADK gave is
recorded on request; `test_recordings` cuts every recording at every position.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from ag_ui.core import Event as AgEvent
from ag_ui.core import Message, ResumeEntry, RunAgentInput, UserMessage
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
from runcast.slim.protocol.verifier import verify
from tests.adapters.adk.recordings import count_ids_and_times, record
from tests.e2e.oracle import Oracle

WHERE = {"app_name": "app", "user_id": "user", "session_id": "t1"}


class Recording(Runner):
    """A runner that keeps what it gave: one list a run."""

    taken: list[list[Event]]

    async def run_async(self, **given: Any) -> AsyncGenerator[Event, None]:
        mine: list[Event] = []
        self.taken.append(mine)
        async for event in super().run_async(**given):
            mine.append(event.model_copy(deep=True))
            yield event


class Stage:
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
        count_ids_and_times()
        self.root = root
        self.options = options
        self.service = service or InMemorySessionService()
        config = ResumabilityConfig(is_resumable=True) if resumable else None
        self.app = App(name="app", root_agent=root, resumability_config=config, **app)
        self.native: list[list[Event]] = []
        self.runs: list[list[AgEvent]] = []
        self.inputs: list[RunAgentInput] = []
        self.open()

    def open(self) -> None:
        """A fresh adapter over the same sessions: what a restart leaves."""
        self.runner = Recording(
            app=self.app, session_service=self.service, artifact_service=InMemoryArtifactService()
        )
        self.runner.taken = self.native
        self.adapter = AdkAdapter(self.runner, options=self.options, run_config=RunConfig(max_llm_calls=12))

    async def say(self, *texts: str, **given: Any) -> list[AgEvent]:
        """A run for new user messages."""
        number = len(self.runs) + 1
        new = [UserMessage(id=f"u{number}-{n}", content=it) for n, it in enumerate(texts, 1)]
        return await self.send([*await self.messages(), *new], **given)

    async def answer(self, answers: Mapping[str, Any] | None = None, **given: Any) -> list[AgEvent]:
        """A run that answers interrupts: `cancel=[ids]` cancels some."""
        cancelled = given.pop("cancel", ())
        entries = [
            ResumeEntry(interrupt_id=k, status="resolved", payload=v) for k, v in (answers or {}).items()
        ]
        entries += [ResumeEntry(interrupt_id=it, status="cancelled") for it in cancelled]
        return await self.send(await self.messages(), resume=entries, **given)

    async def send(self, messages: Sequence[Message], **given: Any) -> list[AgEvent]:
        resume = given.pop("point", None)
        it = RunAgentInput(thread_id="t1", run_id=f"r{len(self.runs) + 1}", messages=list(messages), **given)
        self.inputs.append(it)
        events = [event async for event in self.adapter.run(it, resume=resume)]
        self.runs.append(events)
        return events

    async def session(self) -> Session | None:
        return await self.service.get_session(**WHERE)  # type: ignore[arg-type]

    async def messages(self) -> list[Message]:
        """What the session rebuilds to."""
        session = await self.session()
        events = [] if session is None else session.events
        return messages_from_events(events, root=self.root.name, options=self.options)

    @property
    def interrupts(self) -> list[Any]:
        """What the last run waits for."""
        outcome = self.runs[-1][-1].outcome  # type: ignore[union-attr]
        return outcome.interrupts if outcome is not None and outcome.type == "interrupt" else []

    async def check(
        self, oracle: Oracle, *, ordered: bool = True, state: Any = None, stored: bool = True
    ) -> dict[str, Any]:
        """Hold everything that was played to the judges; the client's view.

        `ordered=False`: agents spoke in parallel, and the session orders them by their end. `stored=False`: ADK
        itself did not store all that was streamed (partials that nothing completes).
        """
        strict([event for run in self.runs for event in run])
        for run in self.runs:
            seen = oracle.pipeline(run)
            assert seen["ok"], seen["error"]
        client = watch(oracle, self.runs, self.inputs, state=state)
        assert client["ok"], client["errors"]
        rebuilt = [wire(message) for message in await self.messages()]
        if ordered and stored:
            assert client["messages"] == rebuilt
        elif stored:
            assert sorted(client["messages"], key=by_id) == sorted(rebuilt, key=by_id)
        session = await self.session()
        if session is not None:
            assert client["state"] == visible(session.state, self.options)
        self.keep()
        return client

    def keep(self) -> None:
        """Record what was played, when that was asked for."""
        record(self.root.name, self.options, self.native)


def watch(
    oracle: Oracle, runs: Sequence[Sequence[AgEvent]], inputs: Sequence[RunAgentInput], state: Any = None
) -> Any:
    """The TypeScript client over these runs, one after the other."""
    scripts = []
    for events, it in zip(runs, inputs, strict=True):
        script: dict[str, Any] = {"events": list(events), "runId": it.run_id}
        if it.resume:
            script["resume"] = [wire(entry) for entry in it.resume]
        scripts.append(script)
    return oracle.run(*scripts, **({} if state is None else {"state": state}))


def strict(events: Sequence[AgEvent]) -> None:
    found = verify(events, profile="strict")
    assert not found, "\n".join(map(str, found))


def wire(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True)


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


__all__ = ["WHERE", "BaseAgent", "Stage"]
