"""A job that one of several nodes does at a time: its lease is a note, which the holder renews.

Knows notes; does not know the job.
"""

from __future__ import annotations

from uuid import uuid4

from runcast.slim import Note, Notes


class NoteLease:
    """The right to do a job, until another node takes it over."""

    def __init__(self, notes: Notes, job: str, *, lasting_ms: int) -> None:
        self._notes = notes
        self._name = f"lease {job}"
        self._lasting_ms = lasting_ms
        self._note: Note | None = None

    async def hold(self) -> bool:
        """Take the lease, or renew it; False while another node holds it."""
        if self._note is not None and not await self._notes.take(self._note):
            self._note = None  # it expired, and was taken
        for note in await self._notes.read(self._name):
            if not self._notes.is_over(note):
                return False
            await self._notes.take(note)
        body = uuid4().bytes  # taking a note removes exactly this one
        self._note = await self._notes.leave(
            self._name, box=self._name, body=body, lasting_ms=self._lasting_ms
        )
        return self._note is not None

    async def release(self) -> None:
        """Give the lease back, if it is held."""
        if self._note is not None:
            await self._notes.take(self._note)
            self._note = None
