"""The bounds of a snapshot: their defaults, three presets, and how to read them from a dict or environment variables.

Does not know how a snapshot is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from runcast.slim.environment import settings_in

SMALLEST = 4_096  # bytes; below this not even the frame of a snapshot is sure to fit
PREFIX = "RUNCAST_SLIM_"


@dataclass(frozen=True, slots=True)
class SlimConfig:
    """Bounds of a snapshot. Lengths are characters, sizes are bytes of UTF-8 JSON."""

    max_messages: int = 50
    max_steps: int = 20
    max_content_length: int = 2_000
    include_tool_results: bool = True
    include_steps: bool = True
    include_continuation_trace: bool = False
    redact_tool_args: bool = False  # keep only the id and name of a call
    max_bytes: int = 65_536  # of the whole snapshot
    max_tool_result_length: int | None = None  # None: as `max_content_length`
    max_state_bytes: int = 16_384  # top-level keys that do not fit are left out
    max_metadata_bytes: int = 4_096
    include_state: bool = True
    include_system: bool = False  # system and developer messages
    include_reasoning: bool = False
    pin_first_system: bool = False  # counts among `max_messages`; needs `include_system`
    pin_first_user: bool = False

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if kind == "bool" and not isinstance(value, bool):
                raise ValueError(f"{name} is true or false, not {value!r}")
            if kind != "bool" and not (value is None and kind != "int"):
                _check_number(name, value)
        if self.max_bytes < SMALLEST:
            raise ValueError(
                f"max_bytes is at least {SMALLEST}, so that the frame of a snapshot fits; not {self.max_bytes}"
            )
        if self.pin_first_system and not self.include_system:
            raise ValueError("pin_first_system keeps a system message: set include_system as well")

    @classmethod
    def minimal(cls) -> SlimConfig:
        """For a list of threads: 20 short messages, no tool results, no steps."""
        return cls(
            max_messages=20,
            max_steps=0,
            max_content_length=500,
            include_tool_results=False,
            include_steps=False,
        )

    @classmethod
    def standard(cls) -> SlimConfig:
        """The defaults."""
        return cls()

    @classmethod
    def full(cls) -> SlimConfig:
        """For diagnosis: 100 long messages, 50 steps, and the last decision to continue or stop."""
        return cls(
            max_messages=100,
            max_steps=50,
            max_content_length=5_000,
            include_continuation_trace=True,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SlimConfig:
        """Settings by name, on top of the preset named under `preset` (`standard` when absent)."""
        given = dict(data)
        config = _preset(cls, given.pop("preset", "standard"))
        unknown = sorted(set(given) - set(_KINDS))
        if unknown:
            raise ValueError(f"unknown setting {unknown[0]!r}; known are: {', '.join(sorted(_KINDS))}")
        return replace(config, **given)

    @classmethod
    def from_env(cls, env: Mapping[str, str], *, prefix: str = PREFIX) -> SlimConfig:
        """Settings from variables such as `RUNCAST_SLIM_MAX_MESSAGES=20` or `RUNCAST_SLIM_PRESET=full`."""
        return cls.from_dict(settings_in(env, prefix, {**_KINDS, "preset": "str"}))


_KINDS: dict[str, str] = {field.name: str(field.type) for field in fields(SlimConfig)}


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} is a whole number of 0 or more, not {value!r}")


def _preset(cls: type[SlimConfig], name: Any) -> SlimConfig:
    presets = {"minimal": cls.minimal, "standard": cls.standard, "full": cls.full}
    if name not in presets:
        raise ValueError(f"unknown preset {name!r}; there are: {', '.join(presets)}")
    return presets[name]()
