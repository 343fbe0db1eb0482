"""How long a remote agent may take, and how much it may send at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Deadlines in seconds and bounds of a remote run. None waits without a limit."""

    connect_seconds: float | None = 10.0
    answer_seconds: float | None = 60.0
    """Until the response begins."""
    silence_seconds: float | None = 300.0
    """Between two pieces of the stream; servers that send keep-alive comments never reach it."""
    max_event_bytes: int = 8 * 1024 * 1024
    waiting_events: int = 1_000
    """Events that may wait here for a slow reader; then the response is no longer read."""

    def __post_init__(self) -> None:
        for name in ("connect_seconds", "answer_seconds", "silence_seconds"):
            seconds = getattr(self, name)
            if seconds is not None and seconds <= 0:
                raise ValueError(f"{name} must be above 0, or None to wait without a limit")
        if self.max_event_bytes < 1 or self.waiting_events < 1:
            raise ValueError("max_event_bytes and waiting_events must be at least 1")
