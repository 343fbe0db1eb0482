"""What ADK keeps of a thread: its session and artifacts, deleted, written as rows, and read again by any other service.

State and artifacts of the whole user or app are not the thread's: they are neither written nor read. Rows may come from
anywhere; they are JSON, checked by ADK's own models. Knows services; does not know files.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.session import Session
from google.genai import types
from pydantic import ValidationError

from runcast.adapters.errors import InvalidInput

WIDER = ("app:", "user:", "temp:")  # state that is not the session's
USERS = "user:"  # an artifact of the user
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KeptSession:
    """The sessions of one runner. With a function for `user_id` the user is found by the session, or named in the rows."""

    runner: Runner
    user_id: str | Callable[..., str]

    async def forget(self, thread_id: str) -> None:
        """Delete the thread's session and its artifacts; where `user_id` is a function, those of every user."""
        for user in await self._users(thread_id):
            await self._delete(self._place(user, thread_id))

    async def rows(self, thread_id: str, *, prefix: str = "") -> AsyncIterator[Row]:
        """The session, its events in order, and its artifacts with all their versions."""
        artifacts = self.runner.artifact_service
        for user in await self._users(prefix + thread_id):
            place = self._place(user, prefix + thread_id)
            session = await self.runner.session_service.get_session(**place)
            if session is None:
                continue
            yield {"user": user, "state": _own(session.state)}
            for event in session.events:
                delta = _own(event.actions.state_delta)
                own = event.model_copy(
                    update={"actions": event.actions.model_copy(update={"state_delta": delta})}
                )
                yield {"event": own.model_dump(mode="json", by_alias=True, exclude_none=True)}
            if artifacts is None:
                continue
            for name in await artifacts.list_artifact_keys(**place):
                for version in (
                    [] if name.startswith(USERS) else await artifacts.list_versions(**place, filename=name)
                ):
                    part = await artifacts.load_artifact(**place, filename=name, version=version)
                    if part is not None:
                        yield {"artifact": name, "part": part.model_dump(mode="json", exclude_none=True)}

    async def store(self, thread_id: str, rows: Sequence[Row], *, prefix: str = "") -> None:
        """Store such rows. A thread that has a session here is refused."""
        service, artifacts = self.runner.session_service, self.runner.artifact_service
        user, state, events, parts = self._read(rows)
        if parts and artifacts is None:
            raise InvalidInput("the thread has artifacts, and the runner no artifact service: give it one")
        place = self._place(user, prefix + thread_id)
        if await service.get_session(**place) is not None:
            raise InvalidInput(f"ADK has a session {thread_id!r} already: forget it first")
        session: Session = await service.create_session(**place, state=state)
        for event in events:
            await service.append_event(session, event)
        for name, part in parts:
            if artifacts is not None:
                await artifacts.save_artifact(**place, filename=name, artifact=part)

    def _read(
        self, rows: Sequence[Row]
    ) -> tuple[str, dict[str, Any], list[Event], list[tuple[str, types.Part]]]:
        users, state = list[str](), dict[str, Any]()
        events, parts = list[Event](), list[tuple[str, types.Part]]()
        try:
            for row in rows:
                if "event" in row:
                    event = Event.model_validate_json(orjson.dumps(row["event"]))
                    event.actions.state_delta = _own(event.actions.state_delta)
                    events.append(event)
                elif "artifact" in row:
                    name = str(row["artifact"])
                    if name.startswith(USERS):
                        raise ValueError("an artifact of the whole user is no part of a thread")
                    parts.append((name, types.Part.model_validate_json(orjson.dumps(row["part"]))))
                else:
                    users.append(str(row["user"]))
                    state = _own(row["state"])
            (user,) = users
        except (KeyError, TypeError, ValueError, AttributeError, ValidationError) as error:
            raise InvalidInput(f"a row of the archive is no part of a session: {str(error)[:300]}") from error
        return (self.user_id if isinstance(self.user_id, str) else user), state, events, parts

    def _place(self, user: str, session_id: str) -> dict[str, Any]:
        return {"app_name": self.runner.app_name, "user_id": user, "session_id": session_id}

    async def _users(self, session_id: str) -> list[str]:
        if isinstance(self.user_id, str):
            return [self.user_id]
        found = await self.runner.session_service.list_sessions(app_name=self.runner.app_name)
        return sorted({each.user_id for each in found.sessions if each.id == session_id})

    async def _delete(self, place: Mapping[str, Any]) -> None:
        artifacts = self.runner.artifact_service
        for name in [] if artifacts is None else await artifacts.list_artifact_keys(**place):
            if artifacts is not None and not name.startswith(USERS):
                await artifacts.delete_artifact(**place, filename=name)
        await self.runner.session_service.delete_session(**place)


def _own(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state that belongs to the session alone."""
    return {name: value for name, value in state.items() if not name.startswith(WIDER)}
