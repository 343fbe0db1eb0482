"""The kinds of envelopes that are broadcast, and their limits. A frozen value; four presets.

Does not know channels, targets or sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from runcast.broadcast.errors import ConfigError
from runcast.slim.environment import settings_in

PREFIX = "RUNCAST_BROADCAST_"


@dataclass(frozen=True, slots=True)
class BroadcastConfig:
    """The content of a watcher's stream. The defaults are `standard()`."""

    chunks: bool = True  # agent.stream.chunk
    reasoning: bool = False  # agent.reasoning.chunk
    continuation: bool = False  # agent.continuation, and `continuation` on completed steps
    state: bool = False  # agent.state
    activity: bool = True  # agent.activity
    custom: bool = True  # agent.custom
    include_args: bool = False  # the arguments themselves beside their summary
    max_envelope_bytes: int = 8_000
    max_args: int = 3  # arguments named in a summary
    max_value_chars: int = 30  # of one argument in a summary
    max_result_chars: int = 100  # of a result in a summary
    max_response_chars: int = 500  # of the last response in a status
    max_error_chars: int = 300
    rollup_ms: int = 40  # chunks of one message within this time travel together; 0 sends each alone
    faithful: bool = False  # the events themselves, one a frame, and nothing of the above

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, bool) and value < 0:
                raise ConfigError(f"{field.name} is {value}; it must be 0 or more")
        if self.max_envelope_bytes < 512:
            raise ConfigError(
                f"max_envelope_bytes is {self.max_envelope_bytes}; an envelope's own keys need at least 512"
            )

    @classmethod
    def from_env(
        cls, env: Mapping[str, str], *, preset: str = "standard", prefix: str = PREFIX
    ) -> BroadcastConfig:
        """A preset, with what variables such as `RUNCAST_BROADCAST_REASONING=yes` or `RUNCAST_BROADCAST_ROLLUP_MS=100`
        change of it. Raises ConfigError."""
        presets = {"minimal": cls.minimal, "standard": cls.standard, "debug": cls.debug, "agui": cls.agui}
        if preset not in presets:
            raise ConfigError(f"unknown preset {preset!r}; there are: {', '.join(presets)}")
        try:
            given: dict[str, Any] = settings_in(env, prefix, {it.name: str(it.type) for it in fields(cls)})
        except ValueError as error:
            raise ConfigError(str(error)) from error
        return replace(presets[preset](), **given)

    @classmethod
    def minimal(cls) -> BroadcastConfig:
        """Status, steps and tools; no text."""
        return cls(chunks=False, activity=False, custom=False)

    @classmethod
    def standard(cls) -> BroadcastConfig:
        """Text, activities and custom events too. No arguments, no reasoning, no state."""
        return cls()

    @classmethod
    def debug(cls) -> BroadcastConfig:
        """Everything, arguments included: for the developer only."""
        return cls(
            reasoning=True,
            continuation=True,
            state=True,
            include_args=True,
            max_value_chars=100,
            max_result_chars=500,
        )

    @classmethod
    def agui(cls, *, max_envelope_bytes: int = 60_000) -> BroadcastConfig:
        """Every AG-UI event itself, for a client that speaks the protocol. Hides nothing."""
        return cls(faithful=True, max_envelope_bytes=max_envelope_bytes, rollup_ms=0)


Choice = BroadcastConfig | Callable[[str], BroadcastConfig]
"""One configuration for every thread, or a callable that gives a thread's by its id."""

_STANDARD = BroadcastConfig()


def chosen(choice: Choice | None, thread_id: str) -> BroadcastConfig:
    """The configuration of one thread."""
    if choice is None:
        return _STANDARD
    return choice if isinstance(choice, BroadcastConfig) else choice(thread_id)
