"""The bounds, their presets, and how they are read."""

from __future__ import annotations

import dataclasses

import pytest

from runcast.slim.snapshots.slim_config import SlimConfig


def test_the_defaults_are_the_standard_preset():
    assert SlimConfig() == SlimConfig.standard()
    config = SlimConfig()
    assert (config.max_messages, config.max_steps, config.max_content_length) == (50, 20, 2_000)
    assert (config.include_tool_results, config.include_steps) == (True, True)
    assert (config.include_continuation_trace, config.redact_tool_args) == (False, False)
    assert config.max_bytes == 65_536


def test_the_presets_have_the_numbers_they_promise():
    small, full = SlimConfig.minimal(), SlimConfig.full()
    assert (small.max_messages, small.max_steps, small.max_content_length) == (20, 0, 500)
    assert (small.include_tool_results, small.include_steps) == (False, False)
    assert (full.max_messages, full.max_steps, full.max_content_length) == (100, 50, 5_000)
    assert (full.include_tool_results, full.include_steps, full.include_continuation_trace) == (
        True,
        True,
        True,
    )


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SlimConfig().max_messages = 1  # type: ignore[misc]  # that is the test


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"max_messages": -1}, "max_messages is a whole number of 0 or more, not -1"),
        ({"max_steps": 1.5}, "max_steps is a whole number of 0 or more, not 1.5"),
        ({"max_steps": True}, "max_steps is a whole number of 0 or more, not True"),
        ({"include_state": 1}, "include_state is true or false, not 1"),
        ({"max_bytes": 4_095}, "max_bytes is at least 4096"),
        ({"max_tool_result_length": -2}, "max_tool_result_length is a whole number"),
        ({"max_state_bytes": None}, "max_state_bytes is a whole number"),
        ({"pin_first_system": True}, "set include_system as well"),
        ({"max_mesages": 3}, "unknown setting 'max_mesages'; known are: include_continuation_trace"),
        ({"preset": "huge"}, "unknown preset 'huge'; there are: minimal, standard, full"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_a_sentence(settings: dict[str, object], sentence: str):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        SlimConfig.from_dict(settings)


def test_settings_come_on_top_of_a_preset():
    config = SlimConfig.from_dict({"preset": "minimal", "max_messages": 7, "max_tool_result_length": None})
    assert config == dataclasses.replace(SlimConfig.minimal(), max_messages=7)


def test_settings_are_read_from_the_variables_that_are_handed_in():
    env = {
        "RUNCAST_SLIM_PRESET": "full",
        "RUNCAST_SLIM_MAX_BYTES": " 9000 ",
        "RUNCAST_SLIM_INCLUDE_STEPS": "off",
        "RUNCAST_SLIM_REDACT_TOOL_ARGS": "Yes",
        "RUNCAST_SLIM_MAX_TOOL_RESULT_LENGTH": "none",
        "HOME": "elsewhere",
    }
    config = SlimConfig.from_env(env)
    expected = dataclasses.replace(
        SlimConfig.full(), max_bytes=9_000, include_steps=False, redact_tool_args=True
    )
    assert config == expected
    assert SlimConfig.from_env({"X_MAX_STEPS": "3"}, prefix="X_") == SlimConfig(max_steps=3)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("MAX_STEPS", "many", "RUNCAST_SLIM_MAX_STEPS is a whole number of 0 or more, not 'many'"),
        ("MAX_STEPS", "", "is a whole number"),
        ("INCLUDE_STEPS", "perhaps", "RUNCAST_SLIM_INCLUDE_STEPS is true or false, not 'perhaps'"),
        ("MAX_STEP", "3", "unknown setting 'max_step'"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(name: str, text: str, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        SlimConfig.from_env({f"RUNCAST_SLIM_{name}": text})
