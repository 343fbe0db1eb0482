"""The active runs of one adapter: one for each run id, and one for each thread."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from ag_ui.core import RunAgentInput

from runcast.adapters.adapter import ResumePoint, Take
from runcast.adapters.driving.pump import Pump
from runcast.adapters.errors import ThreadBusy, UnknownRun


class ActiveRun:
    """One run, from its input to its terminal event."""

    def __init__(self, input: RunAgentInput, resume: ResumePoint | None) -> None:
        self.input = input
        self.mark = uuid4().hex  # on what it stores; two attempts may share an id
        self.anew = (
            resume is not None and resume.framework.get("anew") is True
        )  # the first run was taken back
        self.resume = None if self.anew else resume
        self.pump: Pump[Any] | None = None
        self.abort = asyncio.Event()  # ADK's soft stop
        self.running = False  # the runner was asked for events
        self.take: Take | None = None  # gives the messages that wait for its next model call
        self.thread: tuple[str, str] | None = None  # the (user, thread id) that it occupies

    def stop(self, *, hard: bool) -> None:
        """Let ADK end the run, or cancel it at once."""
        self.abort.set()
        if self.pump is not None and (hard or not self.running):
            self.pump.cancel()


class ActiveRuns:
    """Refuses a second run of an id or a thread with `ThreadBusy`."""

    def __init__(self) -> None:
        self.by_id: dict[str, ActiveRun] = {}
        self._holders: dict[tuple[str, str], ActiveRun] = {}  # (user, thread id) -> its run

    def get(self, run_id: str) -> ActiveRun:
        """The active run of this id, or `UnknownRun`."""
        run = self.by_id.get(run_id)
        if run is None:
            raise UnknownRun(f"no run {run_id!r} is active here")
        return run

    def add(self, run: ActiveRun) -> None:
        """Register the run's id."""
        if run.input.run_id in self.by_id:
            raise ThreadBusy(f"run {run.input.run_id!r} is active already: give every run an id of its own")
        self.by_id[run.input.run_id] = run

    def occupy(self, run: ActiveRun, user: str) -> None:
        """Give the run its thread."""
        thread = (user, run.input.thread_id)
        holder = self._holders.setdefault(thread, run)
        if holder is not run:
            raise ThreadBusy(f"run {holder.input.run_id!r} of this thread is active: wait for it, or stop it")
        run.thread = thread

    def remove(self, run: ActiveRun) -> None:
        """Free the run's id and its thread; safe to repeat."""
        if self.by_id.get(run.input.run_id) is run:
            del self.by_id[run.input.run_id]
        thread, run.thread = run.thread, None
        if thread is not None:
            del self._holders[thread]
