"""The configuration from the environment: each field by its name, and errors that name the variable."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from runcast.broadcast import BroadcastConfig
from runcast.broadcast.errors import ConfigError

EACH = [field.name for field in fields(BroadcastConfig)]


@pytest.mark.parametrize("name", EACH)
def test_each_field_is_read_from_its_variable(name: str) -> None:
    usual = getattr(BroadcastConfig(), name)
    other = not usual if isinstance(usual, bool) else usual + 1_000
    text = ("yes" if other else "off") if isinstance(other, bool) else f" {other} "
    env = {f"RUNCAST_BROADCAST_{name.upper()}": text, "RUNCAST_BROADCAST": "redis://host", "HOME": "x"}
    assert BroadcastConfig.from_env(env) == replace(BroadcastConfig(), **{name: other})


def test_each_variable_is_documented_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs/deployment.md").read_text("utf-8")
    rows = [row.split("|")[1:4:2] for row in page.splitlines() if row.startswith("| `RUNCAST_BROADCAST_")]
    usual = {name: str(getattr(BroadcastConfig(), name)).lower() for name in EACH}
    assert [(name.strip(" `"), value.strip(" `")) for name, value in rows] == [
        (f"RUNCAST_BROADCAST_{name.upper()}", value) for name, value in usual.items()
    ]


@pytest.mark.parametrize("preset", ["minimal", "standard", "debug", "agui"])
def test_variables_change_a_preset(preset: str) -> None:
    base: BroadcastConfig = getattr(BroadcastConfig, preset)()
    assert BroadcastConfig.from_env({}, preset=preset) == base
    changed = BroadcastConfig.from_env({"X_ROLLUP_MS": "7"}, preset=preset, prefix="X_")
    assert changed == replace(base, rollup_ms=7)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("CHUNKS", "perhaps", "RUNCAST_BROADCAST_CHUNKS is true or false, not 'perhaps'"),
        ("ROLLUP_MS", "-1", "RUNCAST_BROADCAST_ROLLUP_MS is a whole number of 0 or more, not '-1'"),
        ("MAX_ARGS", "", "RUNCAST_BROADCAST_MAX_ARGS is a whole number"),
        ("CHUNK", "1", "RUNCAST_BROADCAST_CHUNK: unknown setting 'chunk'; known are: activity, chunks,"),
        ("MAX_ENVELOPE_BYTES", "100", "max_envelope_bytes is 100; an envelope's own keys need at least 512"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(name: str, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        BroadcastConfig.from_env({f"RUNCAST_BROADCAST_{name}": text})


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown preset 'loud'; there are: minimal, standard, debug, agui"):
        BroadcastConfig.from_env({}, preset="loud")
