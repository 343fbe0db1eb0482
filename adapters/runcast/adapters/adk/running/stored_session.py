"""The session of one run: what the run reads of it, and what the adapter stores beside the runner.

All that is stored has the run's mark. Does not decide what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.session import Session
from google.genai import types

from runcast.adapters.adk.intake.fork import rewind_mark
from runcast.adapters.adk.intake.late_events import TAKEN, counted
from runcast.adapters.adk.intake.plan import Plan
from runcast.adapters.adk.interrupts import names
from runcast.adapters.adk.running.runner import ReadOnce, Rewinding, for_one_run
from runcast.slim.folding.run_metadata import METADATA_KEY


class StoredSession:
    """The session at this place, for one run."""

    def __init__(self, runner: Runner, run: str, where: dict[str, str]) -> None:
        self._runner = runner
        self._run = run
        self._where = where
        self._service = ReadOnce(runner.session_service, run)

    async def read(self) -> Session | None:
        """The session as its runs left it: what a run stored when it was over is in the store, and not in here."""
        found = await self._service.get_session(**self._where)
        if found is not None:
            found.events[:] = counted(found.events)
        return found

    async def create(self, state: Mapping[str, Any], past: Iterable[Event]) -> Session:
        """A session that begins with this state and these events."""
        session = await self._service.create_session(**self._where, state=dict(state))
        for event in past:
            await self.append(session, event)
        return session

    async def append(self, session: Session, event: Event) -> None:
        """Store an event."""
        await self._service.append_event(session, event)

    async def take_over(self, session: Session, invocation: str) -> None:
        """Store a note, so that what another worker of this invocation may still store comes too late.

        A service that refuses a stale session refuses it from now on. No agent and no client is shown the note.
        """
        note = Event(author="user", invocation_id=invocation, custom_metadata={METADATA_KEY: {TAKEN: True}})
        await self.append(session, note)
        session.events[:] = counted(session.events)

    async def undo(self, session: Session, planned: Plan) -> None:
        """Rewind the session to before the fork, unless the attempt before this one did."""
        before = planned.before
        if before is None or session.events[-1].actions.rewind_before_invocation_id == before:
            return
        service = Rewinding(self._runner.session_service, self._run, rewind_mark(planned.news))
        service.offer(session)
        await for_one_run(self._runner, service, []).rewind_async(
            user_id=self._where["user_id"], session_id=session.id, rewind_before_invocation_id=before
        )

    async def answers(self, session: Session, planned: Plan) -> None:
        """Append answers that no turn of the agent follows, each to the invocation of its call."""
        invocations = {call: event for event in session.events for call in names([event])}
        for parts in planned.stored:
            responses = (part.function_response for part in parts)
            asked = next(invocations[it.id] for it in responses if it is not None and it.id in invocations)
            answer = Event(
                author="user",
                invocation_id=asked.invocation_id,
                branch=asked.branch,
                content=types.Content(role="user", parts=parts),
                custom_metadata={METADATA_KEY: planned.stored_mark} if planned.stored_mark else None,
            )
            await self.append(session, answer)
