"""A job that one of several nodes does at a time: its lease is a note, which the holder renews.

Knows notes; does not know the job.
"""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

from runcast.slim import Notes, SlimError


class NoteLease:
    """The right to do a job, until another node takes it over."""

    def __init__(self, notes: Notes, job: str, *, lasting_ms: int) -> None:
        self._notes = notes
        self._name = f"lease {job}"
        self._lasting_ms = lasting_ms
        self._own = uuid4().bytes  # marks a note of this lease, also when the answer was lost

    async def hold(self) -> bool:
        """Take the lease, or renew it; False while another node holds it."""
        for note in await self._notes.read(self._name):
            if note.body != self._own and not self._notes.is_over(note):
                return False
            await self._notes.take(note)
        left = await self._notes.leave(
            self._name, box=self._name, body=self._own, lasting_ms=self._lasting_ms
        )
        return left is not None

    async def release(self) -> None:
        """Give the lease back, if it is held. One that the store does not take back expires."""
        with suppress(SlimError):
            for note in await self._notes.read(self._name):
                if note.body == self._own:
                    await self._notes.take(note)
